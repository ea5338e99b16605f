"""What a user gets: the installed package holds code, types, tables and page assets, and no C source."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, files

import pytest

SOURCES = (".c", ".h", ".def", ".md", ".txt")
RUNBOOKS = "heliograph/exporters/alerts/runbooks/"


@pytest.fixture(scope="module")
def installed() -> list[str]:
    try:
        listed = files("heliograph")
    except PackageNotFoundError:
        listed = None
    if not listed:
        pytest.skip("heliograph is not installed here; `make build` installs it")
    return [path.as_posix() for path in listed if path.parts[0] == "heliograph"]


@pytest.mark.parametrize("room", ["engine", "monitor", "exporters", "dashboards"])
def test_every_room_says_that_it_is_typed(installed: list[str], room: str) -> None:
    assert f"heliograph/{room}/py.typed" in installed


@pytest.mark.parametrize("table", ["statistics", "events", "options", "errors", "protocol"])
def test_the_catalogue_comes_along(installed: list[str], table: str) -> None:
    assert f"heliograph/engine/catalogue/{table}.toml" in installed


@pytest.mark.parametrize("module", ["engine/_core", "monitor/_hdr", "monitor/_module_host"])
def test_compiled_modules_come_with_their_types(installed: list[str], module: str) -> None:
    assert any(name.startswith(f"heliograph/{module}.") and name.endswith(".so") for name in installed)
    assert f"heliograph/{module}.pyi" in installed


def test_the_live_page_brings_its_style(installed: list[str]) -> None:
    assert any(name.startswith("heliograph/dashboards/live/assets/") and name.endswith(".css") for name in installed)


def test_no_source_of_the_engine_is_installed(installed: list[str]) -> None:
    assert not [name for name in installed if name.endswith(SOURCES) and not name.startswith(RUNBOOKS)]


def test_the_live_page_brings_settings_and_runbooks_of_the_alerts(installed: list[str]) -> None:
    assert "heliograph/exporters/alerts/alerts.toml" in installed
    assert any(name.startswith(f"{RUNBOOKS}Heliograph") and name.endswith(".md") for name in installed)


def test_heliograph_is_a_namespace(installed: list[str]) -> None:
    assert "heliograph/__init__.py" not in installed
