"""Latency objectives: which share of the messages, and of the time, kept to a limit.

An objective is a limit and a target: 99.9 % of the messages within 1 ms. Its error budget is the rest, 0.1 %. The
counts come from the histograms, so the share is exact but for the cell that holds the limit: its values count as
outside (at three digits it is 0.1 % wide or less). Values outside the range of the histogram count as outside too.

References: B. Beyer et al., The Site Reliability Workbook, O'Reilly 2018, chapters 2 and 5 (error budget).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from heliograph.monitor import _hdr
from heliograph.monitor.errors import UserError
from heliograph.monitor.history.merge import DAY_US, HOUR_US, merge
from heliograph.monitor.history.studies.samples import PAIR
from heliograph.monitor.latency import cell_of, highest_of

__all__ = ["Judged", "Objective", "Shares", "judge", "judged_of", "parse_duration", "shares_of"]

_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(ns|us|µs|ms|s)")
_UNITS = {"ns": 1, "us": 1_000, "µs": 1_000, "ms": 1_000_000, "s": 1_000_000_000}


@dataclass(frozen=True, slots=True)
class Objective:
    """A share of the messages within a limit."""

    limit_ns: int
    target: float
    """Share of the messages, above 0 and below 1."""


@dataclass(frozen=True, slots=True)
class Judged:
    """A series against an objective."""

    series: Mapping[str, str]
    messages: int
    """Values of the series, with those outside the range of the histogram."""
    within: int
    hours: int
    """Hours with values; those of `days` are not among them."""
    days: int
    """Days that are stored without their hours. Their messages count, their hours do not."""
    hours_met: int
    """Hours that met the objective on their own."""
    worst_hour: datetime | None
    """Start of the hour with the smallest share; None: only whole days have values."""
    worst_share: float | None
    objective: Objective

    @property
    def share(self) -> float:
        """Share of the messages within the limit."""
        return self.within / self.messages

    @property
    def is_met(self) -> bool:
        """Whether the whole time meets the objective."""
        return self.within >= self.objective.target * self.messages

    @property
    def budget_used(self) -> float:
        """Used part of the error budget; above 1 the objective is missed."""
        return (1 - self.share) / (1 - self.objective.target)


def parse_duration(text: str) -> int:
    """Return a duration such as ``250us`` or ``1.5 ms`` in ns.

    Raises:
        UserError: It is no duration, or is below 1 ns.
    """
    found = _DURATION.fullmatch(text.strip())
    value = round(float(found[1]) * _UNITS[found[2]]) if found else 0
    if value < 1:
        raise UserError(f"{text!r} is not a duration such as 250us, 1ms or 0.5s")
    return value


def judge(
    table: pa.Table, objective: Objective, by: Sequence[str] = PAIR, days: pa.Table | None = None
) -> list[Judged]:
    """Judge the series of a history.

    Args:
        table: Rows of `HISTORY`, of hours.
        objective: The objective.
        by: Labels that tell series apart.
        days: Rows of whole days; None: there are none.

    Returns:
        The series with values, those that used most of their budget first.
    """
    of_hours = shares_of(table, HOUR_US, objective, by)
    of_days = {} if days is None else shares_of(days, DAY_US, objective, by)
    judged = [
        judged_of(dict(zip(by, series, strict=True)), of_hours.get(series, {}), of_days.get(series, {}), objective)
        for series in {**of_hours, **of_days}
    ]
    return sorted(judged, key=lambda one: (-one.budget_used, tuple(one.series.values())))


Shares = dict[datetime, tuple[int, int]]
"""Messages, and those within the limit, by start of a period."""


def shares_of(
    table: pa.Table, period: int | None, objective: Objective, by: Sequence[str]
) -> dict[tuple[str, ...], Shares]:
    """Return the shares of each series with values.

    Args:
        table: Rows of `HISTORY`.
        period: Length of the periods, microseconds; None: the rows have one per period and series already.
        objective: The limit.
        by: Labels that tell series apart.
    """
    merged = table if period is None else merge(table, period, final=False, by=by)[0]
    found: dict[tuple[str, ...], Shares] = {}
    for row in merged.select(["ts", *by, "n", "dropped", "digits", "lowest", "highest", "h"]).to_pylist():
        if messages := row["n"] + row["dropped"]:
            # Layouts of one series are rows of their own.
            shares = found.setdefault(tuple(str(row[name]) for name in by), {})
            before = shares.get(row["ts"], (0, 0))
            counts = np.frombuffer(_hdr.decode(row["h"])[0], dtype=np.uint64)
            layout = row["digits"], row["lowest"], row["highest"]
            shares[row["ts"]] = before[0] + messages, before[1] + _within(counts, layout, objective.limit_ns)
    return found


def _within(counts: npt.NDArray[np.uint64], layout: tuple[int, int, int], limit_ns: int) -> int:
    """Return the values in cells that end at the limit or below; a layout is digits, lowest and highest."""
    if limit_ns >= layout[2]:
        return int(counts.sum())
    cell = cell_of(limit_ns, *layout)
    is_whole = int(highest_of(np.array([cell]), *layout)[0]) <= limit_ns
    return int(counts[: cell + is_whole].sum())


def judged_of(series: Mapping[str, str], of_hour: Shares, of_day: Shares, objective: Objective) -> Judged:
    """Judge one series by the shares of its hours, and of its days that are stored without their hours."""
    shares = {begin: within / messages for begin, (messages, within) in of_hour.items()}
    worst = min(shares, key=lambda begin: (shares[begin], begin), default=None)
    periods = (*of_hour.values(), *of_day.values())
    return Judged(
        series=series,
        messages=sum(messages for messages, _ in periods),
        within=sum(within for _, within in periods),
        hours=len(of_hour),
        days=len(of_day),
        hours_met=sum(within >= objective.target * messages for messages, within in of_hour.values()),
        worst_hour=worst,
        worst_share=None if worst is None else shares[worst],
        objective=objective,
    )
