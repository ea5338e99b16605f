"""The board of the fleet: the faults, the receivers in trouble, the nodes, and the alerts."""

from __future__ import annotations

from heliograph.dashboards import words
from heliograph.dashboards.grafana import links as to
from heliograph.dashboards.grafana import queries as q
from heliograph.dashboards.grafana.limits import Limits
from heliograph.dashboards.grafana.panels import Column, Panel, alerts, lines, row, stat, table, timeline

TITLE = "Heliograph fleet"
ABOUT = "Receivers in trouble, with start and cause."

_TROUBLE = f'{q.RECEIVED},class!~"{"|".join(sorted(words.CALM))}"'
_IN_TROUBLE = q.together("count", q.most("fleet_receiver_class", _TROUBLE, "node").then("== 1"))
_RESTRICTED = q.seen("action", by=("node", "stream", "receiver")).then(f">= {words.ACTION['suspend'].rank}")


def panels(limits: Limits) -> list[Panel]:
    """Return the panels of the board."""
    lag = limits("ReceiverFallingBehind", "seconds")
    unwanted = f"{q.RECEIVER},{limits.accepted()}"
    naks, packets = (q.rate(f"rx_stream.{name}", q.RECEIVER) for name in ("naks_sent", "packets_received"))
    return [
        stat(
            "Nodes down", q.together("count", q.least("node_up", q.NODE, "node").then("== 0")), "short",
            "Nodes whose process has ended or whose statistics cannot be read.",
            "all up. Nodes that were shut down normally are not counted.", limits("NodeDown"), zero="all up",
        ),
        stat(
            "Receivers in trouble", _IN_TROUBLE, "short",
            "Receiving nodes that are lossy, falling behind, stalled or stopped on at least one topic.",
            "none. The table below names them; the state timeline shows the start.",
            limits("ReceiverStalled"), zero="none",
        ),
        stat(
            "Unrecoverable loss, 5 min", q.together("sum", q.amount("rx_stream.packets_lost", unwanted, window="5m")),
            "short", "Packets that were not repaired in the last five minutes, without losses that are accepted "
            "by a setting or an action.",
            "always none. Each packet is data that an application does not get.",
            limits("UnrecoverableLoss"), zero="none",
        ),
        stat(
            "NAKs per packet", q.together("sum", naks, zero=False).over(q.together("sum", packets, zero=False)),
            "percentunit", "Sequence numbers requested per packet received, over all receivers.",
            "under 0.1 %. Above, the network or a receiver drops packets steadily.", limits("NakRatioHigh", "ratio"),
        ),
        stat(
            "Latency p99.9", q.together("max", q.p("p99.9", "receiver.total_latency", q.RECEIVED), zero=False), "s",
            "999 of 1000 messages reached the slowest receiver within this time.",
            "below the objective and stable.", limits.objective,
        ),
        stat(
            "Delivered", q.together("sum", q.rate("receiver.messages_delivered", q.RECEIVED), zero=False), "cps",
            "Messages handed to applications per second, over all receivers.",
            "the sent rate times the number of receivers.",
        ),
        row("Receivers"),
        timeline(
            "State of each receiver", q.classes(q.RECEIVED, "node"), words.BEHAVIOUR,
            "The worst state of each receiving node over its topics, as the monitor classifies it by its progress, not "
            "by absolute sizes.", "keeps up. Catching up after a pause is normal if it ends.",
            limits("ReceiverStalled"), opens=to.RECEIVER,
        ),
        lines(
            "Lag", [q.most("fleet_receiver_lag_seconds", q.RECEIVED, "node")], "s",
            "Age of the oldest message that each receiver has not taken.",
            "near 0. When the lag grows, first the queue is exhausted, then the history.", lag, opens=to.RECEIVER,
        ),
        table(
            "Receivers, worst first",
            {
                "State": Column(q.classes(q.RECEIVED, "node", "topic"), words=words.BEHAVIOUR),
                "Lag": Column(q.most("fleet_receiver_lag_seconds", q.RECEIVED, "node", "topic"), "s", lag),
                "Queue": Column(
                    q.most("fleet_receiver_queue_ratio", q.RECEIVED, "node", "topic"), "percentunit",
                    limits("ReceiverQueueNearFull", "ratio"), gauge=True,
                ),
                "NAK share": Column(
                    q.most("fleet_receiver_nak_share", q.RECEIVED, "node", "topic"), "percentunit",
                    limits("CryingBabyReceiver", "share"),
                ),
                "Messages lost": Column(
                    q.total("receiver.messages_lost", q.RECEIVED, "node", "topic"), "short", limits("UnrecoverableLoss")
                ),
                "Delivered": Column(q.rate("receiver.messages_delivered", q.RECEIVED, "node", "topic"), "cps"),
            },
            "One line per receiving node and topic. NAK share: part of the stream's requests that comes from this "
            "receiver. Messages lost: since it joined.",
            "keeps up, no lag, no loss, and no receiver with most of the requests.",
            links={
                "node": [to.RECEIVER_OF_TOPIC, to.NODE, to.Link("Live page", address=limits.live)],
                "topic": [to.TOPIC],
            },
            sort="State",
        ),
        row("Alerts"),
        alerts(
            "Alerts", "Heliograph's alerts that are pending or fire, of every data source of this Grafana.",
            "only the Watchdog. It always fires and shows that alerting works.",
        ),
        table(
            "Alerts that fire, with runbooks",
            {
                "Alerts": Column(
                    q.Query('count by (alertname, severity, job, instance, node) '
                            '(ALERTS{alertname=~"Heliograph.+",alertstate="firing"})')
                )
            },
            "Alerts that fire in the Prometheus of this board. The name opens the runbook; the node opens its board.",
            "only the Watchdog.",
            links={
                "alertname": [to.Link("Runbook", address=limits.runbooks + "/${__labels.alertname}.md")],
                "node": [to.NODE],
            },
            sort="alertname", width=12,
        ),
        row("Flow and nodes"),
        lines(
            "Throughput by topic",
            [
                q.rate("transmitter.messages_sent", q.SENT, "topic").named("sent"),
                q.rate("receiver.messages_delivered", q.RECEIVED, "topic").named("delivered"),
            ],
            "cps", "Messages per second sent, and delivered over all receivers of a host.",
            "delivered is sent times the number of receivers; a difference is lag or loss.", opens=to.TOPIC,
        ),
        stat(
            "Receivers isolated", q.together("count", _RESTRICTED), "short",
            "Receivers that a source has suspended or expelled, automatically or by command.",
            "none, or one for seconds. The board of losses shows receiver and cause.",
            limits("ReceiverIsolated"), zero="none", width=6,
        ),
        stat(
            "NAK storms", q.together("count", q.most("tx_stream.storm_active", q.NODE, "node", "stream").then("== 1")),
            "short",
            "Streams that are overloaded by recovery: requests repeat without progress at normal load.",
            "none. A burst of requests that is answered is not a storm.", limits("NakStorm"), zero="none", width=6,
        ),
        table(
            "Nodes",
            {
                "Health": Column(q.health(), words=words.HEALTH),
                "Sent": Column(q.rate("instance.messages_sent", q.NODE, "node"), "cps"),
                "Received": Column(q.rate("instance.messages_received", q.NODE, "node"), "cps"),
                "Repairs": Column(q.rate("instance.repair_packets", q.NODE, "node"), "pps"),
                "Socket drops": Column(
                    q.rate("instance.socket_drops", q.NODE, "node"), "pps", limits("SocketDrops")
                ),
                "Memory": Column(q.total("instance.memory_used", q.NODE, "node"), "bytes"),
                "Level": Column(
                    q.most("instance.detail_level", q.NODE, "node"), "short", limits("DetailLeftOn", "level", above=0.5)
                ),
            },
            "One line per node. Level: the level of detail of its statistics, 0 to 3.",
            "live, with no socket drops, and at its usual level.",
            links={"node": [to.NODE, to.Link("Host and clock", "host", {"node": "node"})]}, sort="Health",
        ),
    ]  # fmt: skip
