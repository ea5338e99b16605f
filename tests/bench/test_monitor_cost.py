"""The measuring of monitors, without measuring: what is counted in, who is stopped, and that nothing stays behind."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from heliograph.monitor.sampler import Sampler
from tests.bench import monitor_cost, undisturbed
from tests.bench.running import Runner

COMMAND = ("heliograph", "throughput")


def test_every_part_of_a_sample_is_measured_and_the_parts_add_up() -> None:
    fleet = monitor_cost.Fleet("small", topics=3, peers=2, receiving=1)
    objects, took = monitor_cost.measure(fleet, samples=1)
    assert objects == 2 + 3 + 2 + 2 + 3
    assert list(took) == ["reading", "sampling", "+ fleet", "+ Prometheus, each sample", "a scrape"]
    assert 0 < took["sampling"] < took["+ fleet"] < took["+ Prometheus, each sample"]


def test_the_share_of_records_that_moves_is_the_fleets() -> None:
    fleet = monitor_cost.Fleet("small", topics=18, peers=20, receiving=0, moving=0.1)
    with monitor_cost.engines(fleet) as (folder, made), Sampler(folder) as sampler:
        before = sampler.sample().instances[0].objects
        made.move()
        after = sampler.sample().instances[0].objects
    assert sum(new is not old for old, new in zip(before, after, strict=True)) == 4
    assert not folder.exists()


@pytest.mark.parametrize(
    ("case", "number"), [("sampling", None), ("stopped", signal.SIGSTOP), ("killed", signal.SIGKILL)]
)
def test_the_monitor_beside_a_run_is_stopped_or_killed_amid_it_and_gone_after(
    case: str, number: int | None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monitors: list[subprocess.Popen[bytes]] = []
    sent: list[int] = []
    plain = subprocess.Popen

    class Watched(plain):  # type: ignore[valid-type,misc]
        def __init__(self, *arguments: Any, **named: Any) -> None:
            super().__init__(*arguments, **named)
            monitors.append(self)

        def send_signal(self, sig: int) -> None:
            sent.append(sig)
            super().send_signal(sig)

    def measured(runner: Runner, command: tuple[str, ...], size: int, seconds: float | None = None) -> dict[str, float]:
        if number is not None:
            while not sent:
                monitors[0].poll()
        return {"messages_per_second": 5.0}

    monkeypatch.setattr(subprocess, "Popen", Watched)
    monkeypatch.setattr(Runner, "measure", measured)
    with Runner(tmp_path, 0.03) as runner:
        assert undisturbed.with_monitor(runner, COMMAND, case) == 5.0
    assert sent[:-1] == ([] if number is None else [number])
    assert len(monitors) == 1
    assert monitors[0].returncode == -signal.SIGKILL


def test_neighbouring_runs_are_compared_in_turns(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    alone, beside = iter([100.0, 200.0]), iter([90.0, 210.0])
    monkeypatch.setattr(Runner, "measure", lambda *_: {"messages_per_second": next(alone)})
    monkeypatch.setattr(undisturbed, "with_monitor", lambda *_: next(beside))
    with Runner(tmp_path, 1.0) as runner:
        assert undisturbed.ratios(runner, COMMAND, "sampling", 1) == [0.9, 1.05]
