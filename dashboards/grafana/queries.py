"""All PromQL expressions of the dashboard. Every name in them comes from the catalogue.

Percentiles are computed from summed buckets, never averaged. The maximum is the exception: it is the highest of the
exporter's window gauges, because buckets do not contain it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from heliograph.dashboards import words
from heliograph.engine import catalogue
from heliograph.engine.catalogue import names
from heliograph.monitor.behaviour import JUDGED

__all__ = ["DELIVERED", "NODE_UP", "Query"]


@dataclass(frozen=True, slots=True)
class Query:
    """One expression and the legend of its series."""

    expr: str
    legend: str = ""
    instant: bool = False
    """Whether to fetch only the newest value, as a table."""


def _stat(scope: str, name: str) -> str:
    (statistic,) = (item for item in catalogue.scopes()[scope].statistics if item.name == name)
    return names.metric(statistic)


def _window(scope: str, name: str) -> str:
    (statistic,) = (item for item in catalogue.scopes()[scope].statistics if item.name == name)
    return names.window_metric(statistic)


def _derived(name: str) -> str:
    return names.family(catalogue.derived()[name])


NODE_UP = _derived("node_up")
DELIVERED = _stat("receiver", "messages_delivered")

_NODES = 'node=~"$node"'
_TOPIC_SENT = 'node=~"$node",topic=~"$topic"'
_TOPIC_RECEIVED = 'node=~"$receiver",topic=~"$topic"'
_RECEIVERS = 'node=~"$receiver"'


def _rate(metric: str, where: str) -> str:
    return f"rate({metric}{{{where}}}[$__rate_interval])"


def _lost(where: str, window: str) -> str:
    return f"increase({_stat('rx_stream', 'packets_lost')}{{{where}}}[{window}])"


_LAG = _derived("fleet_receiver_lag_seconds")
_CLASS = _derived("fleet_receiver_class")
_LATENCY = _stat("receiver", "total_latency")

# Faults

NODES_DOWN = [Query(f"count({NODE_UP}{{{_NODES}}} == 0) or vector(0)")]
_TROUBLE = f'{_TOPIC_RECEIVED},class!~"{"|".join(sorted(words.CALM))}"'
RECEIVERS_BEHIND = [Query(f"count(max by (node) ({_CLASS}{{{_TROUBLE}}} == 1)) or vector(0)")]
LOST_LATELY = [Query(f"sum({_lost(_RECEIVERS, '5m')}) or vector(0)")]
NAK_RATIO = [
    Query(
        f"sum({_rate(_stat('rx_stream', 'naks_sent'), _RECEIVERS)})"
        f" / sum({_rate(_stat('rx_stream', 'packets_received'), _RECEIVERS)})"
    )
]
DELIVERED_RATE = [Query(f"sum({_rate(DELIVERED, _TOPIC_RECEIVED)})")]


def _worst(percentile: str, by: Sequence[str] = ()) -> str:
    """The highest percentile among the receivers; the buckets in ``/metrics`` are too coarse for percentiles."""
    labels = f" by ({', '.join(by)}) " if by else ""
    return f'max{labels}({_window("receiver", "total_latency")}{{{_TOPIC_RECEIVED},percentile="{percentile}"}})'


P999 = [Query(_worst("p99.9"))]

# Receivers

CLASS_OVER_TIME = [
    Query(
        "max by (node) ("
        + " or ".join(
            f'(({_CLASS}{{{_TOPIC_RECEIVED},class="{item}"}} == 1) * 0 + {words.BEHAVIOUR[item].rank})'
            for item in JUDGED
        )
        + ")",
        "{{node}}",
    )
]
WORST = {
    "State": f"max by (node, topic) ({CLASS_OVER_TIME[0].expr.removeprefix('max by (node) ')})",
    "Lag": f"max by (node, topic) ({_LAG}{{{_TOPIC_RECEIVED}}})",
    "Queue": f"max by (node, topic) ({_derived('fleet_receiver_queue_ratio')}{{{_TOPIC_RECEIVED}}})",
    "NAK share": f"max by (node, topic) ({_derived('fleet_receiver_nak_share')}{{{_TOPIC_RECEIVED}}})",
    "Messages lost": f"sum by (node, topic) ({_stat('receiver', 'messages_lost')}{{{_TOPIC_RECEIVED}}})",
    "Delivered": f"sum by (node, topic) ({_rate(DELIVERED, _TOPIC_RECEIVED)})",
}
WORST_RECEIVERS = [Query(expr, name, instant=True) for name, expr in WORST.items()]
LAG = [Query(f"max by (node) ({_LAG}{{{_TOPIC_RECEIVED}}})", "{{node}}")]
QUEUE = [Query(f"max by (node) ({_derived('fleet_receiver_queue_ratio')}{{{_TOPIC_RECEIVED}}})", "{{node}}")]

# Traffic

THROUGHPUT = [
    Query(f"sum by (topic) ({_rate(_stat('transmitter', 'messages_sent'), _TOPIC_SENT)})", "{{topic}} sent"),
    Query(f"sum by (topic) ({_rate(DELIVERED, _TOPIC_RECEIVED)})", "{{topic}} delivered"),
]
WIRE = [
    Query(f"sum by (node) ({_rate(_stat('tx_stream', 'bytes_sent'), _NODES)})", "{{node}} data"),
    Query(f"sum by (node) ({_rate(_stat('tx_stream', 'repair_bytes'), _NODES)})", "{{node}} repairs"),
]

# Loss and repair

NAKS_SENT = [Query(f"sum by (node) ({_rate(_stat('rx_stream', 'naks_sent'), _RECEIVERS)})", "{{node}}")]
NAKS_BY_PEER = [
    Query(
        f"sum by (node, receiver) ({_rate(_stat('tx_receiver', 'naks_received'), _NODES)})",
        "{{node}} from {{receiver}}",
    )
]
MISSED = [
    Query(f"sum by (node) ({_rate(_stat('rx_stream', 'packets_missed'), _RECEIVERS)})", "{{node}} missed"),
    Query(f"sum by (node) ({_rate(_stat('rx_stream', 'packets_recovered'), _RECEIVERS)})", "{{node}} recovered"),
]
LOST = [Query(f"sum by (node, reason) ({_lost(_RECEIVERS, '$__rate_interval')})", "{{node}} {{reason}}")]

# Latency

PERCENTILES = [Query(_worst(percentile), percentile) for percentile in ("p50", "p99", "p99.9", "max")]
P99_BY_RECEIVER = [Query(_worst("p99", ("node",)), "{{node}}")]
HEATMAP = [Query(f"sum by (le) ({_rate(f'{_LATENCY}_bucket', _TOPIC_RECEIVED)})", "{{le}}")]
RECOVERY = [
    Query(
        "histogram_quantile(0.99, sum by (le, node) "
        f"({_rate(_stat('rx_stream', 'recovery_time') + '_bucket', _RECEIVERS)}))",
        "{{node}}",
    )
]

# Congestion control

_STREAM = "sum by (node, stream)"
RATES = [
    Query(
        f"max by (node, stream) ({_stat('tx_stream', 'rate_limit')}{{{_NODES}}} > 0)", "{{node}} {{stream}} in force"
    ),
    Query(
        f"max by (node, stream) ({_stat('tx_stream', 'rate_decided')}{{{_NODES}}} > 0)", "{{node}} {{stream}} decided"
    ),
    Query(f"{_STREAM} ({_rate(_stat('tx_stream', 'bytes_sent'), _NODES)})", "{{node}} {{stream}} sent"),
]
LIMITED = [Query(f"{_STREAM} ({_rate(_stat('tx_stream', 'rate_limited_time'), _NODES)})", "{{node}} {{stream}}")]
RATE_LOSS = [
    Query(f"max by (node, stream) ({_stat('tx_stream', 'rate_loss')}{{{_NODES}}}) / 1e6", "{{node}} {{stream}}")
]


def _receivers(name: str) -> str:
    return f"max by (node, receiver) ({_stat('tx_receiver', name)}{{{_NODES}}})"


STATES = [Query(_receivers("state"), "{{receiver}} to {{node}}")]
ACTIONS = [Query(_receivers("action"), "{{receiver}} by {{node}}")]
STORMS = [Query(f"{_STREAM} ({_stat('tx_stream', 'storm_active')}{{{_NODES}}})", "{{node}} {{stream}}")]
SHED = [
    Query(f"sum by (node, receiver) ({_rate(_stat('tx_receiver', 'naks_shed'), _NODES)})", "{{receiver}} by {{node}}")
]
FORECAST = [
    Query(f"min by (node, receiver) ({_stat('tx_receiver', 'forecast')}{{{_NODES}}} > 0)", "{{receiver}} of {{node}}"),
]
ISOLATED = [
    Query(
        f"count(max by (node, stream, receiver) ({_stat('tx_receiver', 'action')}{{{_NODES}}})"
        f" >= {words.ACTION['suspend'].rank}) or vector(0)"
    )
]
IN_STORM = [Query(f"count({_stat('tx_stream', 'storm_active')}{{{_NODES}}} == 1) or vector(0)")]
MEMORY_SHARE = [
    Query(
        f"max by (node) ({_stat('instance', 'memory_used')}{{{_NODES}}}"
        f" / ({_stat('instance', 'memory_limit')}{{{_NODES}}} > 0))",
        "{{node}}",
    )
]
SUBMIT_FILL = [
    Query(
        f"max by (node, topic) ({_stat('transmitter', 'queue_bytes')}{{{_TOPIC_SENT}}}"
        f" / ({_stat('transmitter', 'queue_limit_bytes')}{{{_TOPIC_SENT}}} > 0))",
        "{{node}} {{topic}}",
    )
]
SUPPRESSED = [Query(f"sum by (node) ({_rate(_stat('instance', 'events_suppressed'), _NODES)})", "{{node}}")]

# Nodes

HEALTH = [
    Query(
        "max by (node) ("
        + " or ".join(
            f'(({_derived("node_health")}{{{_NODES},state="{name}"}} == 1) * 0 + {state.rank})'
            for name, state in words.HEALTH.items()
        )
        + ")",
        "{{node}}",
    )
]
DROPS = [
    Query(f"sum by (node) ({_rate(_stat('instance', 'socket_drops'), _NODES)})", "{{node}} socket buffer full"),
    Query(f"sum by (node) ({_rate(_stat('instance', 'invalid_packets'), _NODES)})", "{{node}} invalid"),
]
MEMORY = [Query(f"sum by (node) ({_stat('instance', 'memory_used')}{{{_NODES}}})", "{{node}}")]
