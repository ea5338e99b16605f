"""The board of latency: percentiles, stages, repairs, and whether the clocks allow a judgement."""

from __future__ import annotations

from heliograph.dashboards.grafana import links as to
from heliograph.dashboards.grafana import queries as q
from heliograph.dashboards.grafana.limits import Limits
from heliograph.dashboards.grafana.panels import Panel, heatmap, lines, row, stat

TITLE = "Heliograph latency"
ABOUT = "Latency by percentile, receiver and stage, with the clocks and hosts that limit its meaning."

_LATENCY = "receiver.total_latency"
_DETAIL = "The exporter has it in /metrics/detail only"
_AFTER = ("order", "dispatch", "network", "socket")
_BEFORE = ("batch", "pace", "send")


def panels(limits: Limits) -> list[Panel]:
    """Return the panels of the board."""
    untrusted = q.together("count", q.least("fleet_receiver_latency_trusted", q.RECEIVED, "node").then("== 0"))
    return [
        *(
            stat(
                f"Latency {one}", q.together("max", q.p(one, _LATENCY, q.RECEIVED), zero=False), "s",
                f"Latency {one} of the slowest receiver, over the exporter's window.", healthy, limits.objective,
                width=6,
            )
            for one, healthy in (
                ("p50", "stable, far below the objective."),
                ("p99.9", "below the objective and stable."),
                ("max", "near p99.9. Far above, single messages wait for repairs or for the host."),
            )
        ),
        stat(
            "Receivers with unreliable clocks", untrusted, "short",
            "Receivers whose clock offset or its error bound exceeds their median latency.",
            "none. Do not use the latencies of these receivers.", limits("ClockUntrustworthy"), zero="none", width=6,
        ),
        lines(
            "Latency percentiles", [q.p(one, _LATENCY, q.RECEIVED) for one in ("p50", "p99", "p99.9", "max")], "s",
            "Time from submit to delivery to the application or its queue, of the slowest of the selected topics and "
            "receivers on each host.", "flat bands. If only p99.9 rises, it is jitter; if all rise, it is load.",
            limits.objective, log=True,
        ),
        heatmap(
            "Latency distribution",
            q.buckets(_LATENCY, q.RECEIVED),
            "Messages per second in each bucket of the latency histogram.",
            "one narrow dark band. A second band comes from one receiver, topic or path.",
        ),
        lines(
            "Latency p99, by receiver", [q.p("p99", _LATENCY, q.RECEIVED, "node")], "s",
            "99 of 100 messages of this receiver arrived within this time.",
            "receivers on equal paths have equal latency.", limits.objective, log=True, opens=to.RECEIVER,
        ),
        lines(
            "Latency p99.9, by topic", [q.p("p99.9", _LATENCY, q.RECEIVED, "topic")], "s",
            "999 of 1000 messages of this topic arrived within this time at its slowest receiver.",
            "topics of one stream have equal latency.", limits.objective, log=True, opens=to.TOPIC,
        ),
        row("Stages"),
        lines(
            "Stages at the sender, p99.9",
            [q.p("p99.9", f"transmitter.{one}_latency", q.SENT).named(one) for one in _BEFORE], "s",
            "Batch: until the packet is closed. Pace: waiting for the rate or a window. Send: the driver call. Pace "
            "needs level 3, the others level 2.",
            "batch near the configured time, pace near 0.", log=True,
        ),
        lines(
            "Stages at the receiver, p99.9",
            [q.p("p99.9", f"receiver.{one}_latency", q.RECEIVED).named(one) for one in _AFTER], "s",
            "Network and socket: until the engine reads the packet. Order: until it is next in order. Dispatch: until "
            f"the application takes the message. {_DETAIL}, at level 2 or 3.",
            "order near 0 without loss.", log=True,
        ),
        lines(
            "Latency from the intended send time, p99.9",
            [
                q.p("p99.9", "receiver.intended_latency", q.RECEIVED, "node").named("intended"),
                q.p("p99.9", _LATENCY, q.RECEIVED, "node").named("measured"),
            ],
            "s", f"Latency that includes stalls of the sending application, and without them. {_DETAIL}, at level 3.",
            "equal. A difference is a stall of the sender.", limits.objective, log=True, opens=to.RECEIVER,
        ),
        lines(
            "Interarrival jitter", [q.most("receiver.interarrival_jitter", q.RECEIVED, "node")], "s",
            f"Variation of the transit time between packets (RFC 3550). {_DETAIL}.",
            "stable. It rises with queues in the network.", opens=to.RECEIVER,
        ),
        row("Repairs and tails"),
        lines(
            "Repair time p99, by receiver", [q.p("p99", "rx_stream.recovery_time", q.RECEIVER, "node")], "s",
            "Time from the detection of a missing packet to its arrival.",
            "a few round trips. Near the receiver's nak_deadline, unrecoverable loss follows.",
            log=True, opens=to.RECEIVER,
        ),
        lines(
            "Latency tail against the host",
            [
                q.p("p99.9", _LATENCY, q.RECEIVED, "node").over(
                    q.p("p99.9", "instance.host_hiccup", q.RECEIVER, "node")
                ).named("")
            ],
            "short", "The 99.9th percentile of latency divided by that of the host's wake-up delay.",
            "under the threshold. Above it, the transport or the network causes the tail.",
            limits("JitterAboveHost", "factor"), log=True, opens=to.RECEIVER,
        ),
        row("Trust"),
        lines(
            "Error bound of the clock offset", [q.most("rx_stream.clock_error_bound", q.RECEIVER, "node", "stream")],
            "s",
            "Error bound of the offset between the clocks of receiver and source. It is absent on one host.",
            "far below the median latency.", log=True, opens=to.RECEIVER,
        ),
        lines(
            "Latency samples refused", [q.rate("receiver.latency_invalid_samples", q.RECEIVED, "node")], "cps",
            f"Samples that the clocks make negative, per second. {_DETAIL}.",
            "none. The clocks are not synchronized.", limits("ClockUntrustworthy"), opens=to.RECEIVER,
        ),
    ]  # fmt: skip
