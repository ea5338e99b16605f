"""The reconciliation of the demo: messages sent, and their fate at every receiver.

It is read from the stats segments while all processes run, so it shows the operator's view. Afterwards it is compared
with the counts of the applications.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from heliograph.monitor.fleet import Balance, balance, receivers, worst_instances
from heliograph.monitor.model import Snapshot
from heliograph.monitor.sampler import Sampler

__all__ = ["Books", "Line", "are_balanced", "check_tally", "lines", "notices", "table"]


@dataclass(frozen=True, slots=True)
class Line:
    """The reconciliation of one receiver over all topics, in messages."""

    receiver: str
    sent: int
    delivered: int
    recovered: int
    unrecoverable: int
    in_flight: int
    residual: int
    """Unexplained messages: the sum of absolute residuals over the topics, so that nothing cancels out."""


def lines(books: Iterable[Balance]) -> list[Line]:
    """One line per receiver. `sent` counts only messages after the receiver joined."""
    by_receiver: dict[str, list[Balance]] = defaultdict(list)
    for book in books:
        by_receiver[book.instance].append(book)
    return [
        Line(
            receiver=name,
            sent=sum((book.sent or 0) - book.before_join for book in group),
            delivered=sum(book.delivered for book in group),
            recovered=sum(book.recovered for book in group),
            unrecoverable=sum(book.lost for book in group),
            in_flight=sum(book.in_flight or 0 for book in group),
            residual=sum(abs(book.residual) for book in group),
        )
        for name, group in sorted(by_receiver.items())
    ]


def table(rows: Sequence[Line]) -> list[str]:
    """Format the lines as a table."""
    heads = ("receiver", "sent", "delivered", "recovered", "unrecoverable", "in flight", "residual")
    cells = [heads] + [
        (
            row.receiver,
            *(
                f"{value:,}"
                for value in (row.sent, row.delivered, row.recovered, row.unrecoverable, row.in_flight, row.residual)
            ),
        )
        for row in rows
    ]
    widths = [max(len(row[column]) for row in cells) for column in range(len(heads))]
    return [
        "  ".join(text.ljust(width) if column == 0 else text.rjust(width) for column, (text, width) in enumerate(pairs))
        for row in cells
        if (pairs := list(zip(row, widths, strict=True)))
    ]


def are_balanced(rows: Sequence[Line], sent: int, names: Sequence[str], say: Callable[[str], None]) -> bool:
    """Whether every receiver adds up, and every named one is present and accounts for every message the feed sent."""
    wrong = []
    if missing := sorted(set(names) - {row.receiver for row in rows}):
        wrong.append(f"no counters of {', '.join(missing)}")
    for row in rows:
        if row.residual:
            wrong.append(f"{row.receiver}: the counters do not add up, residual {row.residual:,}")
        if row.in_flight:
            wrong.append(f"{row.receiver}: {row.in_flight:,} messages were still in flight")
        if row.receiver in names and row.sent != sent:
            wrong.append(f"{row.receiver}: counts {row.sent:,} messages, the feed sent {sent:,}")
    for text in wrong:
        say(text)
    return not wrong


def check_tally(line: Line, tally: Mapping[str, Mapping[str, Any]] | None, say: Callable[[str], None]) -> bool:
    """Whether the counts of the application equal the reconciliation."""
    if tally is None:
        say(f"{line.receiver} did not report its counts")
        return False
    got = {key: sum(topic[key] for topic in tally.values()) for key in ("delivered", "recovered", "disorder")}
    expected = {"delivered": line.delivered, "recovered": line.recovered, "disorder": 0}
    if got == expected:
        return True
    say(f"{line.receiver}: the application counted {got}, the statistics {expected}")
    return False


def notices(tally: Mapping[str, Mapping[str, Any]] | None) -> Mapping[str, int]:
    """Number of notices of each action that the application got: the largest over its topics."""
    heard: dict[str, int] = {}
    for topic in (tally or {}).values():
        for action, count in topic["notices"].items():
            heard[action] = max(count, heard.get(action, 0))
    return heard


class Books:
    """Reads the demo's segments. A context manager."""

    def __init__(self, segments: Path) -> None:
        self._sampler = Sampler(segments)
        self._before: Snapshot | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._sampler.close()

    def status(self) -> str:
        """Return one line: rates since the last call, and the worst receivers with the reason."""
        now = self._sampler.sample(histograms=False)
        rows = receivers(self._before, now)
        self._before = now
        sent = sum({(row.stream, row.topic): row.sent_per_s or 0.0 for row in rows}.values())
        worst = [row for row in worst_instances(rows) if row.badness > 0][:2]
        troubles = "; ".join(f"{row.instance} is {row.behaviour.words} ({row.reason})" for row in worst)
        return f"{sent:,.0f} messages/s to {len({row.instance for row in rows})} receivers; {troubles or 'all healthy'}"

    def drained(self, sent: Mapping[str, int], names: Sequence[str]) -> bool:
        """Whether every receiver has delivered all messages of every topic, also those in its queue."""
        rows = receivers(None, self._sampler.sample(histograms=False))
        done = {(row.instance, row.topic) for row in rows if row.lag_messages == 0 and row.sent == sent[row.topic]}
        return done >= {(name, topic) for name in names for topic in sent}

    def lines(self) -> list[Line]:
        """Return the present reconciliation."""
        return lines(balance(self._sampler.sample(histograms=False)))
