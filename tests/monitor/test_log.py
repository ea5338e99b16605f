"""The built-in module that logs what changes."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

from heliograph.engine import catalogue
from heliograph.monitor.errors import UserError
from heliograph.monitor.log import LogModule
from heliograph.monitor.sampler import Sampler
from tests.fleet import sample_fleet

SECOND = 1_000_000_000
START = 1_700_000_000 * SECOND


def _lines(text: str, what: str) -> list[dict[str, Any]]:
    return [line for line in map(json.loads, text.splitlines()) if line["what"] == what]


def test_only_what_changes_is_logged(segments: Path) -> None:
    stream = io.StringIO()
    module = LogModule(stream=stream)
    module.describe(catalogue.scopes())
    now = START
    with Sampler(segments, clock=lambda: now) as sampler:
        for moment in (0, 1):
            sample_fleet(segments, moment, START)
            now = START + moment * SECOND
            module.snapshot(sampler.sample())
            length = len(stream.getvalue())
    first = stream.getvalue()
    assert len(_lines(first, "instance")) == 5
    changes = _lines(first, "receiver")
    assert {(line["instance"], line["to"]) for line in changes} == {
        ("alpha", "ok"),
        ("bravo", "ok"),
        ("slow", "falling_behind"),
        ("lossy", "lossy"),
    }
    assert len(changes) == 16, "the second snapshot changed nobody's state"
    assert length == len(first)


def test_events_and_ends_are_logged(segments: Path) -> None:
    stream = io.StringIO()
    module = LogModule(stream=stream)
    now = START
    with Sampler(segments, lambda: now, lambda pid: START - 100 * SECOND) as sampler:
        sample_fleet(segments, 0, START)
        snapshot = sampler.sample()
        module.snapshot(snapshot)
        for event in snapshot.events:
            module.event(event)
        now += 5 * SECOND
        module.snapshot(sampler.sample())
    module.close()
    assert [line["name"] for line in _lines(stream.getvalue(), "event")].count("instance_started") == 5
    ends = _lines(stream.getvalue(), "instance")[5:]
    assert {(line["from"], line["to"]) for line in ends} == {("live", "stale")}
    assert not stream.closed


def test_a_file_is_appended_to(tmp_path: Path, segments: Path) -> None:
    path = tmp_path / "log.jsonl"
    sample_fleet(segments)
    for _ in range(2):
        module = LogModule(str(path))
        with Sampler() as sampler:
            module.snapshot(sampler.sample(histograms=False))
        module.close()
    assert len(_lines(path.read_text(), "instance")) == 10


def test_a_file_that_cannot_be_opened_is_a_users_error(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="cannot be opened"):
        LogModule(str(tmp_path / "no" / "log"))
