"""The board of losses and congestion: requests, repairs, losses with their locations, rates and storms."""

from __future__ import annotations

from heliograph.dashboards import words
from heliograph.dashboards.grafana import links as to
from heliograph.dashboards.grafana import queries as q
from heliograph.dashboards.grafana.limits import Limits
from heliograph.dashboards.grafana.panels import Column, Panel, lines, row, table, timeline

TITLE = "Heliograph loss and congestion"
ABOUT = "Requests, repairs and losses, and what the sources do about congestion and slow receivers."

_STREAM = ("node", "stream")


def panels(limits: Limits) -> list[Panel]:
    """Return the panels of the board."""
    repairs, data = (q.rate(f"tx_stream.{name}", q.NODE, *_STREAM) for name in ("repair_bytes", "bytes_sent"))
    return [
        lines(
            "NAKs sent, by receiver", [q.rate("rx_stream.naks_sent", q.RECEIVER, "node")], "cps",
            "Sequence numbers requested per second, by receiver.",
            "a few in a burst. One receiver far above the others: check its host and link. All receivers: check the "
            "sender or the network.", opens=to.RECEIVER,
        ),
        lines(
            "NAKs received, by receiver", [q.seen_rate("naks_received")], "cps",
            "The same requests as seen by the sources. A receiver out of the monitor's reach is shown by its address.",
            "agrees with the panel on the left; the difference is NAKs lost in the network.", opens=to.SEEN,
        ),
        lines(
            "Packets missed and recovered",
            [
                q.rate("rx_stream.packets_missed", q.RECEIVER, "node").named("missed"),
                q.rate("rx_stream.packets_recovered", q.RECEIVER, "node").named("recovered"),
            ],
            "pps", "Packets detected as missing, and missing packets that were recovered.", "the two lines coincide.",
            opens=to.RECEIVER,
        ),
        lines(
            "Unrecoverable packets, by cause",
            [q.amount("rx_stream.packets_lost", q.RECEIVER, "node", "reason").with_exemplars()], "short",
            "Packets given up, by receiver and cause. window_advanced: the sender's history was too short; ncf_retries "
            "and data_retries: no answer; deadline: the repair took too long; overflow: the receive window was full; "
            "reset: the receiver restarted.",
            "none.", limits("UnrecoverableLoss"), stack=True, opens=to.RECEIVER,
        ),
        row("Where packets are lost"),
        lines(
            "Loss locations", [q.rate("rx_stream.losses_located", q.RECEIVER, "node", "location")], "pps",
            "Packets missing at first, by loss location. history: at the source; late: they arrived late; queue and "
            "window: no room in the receiver; socket: its kernel; outside: the network.",
            "none, or outside only.", stack=True, opens=to.RECEIVER, width=8,
        ),
        lines(
            "Gaps, by length", [q.rate("rx_stream.gaps", q.RECEIVER, "length")], "cps",
            "Gaps in the sequence per second, by their length in packets.",
            "short gaps. Long gaps are interruptions or overflowing buffers.", stack=True, width=8,
        ),
        lines(
            "Receive windows that overflow", [q.amount("rx_stream.overflows", q.RECEIVER, "node")], "short",
            "Packets dropped because the receive window was full.", "none.",
            limits("ReceiveWindowOverflow"), opens=to.RECEIVER, width=8,
        ),
        table(
            "Losses since the start",
            {
                "Packets": Column(q.total("loss.packets", q.RECEIVER, "node", "stream", "cause")),
                "Times": Column(q.total("loss.observations", q.RECEIVER, "node", "stream", "cause")),
                "Longest": Column(q.most("loss.longest", q.RECEIVER, "node", "stream", "cause")),
                "First": Column(
                    q.least("loss.first_lost", q.RECEIVER, "node", "stream", "cause").then("* 1000"), "dateTimeAsIso"),
                "Last": Column(
                    q.most("loss.last_lost", q.RECEIVER, "node", "stream", "cause").then("* 1000"), "dateTimeAsIso"),
            },
            "Losses of each receiver by stream and cause, kept until its instance ends.", "no line.",
            links={"node": [to.RECEIVER, to.NODE]}, sort="Last", width=24,
        ),
        row("Rates"),
        lines(
            "Rate of streams",
            [
                q.most("tx_stream.rate_limit", q.NODE, *_STREAM, keep="> 0").named("in force"),
                q.most("tx_stream.rate_decided", q.NODE, *_STREAM, keep="> 0").named("decided"),
                data.named("sent"),
            ],
            "Bps",
            "Bytes per second in force, decided by the rate policy, and sent. A stream without a limit shows only "
            "the sent rate. The first two differ while rate_mode only advises or observes, and while the stream waits "
            "for a slow receiver.", "sent stays below the rate, and the rate is steady or varies slowly.",
        ),
        lines(
            "Time limited by the rate", [q.rate("tx_stream.rate_limited_time", q.NODE, *_STREAM)], "percentunit",
            "Share of the time that data waited for the rate, for repairs sent first, or for the send limit.",
            "near 0. Above a half for minutes, the application offers more than the limit.",
            limits("RateLimited", "share"),
        ),
        lines(
            "Repairs on the wire", [repairs.over(data)], "percentunit",
            "Bytes of repairs as a share of the bytes of data.", "under 1 %.", width=8,
        ),
        lines(
            "Loss that the rate follows", [q.most("tx_stream.rate_loss", q.NODE, *_STREAM).then("/ 1e6")],
            "percentunit",
            "Loss of the receiver that determines the rate, lower bound. The rate falls above loss_high and rises "
            "below loss_low.", "below 1 %.", width=8,
        ),
        lines(
            "Time waited for one receiver", [q.seen_rate("blame_time")], "percentunit",
            "Share of the time that data waited for this receiver alone: for its window, acknowledgement or credit.",
            "near 0. The receiver with a high line holds up all others.", opens=to.SEEN, width=8,
        ),
        row("Actions"),
        timeline(
            "Actions on receivers", q.seen("action"), words.ACTION,
            "Shed, suspend NAKs, suspend or expel; automatic or by command.", "none.",
            limits("ReceiverIsolated"), opens=to.SEEN,
        ),
        lines(
            "Decisions about slow receivers", [q.amount("tx_stream.slow_actions", q.NODE, *_STREAM, "decision")],
            "short",
            "Decisions that were executed, or reported with slow_mode=advise.", "none.", limits("SlowReceiverAction"),
        ),
        lines(
            "NAK storms", [q.total("tx_stream.storm_active", q.NODE, *_STREAM)], "short",
            "1 while the stream has a storm.", "0.", limits("NakStorm"), width=8,
        ),
        lines(
            "Requests not repaired", [q.seen_rate("naks_shed")], "cps",
            "Requests per second that were not repaired, because the receiver is over its limit or under an action.",
            "none, or a few seconds after a burst.",
            limits("RepairsShed", "packets_per_second"), opens=to.SEEN, width=8,
        ),
        lines(
            "Requests too late", [q.rate("tx_stream.naks_answered", f'{q.NODE},outcome="too_late"', *_STREAM)], "cps",
            "Requests per second for packets that have left the history.",
            "none. Each is a loss: the history is too short for the receiver.", limits("LossCertain"), width=8,
        ),
    ]  # fmt: skip
