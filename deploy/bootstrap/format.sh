#!/bin/sh
# Formats the source files and writes the generated files.
set -eu

top=$(CDPATH='' cd -- "$(dirname -- "$0")/../.." && pwd)
cd "$top"
.venv/bin/python engine/catalogue/generate.py
.venv/bin/python deploy/bootstrap/picture.py
.venv/bin/ruff check --quiet --fix . || true
.venv/bin/ruff format --quiet .
find engine tests -name '*.[ch]' ! -path '*/generated/*' -print0 |
    xargs -0 -r .venv/bin/clang-format -i
