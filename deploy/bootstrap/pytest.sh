#!/bin/sh
# The Python tests. Most of them wait for something most of the time, so two files run at once; the demonstration, which
# has ports of its own, and the benches, which time things, run alone; so does the history, whose Spark is started from the
# test's process and finds no memory where thousands of tests ran before. With arguments: what pytest makes of them, in one go.
set -eu

top=$(CDPATH='' cd -- "$(dirname -- "$0")/../.." && pwd)
cd "$top"
pytest=".venv/bin/python -m pytest"

if [ $# -gt 0 ]; then
    exec $pytest "$@"
fi
bad=0
$pytest --numprocesses 2 --dist loadfile --ignore tests/e2e --ignore tests/bench --ignore tests/history || bad=1
$pytest tests/history || bad=1
$pytest tests/e2e tests/bench || bad=1
exit "$bad"
