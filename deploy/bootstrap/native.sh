#!/bin/sh
# Builds the C library, its tests and (without sanitizers) the benchmark programs, without Python.
#
#   native.sh TREE [SANITIZERS]      native.sh build/asan address,undefined
#
# Warnings are errors here (and in the wheel).
set -eu

tree=$1
sanitizers=${2:-}
top=$(CDPATH='' cd -- "$(dirname -- "$0")/../.." && pwd)
cd "$top"

for tool in cmake cc; do
    command -v "$tool" >/dev/null 2>&1 || {
        echo "native: no $tool here; see deploy/debian-packages.txt" >&2
        exit 1
    }
done
generator='Unix Makefiles'
if command -v ninja >/dev/null 2>&1; then generator=Ninja; fi

# Speed is measured without sanitizers.
bench=ON
if [ -n "$sanitizers" ]; then bench=OFF; fi

mkdir -p "$tree"
cmake -S engine -B "$tree" -G "$generator" -DCMAKE_BUILD_TYPE=RelWithDebInfo -DHELIO_TESTS=ON -DHELIO_BENCH=$bench \
    -DHELIO_SANITIZE="$sanitizers" >"$tree/cmake.log" 2>&1 || {
    cat "$tree/cmake.log" >&2
    exit 1
}
cmake --build "$tree" --parallel "${JOBS:-$(nproc)}"
