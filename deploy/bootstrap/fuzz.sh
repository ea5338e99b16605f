#!/bin/sh
# Builds the fuzz targets in C with clang. Runs each of them, and each target in Python (fuzz_py_...), for some seconds on
# hostile input, two at a time.
#
#   fuzz.sh SECONDS [TARGET...]      fuzz.sh 60 fuzz_pgm fuzz_py_flight
#
# Findings are in build/fuzz/found, with the command that repeats them. The corpus for the next run is in
# build/fuzz/corpus.
set -eu

seconds=$1
shift
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
cd "$here/../.."
tree=build/fuzz

if ! command -v clang >/dev/null 2>&1; then
    if [ -n "${HELIOGRAPH_STRICT:-}" ]; then
        echo 'fuzz: no clang here; see deploy/debian-packages.txt' >&2
        exit 1
    fi
    echo 'fuzz: skipped, there is no clang here (deploy/debian-packages.txt)'
    exit 0
fi

mkdir -p "$tree"
generator='Unix Makefiles'
if command -v ninja >/dev/null 2>&1; then generator=Ninja; fi
cmake -S engine -B "$tree" -G "$generator" -DCMAKE_C_COMPILER=clang -DHELIO_FUZZ=ON \
    -DHELIO_SANITIZE=address,undefined >"$tree/cmake.log" 2>&1 || {
    cat "$tree/cmake.log" >&2
    exit 1
}
cmake --build "$tree" --parallel "${JOBS:-$(nproc)}"
.venv/bin/python tests/fuzz/seeds.py "$tree/seeds"

[ $# -gt 0 ] || set -- $(cd "$tree" && for file in fuzz_*; do [ -x "$file" ] && [ -f "$file" ] && echo "$file"; done) \
    $(.venv/bin/python -m tests.fuzz.python_fuzz list)
mkdir -p "$tree/found"
run() {
    target=$1
    case $target in
    fuzz_py_*)
        .venv/bin/python -m tests.fuzz.python_fuzz "$target" --seconds "$seconds" --corpus "$tree/corpus/$target" \
            --found "$tree/found"
        ;;
    *)
        mkdir -p "$tree/seeds/$target"
        "$tree/$target" -max_total_time="$seconds" -timeout=20 -rss_limit_mb=2048 -max_len=16384 -print_final_stats=1 \
            -artifact_prefix="$tree/found/$target-" "$tree/corpus/$target" "$tree/seeds/$target"
        ;;
    esac
}
one() {
    target=$1
    mkdir -p "$tree/corpus/$target"
    if run "$target" >"$tree/$target.log" 2>&1; then
        printf 'fuzz: [%s/%s] %-18s %s s, %s inputs, nothing found\n' "$2" "$total" "$target" "$seconds" \
            "$(sed -n 's/^stat::number_of_executed_units: *//p' "$tree/$target.log")"
    else
        printf 'fuzz: %-18s FAILED\n' "$target"
        tail -60 "$tree/$target.log"
        found=$(sed -n 's/.*Test unit written to //p' "$tree/$target.log")
        [ -z "$found" ] || printf 'fuzz: once more: %s %s\n' "$tree/$target" "$found"
        return 1
    fi
}

bad=0
total=$#
while [ $# -gt 0 ]; do
    first=$1
    shift
    one "$first" $((total - $#)) &
    job=$!
    if [ $# -gt 0 ]; then
        second=$1
        shift
        one "$second" $((total - $#)) || bad=1
    fi
    wait "$job" || bad=1
done
exit "$bad"
