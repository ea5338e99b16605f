"""The report's page: markup and style, nothing computed. One file, no script, nothing fetched."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from heliograph.engine.catalogue.outside import html_text
from heliograph.monitor.history.files import Broken
from heliograph.monitor.history.report_svg import duration, spectrum_chart, time_chart
from heliograph.monitor.history.schema import PERCENTILES
from heliograph.monitor.page_style import PAGE_STYLE
from heliograph.monitor.svg import COLOURS, Line

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
    body = [_header(title, metrics), _tiles(metrics), _trouble(broken)]
    body += [_metric(metric) for metric in metrics]
    body.append(
        "<footer>The percentile p of n values is the value of rank ⌈p·n⌉, shown as the largest value of its "
        "HdrHistogram bucket. Hours are merged by adding buckets; no percentile is an average of "
        "others. Jitter is 99.9 % minus 50 %. Times are UTC.</footer>"
    )
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{html_text(title)}</title>\n<style>{PAGE_STYLE}</style>\n</head>\n<body>\n<main>\n"
        + "\n".join(part for part in body if part)
        + "\n</main>\n</body>\n</html>\n"
    )


def _header(title: str, metrics: Sequence[MetricReport]) -> str:
    starts = [hour.start for metric in metrics for series in metric.series for hour in series.hours]
    first, last = min(starts), max(starts)
    hours = len(set(starts))
    span = f"{first:%Y-%m-%d %H:00}" + (f" to {last:%Y-%m-%d %H:59}" if last != first else " to " + f"{last:%H:59}")
    return (
        f"<header><p class='brand'>Heliograph</p><h1>{html_text(title)}</h1>"
        f"<p class='sub'>{span} UTC · {hours} {'hour' if hours == 1 else 'hours'} with data</p></header>"
    )


def _tiles(metrics: Sequence[MetricReport]) -> str:
    main = metrics[0]
    worst = main.series[0]
    highest = max(main.series, key=lambda one: one.whole.max)
    shaky = max(main.series, key=lambda one: one.whole.jitter)
    dropped = sum(series.whole.dropped for metric in metrics for series in metric.series)
    tiles = [
        ("Values", f"{sum(one.whole.n for one in main.series):,}", f"{main.title}, {len(main.series)} series"),
        ("Worst 99.9 %", duration(worst.whole.percentiles[_P99_9]), worst.name),
        ("Highest", duration(highest.whole.max), highest.name),
        ("Most jitter", duration(shaky.whole.jitter), shaky.name),
        ("Out of range", f"{dropped:,}", "values in no bucket, all metrics"),
    ]
    return (
        "<section class='tiles'>"
        + "".join(
            f"<div class='tile'><h2>{html_text(head)}</h2><p class='big'>{html_text(value)}</p>"
            f"<p class='sub'>{html_text(sub)}</p></div>"
            for head, value, sub in tiles
        )
        + "</section>"
    )


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
        parts.append(f"<h3>Percentile spectrum</h3>{_legend(drawn)}{spectrum_chart(lines)}")
        if len(metric.series) > len(drawn):
            parts.append(f"<p class='sub'>Drawn: the {len(drawn)} of {len(metric.series)} with the worst 99.9 %.</p>")
    parts.append("<h3>All the time</h3>" + _summary(metric))
    starts = sorted({hour.start for one in drawn for hour in one.hours})
    if len(starts) > 1:
        parts.append("<h3>99.9 % by hour</h3>" + _by_hour(drawn))
    parts.append(_hours(metric))
    parts.append("</section>")
    return "".join(parts)


def _legend(drawn: Sequence[SeriesReport]) -> str:
    items = "".join(
        f"<li><span class='key c{index % COLOURS}'></span>{html_text(one.name)}{_small(one)}</li>"
        for index, one in enumerate(drawn)
    )
    return f"<ul class='legend'>{items}</ul>"


def _by_hour(drawn: Sequence[SeriesReport]) -> str:
    starts = sorted({hour.start for one in drawn for hour in one.hours})
    first = starts[0]

    def at(hour: Hour) -> float:
        return (hour.start - first).total_seconds() / 3600

    last = (starts[-1] - first).total_seconds() / 3600
    step = next(step for step in (1, 2, 3, 6, 12, 24, 48, 168, 672, 10**9) if last / step <= 12)
    ticks = [
        ((start - first).total_seconds() / 3600, f"{start:%H:%M}" if last <= 48 else f"{start:%m-%d %H:%M}")
        for start in starts
        if (start - first).total_seconds() / 3600 % step == 0
    ]
    lines = []
    for one in drawn:
        hours = [hour for hour in one.hours if hour.n]
        lines.append(Line(_full(one), [at(hour) for hour in hours], [hour.percentiles[_P99_9] for hour in hours]))
    return time_chart(lines, ticks[:: max(1, -(-len(ticks) // 13))])


def _summary(metric: MetricReport) -> str:
    rows = "".join(
        f"<tr><th scope='row'>{html_text(one.name)}{_small(one)}</th>{_figures(one.whole)}</tr>"
        for one in metric.series
    )
    return _table(("Series",), rows)


def _hours(metric: MetricReport) -> str:
    listed = [(hour, one) for one in metric.series for hour in one.hours]
    listed.sort(key=lambda pair: pair[0].start)
    rows = "".join(
        f"<tr><th scope='row'>{hour.start:%Y-%m-%d %H:%M}</th><td class='text'>{html_text(one.name)}{_small(one)}</td>"
        f"{_figures(hour)}</tr>"
        for hour, one in listed[:LISTED]
    )
    more = f"<p class='sub'>{LISTED:,} of {len(listed):,} rows are listed.</p>" if len(listed) > LISTED else ""
    state = " open" if len(listed) <= 60 else ""
    table = _table(("Hour", "Series"), rows)
    return f"<details{state}><summary><h3>Hour by hour ({len(listed):,})</h3></summary>{table}{more}</details>"


def _table(heads: Sequence[str], rows: str) -> str:
    figures = ("Values", "Mean", *_HEADS, "Max", "Jitter")
    head = "".join(f"<th scope='col' class='text'>{name}</th>" for name in heads)
    head += "".join(f"<th scope='col'>{name}</th>" for name in figures)
    return f"<div class='scroll'><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>"


def _figures(hour: Hour) -> str:
    shown = [duration(value) for value in (hour.mean, *hour.percentiles, hour.max, hour.jitter)]
    if not hour.n:
        shown = ["–"] * len(shown)
    return f"<td>{hour.n:,}</td>" + "".join(f"<td>{text}</td>" for text in shown)


def _full(series: SeriesReport) -> str:
    return f"{series.name} ({series.detail})" if series.detail else series.name


def _small(series: SeriesReport) -> str:
    return f" <small>{html_text(series.detail)}</small>" if series.detail else ""
