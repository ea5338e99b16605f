#!/bin/sh
# The Python tests. Most of them wait most of the time, so two files run in parallel. The history runs after the others:
# Spark starts from the test process and needs memory that thousands of earlier tests have used. Then live fire runs
# beside the demos, which have fixed ports; both wait for their fleets. The benches (timing) run alone. With arguments:
# one pytest run with these arguments.
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

once_more_at_most=8

# run NAME PYTEST_ARGUMENTS...: succeeds when all pass, a few of them perhaps only alone.
run() {
    cache=build/pytest/$1
    failures=$cache/v/cache/lastfailed
    shift
    rm -f "$failures"
    $pytest -o cache_dir="$cache" "$@" && return 0
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
    $pytest -o cache_dir="$cache" --last-failed --last-failed-no-failures none || return 1
    echo "PASSED ONLY ALONE (look at each: a deadline that is too short, or a race):"
    echo "$names"
}

bad=0
run most --numprocesses 2 --dist loadfile --ignore tests/e2e --ignore tests/bench --ignore tests/history || bad=1
run history --numprocesses 2 --dist loadfile tests/history || bad=1

mkdir -p build
(
    pytest="env --default-signal=INT $pytest" # a shell without job control lets its background ignore Ctrl-C
    run fire tests/e2e/test_livefire.py
) >build/live-fire.log 2>&1 &
fire=$!
run demo tests/e2e --ignore tests/e2e/test_livefire.py || bad=1
wait "$fire" || bad=1
cat build/live-fire.log

run bench tests/bench || bad=1
exit "$bad"
