"""The one order of rows, and the list of receivers in it."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass
from pathlib import Path

import pytest

from heliograph.monitor.cli import main
from heliograph.monitor.worst import MOST, worst
from tests.fleet import sample_fleet


@dataclass(frozen=True)
class Row:
    badness: float
    name: str

    @property
    def identity(self) -> tuple[str, ...]:
        return (self.name,)


@pytest.mark.parametrize("seed", range(20))
def test_the_worst_k_are_the_first_k_of_all_also_among_equals(seed: int) -> None:
    chance = random.Random(seed)
    rows = [Row(chance.choice((0.0, 0.5, 0.5, 2.0)), f"r{number}") for number in range(200)]
    ordered = worst(rows)
    assert [row.badness for row in ordered] == sorted((row.badness for row in rows), reverse=True)
    chance.shuffle(rows)
    for most in (1, 7, 50, 200, 500):
        assert worst(rows, most) == ordered[:most]


def test_no_number_beyond_what_can_be_asked_for_is_taken() -> None:
    assert worst([], MOST) == []
    for most in (0, -1, MOST + 1):
        with pytest.raises(ValueError, match="1 to 10000"):
            worst([Row(1.0, "a")], most)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    sample_fleet(tmp_path, 0)
    monkeypatch.setenv("HELIOGRAPH_SEGMENT_DIR", str(tmp_path))
    return tmp_path


@pytest.mark.usefixtures("folder")
def test_the_list_has_the_worst_first_and_no_more_than_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["receivers", "--worst", "2", "--json"]) == 0
    names = [row["name"] for row in json.loads(capsys.readouterr().out)["receivers"]]
    assert names == ["slow", "lossy"]
    assert main(["receivers"]) == 0
    head, *rows = capsys.readouterr().out.splitlines()
    assert "LAG BYTES" in head
    assert "WAITED" in head
    assert [row.split()[2] for row in rows] == ["slow", "lossy", "bravo", "alpha"]


@pytest.mark.usefixtures("folder")
def test_the_list_comes_again_as_often_as_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["receivers", "--interval", "0.05", "--count", "2"]) == 0
    assert sum(line.startswith("INSTANCE") for line in capsys.readouterr().out.splitlines()) == 2
    assert main(["receivers", "--count", "2"]) == 2
    assert "--interval" in capsys.readouterr().err
