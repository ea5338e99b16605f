"""Events beside the latency: restarts, other builds, and time without a record.

The history keeps the run (`incarnation`) and the build of each instance by hour. A run or a build that an hour has and
the hour before had not is an event of that hour.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import pyarrow as pa

__all__ = ["COVERED", "Event", "Gap", "Runs", "covered", "gaps"]

COVERED = 0.98
"""Part of an hour that must be covered by intervals; less is a gap."""
_NAMED = ("instance", "host")


@dataclass(frozen=True, slots=True)
class Event:
    """Something that changed at an instance."""

    hour: datetime
    """Start of the first hour (or whole day) with the change."""
    instance: str
    host: str
    what: str
    """``restart`` or ``build 4.1 -> 4.2``."""

    @property
    def is_build(self) -> bool:
        """Whether the build changed."""
        return self.what.startswith("build ")


@dataclass(frozen=True, slots=True)
class Gap:
    """Time of a series that no interval covers, or not in full."""

    start: datetime
    end: datetime
    covered: float
    """Covered part, 0 to 1."""


class Runs:
    """The runs and builds of each instance by hour."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, str], dict[datetime, tuple[set[str], set[str]]]] = {}

    def add(self, table: pa.Table) -> None:
        """Take the rows of some hours, or of some days."""
        keys = ["ts", *_NAMED, "build", "incarnation"]
        for row in table.select(keys).group_by(keys, use_threads=False).aggregate([]).to_pylist():
            of_instance = self._found.setdefault(tuple(row[name] for name in _NAMED), {})
            runs, builds = of_instance.setdefault(row["ts"], (set(), set()))
            runs.add(row["incarnation"])
            builds.add(row["build"])

    def events(self) -> list[Event]:
        """Return what changed, in the order of time."""
        found = []
        for (instance, host), of_hour in self._found.items():
            runs: set[str] = set()
            builds: set[str] = set()
            for number, hour in enumerate(sorted(of_hour)):
                new_runs, new_builds = of_hour[hour]
                if number and (more := {run for run in new_runs - runs if run}):
                    if new_builds - builds:
                        what = f"build {_text(builds)} -> {_text(new_builds - builds)}"
                    else:
                        what = "restart" if len(more) == 1 else f"{len(more)} restarts"
                    found.append(Event(hour, instance, host, what))
                runs, builds = new_runs, new_builds
        return sorted(found, key=lambda one: (one.hour, one.instance, one.host))


def _text(names: Iterable[str]) -> str:
    return " and ".join(sorted(name or "unknown" for name in names)) or "unknown"


def gaps(hours: Sequence[tuple[datetime, timedelta, int]], first: datetime, end: datetime) -> list[Gap]:
    """Return the time that no interval covers.

    Args:
        hours: Start and length of each period with a row, ascending, and the ms that its intervals cover; 0: unknown,
            which counts as all.
        first: Start of the time of interest.
        end: Its end.
    """
    found: list[Gap] = []
    at = first
    for start, length, covered_ms in hours:
        if start > at:
            found.append(Gap(at, start, 0.0))
        share = covered_ms / 1000 / length.total_seconds() if covered_ms else 1.0
        if share < COVERED:
            found.append(Gap(start, start + length, share))
        at = max(at, start + length)
    if end > at:
        found.append(Gap(at, end, 0.0))
    return found


def covered(missing: Sequence[Gap], first: datetime, end: datetime) -> float:
    """Return the part of a time that intervals cover, 0 to 1.

    Args:
        missing: Its gaps.
        first: Start of the time.
        end: Its end.
    """
    lost = sum((gap.end - gap.start).total_seconds() * (1 - gap.covered) for gap in missing)
    return 1 - lost / (end - first).total_seconds()
