"""The board of the monitor itself: whether its own figures can be trusted."""

from __future__ import annotations

from heliograph.dashboards.grafana import links as to
from heliograph.dashboards.grafana import queries as q
from heliograph.dashboards.grafana.limits import Limits
from heliograph.dashboards.grafana.panels import Panel, lines, row, stat

TITLE = "Heliograph monitor"
ABOUT = "Exporter, collector, modules and reconciliation: whether the figures of the other boards are complete."


def _age(name: str, *by: str) -> q.Query:
    labels = ", ".join(("job", "instance", *by))
    return q.Query(f"time() - max by ({labels}) ({q.metric(name)}{{{q.HOST}}})", by, legend_labels=by or ("instance",))


def panels(limits: Limits) -> list[Panel]:
    """Return the panels of the board."""
    residual = q.Query(
        f"max by (job, instance, node, identity) (abs({q.metric('reconciliation_residual')}{{{q.NODE}}}))",
        ("node", "identity"),
    )
    up = q.least("collector_host_up", q.HOST, "host")
    silent = q.Query(f"1 - {up.expr}", up.by)
    events = [
        q.amount("stats_events_missed", q.HOST).named("of this host"),
        q.amount("collector_events_missed", q.HOST, "host").named("by the collector"),
    ]
    return [
        stat(
            "Age of the statistics", q.together("max", _age("exporter_snapshot"), zero=False), "s",
            "Time since the slowest exporter read the statistics that it serves.",
            "below the interval of the scrapes.", limits("StatsStale", "seconds"), width=6,
        ),
        stat(
            "Largest residual", q.together("max", residual), "short",
            "Largest difference between counters that must add up.", "0. Anything else is a fault of the engine.",
            limits("ReconciliationResidual"), zero="all balance", width=6,
        ),
        stat(
            "Series left out", q.together("sum", q.total("exporter_series_folded", q.HOST)), "short",
            "Series that exporters leave out because of their limit. The label _other holds their sums.",
            "none. Receivers under _other have no alerts of their own.", limits("SeriesCapped"), zero="none", width=6,
        ),
        stat(
            "Events missed, 5 min",
            q.together("sum", q.amount("stats_events_missed", q.HOST, window="5m")), "short",
            "Events that were overwritten before they were read.", "none. The list of events is incomplete.",
            limits("EventsMissed"), zero="none", width=6,
        ),
        row("Exporter"),
        lines(
            "Time of a scrape", [q.most("exporter_scrape_duration_seconds", q.HOST, "instance")], "s",
            "Time that each exporter spends on an answer.", "under 0.1 s at 20,000 series.", width=8,
        ),
        lines(
            "Series",
            [
                q.total("exporter_series", q.HOST).named("{{instance}} series"),
                q.total("exporter_series_limit", q.HOST).named("{{instance}} limit"),
            ],
            "short", "Series of the statistics in the answers, and their limit.", "below the limit.", width=8,
        ),
        lines(
            "Requests refused", [q.rate("exporter_requests_refused", q.HOST, "cause")], "cps",
            "Connections and requests refused, by cause: busy, slow or an unknown host name.", "none.", width=8,
        ),
        lines(
            "Age of statistics, by host", [_age("exporter_snapshot")], "s",
            "Time since each exporter has read the statistics that it serves.",
            "a saw-tooth below the interval of the scrapes.", limits("StatsStale", "seconds"), width=8,
        ),
        lines(
            "Counters that do not add up", [residual], "short",
            "Largest residual of each identity of each node.", "0 on every line.",
            limits("ReconciliationResidual"), opens=to.NODE, width=8,
        ),
        lines(
            "Objects without statistics",
            [q.amount("instance.objects_refused", q.NODE, "node"),
             q.amount("instance.histograms_refused", q.NODE, "node").named("histograms")],
            "short", "Objects and histograms that found no room in the stats segment.",
            "none. Raise the size of the segment.", opens=to.NODE, width=8,
        ),
        lines(
            "Flight recorder, late ticks", [q.amount("instance.flight_ticks_late", q.NODE, "node")], "short",
            "Samples of the flight recorder that were skipped because it ran late.", "none, or a few under load.",
            opens=to.NODE, width=8,
        ),
        lines(
            "Flight recordings",
            [
                q.amount("instance.flight_freezes", q.NODE, "node").named("kept"),
                q.amount("instance.flight_errors", q.NODE, "node").named("failed"),
            ],
            "short", "Recordings saved to files, and failures of the recorder.", "none failed.",
            limits("FlightKept"), opens=to.NODE, width=8,
        ),
        lines(
            "Torn reads and missed events", [q.amount("stats_torn_reads", q.NODE, "node").named("torn"), *events],
            "short",
            "Objects whose writer stopped within an update, and events that were never read.", "none.",
            limits("EventsMissed"), width=8,
        ),
        row("Collector"),
        lines(
            "Hosts, age of the last snapshot", [q.most("collector_host_age_seconds", q.HOST, "host")], "s",
            "Time since the collector has received the last snapshot of each host.",
            "below a few intervals.", width=8,
        ),
        lines(
            "Hosts that are silent", [silent], "short",
            "1 while no snapshots of the host arrive, or none that are readable.", "0 on every line.",
            limits("CollectorHostSilent"), width=8,
        ),
        lines(
            "Snapshots lost or damaged",
            [
                q.amount("collector_snapshots_lost", q.HOST, "host", window="1m").named("lost"),
                q.amount("collector_snapshots_damaged", q.HOST, "host", window="1m").named("damaged"),
            ],
            "short", "Snapshots of each host that were lost or damaged on their way, in each minute.", "none.",
            limits("SnapshotsLost", "snapshots"), width=8,
        ),
        row("Modules and exporters"),
        lines(
            "Modules, items dropped",
            [
                q.amount("module_snapshots_dropped", q.HOST, "module").named("snapshots"),
                q.amount("module_events_dropped", q.HOST, "module").named("events"),
                q.amount("module_lost", q.HOST, "module").named("lost"),
            ],
            "short", "Snapshots and events that a module did not take in time, and items that it reports as lost.",
            "none.", limits("ModuleDropping"), width=8,
        ),
        lines(
            "Modules, errors",
            [
                q.amount("module_errors", q.HOST, "module").named("errors"),
                q.amount("module_crashes", q.HOST, "module").named("crashes"),
            ],
            "short", "Calls of a module that failed, and crashes of its process.", "none.", width=8,
        ),
        lines(
            "Exporters, time since success", [_age("exporter_success", "exporter")], "s",
            "Time since each exporter of the process has published a snapshot.",
            "below a few intervals.", width=8,
        ),
    ]  # fmt: skip
