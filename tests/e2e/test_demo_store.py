"""The demo with a message store: a late joiner and a durable subscriber get each message once, and it would tell."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[2]
sys.path.append(str(TOP / "deploy/demo"))

from feed import QUOTE  # noqa: E402
from store import faults  # noqa: E402
from subscriber import Totals  # noqa: E402

from heliograph.engine.store.reader import StoredMessage  # noqa: E402


@dataclass(frozen=True, slots=True)
class Run:
    """One finished demo."""

    code: int
    text: str
    out: Path

    def of_subscriber(self, name: str) -> tuple[int, int, int, str]:
        """Its messages, runs, messages from the store, and the rest of the line that sums it up."""
        found = re.search(
            rf"^demo: {name}: ([\d,]+) messages of PRICES.FX(?: in (\d+) runs)?, ([\d,]+) from the store; (.*)$",
            self.text,
            re.MULTILINE,
        )
        assert found is not None, self.text
        return (
            int(found[1].replace(",", "")),
            int(found[2] or 1),
            int(found[3].replace(",", "")),
            found[4],
        )


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """An unattended demo without the programs that it can do without: they would take most of the time."""
    out = tmp_path_factory.mktemp("store") / "out"
    nothing = tmp_path_factory.mktemp("programs")
    environment = {key: value for key, value in os.environ.items() if not key.startswith("DEMO_")}
    wanted = {"DEMO_FOLDER": str(out), "DEMO_SECONDS": "13", "DEMO_HEADLESS": "1", "DEMO_STORE": "1"}
    done = subprocess.run(
        [sys.executable, str(TOP / "deploy/demo/demo.py")],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=environment | wanted | {"PATH": str(nothing)},
        timeout=200,
        check=False,
    )
    return Run(done.returncode, done.stdout, out)


def test_the_verdict_is_good(demo: Run) -> None:
    assert demo.code == 0, demo.text
    verdict = "demo: verdict: good; the subscribers of the store saw no gap and no duplicate"
    assert demo.text.splitlines()[-1] == verdict, demo.text


def test_a_late_joiner_gets_the_first_messages_from_the_store(demo: Run) -> None:
    messages, runs, stored, rest = demo.of_subscriber("late")
    assert rest == "no gap, no duplicate"
    assert runs == 1
    assert 0 < stored < messages
    begun = re.search(r"late begins at message 0: ([\d,]+) messages from the store in [\d.]+ s", demo.text)
    assert begun is not None, demo.text
    assert int(begun[1].replace(",", "")) > 1000


def test_a_durable_subscriber_continues_where_it_was_stopped(demo: Run) -> None:
    messages, runs, stored, rest = demo.of_subscriber("durable")
    assert rest == "no gap, no duplicate"
    assert runs >= 2
    assert 0 < stored < messages
    stopped = re.search(r"durable is stopped before message (\d[\d,]*), for 4 s", demo.text)
    begun = re.findall(r"durable begins at message ([\d,]+): ", demo.text)
    assert stopped is not None, demo.text
    assert begun[:2] == ["0", stopped[1]]
    assert messages == demo.of_subscriber("late")[0]


def test_the_store_is_reconciled_as_any_receiver(demo: Run) -> None:
    rows = {line.split()[0]: line.split()[1:] for line in demo.text.splitlines() if line.endswith(" 0")}
    assert rows["store"] == rows["alpha"]
    assert rows["store"][0] == rows["store"][1]


def test_the_exporter_has_the_statistics_of_the_store(demo: Run) -> None:
    text = (demo.out / "metrics.prom").read_text(encoding="utf-8")
    requests = re.search(r'^heliograph_store_service_requests_total{.*="store".*} (\S+)$', text, re.MULTILINE)
    assert requests is not None
    assert float(requests[1]) > 0


def test_the_printed_command_lists_what_the_demo_leaves(demo: Run) -> None:
    told = re.search(r"\.venv/bin/heliograph store ls (\S+)$", demo.text, re.MULTILINE)
    assert told is not None, demo.text
    done = subprocess.run(
        [sys.executable, "-m", "heliograph.monitor.cli", "store", "verify", told[1]],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    total = re.search(r"feed stopped after ([\d,]+) messages", demo.text)
    assert total is not None
    assert f"ok: {total[1]} messages" in done.stdout


def totals(*numbers: int) -> Totals:
    """The totals of a subscriber that got quotes with these numbers."""
    found = Totals()
    for number in numbers:
        quote = QUOTE.pack(b"FX000", number, 1.0, 1.0, 1, 1, 0)
        found.add([StoredMessage(("a1b2c3d4e5f6:7500", number + 1, "PRICES.FX", 0, number, 0, 0, False, quote))])
    return found


@pytest.mark.parametrize(
    ("runs", "fault"),
    [
        ([totals(0, 1, 2, 3)], None),
        ([totals(0, 1), totals(), totals(2, 3)], None),
        ([totals(0, 1, 3)], "a gap: 1 missing between 0 and 4"),
        ([totals(1, 2, 3)], "a gap: 1 missing between 0 and 4"),
        ([totals(0, 1), totals(3)], "a gap: 1 missing between 2 and 4"),
        ([totals(0, 1, 2, 2, 3)], "duplicates: 1 between 0 and 4"),
        ([totals(0, 1, 2), totals(1, 2, 3)], "duplicates: 2 between 1 and 4"),
        ([totals(0, 1, 2)], "it ends before message 3, the feed sent 4"),
        ([totals()], "it ends before message 0, the feed sent 4"),
    ],
)
def test_a_gap_or_a_duplicate_would_be_seen(runs: list[Totals], fault: str | None) -> None:
    assert faults(runs, 4) == ([] if fault is None else [fault])
