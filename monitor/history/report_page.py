"""The report's page: markup and style, nothing computed. One file, no script, nothing fetched."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING

from heliograph.engine.catalogue.outside import html_text
from heliograph.monitor.history.files import Broken
from heliograph.monitor.history.report_svg import duration, spectrum_chart, time_chart
from heliograph.monitor.history.schema import PERCENTILES
from heliograph.monitor.page import shell
from heliograph.monitor.page.svg import COLOURS, Line

if TYPE_CHECKING:
    from heliograph.monitor.history.report import Hour, MetricReport, SeriesReport

__all__ = ["page"]

DRAWN = COLOURS
"""Series in one chart; the tables have all."""
LISTED = 5000
"""Rows of one table of hours."""

_P99_9 = list(PERCENTILES).index("p99_9")
_HEADS = [f"{fraction * 100:g} %" for fraction in PERCENTILES.values()]


def page(title: str, metrics: Sequence[MetricReport], broken: Sequence[Broken]) -> str:
    """The whole report as HTML."""
    return shell.document(
        title,
        [_span(metrics)],
        [_tiles(metrics), _trouble(broken), *map(_metric, metrics)],
        "The percentile p of n values is the value of rank ⌈p·n⌉, shown as the largest value of its "
        "HdrHistogram bucket. Hours are merged by adding buckets; no percentile is an average of "
        "others. Jitter is 99.9 % minus 50 %. A whole day is stored without its hours, and drawn as one level line. "
        "Times are UTC.",
    )


def _span(metrics: Sequence[MetricReport]) -> str:
    parts = {
        (hour.start, hour.start + hour.length, hour.is_day)
        for metric in metrics
        for series in metric.series
        for hour in series.hours
    }
    first, last = min(parts)[0], max(end for _, end, _ in parts) - timedelta(minutes=1)
    days = sum(is_day for _, _, is_day in parts)
    counts = [_counted(count, name) for count, name in ((len(parts) - days, "hour"), (days, "whole day")) if count]
    span = f"{first:%Y-%m-%d %H:00} to {last:%H:%M}"
    if last.date() != first.date() or len(parts) > 1:
        span = f"{first:%Y-%m-%d %H:00} to {last:%Y-%m-%d %H:%M}"
    return f"{span} UTC · {' and '.join(counts)} with data"


def _counted(count: int, name: str) -> str:
    return f"{count} {name if count == 1 else name + 's'}"


def _tiles(metrics: Sequence[MetricReport]) -> str:
    main = metrics[0]
    worst = main.series[0]
    highest = max(main.series, key=lambda one: one.whole.max)
    shaky = max(main.series, key=lambda one: one.whole.jitter)
    dropped = sum(series.whole.dropped for metric in metrics for series in metric.series)
    figures = [
        ("Values", f"{sum(one.whole.n for one in main.series):,}", f"{main.title}, {len(main.series)} series"),
        ("Worst 99.9 %", duration(worst.whole.percentiles[_P99_9]), worst.name),
        ("Highest", duration(highest.whole.max), highest.name),
        ("Most jitter", duration(shaky.whole.jitter), shaky.name),
        ("Out of range", f"{dropped:,}", "values in no bucket, all metrics"),
    ]
    return shell.tiles(figures)


def _trouble(broken: Sequence[Broken]) -> str:
    if not broken:
        return ""
    items = "".join(f"<li><code>{html_text(one.path)}</code>: {html_text(one.reason)}</li>" for one in broken)
    return f"<section class='card trouble'><h2>Files that cannot be read, left out</h2><ul>{items}</ul></section>"


def _metric(metric: MetricReport) -> str:
    drawn = [series for series in metric.series if series.whole.n][:DRAWN]
    parts = [f"<section class='card'><h2>{html_text(metric.title)}</h2>"]
    if drawn:
        lines = [Line(_full(one), one.spectrum.nines.tolist(), one.spectrum.values.tolist()) for one in drawn]
        names = shell.legend((one.name, one.detail, "") for one in drawn)
        parts.append(f"<h3>Percentile spectrum</h3>{names}{spectrum_chart(lines)}")
        if len(metric.series) > len(drawn):
            parts.append(f"<p class='sub'>Drawn: the {len(drawn)} of {len(metric.series)} with the worst 99.9 %.</p>")
    parts.append("<h3>All the time</h3>" + _summary(metric))
    starts = sorted({hour.start for one in drawn for hour in one.hours})
    if len(starts) > 1:
        parts.append("<h3>99.9 % by hour</h3>" + _by_hour(drawn))
    parts.append(_hours(metric))
    parts.append("</section>")
    return "".join(parts)


def _by_hour(drawn: Sequence[SeriesReport]) -> str:
    starts = sorted({hour.start for one in drawn for hour in one.hours})
    first = starts[0]

    def at(hour: Hour) -> float:
        return (hour.start - first).total_seconds() / 3600

    last = max((hour.start + hour.length - first).total_seconds() / 3600 for one in drawn for hour in one.hours) - 1
    step = next(step for step in (1, 2, 3, 6, 12, 24, 48, 168, 672, 10**9) if last / step <= 12)
    ticks = [
        ((start - first).total_seconds() / 3600, f"{start:%H:%M}" if last <= 48 else f"{start:%m-%d %H:%M}")
        for start in starts
        if (start - first).total_seconds() / 3600 % step == 0
    ]
    lines = []
    for one in drawn:
        points = [point for hour in one.hours if hour.n for point in _points(hour, at(hour))]
        lines.append(Line(_full(one), [x for x, _ in points], [y for _, y in points]))
    return time_chart(lines, ticks[:: max(1, -(-len(ticks) // 13))])


def _points(hour: Hour, at: float) -> list[tuple[float, int]]:
    """Return the points of an hour, or of a day as a level line; x is hours since the first one."""
    p99_9 = hour.percentiles[_P99_9]
    return [(at, p99_9), (at + 23, p99_9)] if hour.is_day else [(at, p99_9)]


def _summary(metric: MetricReport) -> str:
    return _table(("Series",), [(_named(one), *_figures(one.whole)) for one in metric.series])


def _hours(metric: MetricReport) -> str:
    listed = [(hour, one) for one in metric.series for hour in one.hours]
    listed.sort(key=lambda pair: pair[0].start)
    rows = [(_start(hour), _named(one), *_figures(hour)) for hour, one in listed[:LISTED]]
    more = f"<p class='sub'>{LISTED:,} of {len(listed):,} rows are listed.</p>" if len(listed) > LISTED else ""
    state = " open" if len(listed) <= 60 else ""
    table = _table(("Hour", "Series"), rows)
    return f"<details{state}><summary><h3>Hour by hour ({len(listed):,})</h3></summary>{table}{more}</details>"


def _start(hour: Hour) -> str:
    return f"{hour.start:%Y-%m-%d} whole day" if hour.is_day else f"{hour.start:%Y-%m-%d %H:%M}"


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    return shell.table((*heads, "Values", "Mean", *_HEADS, "Max", "Jitter"), rows, range(len(heads)))


def _figures(hour: Hour) -> list[str]:
    shown = [duration(value) for value in (hour.mean, *hour.percentiles, hour.max, hour.jitter)]
    return [f"{hour.n:,}", *(shown if hour.n else ["–"] * len(shown))]


def _full(series: SeriesReport) -> str:
    return f"{series.name} ({series.detail})" if series.detail else series.name


def _named(series: SeriesReport) -> str:
    return html_text(series.name) + shell.small(series.detail)
