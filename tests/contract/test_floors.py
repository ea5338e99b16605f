"""Who may know whom: every import of the Python packages, read from the source.

``engine.catalogue`` imports nothing of ours; the rest of ``engine`` only itself; ``monitor`` itself and the catalogue,
but for ``monitor.collector``, which sends snapshots over the engine and loads it when a link is opened, and
``monitor.lab``, which runs the engine's own code on a simulated network;
``exporters`` and ``dashboards`` themselves, ``monitor`` and the catalogue, never each other. Heavy libraries stay in
the rooms that use them; `test_entry_points` proves that the command line loads none.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[2]
ROOMS = ("engine", "monitor", "exporters", "dashboards")

CATALOGUE = "heliograph.engine.catalogue"
MAY_IMPORT = {
    "engine.catalogue": (CATALOGUE,),
    "engine": ("heliograph.engine",),
    "monitor.collector": ("heliograph.monitor", "heliograph.engine"),
    "monitor.lab": ("heliograph.monitor", "heliograph.engine"),
    "monitor": ("heliograph.monitor", CATALOGUE),
    "exporters": ("heliograph.exporters", "heliograph.monitor", CATALOGUE),
    "dashboards": ("heliograph.dashboards", "heliograph.monitor", CATALOGUE),
}
HEAVY = {
    "boto3": ("monitor/history/writes.py",),
    "botocore": ("monitor/history/writes.py",),
    "dash": ("dashboards/live/app.py", "dashboards/live/orders.py", "dashboards/live/pages/"),
    "flask": ("dashboards/live/push.py",),
    "grafana_api": ("dashboards/grafana/backend.py",),
    "hdrh": ("monitor/history/rows.py",),
    "pandas": ("monitor/history/",),
    "plotly": (),  # slow: charts are plain data, and the tests give them to it
    "prometheus_client": tuple(
        f"exporters/{name}.py" for name in ("collector", "families", "prometheus", "pushgateway", "rendering", "tables")
    ),
    "pyarrow": ("dashboards/live/past.py", "monitor/history/", "exporters/spool.py", "engine/store/archive.py"),
    "pyspark": ("monitor/history/",),
    "selenium": (),
    "waitress": ("dashboards/live/serving.py",),
}
"""Where a library may be imported; nowhere means that only tests use it."""


def sources() -> list[Path]:
    return sorted(path for room in ROOMS for path in (TOP / room).rglob("*.py"))


def floor(path: Path) -> str:
    parts = path.relative_to(TOP).parts
    return ".".join(parts[:2]) if ".".join(parts[:2]) in MAY_IMPORT else parts[0]


def imports(path: Path) -> Iterator[tuple[int, str]]:
    """Line and full name of everything a file imports, wherever in the file."""
    package = ("heliograph", *path.relative_to(TOP).with_suffix("").parts[:-1])
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"), path)):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = ".".join(package[: len(package) - node.level + 1]) if node.level else ""
            module = ".".join(part for part in (base, node.module or "") if part)
            yield from ((node.lineno, f"{module}.{alias.name}") for alias in node.names)


def within(name: str, allowed: tuple[str, ...]) -> bool:
    return any(name == root or name.startswith(root + ".") for root in allowed)


@pytest.mark.parametrize("path", sources(), ids=lambda path: str(path.relative_to(TOP)))
def test_a_room_imports_only_what_its_floor_allows(path: Path) -> None:
    allowed = MAY_IMPORT[floor(path)]
    wrong = [
        f"{path.relative_to(TOP)}:{line} imports {name}"
        for line, name in imports(path)
        if name.split(".")[0] == "heliograph" and not within(name, allowed)
    ]
    # `from heliograph.engine import catalogue` names the catalogue, not the engine.
    assert not wrong


@pytest.mark.parametrize("path", sources(), ids=lambda path: str(path.relative_to(TOP)))
def test_heavy_libraries_stay_in_their_rooms(path: Path) -> None:
    relative = path.relative_to(TOP).as_posix()
    wrong = [
        f"{relative}:{line} imports {name}"
        for line, name in imports(path)
        if (library := name.split(".")[0]) in HEAVY and not relative.startswith(tuple(HEAVY[library]))
    ]
    assert not wrong


def test_no_package_is_imported_by_its_folder_name() -> None:
    wrong = [
        f"{path.relative_to(TOP)}:{line} imports {name}"
        for path in sources()
        for line, name in imports(path)
        if name.split(".")[0] in ROOMS
    ]
    assert not wrong


def test_the_rooms_have_files_to_check() -> None:
    found = {path.relative_to(TOP).parts[0] for path in sources()}
    assert found == set(ROOMS)
