"""Which series an answer has: the families of ``/metrics`` or all, of some names, topics and receivers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from heliograph.engine import catalogue
from heliograph.exporters.buckets import BOUNDS_NS
from heliograph.exporters.items import Item
from heliograph.monitor.behaviour import JUDGED, Behaviour
from heliograph.monitor.joined import Receivers

__all__ = ["BASIC", "BASIC_BOUNDS_NS", "BASIC_CLASSES", "EVERYTHING", "Selection", "basic_histograms", "of_query"]

BASIC: Mapping[str, frozenset[str]] = {
    "receiver": frozenset(
        {
            "interarrival_jitter",
            "latency_invalid_samples",
            "messages_delivered",
            "messages_lost",
            "queue_bytes",
            "queue_limit_bytes",
            "total_latency",
        }
    ),
    "fleet_receiver": frozenset({"class", "lag_seconds", "latency_trusted", "nak_share", "queue_ratio"}),
}
"""The statistics of a receiver of a topic in ``/metrics``: those that alerts and dashboards use. There may be a hundred
thousand of these objects. All other objects are shown whole."""
BASIC_BOUNDS_NS = (100_000, 1_000_000, 10_000_000, 100_000_000)
"""Bounds of the buckets of a receiver's histogram in ``/metrics``."""

BASIC_CLASSES = (Behaviour.FALLING_BEHIND, Behaviour.STALLED, Behaviour.STOPPED)
"""Classes of a receiver that have a series in ``/metrics`` also while they do not hold: alerts average them."""


@dataclass(frozen=True, slots=True)
class Selection:
    """A part of the series. An empty set selects all."""

    detail: bool = True
    """All families; otherwise those of `BASIC`, with few buckets."""
    names: frozenset[str] = frozenset()
    """Names of families or samples."""
    topics: frozenset[str] = frozenset()
    receivers: frozenset[str] = frozenset()
    """Names of receiving nodes."""

    @property
    def is_of_objects(self) -> bool:
        """Whether it selects some objects only; other families are then left out."""
        return bool(self.topics or self.receivers)

    def has(self, scope: str, statistic: str) -> bool:
        """Whether a statistic of a scope is in it, before the names."""
        return self.detail or scope not in BASIC or statistic in BASIC[scope]

    def has_info(self, scope: str) -> bool:
        """Whether the description of the objects of a scope is in it."""
        return self.detail or scope not in BASIC

    def bounds_ns(self, scope: str) -> Sequence[int]:
        """Return the bounds of the buckets of a scope's histograms."""
        return BOUNDS_NS if self.detail or scope not in BASIC else BASIC_BOUNDS_NS

    @property
    def classes(self) -> Sequence[Behaviour]:
        """The classes of a receiver that have a series also while they do not hold."""
        return JUDGED if self.detail else BASIC_CLASSES

    def items(self, found: Iterable[Item]) -> list[Item]:
        """Return the items of the topics and receivers."""
        return [item for item in found if self._has_topic(item) and self._has_receiver(item)]

    def _has_topic(self, item: Item) -> bool:
        return not self.topics or item.label("topic") in self.topics

    def _has_receiver(self, item: Item) -> bool:
        if not self.receivers:
            return True
        label = {"receiver": "instance", "rx_stream": "instance", "tx_receiver": "receiver"}.get(item.scope)
        return label is not None and item.label(label) in self.receivers

    def rows(self, found: Receivers) -> Receivers:
        """Return the joined receivers of the topics and receivers."""
        return found.part(
            [
                place
                for place, (name, topic, _) in enumerate(found.identities)
                if (not self.topics or topic in self.topics) and (not self.receivers or name in self.receivers)
            ]
        )


EVERYTHING = Selection()


@cache
def basic_histograms() -> frozenset[str]:
    """Return the names of the histograms that ``/metrics`` shows of any object."""
    basic = Selection(detail=False)
    return frozenset(
        statistic.name
        for scope in catalogue.scopes().values()
        for statistic in scope.statistics
        if statistic.kind == "histogram" and basic.has(scope.name, statistic.name)
    )


def of_query(detail: bool, query: Mapping[str, Sequence[str]]) -> Selection:
    """Return the selection of a query string: ``name[]``, ``topic`` and ``receiver``, each any number of times.

    A family that is asked for by its name is shown whole.
    """
    names, topics, receivers = (frozenset(query.get(key, ())) for key in ("name[]", "topic", "receiver"))
    return Selection(detail or bool(names), names, topics, receivers)
