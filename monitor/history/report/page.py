"""The report's page: its cards in their order. One file, no script, nothing fetched, nothing computed but words."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta

from heliograph.engine.catalogue.outside import html_text
from heliograph.monitor.history.files import Broken
from heliograph.monitor.history.report.cells import or_thin
from heliograph.monitor.history.report.charts import STYLE, duration
from heliograph.monitor.history.report.download import download_link
from heliograph.monitor.history.report.figures import RECOVERED, Figures, MetricFigures
from heliograph.monitor.history.report.metric import Clock, metric_card
from heliograph.monitor.history.report.sections import (
    calendars_card,
    changes_card,
    coverage_card,
    objective_card,
    recovered_card,
    stages_card,
)
from heliograph.monitor.history.report.uncertainty import BATCHES, MIN_BLOCKS, MIN_TAIL
from heliograph.monitor.history.studies.blame import HICCUPS
from heliograph.monitor.history.studies.calendar_page import SHADES_STYLE
from heliograph.monitor.history.studies.stages import TOTAL
from heliograph.monitor.page import shell

__all__ = ["page"]


def page(title: str, figures: Figures) -> str:
    """The whole report as HTML."""
    by_name = {metric.metric: metric for metric in figures.metrics}
    first, *others = figures.metrics
    hiccups = by_name.get(HICCUPS)
    clock = figures.span
    cards = [
        _tiles(figures.metrics),
        _trouble(figures.broken),
        objective_card(figures),
        metric_card(first, hiccups, figures.events, clock, has_rate=True),
        stages_card(figures.stages),
        recovered_card(by_name.get(TOTAL), by_name.get(RECOVERED)),
        calendars_card(figures),
        coverage_card(first, clock),
        changes_card(figures.events),
        *(metric_card(metric, None, figures.events, clock, has_rate=False) for metric in others),
    ]
    return shell.document(
        title,
        [_span(clock, figures.periods), *_places(figures.metrics)],
        cards,
        "The percentile p of n values is the value of rank ⌈p·n⌉, shown as the largest value of its HdrHistogram "
        "bucket. Hours are merged by adding buckets; no percentile is an average of others. "
        f"thin: fewer than {MIN_TAIL} values lie beyond the percentile. Intervals are 95 %, from how up to {BATCHES} "
        f"stretches of the time differ, of which {MIN_BLOCKS} must have values; an hour alone has none. Jitter is "
        "99.9 % minus 50 %. A whole day is stored without its hours, and drawn as one level line. Times are UTC. Data: "
        f"{download_link(figures.metrics)}.",
        style=STYLE + SHADES_STYLE,
    )


def _span(clock: Clock, periods: Collection[tuple[datetime, timedelta]]) -> str:
    first, last = clock[0], clock[1] - timedelta(minutes=1)
    days = sum(length > timedelta(hours=1) for _, length in periods)
    counts = [_counted(count, name) for count, name in ((len(periods) - days, "hour"), (days, "whole day")) if count]
    shown = f"{last:%H:%M}" if last.date() == first.date() else f"{last:%Y-%m-%d %H:%M}"
    return f"{first:%Y-%m-%d %H:00} to {shown} UTC · {' and '.join(counts)} with data"


def _counted(count: int, name: str) -> str:
    return f"{count} {name if count == 1 else name + 's'}"


def _places(metrics: Sequence[MetricFigures]) -> list[str]:
    """Hosts and builds, where they are known."""
    found = []
    for label in ("host", "build"):
        values = sorted({one.labels[label] for metric in metrics for one in metric.series} - {""})
        more = f" and {len(values) - 8} more" if len(values) > 8 else ""
        found += [f"{label}{'s' if len(values) > 1 else ''} {', '.join(values[:8])}{more}"] if values else []
    return [" · ".join(found)] if found else []


def _tiles(metrics: Sequence[MetricFigures]) -> str:
    main = metrics[0]
    worst = main.series[0]
    highest = max(main.series, key=lambda one: one.whole.max)
    shaky = max(main.series, key=lambda one: one.whole.jitter or 0)
    dropped = sum(series.whole.dropped for metric in metrics for series in metric.series)
    return shell.tiles(
        [
            ("Values", f"{sum(one.whole.n for one in main.series):,}", f"{main.title}, {len(main.series)} series"),
            ("Worst 99.9 %", or_thin(worst.whole.at("p99_9")), worst.name),
            ("Highest", duration(highest.whole.max), highest.name),
            ("Most jitter", or_thin(shaky.whole.jitter), shaky.name),
            ("Out of range", f"{dropped:,}", "values in no bucket, all metrics"),
        ]
    )


def _trouble(broken: Sequence[Broken]) -> str:
    if not broken:
        return ""
    items = "".join(f"<li><code>{html_text(one.path)}</code>: {html_text(one.reason)}</li>" for one in broken)
    return f"<section class='card trouble'><h2>Files that cannot be read, left out</h2><ul>{items}</ul></section>"
