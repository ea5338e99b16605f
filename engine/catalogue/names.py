"""Derives every other spelling of a catalogue name.

Internal values are integers in nanoseconds and bytes. Outputs use base units (seconds, bytes, ratios): the name for
Prometheus has the converted unit, and `scale` converts the value.
"""

from __future__ import annotations

from heliograph.engine.catalogue import Derived, Scope, Statistic

__all__ = ["column", "family", "info_metric", "label", "metric", "metric_label", "scale", "title", "window_metric"]

PREFIX = "heliograph"

_METRIC_UNIT = {
    "packets": "packets",
    "messages": "messages",
    "sequences": "sequences",
    "bytes": "bytes",
    "nanoseconds": "seconds",
    "": "",
}
_ACRONYMS = {"naks": "NAKs", "nak": "NAK", "spm": "SPM", "ncf": "NCF", "rx": "RX", "tx": "TX"}


def metric(statistic: Statistic) -> str:
    """Prometheus family name: ``heliograph_rx_stream_naks_sent_sequences_total``.

    Prometheus adds the label `instance` to every scraped series, so this scope is called `node` there.
    """
    scope = "node" if statistic.scope == "instance" else statistic.scope
    unit = _METRIC_UNIT[statistic.unit]
    words = [PREFIX, scope, statistic.name]
    if unit == "seconds" and statistic.kind == "gauge" and statistic.name.startswith("last_"):
        words.append("timestamp")
    if unit and unit not in statistic.name.split("_"):
        words.append(unit)
    if statistic.kind == "counter":
        words.append("total")
    return "_".join(words)


def window_metric(statistic: Statistic) -> str:
    """Prometheus family of a histogram's percentiles over a recent time window.

    For example ``heliograph_receiver_total_latency_window_seconds``, with a label `percentile`.
    """
    return metric(statistic).removesuffix("_seconds") + "_window_seconds"


def family(derived: Derived) -> str:
    """Prometheus name of a derived family: ``heliograph_node_heartbeat_timestamp_seconds``."""
    unit = _METRIC_UNIT[derived.unit]
    words = [PREFIX, derived.name]
    if derived.stamp:
        words.append("timestamp")
    if unit and unit not in derived.name.split("_"):
        words.append(unit)
    if derived.kind == "counter":
        words.append("total")
    return "_".join(words)


def metric_label(name: str) -> str:
    """Label name for Prometheus, which uses `instance` itself."""
    return "node" if name == "instance" else name


def scale(statistic: Statistic | Derived) -> float:
    """Factor from the internal value to the value of outputs."""
    return 1e-9 if statistic.unit == "nanoseconds" else 1.0


def column(statistic: Statistic) -> str:
    """Column or metric name in the history: ``receiver_total_latency``."""
    return f"{statistic.scope}_{statistic.name}"


def title(statistic: Statistic) -> str:
    """Title of an axis or column: ``NAKs sent``."""
    return label(statistic.name)


def label(name: str) -> str:
    """A snake_case name as a label for display."""
    words = [_ACRONYMS.get(word, word) for word in name.split("_")]
    text = " ".join(words)
    return text[0].upper() + text[1:] if text[0].islower() else text


def info_metric(scope: Scope) -> str:
    """Prometheus family with the description of the objects of a scope."""
    return f"{PREFIX}_{'node' if scope.name == 'instance' else scope.name}_info"
