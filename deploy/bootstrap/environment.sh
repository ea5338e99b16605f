#!/bin/sh
# Creates .venv with every Python package that pyproject.toml names, at the versions that ../constraints.txt pins.
#
# PYTHON names the interpreter (default python3). A stamp in .venv records the installation, so a second run does
# nothing. Other requirements or pins, another interpreter or an incomplete .venv create it again.
set -eu

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
top=$(CDPATH='' cd -- "$here/../.." && pwd)
python=${PYTHON:-python3}
venv=$top/.venv
stamp=$venv/.requirements

say() { printf 'bootstrap: %s\n' "$*"; }
fail() {
    printf 'bootstrap: %s\n' "$*" >&2
    exit 1
}

command -v "$python" >/dev/null 2>&1 || fail "no $python here; install Python 3.11 or newer (Debian: apt-get install python3)"
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
    fail "$python is $("$python" -V 2>&1); Heliograph needs Python 3.11 or newer (PYTHON=/path/to/python3.11 make ...)"
"$python" -c 'import ensurepip, venv' 2>/dev/null ||
    fail "$python cannot make environments; install its venv module (Debian: apt-get install python3-venv)"
"$python" -c 'import os, sys, sysconfig; sys.exit(not os.path.exists(sysconfig.get_path("include") + "/Python.h"))' ||
    fail "$python has no Python.h; install its headers (Debian: apt-get install python3-dev)"

wanted=$(
    "$python" -c 'import sys; print(sys.version, sys.prefix)'
    "$python" "$here/requirements.py" "$top/pyproject.toml" all dev
    cat "$here/../constraints.txt"
)
if [ -x "$venv/bin/python" ] && [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$wanted" ]; then
    exit 0
fi

say "making .venv (Python packages, a gigabyte with Spark; once)"
rm -rf "$venv"
"$python" -m venv "$venv"
"$python" "$here/requirements.py" "$top/pyproject.toml" all dev >"$venv/requirements.txt"
"$venv/bin/python" -m pip install -qq --no-input --disable-pip-version-check \
    --requirement "$venv/requirements.txt" --constraint "$here/../constraints.txt" ||
    fail "pip could not install the packages above; is a package index in reach? (.venv is unfinished; run make again)"
# For its file axe.min.js, which the browser tests run with Selenium; Playwright, which it requires, is not used.
"$venv/bin/python" -m pip install -qq --no-input --disable-pip-version-check --no-deps \
    --constraint "$here/../constraints.txt" axe-playwright-python || fail "pip could not install axe-playwright-python"
printf '%s\n' "$wanted" >"$stamp"
