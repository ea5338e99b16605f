#!/bin/sh
# Builds the heliograph wheel and installs it into .venv when one of its files has changed.
#
# It is a real installation, so tests and demo run the files that users get. The build tree (build/wheel) is kept, so
# that only changed files are compiled again.
set -eu

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
top=$(CDPATH='' cd -- "$here/../.." && pwd)
python=$top/.venv/bin/python
stamp=$top/.venv/.heliograph

say() { printf 'bootstrap: %s\n' "$*"; }

cd "$top"
wanted=$(find pyproject.toml LICENSE README.md deploy/alerts.toml deploy/runbooks engine monitor exporters dashboards \
    -type f ! -name '*.pyc' \( ! -name '*.md' -o -path 'deploy/runbooks/*' \) -print0 2>/dev/null | sort -z | xargs -0 sha256sum | sha256sum)
if [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$wanted" ]; then
    exit 0
fi

say "building and installing heliograph"
rm -f "$stamp"
mkdir -p build
log=build/package.log
if ! "$python" -m pip install --no-input --disable-pip-version-check --no-deps --no-build-isolation \
    --force-reinstall . >"$log" 2>&1; then
    cat "$log" >&2
    exit 1
fi
printf '%s\n' "$wanted" >"$stamp"
