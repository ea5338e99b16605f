"""Which cells of which scope the engine's C code writes, as the compiler sees it.

The compiler is given the statistics header with every cell renamed, and names each use of a cell it no longer finds
together with the type of the record. So a comment, another scope's cell of the same name or a local variable count for
nothing. A cell that is only read (``helio_cell``) is not written.
"""

from __future__ import annotations

import os
import re
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

__all__ = ["written_cells"]

CORE = Path(__file__).resolve().parents[2] / "engine" / "core"
_USE = re.compile(
    r"^(?P<file>[^:\n]+):(?P<line>\d+):(?P<column>\d+): error: "
    r".*'(?:struct )?helio_(?P<scope>\w+)_stats'.* has no member named '(?P<cell>\w+)'",
    re.MULTILINE,
)
_READ = re.compile(r"helio_cell\(&?[\w\[\]().>-]*$")


def _overlay(folder: Path) -> None:
    """The generated header with other names for its cells."""
    text = (CORE / "generated" / "statistics.h").read_text(encoding="utf-8")
    text = re.sub(r"^    X\(([a-z]\w*), ([A-Z]+), ", r"    X(gone_\1, \2, ", text, flags=re.MULTILINE)
    text = re.sub(r"^    _Atomic uint64_t (\w+);", r"    _Atomic uint64_t gone_\1;", text, flags=re.MULTILINE)
    (folder / "generated").mkdir(parents=True)
    (folder / "generated" / "statistics.h").write_text(text, encoding="utf-8")


def _uses(compiler: str, folder: Path, source: Path) -> set[tuple[str, str]]:
    include = [f"-I{folder}", f"-I{CORE}", f"-I{CORE.parent / 'include'}"]
    command = [compiler, "-std=c11", "-D_GNU_SOURCE", "-fsyntax-only", "-fmax-errors=0", *include, str(source)]
    environment = os.environ | {"LC_ALL": "C"}
    said = subprocess.run(command, capture_output=True, text=True, env=environment, check=False).stderr
    found: set[tuple[str, str]] = set()
    for use in _USE.finditer(said):
        line = Path(use["file"]).read_text(encoding="utf-8").splitlines()[int(use["line"]) - 1]
        before = line[: int(use["column"]) - 1]
        if not _READ.search(before):
            found.add((use["scope"], use["cell"]))
    return found


def written_cells(compiler: str, folder: Path) -> frozenset[tuple[str, str]]:
    """Scope and cell of all that is written somewhere; `folder` is an empty one to work in."""
    _overlay(folder)
    sources = [path for path in sorted(CORE.rglob("*.c")) if path.stem != "hdr_codec"]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return frozenset().union(*pool.map(lambda source: _uses(compiler, folder, source), sources))
