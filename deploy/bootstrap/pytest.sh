#!/bin/sh
# The Python tests. Most of them wait for something most of the time, so two files run at once; the demonstration, which
# has ports of its own, and the benches, which time things, run alone. With arguments: what pytest makes of them, in one go.
set -eu

top=$(CDPATH='' cd -- "$(dirname -- "$0")/../.." && pwd)
cd "$top"
pytest=".venv/bin/python -m pytest"

if [ $# -gt 0 ]; then
    exec $pytest "$@"
fi
bad=0
$pytest --numprocesses 2 --dist loadfile --ignore tests/e2e --ignore tests/bench || bad=1
$pytest tests/e2e tests/bench || bad=1
exit "$bad"
