#!/bin/sh
# The Python tests. Most of them wait most of the time, so two files run in parallel. The demo (fixed ports), the benches
# (timing) and live fire (a fleet that must be healthy) run alone. The history runs after the others: Spark starts from
# the test process and needs memory that thousands of earlier tests have used. With arguments: one pytest run with these
# arguments.
#
# Up to eight failures of one run are tried once more, alone. Thousands of tests with deadlines on a shared host fail
# once in a while for want of processor time. A test that passes alone is named in the output and does not fail the run;
# one that fails twice does, and so do more than eight failures.
set -eu

top=$(CDPATH='' cd -- "$(dirname -- "$0")/../.." && pwd)
cd "$top"
pytest=".venv/bin/python -m pytest"

if [ $# -gt 0 ]; then
    exec $pytest "$@"
fi

failures=build/pytest/v/cache/lastfailed
once_more_at_most=8

# run PYTEST_ARGUMENTS...: succeeds when all pass, a few of them perhaps only alone.
run() {
    rm -f "$failures"
    $pytest "$@" && return 0
    [ -s "$failures" ] || return 1
    if grep '": true' "$failures" | grep -qv '::'; then
        echo "the tests could not be collected"
        return 1
    fi
    number=$(grep -c '": true' "$failures")
    [ "$number" -le "$once_more_at_most" ] || return 1
    names=$(sed -n 's/^ *"\(.*\)": true,*$/  \1/p' "$failures")
    echo "once more, alone, $number failed:"
    echo "$names"
    $pytest --last-failed --last-failed-no-failures none || return 1
    echo "PASSED ONLY ALONE (look at each: a deadline that is too short, or a race):"
    echo "$names"
}

bad=0
run --numprocesses 2 --dist loadfile --ignore tests/e2e --ignore tests/bench --ignore tests/history || bad=1
run --numprocesses 2 --dist loadfile tests/history || bad=1
run tests/e2e tests/bench || bad=1
exit "$bad"
