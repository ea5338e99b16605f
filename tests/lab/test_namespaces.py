"""Scenarios on real sockets: what they ask for, what they give, and that nothing is left of them."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from heliograph.monitor.lab import namespaces
from heliograph.monitor.lab.runs import run_scenarios
from heliograph.monitor.lab.scenario import ScenarioError, parse

REAL = """
title = "Real"
shows = "A queue of the kernel."
network = "namespaces"
duration = 4.0
interval = 0.25
[[pipe]]
rate = 1_000_000
queue = 60_000
overhead = 0
changes = [{ at = 3.0, rate = 500_000 }]
[[source]]
offered = 400_000
[[receivers]]
count = 2
[[tcp]]
start = 1.0
[[criterion]]
name = "utilisation"
measure = "utilisation"
begin = 2.0
bound = 0.3
"""


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("count = 2", "loss = 0.1", "receivers receivers0: loss is for network = simulated only"),
        ("count = 2", "drain = 10", "drain is for network = simulated only"),
        ("count = 2", "access = { rate = 1000 }", "access is for network = simulated only"),
        ("overhead = 0", "delay = 0.1", "there is one pipe, without loss and delay"),
        ("offered = 400_000", "offered = 1\nchanges = [{ at = 1.0, offered = 2 }]", "only the pipe's rate changes"),
        ("duration = 4.0", "duration = 100.0", "60 seconds at most"),
    ],
)
def test_what_real_sockets_cannot_give_is_refused(old: str, new: str, words: str) -> None:
    assert old in REAL
    with pytest.raises(ScenarioError, match=r"real\.toml: ") as refused:
        parse(REAL.replace(old, new), "real.toml", "real")
    assert words in str(refused.value)


def test_without_root_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(namespaces.os, "geteuid", lambda: 1000)
    with pytest.raises(RuntimeError, match="need root"):
        namespaces.run(parse(REAL, "real.toml", "real").plans[""])


def left() -> list[str]:
    """Namespaces and processes of the lab that are there."""
    spaces = subprocess.run(("ip", "netns", "list"), capture_output=True, text=True, check=True).stdout
    found = [line for line in spaces.splitlines() if line.startswith("helio-lab-")]
    for command in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = command.read_bytes().split(b"\0")
        except OSError:
            continue
        if b"rmm://239.192.79.1:7500?interface=198.18.79.1" in words:
            found.append(str(command))
    return found


def test_a_real_run_has_curves_and_leaves_nothing(tmp_path: Path) -> None:
    if lacking := namespaces.missing():
        pytest.skip(lacking)
    made = subprocess.run(("ip", "netns", "add", "helio-lab-probe"), capture_output=True, text=True, check=False)
    if made.returncode != 0:
        pytest.skip(f"a network namespace is not permitted: {made.stderr.strip()}")
    subprocess.run(("ip", "netns", "delete", "helio-lab-probe"), check=True)
    before = left()
    (trials,) = run_scenarios([parse(REAL, "real.toml", "real")], seeds=5, jobs=2)
    assert len(trials.outcomes) == 1
    curves = {series.name: series.values for chart in trials.outcomes[0].drawn[""] for series in chart.series}
    assert len(curves["source0: sent"]) == 16
    assert max(curves["source0: sent"]) > 100_000
    assert max(curves["receivers0: delivered, each"]) > 50
    assert max(curves["tcp0: acknowledged"]) > 0
    assert curves["pipe0: its rate"][-1] == 500_000
    assert 0.3 < trials.verdicts[0].value < 1.2
    assert left() == before
