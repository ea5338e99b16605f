#!/bin/sh
# Every check that needs no running program. All checks run, also after a failure; any failure fails the script.
# Warnings of the C compiler are errors in every build and need no step here.
set -u

top=$(CDPATH='' cd -- "$(dirname -- "$0")/../.." && pwd)
cd "$top" || exit 1
bin=.venv/bin
bad=0

step() {
    name=$1
    shift
    if output=$("$@" 2>&1); then
        printf 'lint: %-22s ok\n' "$name"
    else
        printf 'lint: %-22s FAILED\n%s\n' "$name" "$output"
        bad=1
    fi
}

# heliograph/ with the directories as they are installed, for mypy.
rm -rf build/src
mkdir -p build/src/heliograph
for folder in engine monitor exporters dashboards; do ln -s "../../../$folder" "build/src/heliograph/$folder"; done

c_files() { find engine tests -name '*.[ch]' ! -path '*/generated/*' | sort; }
format_c() { c_files | xargs "$bin/clang-format" --dry-run -Werror || { echo 'make fmt formats them'; return 1; }; }
shell_syntax() {
    for file in .ci/run $(find deploy tests -name '*.sh' | sort); do sh -n "$file" || return 1; done
}

step 'ruff check' "$bin/ruff" check --quiet .
step 'ruff format' "$bin/ruff" format --quiet --check .
# By directory, not by package name: by name mypy would read the installed package.
step 'mypy --strict' "$bin/mypy" build/src/heliograph
step 'mypy deploy, typing' "$bin/mypy" $(find deploy tests/typing -name '*.py' | sort)
step 'clang-format' format_c
step 'generated files' "$bin/python" engine/catalogue/generate.py --check
step 'architecture picture' "$bin/python" deploy/bootstrap/picture.py --check
step 'shell syntax' shell_syntax
exit "$bad"
