#!/bin/sh
# From a fresh clone to a working installation in .venv: Debian packages, Python packages, the build.
# Each step is quick when there is nothing to do; `make build`, `make test`, `make demo` all begin here.
set -eu

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
sh "$here/system.sh"
sh "$here/environment.sh"
sh "$here/package.sh"
