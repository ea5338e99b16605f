#!/bin/sh
# Builds the C tests and runs them.
#
#   ctest.sh TREE [SANITIZERS]       ctest.sh build/asan address,undefined
set -eu

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
sh "$here/native.sh" "$@"
echo "C tests in $1${2:+ with sanitizers $2}"
ASAN_OPTIONS=${ASAN_OPTIONS:-detect_leaks=1:strict_string_checks=1} \
    UBSAN_OPTIONS=${UBSAN_OPTIONS:-print_stacktrace=1:halt_on_error=1} \
    ctest --test-dir "$here/../../$1" --output-on-failure --no-tests=error --timeout 600 --parallel "${JOBS:-$(nproc)}"
