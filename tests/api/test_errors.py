"""The family of errors is the catalogue's, complete and with codes."""

from __future__ import annotations

import subprocess
import sys

import pytest

import heliograph.engine
from heliograph.engine import Error, catalogue, errors


@pytest.mark.parametrize("row", catalogue.errors().values(), ids=lambda row: row.name)
def test_every_error_of_the_catalogue_has_its_class(row: catalogue.Error) -> None:
    error = errors.from_code(row.value, "what happened")
    assert type(error).__name__ == row.python
    assert isinstance(error, Error)
    assert (str(error), error.code, error.accepted) == ("what happened", row.name, 0)


def test_without_a_text_the_catalogue_speaks() -> None:
    assert str(errors.from_code(-7)) == catalogue.errors()["CLOSED"].help


def test_an_unknown_code_is_still_an_error() -> None:
    assert type(errors.from_code(-999, "from the future")) is Error


def test_every_class_is_carried_by_some_code() -> None:
    named = {row.python for row in catalogue.errors().values()}
    assert {kind.__name__ for kind in Error.__subclasses__()} == named


def test_the_shop_window_shows_every_class() -> None:
    for name in heliograph.engine.__all__:
        assert getattr(heliograph.engine, name).__name__ == name
    assert set(errors.__all__) - {"from_code"} <= set(heliograph.engine.__all__)
    assert set(heliograph.engine.__all__) <= set(dir(heliograph.engine))
    with pytest.raises(AttributeError):
        heliograph.engine.nothing  # noqa: B018


@pytest.mark.parametrize("module", ["catalogue", "catalogue.names", "commands", "options", "errors"])
def test_the_compiled_module_is_loaded_only_when_needed(module: str) -> None:
    code = f"import sys, heliograph.engine.{module}; print('heliograph.engine._core' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"
