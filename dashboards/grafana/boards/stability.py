"""The board of stability and subscriptions: how soon a quorum has messages, and how far durable subscribers are."""

from __future__ import annotations

from heliograph.dashboards.grafana import links as to
from heliograph.dashboards.grafana import queries as q
from heliograph.dashboards.grafana.limits import Limits
from heliograph.dashboards.grafana.panels import Panel, lines, row, stat

TITLE = "Heliograph stability and subscriptions"
ABOUT = "Quorums of stores: presence, stability latency, messages in flight. Durable subscriptions: position and lag."

_STREAM = ("node", "stream")
_SUBSCRIPTION = ("node", "topic", "stream", "subscription")
_FOLLOWER = ("node", "topic", "subscription")


def panels(limits: Limits) -> list[Panel]:
    """Return the panels of the board."""
    required = q.most("tx_stream.quorum_required", q.NODE, *_STREAM)
    present = q.most("tx_stream.quorum_present", q.NODE, *_STREAM)
    unstable = q.most("tx_stream.unstable_messages", q.NODE, *_STREAM)
    unstable_bytes = q.most("tx_stream.unstable_bytes", q.NODE, *_STREAM)
    limit = q.most("tx_stream.unstable_limit_messages", q.NODE, *_STREAM, keep="> 0").named("limit")
    limit_bytes = q.most("tx_stream.unstable_limit_bytes", q.NODE, *_STREAM, keep="> 0").named("limit")
    waiting = q.most("store_subscription.messages_waiting", q.NODE, *_SUBSCRIPTION)
    saved = q.most("store_subscription.last_saved", q.NODE, *_SUBSCRIPTION)
    blocked = q.rate("tx_stream.unstable_blocked_time", q.NODE, *_STREAM)
    behind = limits("SubscriptionBehind", "messages")
    return [
        stat(
            "Quorum members missing", q.together("sum", q.Query(f"clamp_min({required.expr} - {present.expr}, 0)")),
            "short", "Stores or receivers that streams lack for their quorums, all streams together.", "none.",
            limits("QuorumLost"), zero="none", width=6,
        ),
        stat(
            "Slowest stability p99", q.together("max", q.p("p99", "tx_stream.stability_latency", q.NODE, *_STREAM),
                                                zero=False),
            "s", "Longest 99th percentile of the streams from the closing of a packet until its quorum has it.",
            "a round trip, the batch time of the stores and a sync.", limits("StabilitySlow", "seconds"), width=6,
        ),
        stat(
            "Messages not stable", q.together("sum", unstable), "short",
            "Messages that sources have sent and no quorum has yet.", "the rate times the stability latency.",
            limits.runbook("UnstableAtLimit"), width=6,
        ),
        stat(
            "Largest lag of a subscription", q.together("max", waiting), "short",
            "Messages before the durable subscription that is furthest behind.",
            "under the limit, or falling.", behind, zero="none", width=6,
        ),
        row("Stability"),
        lines(
            "Stability latency", [q.p(one, "tx_stream.stability_latency", q.NODE, *_STREAM) for one in ("p50", "p99")],
            "s", "Closing of a packet until the quorum has acknowledged it. Counted from level 2.",
            "two round trips and a sync.", limits("StabilitySlow", "seconds"), opens=to.NODE, log=True,
        ),
        lines(
            "Quorum", [present.named("present"), required.named("required")], "short",
            "Stores or receivers whose acknowledgements count, and how many must acknowledge a message.",
            "one more present than required: then any one of them may stop.", limits.runbook("QuorumLost"),
            opens=to.NODE,
        ),
        lines(
            "Messages in flight", [unstable.named("not stable"), limit], "short",
            "Messages sent and not stable, and their limit where the option unstable_messages is set.",
            "well under the limit.", limits.runbook("UnstableAtLimit"), opens=to.NODE,
        ),
        lines(
            "Bytes in flight", [unstable_bytes.named("not stable"), limit_bytes], "bytes",
            "Bytes of packets sent and not stable, and their limit where the option unstable_bytes is set.",
            "well under the limit.", limits.runbook("UnstableAtLimit"), opens=to.NODE,
        ),
        lines(
            "Time at the limit", [blocked], "percentunit",
            "Share of the time in which messages were at a limit and waited, or were refused.", "under 20 %.",
            limits("UnstableAtLimit", "share"), opens=to.NODE,
        ),
        lines(
            "Quorums lost and limits reached", [
                q.amount("tx_stream.quorum_losses", q.NODE, *_STREAM).named("quorum lost"),
                q.amount("tx_stream.unstable_limits", q.NODE, *_STREAM).named("limit reached"),
            ],
            "short", "How often a stream lost its quorum, and how often messages came to a limit.", "none.",
            limits.runbook("QuorumLost"), opens=to.NODE,
        ),
        row("Durable subscriptions"),
        lines(
            "Lag of subscriptions", [waiting], "short",
            "Messages of the topic that the store has and the subscription has not dealt with.",
            "small, or falling after a restart of the subscriber.", behind,
        ),
        lines(
            "Progress of subscriptions",
            [q.Query(
                f"max by (job, instance, {', '.join(_SUBSCRIPTION)}) "
                f"(deriv({q.metric('store_subscription.next_message')}{{{q.NODE}}}[$__rate_interval]))",
                _SUBSCRIPTION,
            )],
            "cps", "Messages per second by which the saved positions advance.",
            "the rate of the source; more while it catches up.",
        ),
        lines(
            "Age of positions", [q.Query(f"time() - {saved.expr}", _SUBSCRIPTION)], "s",
            "Time since the subscriber saved its position last, by its own clock.",
            "a second while messages arrive; it grows when the source or the subscriber rests.", log=True,
        ),
        lines(
            "Given to applications", [
                q.rate("follower.messages_live", q.NODE, *_FOLLOWER).named("live"),
                q.rate("follower.messages_stored", q.NODE, *_FOLLOWER).named("from stores"),
                q.rate("follower.messages_lost", q.NODE, *_FOLLOWER).named("lost"),
            ],
            "cps", "Messages per second of receivers that follow stores, live, from stores, and lost for good.",
            "live, but for the time after a start or a loss; none lost.",
        ),
        lines(
            "Stores that could not be read", [q.amount("follower.store_failures", q.NODE, *_FOLLOWER)], "short",
            "Attempts of receivers to read a store that failed.", "none.",
        ),
    ]  # fmt: skip
