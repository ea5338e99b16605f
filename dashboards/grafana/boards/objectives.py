"""The board of objectives: how much of the latency budget is used, how fast, and which alerts fired."""

from __future__ import annotations

from heliograph.dashboards.grafana import links as to
from heliograph.dashboards.grafana import queries as q
from heliograph.dashboards.grafana.limits import Limits
from heliograph.dashboards.grafana.panels import Panel, lines, row, stat

TITLE = "Heliograph objectives"
ABOUT = "Latency objectives of deploy/alerts.toml: budget, burn rates and alerts."

_BY = ("node", "objective")
_FIRING = 'ALERTS{alertname=~"Heliograph.+",alertstate="firing"}'
_TAIL = f"max by (job, instance, node) (receiver:heliograph_latency_p999:rate1h{{{q.RECEIVER}}})"


def _burn(window: str, objective: str = ".+") -> q.Query:
    """Recorded by the rules of the alerts (`heliograph alerts render`)."""
    recorded = f'receiver:heliograph_latency_burn:rate{window}{{{q.RECEIVER},objective=~"{objective}"}}'
    return q.Query(f"max by (job, instance, {', '.join(_BY)}) ({recorded})", _BY, window)


def _pair(limits: Limits, alert: str, setting: str, long: str, short: str) -> Panel:
    return lines(
        f"Burn rate, {long} and {short}", [_burn(long), _burn(short)], "short",
        "Late messages against the share that may be late. The alert fires while both lines are above the threshold.",
        "at most 1: the budget lasts as long as its period.", limits(alert, setting), opens=to.RECEIVER,
    )  # fmt: skip


def panels(limits: Limits) -> list[Panel]:
    """Return the panels of the board."""
    worst = q.together("max", _burn("1h"), zero=False)
    shares = " or ".join(f"1 - {_burn('1h', one).expr} * {late:.6g}" for one, late in limits.late.items())
    lost, received = (q.rate(f"rx_stream.{name}", q.RECEIVER, "node") for name in ("packets_lost", "packets_delivered"))
    return [
        stat(
            "Within the objective, 1 h", q.Query(f"min({shares})"), "percentunit",
            "Share of messages that arrived in time within an hour, at the worst receiver.",
            "at least the share of the objective.", width=6,
        ),
        stat(
            "Burn rate, 1 h", worst, "short",
            "Late messages of an hour against the share that may be late, at the worst receiver.",
            "at most 1.", limits("LatencyBudgetFastBurn", "burn_1h"), width=6,
        ),
        stat(
            "Budget left of the last 3 days",
            q.together("min", q.Query(f"1 - {_burn('3d').expr}"), zero=False), "percentunit",
            "Share of the late messages that the objective allows and that were not used, at the worst receiver.",
            "above 0.", limits.runbook("LatencyBudgetSlowBurn"), width=6,
        ),
        stat(
            "Alerts that fire",
            q.Query(f'count({_FIRING} unless ALERTS{{severity="none"}}) or vector(0)'),
            "short", "Alerts that fire now, without the Watchdog.", "none.", zero="none", width=6,
        ),
        row("Latency budget"),
        _pair(limits, "LatencyBudgetFastBurn", "burn_1h", "1h", "5m"),
        _pair(limits, "LatencyBudgetFastBurn", "burn_6h", "6h", "30m"),
        _pair(limits, "LatencyBudgetSlowBurn", "burn_1d", "1d", "2h"),
        _pair(limits, "LatencyBudgetSlowBurn", "burn_3d", "3d", "6h"),
        lines(
            "Latency p99.9 and the objective", [q.p("p99.9", "receiver.total_latency", q.RECEIVED, "node")], "s",
            "999 of 1000 messages reached this receiver within this time. The line is the objective.",
            "below the line.", limits.objective, log=True, opens=to.RECEIVER,
        ),
        lines(
            "Latency tail, 1 h",
            [q.Query(_TAIL, ("node",))],
            "s", "The recorded 99.9th percentile that LatencyTailShift compares with the past week.",
            "as in the past week.", limits("LatencyTailShift", "seconds"), log=True, opens=to.RECEIVER,
        ),
        row("Delivery"),
        lines(
            "Packets lost per packet delivered", [lost.over(received)], "percentunit",
            "Share of packets that a receiver has given up.",
            "0. Every loss pages.", limits("UnrecoverableLoss"), opens=to.RECEIVER,
        ),
        lines(
            "Requests per packet, 5 min",
            [
                q.Query(
                    f"max by (job, instance, node, stream) (stream:heliograph_nak_ratio:rate5m{{{q.NODE}}})",
                    ("node", "stream"),
                )
            ],
            "percentunit", "The recorded ratio of requests to packets that NakRatioHigh compares.",
            "under 0.1 %.", limits("NakRatioHigh", "ratio"), opens=to.STREAM,
        ),
        row("Alerts"),
        lines(
            "Alert history",
            [
                q.Query(
                    f'count by (alertname, severity) ({_FIRING})',
                    ("alertname",),
                    legend_labels=(),
                    name="{{alertname}}",
                )
            ],
            "short", "Alerts that fired, by name.", "the Watchdog only.",
            opens=to.Link("Runbook", address=limits.runbooks + "/${__labels.alertname}.md"), stack=True, width=24,
        ),
    ]  # fmt: skip
