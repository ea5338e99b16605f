"""Print what pip must install before the package itself is built: one requirement a line.

The pins live in ``pyproject.toml`` only. ``pip`` can install them together with the package, but then it also builds
the package in an environment of its own, downloaded each time; this gives it the requirements apart.

    python requirements.py pyproject.toml all dev
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path


def expand(project: dict[str, object], extra: str) -> Iterator[str]:
    """The requirements of one extra, with the project's own extras in it (``heliograph[live]``) opened."""
    extras = project["optional-dependencies"]
    assert isinstance(extras, dict)
    if extra not in extras:
        raise SystemExit(f"requirements.py: pyproject.toml has no extra '{extra}'; it has {', '.join(sorted(extras))}")
    own = re.compile(rf"{re.escape(str(project['name']))}\[([^\]]+)\]$")
    for requirement in extras[extra]:
        nested = own.match(requirement)
        if nested is None:
            yield requirement
        else:
            for name in nested[1].split(","):
                yield from expand(project, name.strip())


def main() -> None:
    """Print the build requirements, the dependencies and the wanted extras, each once, sorted."""
    path, *extras = sys.argv[1:]
    table = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    project = table["project"]
    wanted = {*table["build-system"]["requires"], *project["dependencies"]}
    for extra in extras:
        wanted.update(expand(project, extra))
    print("\n".join(sorted(wanted)))


if __name__ == "__main__":
    main()
