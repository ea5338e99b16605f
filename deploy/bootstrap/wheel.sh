#!/bin/sh
# Builds the sdist and, from the sdist, the wheel into build/dist. Installs the wheel in two fresh environments, with the
# newest and with the oldest numpy and prometheus-client that pyproject.toml allows. Runs the examples and tests of both
# packages there. Only binary packages are installed. The extras are not tried.
set -eu

top=$(CDPATH='' cd -- "$(dirname -- "$0")/../.." && pwd)
dist=$top/build/dist
work=$top/build/fresh

quiet() {
    "$@" >"$work/log" 2>&1 || {
        cat "$work/log" >&2
        exit 1
    }
}
try() { # try NAME CONSTRAINTS
    python=$work/$1/bin/python
    quiet .venv/bin/python -m venv "$work/$1"
    quiet "$python" -m pip install --no-input --only-binary :all: --constraint "$2" "$dist"/*.whl
    quiet "$python" -m pip install --no-input --only-binary :all: --constraint deploy/constraints.txt pytest pytest-timeout
    printf 'wheel: the %s packages: %s\n' "$1" "$("$python" -m pip freeze | grep -E '^(numpy|prometheus)' | tr '\n' ' ')"
    HELIOGRAPH_STRICT=1 "$python" -m pytest -q tests/e2e/test_examples.py \
        tests/exporters/test_prometheus.py tests/monitor/test_segment.py
}

cd "$top"
export PIP_DISABLE_PIP_VERSION_CHECK=1
rm -rf "$dist" "$work"
mkdir -p "$dist" "$work"
quiet .venv/bin/python -c 'import sys; from scikit_build_core.build import build_sdist; build_sdist(sys.argv[1])' "$dist"
quiet .venv/bin/python -m pip wheel --no-input --no-deps --no-build-isolation --wheel-dir "$dist" "$dist"/*.tar.gz
.venv/bin/python deploy/bootstrap/requirements.py pyproject.toml | sed 's/>=\([^,]*\).*/==\1/' >"$work/oldest.txt"
try newest /dev/null
try oldest "$work/oldest.txt"
rm -rf "$work"
ls -l "$dist"
