#!/bin/sh
# Builds the C tests and runs them.
#
#   ctest.sh TREE [SANITIZERS]       ctest.sh build/asan address,undefined
#
# Without sanitizers up to two failures are tried once more, alone, as in pytest.sh. What a sanitizer finds counts at once.
set -eu

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
tree=$here/../../$1
sh "$here/native.sh" "$@"
echo "C tests in $1${2:+ with sanitizers $2}"
export ASAN_OPTIONS="${ASAN_OPTIONS:-detect_leaks=1:strict_string_checks=1}"
export UBSAN_OPTIONS="${UBSAN_OPTIONS:-print_stacktrace=1:halt_on_error=1}"

# Programs that a test kills leave their segments behind: not among those of this host.
segments=$(mktemp -d /dev/shm/heliograph-tests-XXXXXX)
trap 'rm -rf "$segments"' EXIT
trap 'exit 130' INT TERM
export HELIOGRAPH_SEGMENT_DIR="$segments"

run() {
    ctest --test-dir "$tree" --output-on-failure --no-tests=error --timeout 600 "$@"
}

run --parallel "${JOBS:-$(nproc)}" && exit
failures=$tree/Testing/Temporary/LastTestsFailed.log
[ -z "${2:-}" ] && [ -s "$failures" ] && [ "$(wc -l <"$failures")" -le 2 ] || exit 1
names=$(sed 's/^[0-9]*:/  /' "$failures")
echo "once more, alone:"
echo "$names"
run --rerun-failed || exit 1
echo "PASSED ONLY ALONE (look at each: a deadline that is too short, or a race):"
echo "$names"
