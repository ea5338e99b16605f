"""The board of a node: its load on top, what limits it below."""

from __future__ import annotations

from heliograph.dashboards import words
from heliograph.dashboards.grafana import links as to
from heliograph.dashboards.grafana import queries as q
from heliograph.dashboards.grafana.limits import Limits
from heliograph.dashboards.grafana.panels import Panel, lines, row, timeline

TITLE = "Heliograph node"
ABOUT = "Load, errors and limits of one engine."


def panels(limits: Limits) -> list[Panel]:
    """Return the panels of the board."""
    stream = ("node", "stream")
    used, limit = (
        q.most("instance.memory_used", q.NODE, "node"),
        q.most("instance.memory_limit", q.NODE, "node", keep="> 0"),
    )
    queue, room = (
        q.most("transmitter.queue_bytes", q.SENT, "node", "topic"),
        q.most("transmitter.queue_limit_bytes", q.SENT, "node", "topic", keep="> 0"),
    )
    return [
        timeline(
            "Health", q.health(), words.HEALTH,
            "Whether each node's statistics can be trusted: live, stale (its heartbeat is old), closed (shut down "
            "cleanly), dead or damaged.", "live.", limits("NodeDown") | limits("StatsStale", "seconds"),
        ),
        lines(
            "Messages",
            [
                q.rate("instance.messages_sent", q.NODE, "node").named("sent"),
                q.rate("instance.messages_received", q.NODE, "node").named("delivered"),
            ],
            "cps", "Messages per second sent and delivered by each node.", "as the applications offer them.",
        ),
        lines(
            "On the wire",
            [
                q.rate("tx_stream.bytes_sent", q.NODE, "node").named("data"),
                q.rate("tx_stream.repair_bytes", q.NODE, "node").named("repairs"),
            ],
            "Bps", "Bytes per second of original data and of repairs, by sending node.",
            "repairs under 1 % of the data.", opens=to.STREAM,
        ),
        lines(
            "Requests per packet sent",
            [
                q.rate("tx_stream.naks_received", q.NODE, *stream).over(
                    q.rate("tx_stream.packets_sent", q.NODE, *stream)
                )
            ],
            "percentunit", "Sequence numbers requested by receivers per packet sent, by stream.",
            "under 0.1 %.", limits("NakRatioHigh", "ratio"), opens=to.STREAM,
        ),
        row("Waiting"),
        lines(
            "Waiting to send, by reason",
            [q.rate("tx_stream.wait_time", q.NODE, *stream, "reason")], "percentunit",
            "Share of the time in which messages waited: room of the channel, repairs, unacknowledged history, the "
            "rate, the rate of the instance, or the send limit.",
            "near 0. The reason names the limit to change.", limits("SenderBlocked", "share"), opens=to.STREAM,
        ),
        lines(
            "Submit queue fill", [queue.over(room)], "percentunit",
            "Fill of the queue between the application and the engine, by topic.",
            "under 50 %. At 100 % it blocks, refuses or drops, according to the topic's overflow option.",
            limits("SubmitQueueFull", "ratio"), opens=to.TOPIC,
        ),
        lines(
            "History fill",
            [q.most("tx_stream.history_packets", q.NODE, *stream).over(
                q.most("tx_stream.history_limit_packets", q.NODE, *stream, keep="> 0"))],
            "percentunit", "Packets kept for repairs, as a share of the limit.",
            "100 % once as many packets were sent as it holds.", opens=to.STREAM,
        ),
        lines(
            "Submits refused", [q.rate("instance.send_would_block", q.NODE, "node")], "cps",
            "Sends per second that were refused because the submit queue was full.",
            "none. The application offers more than the stream sends.",
        ),
        row("Memory and engine thread"),
        lines(
            "Memory", [used], "bytes", "Memory held by windows, queues and buffers.",
            "constant after the windows are filled.", width=8,
        ),
        lines(
            "Memory against its limit", [used.over(limit)], "percentunit",
            "Share of memory_limit in use on nodes with a limit. An event reports use above memory_high.",
            "under 85 %. At 100 % histories keep less and new streams are refused.",
            limits("MemoryHigh", "ratio"), width=8,
        ),
        lines(
            "Allocations refused", [q.amount("instance.memory_refusals", q.NODE, "node")], "short",
            "Allocations refused because of the memory limit.", "none.", limits("MemoryRefused"), width=8,
        ),
        lines(
            "Long duty cycles", [q.amount("instance.cycle_overruns", q.NODE, "node", window="1m")], "short",
            "Duty cycles of the engine thread longer than 50 ms, in each minute.",
            "none. Causes are a slow callback, page faults, or loss of the core.",
            limits("DutyCycleOverrun", "overruns"),
        ),
        lines(
            "Level of detail", [q.most("instance.detail_level", q.NODE, "node")], "short",
            "Level of detail of the statistics, 0 to 3. Changes are annotations on every board.",
            "the configured level. A higher level costs throughput.", limits("DetailLeftOn", "level", above=0.5),
        ),
        row("Sockets and packets"),
        lines(
            "Datagrams dropped", [q.rate("instance.socket_drops", q.NODE, "node")], "pps",
            "Datagrams dropped by the kernel because a socket's buffer was full.",
            "none. A full socket buffer is the most frequent cause of loss on a healthy network.",
            limits("SocketDrops"), width=8,
        ),
        lines(
            "Packets not ours",
            [
                q.rate("instance.invalid_packets", q.NODE, "node", "reason"),
                q.rate("instance.foreign_packets", q.NODE, "node").named("foreign"),
            ],
            "pps", "Datagrams refused as invalid, by reason, and packets of another program on the group.",
            "none.", limits("ForeignOrInvalidPackets", "packets_per_second"), width=8,
        ),
        lines(
            "Packets that could not be sent", [q.rate("instance.send_errors", q.NODE, "node")], "pps",
            "Packets that the driver could not send.", "none. Check the interface and its route.", width=8,
        ),
        lines(
            "Streams that stopped", [q.most("instance.streams_absent", q.NODE, "node")], "short",
            "Streams that stopped without leaving. A stream that returns resumes at its old position.",
            "none.", limits("PeerLost"), width=8,
        ),
        lines(
            "Receivers without a source", [q.most("instance.receivers_unmatched", q.NODE, "node")], "short",
            "Open receivers that have found no stream with their topic.",
            "none after the start.", limits("ReceiverUnmatched"), width=8,
        ),
        lines(
            "Events suppressed", [q.rate("instance.events_suppressed", q.NODE, "node")], "cps",
            "Events suppressed by the limit event_rate of their kind. The statistics include what they would have "
            "reported.", "none. Find the cause of an event that is this frequent.", width=8,
        ),
    ]  # fmt: skip
