"""The board of a receiver: its state, its lag, its losses, and how its sources see it and act on it."""

from __future__ import annotations

from heliograph.dashboards import words
from heliograph.dashboards.grafana import links as to
from heliograph.dashboards.grafana import queries as q
from heliograph.dashboards.grafana.limits import Limits
from heliograph.dashboards.grafana.panels import Column, Panel, lines, row, stat, table, timeline

TITLE = "Heliograph receiver"
ABOUT = "One receiver: since when it is slow, why, what it has lost, and what its sources do about it."

_SOURCES = q.JOB
"""Sources on every host."""


def panels(limits: Limits) -> list[Panel]:
    """Return the panels of the board."""
    lag = limits("ReceiverFallingBehind", "seconds")
    unwanted = f"{q.RECEIVER},{limits.accepted()}"
    since = q.together("min", q.seen("slow_since", where=_SOURCES, keep="> 0"), zero=False).then("* 1000")
    return [
        timeline(
            "State by topic", q.classes(q.RECEIVED, "node", "topic"), words.BEHAVIOUR,
            "State of the receiver on each topic, by its progress.",
            "keeps up. Catching up after a pause is normal if it ends.", limits("ReceiverStalled"), opens=to.TOPIC,
        ),
        stat(
            "Slow since", since, "dateTimeFromNow",
            "Time since when a symptom of the receiver is over its threshold, as its sources see it.",
            "no data: no symptom.", width=6,
        ),
        stat(
            "Loss ahead in", q.together("min", q.seen("forecast", where=_SOURCES, keep="> 0"), zero=False), "s",
            "Shortest time until packets that the receiver needs leave the history, at the current rates.",
            "no data: no loss is ahead.", width=6,
        ),
        stat(
            "Lost for certain, 5 min",
            q.together("sum", q.seen_rate("lost_certain", where=_SOURCES, window="5m").then("* 300")),
            "short", "Packets that left the history before the receiver had them, counted by its sources.",
            "none.", limits("LossCertain"), zero="none", width=6,
        ),
        stat(
            "Packets lost, 5 min", q.together("sum", q.amount("rx_stream.packets_lost", unwanted, window="5m")),
            "short",
            "Packets that the receiver has given up, without losses that a setting or an action accepts.", "none.",
            limits("UnrecoverableLoss"), zero="none", width=6,
        ),
        row("Progress"),
        lines(
            "Lag", [q.most("fleet_receiver_lag_seconds", q.RECEIVED, "node", "topic")], "s",
            "Age of the oldest message that the receiver has not taken.",
            "near 0. When the lag grows, first the queue is exhausted, then the history.", lag, opens=to.TOPIC,
        ),
        lines(
            "Lag in packets, by source", [q.seen("lag", where=_SOURCES)], "short",
            "Packets sent and not passed on at the receiver's last report.", "a few.",
        ),
        lines(
            "Receive queue fill", [q.most("fleet_receiver_queue_ratio", q.RECEIVED, "node", "topic")], "percentunit",
            "Fill of the receive queue of each topic.", "under 50 %. At 100 % delivery waits for the application.",
            limits("ReceiverQueueNearFull", "ratio"),
        ),
        lines(
            "Until data leaves the history", [q.seen("forecast", where=_SOURCES, keep="> 0")], "s",
            "Time until the packets that the receiver needs leave the history, at the current rates.",
            "no line. A falling line ends in a loss.", limits("LossAhead", "seconds"),
        ),
        row("As its sources see it"),
        timeline(
            "State, by source", q.seen("state", where=_SOURCES), words.STATE,
            "Class of the receiver by its own reports: keeps up, falling behind, stalled, silent or catching up.",
            "keeps up. Catching up after a pause is normal if it ends.", width=8,
        ),
        timeline(
            "Actions on the receiver", q.seen("action", where=_SOURCES), words.ACTION,
            "Shed, suspend NAKs, suspend or expel; automatic or by command.", "none.",
            limits("ReceiverIsolated"), width=8,
        ),
        lines(
            "Round trip", [q.seen("round_trip", where=_SOURCES, keep="> 0")], "s",
            "Smoothed round trip time between source and receiver.", "stable, near that of the network.", width=8,
        ),
        row("Loss and latency"),
        lines(
            "Share of requests", [q.most("fleet_receiver_nak_share", q.RECEIVED, "node", "topic")], "percentunit",
            "Part of the stream's requests that comes from this receiver.",
            "equal to that of other receivers on the same path.", limits("CryingBabyReceiver", "share"), width=8,
        ),
        lines(
            "Packets lost, by cause",
            [q.amount("rx_stream.packets_lost", q.RECEIVER, "node", "reason").with_exemplars()], "short",
            "Packets given up. window_advanced: the history was too short; ncf_retries and data_retries: no answer; "
            "deadline: the repair took too long; overflow: the receive window was full.",
            "none.", limits("UnrecoverableLoss"), stack=True, width=8,
        ),
        lines(
            "Loss locations", [q.rate("rx_stream.losses_located", q.RECEIVER, "node", "location")], "pps",
            "Packets missing at first, by the location where they were lost: history, late, queue, window, socket or "
            "outside of the host.", "none, or outside only. Socket and window: the receiver's host is too slow.",
            stack=True, width=8,
        ),
        lines(
            "Latency percentiles",
            [q.p(one, "receiver.total_latency", q.RECEIVED, "node") for one in ("p50", "p99", "p99.9", "max")], "s",
            "Time from submit to delivery, of the slowest topic. The line is the objective.",
            "flat bands.", limits.objective, log=True,
        ),
        lines(
            "Repair time", [q.p(one, "rx_stream.recovery_time", q.RECEIVER, "node") for one in ("p50", "p99.9")], "s",
            "Time from the detection of a missing packet to its arrival.",
            "a few round trips. Near the receiver's nak_deadline, unrecoverable loss follows.", log=True,
        ),
        table(
            "Sources of the receiver",
            {
                "State": Column(q.seen("state", where=_SOURCES), words=words.STATE),
                "Action": Column(q.seen("action", where=_SOURCES), words=words.ACTION),
                "Lag": Column(q.seen("lag_time", where=_SOURCES), "s", lag),
                "Loss": Column(q.seen("loss", where=_SOURCES).then("/ 1e6"), "percentunit"),
                "Buffer": Column(q.seen("buffer_fill", where=_SOURCES).then("/ 1e6"), "percentunit", gauge=True),
                "Suspensions": Column(q.seen("suspensions", where=_SOURCES), "short"),
            },
            "One line per stream that the receiver receives, from the receiver's reports to its source.",
            "keeps up, no action, no loss.", links={"node": [to.NODE, to.STREAM]}, sort="Lag",
        ),
    ]  # fmt: skip
