"""The table of exporters, and those of other packages."""

from __future__ import annotations

import inspect
import subprocess
import sys
from importlib.metadata import EntryPoint, EntryPoints

import pytest

import heliograph.exporters as exporters
from heliograph.exporters import EXPORTERS, available, load
from heliograph.monitor.errors import UserError
from heliograph.monitor.model import Snapshot


class Elsewhere:
    """An exporter as another package would bring it."""

    def __init__(self, where: str = "") -> None:
        self.where = where

    def publish(self, snapshot: Snapshot) -> None:
        pass

    def close(self) -> None:
        pass


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another package brings the exporter `elsewhere`, and tries to take `prometheus`."""
    own = f"{__name__}:Elsewhere"
    points = [EntryPoint(name, own, exporters.GROUP) for name in ("elsewhere", "prometheus")]

    def entry_points(**wanted: str) -> EntryPoints:
        chosen = [point for point in points if all(getattr(point, key) == text for key, text in wanted.items())]
        return EntryPoints(chosen)

    monkeypatch.setattr(exporters, "entry_points", entry_points)
    monkeypatch.setitem(sys.modules, __name__, sys.modules[__name__])


@pytest.mark.parametrize("name", sorted(EXPORTERS))
def test_every_bundled_exporter_loads_and_has_the_shape(name: str) -> None:
    made = load(name)
    for method, arguments in (("publish", ["self", "snapshot"]), ("close", ["self"])):
        assert list(inspect.signature(getattr(made, method)).parameters) == arguments


def test_an_unknown_exporter_is_refused_with_those_there_are() -> None:
    with pytest.raises(UserError, match=r"unknown exporter 'promethius'; available: .*prometheus"):
        load("promethius")


@pytest.mark.usefixtures("installed")
def test_other_packages_bring_exporters_but_cannot_take_a_bundled_name() -> None:
    assert "elsewhere" in available()
    assert load("elsewhere").__name__ == "Elsewhere"
    assert load("prometheus").__name__ == "PrometheusExporter"


def test_a_missing_library_is_named_with_the_extra_that_brings_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(module: str) -> None:
        raise ModuleNotFoundError(f"No module named {'pyarrow'!r}", name="pyarrow")

    monkeypatch.setattr(exporters, "import_module", missing)
    with pytest.raises(UserError, match=r"'pyarrow'.*heliograph\[history\]"):
        load("spool")


def test_the_table_and_the_command_load_no_heavy_library() -> None:
    program = (
        "import sys, heliograph.exporters.commands\n"
        "heavy = {'prometheus_client', 'numpy', 'pyarrow', 'pyspark', 'dash'} & set(sys.modules)\n"
        "sys.exit(', '.join(sorted(heavy)) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
