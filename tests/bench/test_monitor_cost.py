"""The measuring of monitors, without measuring: what is counted in, who is stopped, and that nothing stays behind."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

import heliograph.exporters.prometheus
import heliograph.monitor.fleet
from heliograph.exporters.collector import SnapshotCollector
from heliograph.monitor.sampler import Sampler
from tests.bench import monitor_cost, undisturbed
from tests.bench.running import Runner

COMMAND = ("heliograph", "throughput")


def test_every_part_of_a_sample_is_measured_and_the_parts_add_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a clock that only the parts move, each by a time of its own."""
    clock = [0]

    def costs(owner: Any, name: str, ms: int) -> None:
        plain = getattr(owner, name)

        def dear(*arguments: Any, **named: Any) -> Any:
            clock[0] += ms * 1_000_000
            return plain(*arguments, **named)

        monkeypatch.setattr(owner, name, dear)

    monkeypatch.setattr(monitor_cost.time, "process_time_ns", lambda: clock[0])
    costs(Sampler, "sample", 3)
    costs(heliograph.monitor.fleet, "receivers", 5)
    costs(heliograph.monitor.fleet, "transmitters", 2)
    costs(SnapshotCollector, "update", 7)
    costs(heliograph.exporters.prometheus, "exposition", 11)
    fleet = monitor_cost.Fleet("small", topics=3, peers=2, receiving=1)
    objects, took = monitor_cost.measure(fleet, samples=3)
    assert objects == 2 + 3 + 2 + 2 + 3
    sums = {"reading": 0, "sampling": 3, "+ fleet": 3 + 7, "+ Prometheus, each sample": 3 + 7 + 7, "a scrape": 11}
    assert took == sums


def test_what_is_measured_takes_time() -> None:
    _, took = monitor_cost.measure(monitor_cost.Fleet("small", topics=30, peers=20, receiving=1), samples=3)
    assert took["reading"] > 0
    assert took["sampling"] > took["reading"] / 10  # a reader that looks at nothing would take none
    assert took["a scrape"] > 0


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
