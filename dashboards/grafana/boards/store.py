"""The board of message stores: what they keep, how soon it is durable, and how long their disks last."""

from __future__ import annotations

from heliograph.dashboards.grafana import links as to
from heliograph.dashboards.grafana import queries as q
from heliograph.dashboards.grafana.limits import Limits
from heliograph.dashboards.grafana.panels import Panel, lines, row, stat

TITLE = "Heliograph stores"
ABOUT = "Message stores: messages kept, gaps, time until they are durable, writes and disks."

_STREAM = ("node", "stream")


def panels(limits: Limits) -> list[Panel]:
    """Return the panels of the board."""
    free = q.least("store.disk_free_bytes", q.NODE, "node").over(q.most("store.disk_bytes", q.NODE, "node", keep="> 0"))
    used = q.Query(f"1 - {free.expr}", free.by)
    last = q.most("store_stream.last_position", q.NODE, *_STREAM)
    written = q.most("store_stream.written_position", q.NODE, *_STREAM)
    kept = q.rate("store_stream.messages_kept", q.NODE, "node")
    return [
        stat(
            "Stores that cannot write", q.together("sum", q.most("store.is_blocked", q.NODE, "node")), "short",
            "Stores that take no messages because a write fails. Sources that need their acknowledgement wait.",
            "none.", limits("StoreBlocked"), zero="none", width=6,
        ),
        stat(
            "Fullest disk", q.together("max", used, zero=False), "percentunit",
            "Share in use of the fullest file system of a store.", "under 95 %.",
            limits("StoreDiskNearFull", "ratio"), width=6,
        ),
        stat(
            "Messages missing, 1 h",
            q.together("sum", q.amount("store_stream.messages_lost", q.NODE, window="1h")), "short",
            "Messages that stores lost in the last hour: their files have a gap.", "none.",
            limits("StoreGap"), zero="none", width=6,
        ),
        stat(
            "Messages per second", q.together("sum", kept), "cps",
            "Messages taken into all stores.", "the rate of the sources, once per store.", width=6,
        ),
        row("Streams"),
        lines(
            "Messages kept", [q.rate("store_stream.messages_kept", q.NODE, *_STREAM)], "cps",
            "Messages per second taken into the store, by stream.", "the rate of the source.", opens=to.STREAM,
        ),
        lines(
            "Not written yet", [last.then(f"- {written.expr}")], "short",
            "Messages in memory, in the batch of each stream.", "a batch. If the line grows, the disk refuses writes.",
            limits("StoreBlocked"), opens=to.NODE,
        ),
        lines(
            "Time until durable",
            [q.p(one, "store_stream.durable_latency", q.NODE, *_STREAM) for one in ("p50", "p99", "max")], "s",
            "Arrival of the oldest message of a list until all of the list are durable.",
            "the time of a batch and of a sync.", log=True,
        ),
        lines(
            "Gaps, repeats and refusals",
            [
                q.amount("store_stream.messages_lost", q.NODE, *_STREAM).named("lost"),
                q.amount("store_stream.messages_repeated", q.NODE, *_STREAM).named("repeated"),
                q.amount("store_stream.messages_refused", q.NODE, *_STREAM).named("refused"),
            ],
            "short",
            "Messages that the receivers lost, that the store had already, and that are too large for its files.",
            "none, but for repeats after a restart of the store.", limits("StoreGap"),
        ),
        lines(
            "Catching up from other stores", [
                q.most("store.holes_open", q.NODE, "node").named("open holes"),
                q.amount("store.messages_fetched", q.NODE, "node").named("messages fetched"),
                q.amount("store.messages_given_up", q.NODE, "node").named("messages given up"),
                q.amount("store.fetch_failures", q.NODE, "node").named("failed attempts"),
            ],
            "short", "Ranges of messages that the store lacks, and what came of them.",
            "no open holes, but for a short time after a restart; none given up.", limits("StoreGap"),
        ),
        lines(
            "Topics", [
                q.most("store.topics", q.NODE, "node").named("kept"),
                q.amount("store.topics_refused", q.NODE, "node").named("announcements refused"),
            ],
            "short", "Topics that the store keeps, and announcements of topics that it should keep and does not.",
            "as many as the sources have that match its patterns; none refused.", limits("StoreTopicsRefused"),
            opens=to.NODE,
        ),
        row("Subscribers on other hosts"),
        lines(
            "Subscribers served", [q.most("store.service_readers", q.NODE, "node")], "short",
            "Subscribers that the service of the store is sending messages to.",
            "under --readers of the store (64 unless set). At that number others wait.", width=8,
        ),
        lines(
            "Bytes sent to subscribers", [q.rate("store.service_bytes_sent", q.NODE, "node")], "Bps",
            "Bytes of batches per second, all subscribers together.", "under --rate of the store.", width=8,
        ),
        lines(
            "Requests", [
                q.amount("store.service_requests", q.NODE, "node").named("answered"),
                q.amount("store.service_requests_refused", q.NODE, "node").named("refused"),
                q.amount("store.service_requests_aborted", q.NODE, "node").named("ended early"),
                q.amount("store.service_restarts", q.NODE, "node").named("restarts of the service"),
            ],
            "short", "Requests of subscribers, by outcome, and restarts of the service.",
            "none refused, no restarts. A subscriber that stops while it is served counts as ended early.",
            limits("StoreServiceRestarted"), width=8,
        ),
        row("Disk"),
        lines(
            "Disk in use", [used], "percentunit", "Share of the file system in use.", "under 95 %, and steady.",
            limits("StoreDiskNearFull", "ratio"), width=8,
        ),
        lines(
            "Size of open streams", [q.most("store.segment_bytes", q.NODE, "node")], "bytes",
            "Bytes of the segments of streams with a message in the last minute.",
            "steady once retention removes old segments.", limits("StoreDiskFilling"), width=8,
        ),
        lines(
            "Segments", [
                q.most("store.segments", q.NODE, "node").named("there"),
                q.amount("store.segments_removed", q.NODE, "node").named("removed"),
            ],
            "short", "Segments of these streams, and those that retention removed.", "steady.", width=8,
        ),
        lines(
            "Bytes written", [q.rate("store.bytes_written", q.NODE, "node")], "Bps",
            "Bytes per second, with headers and indexes.", "1 to 2 times the payload.", width=8,
        ),
        lines(
            "Messages per write", [kept.over(q.rate("store.writes", q.NODE, "node"))], "short",
            "Messages in a write. Batches make it large.", "above 1 under load.", width=8,
        ),
        lines(
            "Writes and syncs that failed", [q.amount("store.write_failures", q.NODE, "node")], "short",
            "Failed calls. A write is repeated; after a failed sync the store has to be opened again.", "none.",
            limits("StoreBlocked"), width=8,
        ),
        lines(
            "Times of writes and syncs",
            [
                q.p(one, f"store.{what}_time", q.NODE, "node").named(f"{what}, {one}")
                for what in ("write", "sync")
                for one in ("p50", "p99", "max")
            ],
            "s", "Time of a write to the page cache, and time that the disk takes for an fsync.",
            "writes below a millisecond; syncs as the disk, from 0.1 ms (NVMe) to 20 ms.", log=True, width=24,
        ),
    ]  # fmt: skip
