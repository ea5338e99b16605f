"""The board of hosts, clocks and blame: whether the host, the network or the transport is the cause."""

from __future__ import annotations

from heliograph.dashboards.grafana import links as to
from heliograph.dashboards.grafana import queries as q
from heliograph.dashboards.grafana.limits import Limits
from heliograph.dashboards.grafana.panels import Column, Panel, lines, row, stat, table

TITLE = "Heliograph host, clock and blame"
ABOUT = "Delays of hosts, offsets of clocks, and the cause of late messages."


def panels(limits: Limits) -> list[Panel]:
    """Return the panels of the board."""
    hiccup = limits("HostHiccupHigh", "seconds")
    return [
        stat(
            "Host delay p99.9", q.together("max", q.p("p99.9", "instance.host_hiccup", q.NODE), zero=False), "s",
            "One wake-up in a thousand of the most delayed host is at least this late.",
            "under a millisecond on an isolated core.", hiccup, width=8,
        ),
        stat(
            "Clock steps, 1 h", q.together("sum", q.amount("instance.clock_steps", q.NODE, window="1h")), "short",
            "Steps of wall clocks against monotonic clocks within an hour.",
            "none. Latencies between two hosts are wrong after a step.", limits("ClockStepped"), zero="none", width=8,
        ),
        stat(
            "Receivers with unreliable clocks",
            q.together("count", q.least("fleet_receiver_latency_trusted", q.RECEIVED, "node").then("== 0")), "short",
            "Receivers whose clock offset or its error bound exceeds their median latency.",
            "none.", limits("ClockUntrustworthy"), zero="none", width=8,
        ),
        row("Host"),
        lines(
            "Host delay",
            [q.p(one, "instance.host_hiccup", q.NODE, "node") for one in ("p50", "p99.9", "max")], "s",
            "Wake-up delay of a thread that only sleeps: caused by the host and not by the transport.",
            "flat and under a millisecond. Steps come from other processes, C-states or the hypervisor.",
            hiccup, log=True, opens=to.NODE,
        ),
        lines(
            "Latency tail and host delay, p99.9",
            [
                q.p("p99.9", "receiver.total_latency", q.RECEIVED, "node").named("latency"),
                q.p("p99.9", "instance.host_hiccup", q.RECEIVER, "node").named("host"),
            ],
            "s", "Both tails on one axis.",
            "the latency follows the host. Far above it, the transport or the network is the cause.",
            limits("JitterAboveHost", "seconds"), log=True, opens=to.RECEIVER,
        ),
        lines(
            "Long duty cycles", [q.amount("instance.cycle_overruns", q.NODE, "node", window="1m")], "short",
            "Duty cycles of the engine thread longer than 50 ms, in each minute.", "none.",
            limits("DutyCycleOverrun", "overruns"), opens=to.NODE, width=8,
        ),
        lines(
            "Longest duty cycle", [q.most("instance.cycle_time_max", q.NODE, "node")], "s",
            "Longest duty cycle of the engine thread since its start.",
            "under 50 ms. A step is a blocked engine.", opens=to.NODE, width=8,
        ),
        lines(
            "Socket drops", [q.rate("instance.socket_drops", q.NODE, "node")], "pps",
            "Datagrams that the kernel dropped because a socket buffer was full.", "none.",
            limits("SocketDrops"), opens=to.NODE, width=8,
        ),
        row("Clock"),
        lines(
            "Clock offset", [q.most("rx_stream.clock_offset", q.RECEIVER, "node", "stream")], "s",
            "Offset of the receiver's wall clock from the source's; above 0: ahead. It is absent on one host.",
            "near 0 and within the error bound.", opens=to.RECEIVER, width=8,
        ),
        lines(
            "Error bound of the clock offset", [q.most("rx_stream.clock_error_bound", q.RECEIVER, "node", "stream")],
            "s",
            "Half of the shortest round trip, and possible drift since.",
            "far below the median latency.", limits.runbook("ClockUntrustworthy"), log=True, opens=to.RECEIVER, width=8,
        ),
        lines(
            "Changes of clocks",
            [
                q.amount("instance.clock_steps", q.NODE, "node").named("steps"),
                q.amount("rx_stream.clock_jumps", q.RECEIVER, "node").named("jumps of the offset"),
            ],
            "short", "Steps of a host's clock, and changes of an offset beyond its error bounds.",
            "none.", limits("ClockStepped"), width=8,
        ),
        row("Blame"),
        lines(
            "Cause of late messages", [q.total("fleet_receiver_late", q.RECEIVED, "node", "blame")], "short",
            "Topics of each receiver by the cause of their latest message in a thousand: host, network, transport or "
            "nobody. The exporter has it in /metrics/detail only.",
            "nobody, or the host in single moments.", stack=True, opens=to.RECEIVER,
        ),
        lines(
            "Loss locations",
            [q.rate("rx_stream.losses_located", q.RECEIVER, "node", "location")], "pps",
            "Packets missing at first, by loss location: in the source, in the receiver's host, or outside of both.",
            "none. socket, queue and window: the receiver's host. outside: the network.", stack=True,
            opens=to.RECEIVER,
        ),
        lines(
            "Time waited for one receiver", [q.seen_rate("blame_time")], "percentunit",
            "Share of the time that data of a stream waited for this receiver alone.",
            "near 0. The receiver with a high line holds up all others.", opens=to.SEEN,
        ),
        lines(
            "Time waited for exactly one receiver, by stream",
            [q.rate("tx_stream.blame_time", q.NODE, "node", "stream")],
            "percentunit", "Sum over the receivers of each stream.",
            "near 0.", opens=to.STREAM,
        ),
        table(
            "Hosts and nodes",
            {
                "Delay p99.9": Column(q.p("p99.9", "instance.host_hiccup", q.NODE, "node"), "s", hiccup),
                "Delay max": Column(q.p("max", "instance.host_hiccup", q.NODE, "node"), "s"),
                "Long cycles": Column(q.total("instance.cycle_overruns", q.NODE, "node")),
                "Clock steps": Column(q.total("instance.clock_steps", q.NODE, "node"), "short", limits("ClockStepped")),
                "Socket drops": Column(q.total("instance.socket_drops", q.NODE, "node")),
            },
            "One line per node; counters since its start.", "small delays, no steps, no drops.",
            links={"node": [to.NODE]}, sort="Delay p99.9",
        ),
    ]  # fmt: skip
