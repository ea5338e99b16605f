"""Every name of the catalogue is used: counted or emitted somewhere in C, and explained in the reference.

That every statistic is exported is shown in tests/exporters.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from heliograph.engine import Action, _core, catalogue

from .cell_uses import written_cells

TOP = Path(__file__).resolve().parents[2]


def _c_words() -> frozenset[str]:
    """Every identifier of the hand-written C core, comments left out."""
    words: set[str] = set()
    for path in sorted((TOP / "engine/core").rglob("*.[ch]")):
        if "generated" not in path.parts:
            text = re.sub(r"/\*.*?\*/|//[^\n]*", " ", path.read_text(encoding="utf-8"), flags=re.DOTALL)
            words.update(re.findall(r"\w+", text))
    return frozenset(words)


def _members() -> frozenset[str]:
    """Every member that the C core reads from a variable `options`, from one of its parts, or by its name."""
    text = "".join(path.read_text(encoding="utf-8") for path in sorted((TOP / "engine/core").rglob("*.c")))
    path = r"\boptions(?:->|\.)(?:(?:stream|transmitter|receiver)\.)?"
    return frozenset(re.findall(path + r"(\w+)", text) + re.findall(r"find\(\"(\w+)\"", text))


WORDS = _c_words()
MEMBERS = _members()
CELLS = [cell for scope in catalogue.scopes().values() for cell in scope.cells]
SCALARS = [cell for cell in CELLS if cell.statistic.kind != "histogram"]
HISTOGRAMS = [cell for cell in CELLS if cell.statistic.kind == "histogram"]


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> frozenset[tuple[str, str]]:
    """Scope and cell of all that the engine writes."""
    compiler = shutil.which("gcc")
    if compiler is None:
        pytest.skip("no gcc")
    return written_cells(compiler, tmp_path_factory.mktemp("cells"))


@pytest.mark.parametrize("cell", SCALARS, ids=lambda cell: f"{cell.statistic.scope}.{cell.name}")
def test_a_statistic_is_counted_somewhere(cell: catalogue.Cell, written: frozenset[tuple[str, str]]) -> None:
    """In a record of its own scope. Cells of a split may also be reached as an array from the first one on."""
    scope, split = cell.statistic.scope, cell.statistic.split
    names = {cell.name} | ({cell.statistic.cells[0].name} if split is not None else set())
    assert any((scope, name) in written for name in names), f"nothing in engine/core writes {scope}.{cell.name}"


@pytest.mark.parametrize("cell", HISTOGRAMS, ids=lambda cell: f"{cell.statistic.scope}.{cell.name}")
def test_a_histogram_is_recorded_somewhere(cell: catalogue.Cell) -> None:
    index = f"HELIO_{cell.statistic.scope.upper()}_{cell.name.upper()}"
    assert index in WORDS, f"nothing in engine/core records {index}"


@pytest.mark.parametrize("event", catalogue.events().values(), ids=lambda event: event.name)
def test_an_event_is_emitted_somewhere(event: catalogue.Event) -> None:
    assert f"HELIO_EVENT_{event.name.upper()}" in WORDS, f"nothing in engine/core emits {event.name}"


@pytest.mark.parametrize("option", catalogue.options().values(), ids=lambda option: option.name)
def test_an_option_is_used_somewhere(option: catalogue.Option) -> None:
    members = {option.name, f"{option.name}_ns"}
    assert members & MEMBERS, f"nothing in engine/core reads {option.name}"


def _settings() -> frozenset[str]:
    """Every name that a test of the engine or its interface gives a value: helpers, comments and this file left out.

    In Python a keyword, a key, or a part of an endpoint or option text; in C a member or a part of an option text.
    """
    found: set[str] = set()
    for room in ("api", "conformance", "engine", "hostile", "lab", "sim"):
        for path in [*(TOP / "tests" / room).glob("test_*.*"), *(TOP / "tests" / room).glob("sim_*.c")]:
            text = path.read_text(encoding="utf-8")
            if path.suffix == ".c":
                text = re.sub(r"/\*.*?\*/", " ", text, flags=re.DOTALL)
                found.update(re.findall(r"(?:\.|->)(\w+) = ", text))
            else:
                text = re.sub(r"^\s*#.*$", " ", text, flags=re.MULTILINE)
                found.update(re.findall(r"(\w+)=(?!=)", text))
                found.update(re.findall(r"[\"'](\w+)[\"']\s*:", text))
                found.update(re.findall(r"\(\s*[\"'](\w+)[\"'],", text))
            found.update(re.findall(r"[?&\"](\w+)=", text))
    return frozenset(found)


SETTINGS = _settings()


@pytest.mark.parametrize("option", catalogue.options().values(), ids=lambda option: option.name)
def test_an_option_has_a_test(option: catalogue.Option) -> None:
    """Some test sets it, by its name or by the field of the machine's configuration that carries it."""
    name = option.name
    fields = {name, f"{name}_ns", f"{name}_packets", f"{name}_bytes", f"{name.removesuffix('_time')}_ns"}
    assert fields & SETTINGS, f"no test sets {name}"


@pytest.mark.parametrize("error", catalogue.errors().values(), ids=lambda error: error.name)
def test_an_error_is_returned_somewhere(error: catalogue.Error) -> None:
    assert f"HELIO_ERR_{error.name}" in WORDS, f"nothing in engine/core returns HELIO_ERR_{error.name}"


@pytest.mark.parametrize("page", ["statistics", "events", "options", "errors"])
def test_the_reference_explains_every_name(page: str) -> None:
    text = "".join(path.read_text(encoding="utf-8") for path in (TOP / "engine/docs").glob(f"{page}*.md"))
    names = {
        "statistics": [stat.name for scope in catalogue.scopes().values() for stat in scope.statistics],
        "events": list(catalogue.events()),
        "options": list(catalogue.options()),
        "errors": [f"HELIO_ERR_{name}" for name in catalogue.errors()],
    }[page]
    missing = [name for name in names if not re.search(rf"\b{name}\b", text)]
    assert not missing


def test_profiles_are_the_choices_of_their_option() -> None:
    assert list(catalogue.profiles()) == list(catalogue.options()["profile"].choices)


def test_the_actions_are_numbered_once() -> None:
    """By the same number as value of the option, in the two statistics and at the binding."""
    actions = catalogue.actions()
    assert [action.number for action in actions.values()] == list(range(1, len(actions) + 1))
    names = tuple(actions)
    assert [name.replace("-", "_") for name in catalogue.options()["slow_action"].choices] == list(names[:6])
    decided = {s.name: s.split.values for s in catalogue.scopes()["tx_stream"].statistics if s.split}
    assert decided["slow_decisions"] == decided["slow_actions"] == names[:12]
    assert ("none", *names) == _core.ACTIONS
    assert set(Action) == {action.name for action in actions.values() if action.notice}


@pytest.mark.parametrize(
    ("profile", "option"),
    [(p, o) for p in catalogue.profiles().values() for o in p.values],
    ids=lambda x: str(getattr(x, "name", x)),
)
def test_a_profile_sets_what_the_option_takes(profile: catalogue.Profile, option: str) -> None:
    row, value = catalogue.options()[option], profile.values[option]
    if row.choices:
        assert value in row.choices
    else:
        assert isinstance(value, bool | int | float)
        assert row.low is None or row.high is None or row.low <= value <= row.high
    assert value != row.default, "it says nothing"


@pytest.mark.parametrize("cell", SCALARS, ids=lambda cell: f"{cell.statistic.scope}.{cell.name}")
def test_counters_and_gauges_are_on_at_every_level(cell: catalogue.Cell) -> None:
    """Only histograms follow the level of detail, so nothing else may claim to."""
    assert cell.statistic.level == 0
