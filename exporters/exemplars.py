"""Exemplars: the newest loss behind a counter of losses, so that a point on a board leads to the numbers that are gone.

The engine reports a range of lost packets or messages as an event, and counts it in a series. The newest event of a
series is its exemplar: the number of the first one lost as label, how many as value, and when. Scrapers get it in
OpenMetrics and protobuf. Histograms have none, because the engine does not record which message had a latency.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass

from heliograph.engine import catalogue
from heliograph.exporters.items import Key, Node
from heliograph.exporters.tables import Exemplar
from heliograph.monitor.model import Event

__all__ = ["Exemplars"]


@dataclass(frozen=True, slots=True)
class _Source:
    """The event behind a statistic."""

    scope: str
    first: str
    """Argument with the number of the first one lost."""
    count: str
    """Argument with how many were lost."""


_SOURCES = {
    "packets_lost": _Source("rx_stream", "first_sequence", "packets"),
    "messages_lost": _Source("receiver", "first_message", "messages"),
}
"""By name of event; the statistic has the same name."""


class Exemplars:
    """Keeps the newest exemplar of each series."""

    def __init__(self) -> None:
        """Create an empty store."""
        self._newest: dict[tuple[str, str], dict[tuple[str, ...], Exemplar]] = {}
        """By scope and cell, then by the labels of the object."""

    def learn(self, events: Iterable[Event], nodes: Iterable[Node]) -> None:
        """Take the losses of a snapshot; `nodes` has the external names of their instances."""
        losses = [event for event in events if event.name in _SOURCES]
        if not losses:
            return
        names = {(node.state.name, node.state.incarnation): node.name for node in nodes}
        for event in losses:
            source = _SOURCES[event.name]
            cell, name = _cell(event, source), names.get((event.instance, event.incarnation))
            labels = {**event.labels, "instance": name or ""}
            key = tuple(labels.get(label, "") for label in catalogue.scopes()[source.scope].labels)
            if cell and all(key):
                first, count = event.arguments[source.first], event.arguments[source.count]
                found = Exemplar({source.first: str(first)}, float(count), event.time_ns / 1e9)
                self._newest.setdefault((source.scope, cell), {})[key] = found

    def keep(self, shown: Container[Key]) -> None:
        """Forget the objects that are gone."""
        for (scope, _), found in self._newest.items():
            for labels in [labels for labels in found if (scope, labels) not in shown]:
                del found[labels]

    def of(self, scope: str, cell: str, labels: Iterable[tuple[str, ...]]) -> Mapping[int, Exemplar]:
        """Return the exemplars of a cell in objects of a scope, by place of the object."""
        found = self._newest.get((scope, cell))
        return {place: found[key] for place, key in enumerate(labels) if key in found} if found else {}


def _cell(event: Event, source: _Source) -> str:
    """Return the cell that counts a loss; empty: this version cannot read the event."""
    if source.first not in event.arguments or source.count not in event.arguments:
        return ""
    (statistic,) = (one for one in catalogue.scopes()[source.scope].statistics if one.name == event.name)
    place = event.arguments.get("reason", -1) if statistic.split else 0
    return statistic.cells[place].name if 0 <= place < len(statistic.cells) else ""
