#!/bin/sh
# The Python tests. Most of them wait most of the time, so two files run in parallel. The demo (fixed ports), the benches
# (timing) and the history run alone: Spark starts from the test process and needs memory that thousands of earlier tests
# have used. With arguments: one pytest run with these arguments.
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
