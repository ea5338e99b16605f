"""The board of a topic: what goes in, what comes out, and how late."""

from __future__ import annotations

from heliograph.dashboards import words
from heliograph.dashboards.grafana import links as to
from heliograph.dashboards.grafana import queries as q
from heliograph.dashboards.grafana.limits import Limits
from heliograph.dashboards.grafana.panels import Column, Panel, heatmap, lines, row, table, timeline

TITLE = "Heliograph topic"
ABOUT = "Flow, loss and latency of one topic over its senders and receivers."

_LATENCY = "receiver.total_latency"


def panels(limits: Limits) -> list[Panel]:
    """Return the panels of the board."""
    lag = limits("ReceiverFallingBehind", "seconds")
    queue = limits("ReceiverQueueNearFull", "ratio")
    return [
        lines(
            "Sent, by sender", [q.rate("transmitter.messages_sent", q.SENT, "node", "topic")], "cps",
            "Messages per second put into packets.", "as the application submits them.", opens=to.NODE,
        ),
        lines(
            "Delivered, by receiver", [q.rate("receiver.messages_delivered", q.RECEIVED, "node", "topic")], "cps",
            "Messages per second handed to the application or its queue.",
            "every receiver of the topic at the sent rate.", opens=to.RECEIVER_OF_TOPIC,
        ),
        timeline(
            "State of each receiver of the topic", q.classes(q.RECEIVED, "node", "topic"), words.BEHAVIOUR,
            "State of each receiving node on each topic, by its progress.",
            "keeps up. Catching up after a pause is normal if it ends.",
            limits("ReceiverStalled"), opens=to.RECEIVER_OF_TOPIC,
        ),
        lines(
            "Lag, by receiver", [q.most("fleet_receiver_lag_seconds", q.RECEIVED, "node", "topic")], "s",
            "Age of the oldest message that each receiver has not taken.", "near 0.", lag, opens=to.RECEIVER_OF_TOPIC,
        ),
        row("Loss"),
        lines(
            "Messages lost, by receiver",
            [q.amount("receiver.messages_lost", q.RECEIVED, "node", "topic").with_exemplars()], "short",
            "Messages lost for good, because their packet was given up or they were damaged. A mark has the number of "
            "the first one.",
            "none.", limits("UnrecoverableLoss"), opens=to.RECEIVER_OF_TOPIC, stack=True,
        ),
        lines(
            "Share of requests, by receiver", [q.most("fleet_receiver_nak_share", q.RECEIVED, "node", "topic")],
            "percentunit", "Part of the stream's requests that comes from each receiver.",
            "receivers on equal paths have equal shares.",
            limits("CryingBabyReceiver", "share"), opens=to.RECEIVER_OF_TOPIC,
        ),
        lines(
            "Messages dropped before sending",
            [q.rate("transmitter.messages_dropped", q.SENT, "node", "topic", "cause")],
            "cps", "Messages dropped from the submit queue, by cause.",
            "none, unless the topic's overflow option drops by design.", opens=to.NODE,
        ),
        row("Latency"),
        lines(
            "Latency percentiles",
            [q.p(one, _LATENCY, q.RECEIVED, "topic") for one in ("p50", "p99", "p99.9", "max")], "s",
            "Time from submit to delivery, of the slowest of the selected receivers on each host. The line is the "
            "objective.", "flat bands. If only p99.9 rises, it is jitter; if all rise, it is load.",
            limits.objective, log=True,
        ),
        lines(
            "Latency p99.9, by receiver", [q.p("p99.9", _LATENCY, q.RECEIVED, "node", "topic")], "s",
            "999 of 1000 messages reached this receiver within this time.",
            "receivers on equal paths have equal latency.", limits.objective, log=True, opens=to.RECEIVER_OF_TOPIC,
        ),
        heatmap(
            "Latency distribution",
            q.buckets(_LATENCY, q.RECEIVED),
            "Messages per second in each bucket of the latency histogram.",
            "one narrow dark band. A second band comes from one receiver, topic or path.",
        ),
        lines(
            "Latency tail and host delay",
            [
                q.p("p99.9", _LATENCY, q.RECEIVED, "node").named("latency"),
                q.p("p99.9", "instance.host_hiccup", q.RECEIVER, "node").named("host"),
            ],
            "s", "The 99.9th percentile of latency, and of the wake-up delay of the receiver's host.",
            "the latency follows the host. Far above it, the transport or the network is the cause.",
            limits("JitterAboveHost", "seconds"), log=True, opens=to.RECEIVER,
        ),
        row("Queues"),
        lines(
            "Receive queue fill", [q.most("fleet_receiver_queue_ratio", q.RECEIVED, "node", "topic")], "percentunit",
            "Fill of the receive queue of each receiver.", "under 50 %. At 100 % delivery waits for the application.",
            queue, opens=to.RECEIVER_OF_TOPIC,
        ),
        lines(
            "Waiting in the submit queue", [q.most("transmitter.messages_waiting", q.SENT, "node", "topic")], "short",
            "Messages accepted and not yet sent.", "few. A rising line ends at the size of the queue.", opens=to.NODE,
        ),
        table(
            "Receivers of the topic",
            {
                "State": Column(q.classes(q.RECEIVED, "node", "topic"), words=words.BEHAVIOUR),
                "Lag": Column(q.most("fleet_receiver_lag_seconds", q.RECEIVED, "node", "topic"), "s", lag),
                "Queue": Column(
                    q.most("fleet_receiver_queue_ratio", q.RECEIVED, "node", "topic"), "percentunit", queue, gauge=True
                ),
                "Latency p99.9": Column(q.p("p99.9", _LATENCY, q.RECEIVED, "node", "topic"), "s", limits.objective),
                "Messages lost": Column(q.total("receiver.messages_lost", q.RECEIVED, "node", "topic")),
            },
            "One line per receiver of the selected topics.", "keeps up, without lag or loss.",
            links={"node": [to.RECEIVER_OF_TOPIC, to.NODE]}, sort="State",
        ),
    ]  # fmt: skip
