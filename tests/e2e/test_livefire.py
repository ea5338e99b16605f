"""Live fire: real faults in a real fleet reach a webhook through Prometheus and Alertmanager, and resolve.

`make test` runs the short form: a healthy fleet in bursts raises nothing, then three faults. `make live-fire` runs
healthy fleets of several kinds for ten minutes (`quiet`) and all groups of faults, or what FAULTS names. Every time is
written to build/live_fire.json as soon as it is known; LIVE_FIRE.md is composed of the times of the present commit.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import threading
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from textwrap import fill
from typing import Any

import pytest

from heliograph.exporters.alerts.settings import load
from tests.deploy.live_faults import GROUPS, RUNS
from tests.deploy.live_fire import KEEP, ROOT, SETTINGS, Fleet, Notes, house
from tests.deploy.live_firing import Fault, Firing, also
from tests.deploy.live_healthy import HEALTHY

WANTED = os.environ.get("LIVE_FIRE", "processes")
NAMES = ["quiet", *GROUPS] if WANTED == "all" else WANTED.split()
MEASURED = "LIVE_FIRE" in os.environ
QUIET_SECONDS = 600.0 if "quiet" in NAMES else 30.0
OF_THE_HOST = {"HostHiccupHigh", "DutyCycleOverrun"}
"""True alerts of a test machine that is busy with other work."""
TABLE = ROOT / "tests/deploy/LIVE_FIRE.md"
RESULTS = ROOT / "build/live_fire.json"
NOT_CAUSED = {
    "DetailLeftOn": "the condition must hold for an hour",
    "HostHiccupHigh": "the test cannot separate it from the load of the host",
    "JitterAboveHost": "the condition must hold for 10 minutes on a host that is quiet",
    "LatencyBudgetFastBurn": "the rule needs half an hour of data",
    "LatencyBudgetSlowBurn": "the rule needs 6 hours of data",
    "LatencyTailShift": "the rule compares with the past week",
    "MemoryExhaustionPredicted": "the rule needs half an hour of growth",
    "ReceiverQueueNearFull": "such a receiver falls behind, and that alert suppresses this one",
    "ReconciliationResidual": "only a fault of the engine causes it",
    "StoreBehind": "the condition must hold for 5 minutes",
    "StoreDiskFilling": "the rule needs an hour of growth",
    "SubscriptionBehind": "the condition must hold for 5 minutes",
    "Watchdog": "it always fires; each run begins when it arrives",
}

pytestmark = [
    pytest.mark.timeout(1500),
    pytest.mark.skipif(
        not (shutil.which("prometheus") and shutil.which("prometheus-alertmanager")),
        reason="prometheus or prometheus-alertmanager is not installed",
    ),
]


def commit() -> str:
    """The commit, with a mark when the measured parts differ from it."""
    parts = ["engine", "monitor", "exporters", "deploy"]
    head = subprocess.run(["git", "rev-parse", "--short=12", "HEAD"], cwd=ROOT, check=True, capture_output=True)
    same = subprocess.run(["git", "diff", "--quiet", "HEAD", "--", *parts], cwd=ROOT, check=False).returncode == 0
    return head.stdout.decode().strip() + ("" if same else " with changes")


class Results:
    """Times of the present commit, kept in a file from run to run."""

    def __init__(self) -> None:
        self.began = time.monotonic()
        self.lock = threading.Lock()
        self.commit = commit()
        self.rows: dict[str, dict[str, Any]] = {}
        self.own: dict[str, dict[str, Any]] = {}
        """The rows of this run."""
        self.healthy = ""
        self.read()

    def say(self, text: str) -> None:
        print(f"{time.monotonic() - self.began:6.0f} s  {text}", flush=True)

    def quiet(self, seconds: float) -> None:
        """Note that healthy fleets raised nothing."""
        load = round(os.getloadavg()[0], 1)
        self.healthy = f"{seconds / 60:.0f} minutes at load {load}: bursts to three receivers; {'; '.join(HEALTHY)}"
        self.write()

    def read(self) -> None:
        """Take over what earlier runs, and those beside this one, have noted about the commit."""
        kept = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
        if kept.get("commit") == self.commit:
            self.rows = {**kept["rows"], **self.own}
            self.healthy = self.healthy or kept["healthy"]

    def write(self) -> None:
        self.read()
        RESULTS.parent.mkdir(exist_ok=True)
        kept = {"commit": self.commit, "rows": self.rows, "healthy": self.healthy}
        RESULTS.write_text(json.dumps(kept, indent=1) + "\n")

    def drop(self, faults: Iterable[Fault]) -> None:
        """Forget earlier times of these faults."""
        for fault in faults:
            for one in fault.alerts:
                self.rows.pop(f"{one.alert} {fault.about}", None)

    def note(self, alert: str, about: str, more: Mapping[str, Any]) -> None:
        """Add to the row of an alert and a fault, and write the file."""
        with self.lock:
            self.say(f"{alert}: {dict(more)}")
            row = self.rows[f"{alert} {about}"] = self.own.setdefault(f"{alert} {about}", {})
            row.update(alert=alert, about=about, load=round(os.getloadavg()[0], 1), **more)
            self.write()

    def table(self) -> str:
        """The text of LIVE_FIRE.md."""
        rows = sorted(self.rows.values(), key=lambda row: str(row["alert"]))
        caused = {one.alert for faults in GROUPS.values() for fault in faults for one in fault.alerts}
        rest = sorted(load(SETTINGS).alerts.keys() - {row["alert"] for row in rows})

        def seconds(row: Mapping[str, Any], what: str) -> str:
            if "suppressed" in row:
                return f"suppressed by {row['suppressed']}"
            late = row.get(f"{what}_limit")
            return f"not in {late:.0f} s" if late else f"{row[what]:.0f} s" if what in row else "-"

        def reason(name: str) -> str:
            return NOT_CAUSED.get(name, "not measured at this commit" if name in caused else "no fault is written yet")

        return "\n".join(
            [
                "# Live fire",
                "",
                "Times from the fault to the notification, and from the repair to its resolution, by `make live-fire`",
                f"at commit {self.commit}. Load is the load average of the host, which has {os.cpu_count()} cores.",
                f"`keep` is {KEEP} here; with the shipped settings an alert resolves later by its `keep` less {KEEP}.",
                *(["", fill(f"Healthy fleets, which raised nothing for {self.healthy}.", 120)] if self.healthy else []),
                "",
                "| alert | fault | time to fire | time to resolve | load |",
                "| --- | --- | --- | --- | --- |",
                *(
                    f"| {row['alert']} | {row['about']} | {seconds(row, 'fired')} | {seconds(row, 'resolved')} "
                    f"| {row['load']} |"
                    for row in rows
                ),
                "",
                "| alert without a time | reason |",
                "| --- | --- |",
                *(f"| {name} | {reason(name)} |" for name in rest),
                "",
            ]
        )


def test_a_healthy_fleet_raises_nothing_and_faults_reach_the_webhook_and_resolve(tmp_path: Path) -> None:
    notes = Notes()
    results = Results()
    missing = []
    healthy: list[str] = []
    runs = [[fault for name in run if name in NAMES for fault in GROUPS[name]] for run in RUNS]

    def prepare(fleet: Fleet) -> None:
        for faults in runs:
            for fault in faults:
                fault.scraped(fleet)
        if "quiet" in NAMES:
            before = set(fleet.running)
            for start in HEALTHY.values():
                start(fleet)
            healthy.extend(fleet.running.keys() - before)

    with house(tmp_path, notes, prepare) as fleet:
        notes.wait("Watchdog", {}, True, 0.0, time.monotonic() + 150)
        results.say("the fleet runs")
        threading.Event().wait(QUIET_SECONDS)
        raised = [str(note) for note in notes.fired() if note.alert not in {"Watchdog", *OF_THE_HOST}]
        assert not raised, "healthy fleets raise nothing"
        if healthy:
            results.quiet(QUIET_SECONDS)
            TABLE.write_text(results.table())
        for name in healthy:
            fleet.end(name)
        for faults in filter(None, runs):
            results.drop(faults)
            since = time.monotonic()
            missing += Firing(fleet, notes, results.note).run(faults)
            for note in also(notes, faults, since):
                results.say(f"fired too: {note}")
            if MEASURED:
                TABLE.write_text(results.table())
    for alert in notes.texts:
        said = str(alert["annotations"])
        assert "<no value>" not in said
        assert "error expanding template" not in said
    assert not missing
