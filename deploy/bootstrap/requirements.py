"""Print the requirements that pip must install before the package is built, one per line.

``pyproject.toml`` has the ranges and ``deploy/constraints.txt`` the versions. ``pip`` can install the requirements with
the package, but then it builds the package in a separate environment that it downloads each time.

    python requirements.py pyproject.toml all dev
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path


def expand(project: dict[str, object], extra: str) -> Iterator[str]:
    """Yield the requirements of one extra, with the project's own extras in it (``heliograph[live]``) expanded."""
    extras = project["optional-dependencies"]
    assert isinstance(extras, dict)
    if extra not in extras:
        raise SystemExit(
            f"requirements.py: pyproject.toml has no extra '{extra}'; its extras are {', '.join(sorted(extras))}"
        )
    own = re.compile(rf"{re.escape(str(project['name']))}\[([^\]]+)\]$")
    for requirement in extras[extra]:
        nested = own.match(requirement)
        if nested is None:
            yield requirement
        else:
            for name in nested[1].split(","):
                yield from expand(project, name.strip())


def main() -> None:
    """Print the build requirements, the dependencies and the requested extras, each once, sorted."""
    path, *extras = sys.argv[1:]
    table = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    project = table["project"]
    wanted = {*table["build-system"]["requires"], *project["dependencies"]}
    for extra in extras:
        wanted.update(expand(project, extra))
    print("\n".join(sorted(wanted)))


if __name__ == "__main__":
    main()
