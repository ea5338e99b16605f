"""Builders of PromQL expressions. Every name in them comes from the catalogue: ``scope.statistic`` or a derived name.

Results keep the labels `job` and `instance`, so that nodes with one name on two hosts stay apart. Percentiles are those
of the exporter's window, which are exact; a percentile of several receivers is that of the slowest.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from heliograph.dashboards import words
from heliograph.dashboards.words import Word
from heliograph.engine import catalogue
from heliograph.engine.catalogue import names
from heliograph.monitor.behaviour import JUDGED

__all__ = [
    "HOST",
    "JOB",
    "NODE",
    "RECEIVED",
    "RECEIVER",
    "SENT",
    "Query",
    "amount",
    "buckets",
    "classes",
    "health",
    "least",
    "metric",
    "most",
    "p",
    "rate",
    "seen",
    "seen_rate",
    "together",
    "total",
]

JOB = 'job=~"$job"'
HOST = f'{JOB},instance=~"$host"'
NODE = f'{HOST},node=~"$node"'
SENT = f'{NODE},topic=~"$topic"'
RECEIVER = f'{HOST},node=~"$receiver"'
RECEIVED = f'{RECEIVER},topic=~"$topic"'
"""Selections by the variables: of senders and nodes, and of receivers."""

_INTERVAL = "$__rate_interval"


@dataclass(frozen=True, slots=True)
class Query:
    """One expression and the labels of its series."""

    expr: str
    by: tuple[str, ...] = ()
    name: str = ""
    """Name of the line, in front of its labels; alone if it has none."""
    legend_labels: tuple[str, ...] | None = None
    has_exemplars: bool = False
    """Whether the chart marks the exemplars of the series: the newest losses, with the numbers that are gone."""

    @property
    def legend(self) -> str:
        """The legend of the series."""
        shown = self.by if self.legend_labels is None else self.legend_labels
        labels = [f"{{{{{label}}}}}" for label in shown]
        at = ["@ {{instance}}"] if shown else []
        return " ".join([*labels, *([self.name] if self.name else []), *at])

    def named(self, name: str) -> Query:
        """Return the same under another name."""
        return replace(self, name=name)

    def with_exemplars(self) -> Query:
        """Return the same with the exemplars of its series."""
        return replace(self, has_exemplars=True)

    def over(self, other: Query) -> Query:
        """Return the ratio of two queries with the same labels."""
        return replace(self, expr=f"{self.expr} / {other.expr}")

    def then(self, text: str) -> Query:
        """Return the query with an operation at its end."""
        return replace(self, expr=f"{self.expr} {text}")


def metric(name: str, *, window: bool = False) -> str:
    """Return the Prometheus name of a statistic (``scope.name``) or a derived family."""
    scope, dot, own = name.partition(".")
    if not dot:
        return names.family(catalogue.derived()[name])
    (statistic,) = (item for item in catalogue.scopes()[scope].statistics if item.name == own)
    return names.window_metric(statistic) if window else names.metric(statistic)


def _fold(how: str, inner: str, by: tuple[str, ...]) -> Query:
    return Query(f"{how} by ({', '.join(('job', 'instance', *by))}) ({inner})", by)


def rate(name: str, where: str, *by: str) -> Query:
    """Sum of the increases per second of a counter."""
    return _fold("sum", f"rate({metric(name)}{{{where}}}[{_INTERVAL}])", by)


def amount(name: str, where: str, *by: str, window: str = _INTERVAL) -> Query:
    """Sum of the increases of a counter."""
    return _fold("sum", f"increase({metric(name)}{{{where}}}[{window}])", by)


def most(name: str, where: str, *by: str, keep: str = "") -> Query:
    """Highest value; `keep` filters the values first, for example ``> 0``."""
    return _fold("max", f"{metric(name)}{{{where}}} {keep}".strip(), by)


def least(name: str, where: str, *by: str, keep: str = "") -> Query:
    """Lowest value."""
    return _fold("min", f"{metric(name)}{{{where}}} {keep}".strip(), by)


def total(name: str, where: str, *by: str) -> Query:
    """Sum of the values."""
    return _fold("sum", f"{metric(name)}{{{where}}}", by)


def p(percentile: str, name: str, where: str, *by: str) -> Query:
    """Percentile (p50, p99, p99.9 or max) of a histogram in the exporter's window."""
    return _fold("max", f'{metric(name, window=True)}{{{where},percentile="{percentile}"}}', by).named(percentile)


def buckets(name: str, where: str) -> Query:
    """Increases per second of the buckets of a histogram, for a heat map."""
    return Query(f"sum by (le) (rate({metric(name)}_bucket{{{where}}}[{_INTERVAL}]))")


def together(how: str, query: Query, zero: bool = True) -> Query:
    """Combine all series into one number; 0 if there are none and `zero` is set."""
    return Query(f"{how}({query.expr})" + (" or vector(0)" if zero else ""), (), query.name)


def _joined(inner: str) -> str:
    """Add the label `name` of a source's receiver: `receiver` is an address if its host is another one."""
    info = f'{names.info_metric(catalogue.scopes()["tx_receiver"])}{{{JOB},name=~"$receiver"}}'
    return f"({inner}) * on (job, instance, node, stream, receiver) group_left (name) {info}"


_SEEN = ("node", "stream", "receiver", "name")


def seen(name: str, *, where: str = NODE, keep: str = "", by: tuple[str, ...] = _SEEN) -> Query:
    """Statistic of receivers as their sources see them."""
    inner = _joined(f"{metric(f'tx_receiver.{name}')}{{{where}}} {keep}".strip())
    return replace(_fold("max", inner, by), legend_labels=("receiver", "node"))


def seen_rate(name: str, *, where: str = NODE, window: str = _INTERVAL) -> Query:
    """Increases per second of a counter of receivers as their sources see them."""
    inner = _joined(f"rate({metric(f'tx_receiver.{name}')}{{{where}}}[{window}])")
    return replace(_fold("sum", inner, _SEEN), legend_labels=("receiver", "node"))


def _states(name: str, label: str, where: str, states: Mapping[Any, Word], by: tuple[str, ...]) -> Query:
    cases = (
        f'(({metric(name)}{{{where},{label}="{state}"}} == 1) * 0 + {word.rank})' for state, word in states.items()
    )
    return _fold("max", " or ".join(cases), by)


def classes(where: str, *by: str) -> Query:
    """Worst class of receivers, as its rank in `words.BEHAVIOUR`."""
    return _states("fleet_receiver_class", "class", where, {item: words.BEHAVIOUR[item] for item in JUDGED}, by)


def health() -> Query:
    """Health of nodes, as its rank in `words.HEALTH`."""
    return _states("node_health", "state", NODE, words.HEALTH, ("node",))
