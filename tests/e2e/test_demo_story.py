"""The demo with a slow receiver: it is warned, suspended, told so and readmitted, and events tell it in order."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, slots=True)
class Run:
    """One finished demo."""

    code: int
    text: str
    out: Path

    def events(self, instance: str) -> list[str]:
        """Lines of `heliograph events` about one instance, as the demo left them."""
        lines = (self.out / "events.txt").read_text(encoding="utf-8").splitlines()
        return [line for line in lines if line.split("  ")[2:3] == [instance] or f"  {instance}  " in line]


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """An unattended demo that enforces."""
    out = tmp_path_factory.mktemp("story") / "out"
    environment = {key: value for key, value in os.environ.items() if not key.startswith("DEMO_")}
    wanted = {"DEMO_FOLDER": str(out), "DEMO_SECONDS": "25", "DEMO_HEADLESS": "1", "DEMO_SLOW": "enforce"}
    done = subprocess.run(
        [sys.executable, str(TOP / "deploy/demo/demo.py")],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=environment | wanted,
        timeout=400,
        check=False,
    )
    return Run(done.returncode, done.stdout, out)


def test_the_whole_story_is_told_and_the_books_balance(demo: Run) -> None:
    assert demo.code == 0, demo.text
    numbers = [int(found) for found in re.findall(r"^demo:   (\d)\. \d\d:", demo.text, re.MULTILINE)]
    assert numbers == [1, 2, 3, 4, 5], demo.text


def test_events_tell_it_in_order_with_the_evidence(demo: Run) -> None:
    lines = [line for line in demo.events("feed") if "receiver slow at " in line and "  receiver_" in line]
    told = [line.split("  receiver_")[1].split("  ")[0] for line in lines]
    assert [told.index(name) for name in ("slow", "suspended", "readmitted")] == sorted(
        told.index(name) for name in ("slow", "suspended", "readmitted")
    ), lines
    for name in ("slow", "suspended"):
        line = lines[told.index(name)]
        evidence = re.search(r"\((\w+) ([\d.]+) % over ([\d.]+) % for ([\d.]+) s; [\w ]+\)", line)
        assert evidence is not None, line
        assert float(evidence[2]) > float(evidence[3]), line
        assert float(evidence[4]) >= 0.3, line


def test_the_receiver_is_told_and_says_so(demo: Run) -> None:
    log = (demo.out / "logs/slow.log").read_text(encoding="utf-8")
    said = re.findall(r"told: (\w+)", log)
    assert list(dict.fromkeys(said))[:3] == ["notify", "suspend", "resume"], log
    names = [name for line in demo.events("slow") for name in ("suspended", "resumed") if f"  {name}  " in line]
    assert names[:2] == ["suspended", "resumed"]
    assert re.search(r"notices to slow: .*suspend \d", demo.text)


def test_every_decision_comes_out_again_from_the_log(demo: Run) -> None:
    (log,) = (demo.out / "decisions").iterdir()
    assert log.stat().st_size > 10_000
    assert "demo: replay: " in demo.text


def samples(demo: Run, metric: str) -> dict[str, float]:
    """The values of a metric in the demo's last exposition, by their labels."""
    text = (demo.out / "metrics.prom").read_text(encoding="utf-8")
    return {labels: float(value) for labels, value in re.findall(rf"^{metric}{{(.*)}} (\S+)$", text, re.MULTILINE)}


def test_nobody_else_waits_for_it(demo: Run) -> None:
    """By the source's own clock no packet waited for anybody, and nobody lost a message for good."""
    for metric in ("heliograph_tx_stream_blame_time_seconds_total", "heliograph_tx_receiver_blame_time_seconds_total"):
        waited = samples(demo, metric)
        assert waited
        assert set(waited.values()) == {0.0}, waited
    lost = samples(demo, "heliograph_receiver_messages_lost_total")
    assert len(lost) == 4 * 4
    assert set(lost.values()) == {0.0}, lost


def test_the_others_latency_is_theirs(demo: Run) -> None:
    """Whoever waited for the slow one would be seconds behind, as it is itself; the rest is this machine's load."""
    found = re.findall(r"(\w+): p99 .* before, ([\d.]+) ms .*: ratio ([\d.]+), (?:not )?within 1\.2", demo.text)
    assert [name for name, _, _ in found] == ["alpha", "bravo"], demo.text
    for name, during_ms, ratio in found:
        print(f"{name}: {during_ms} ms, ratio {ratio}")
        assert float(during_ms) < 500, demo.text
