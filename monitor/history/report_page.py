"""The report's page: markup and style, nothing computed. One file, no script, nothing fetched."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

from heliograph.monitor.history.files import Broken
from heliograph.monitor.history.report_svg import COLOURS, Line, duration, spectrum_chart, time_chart
from heliograph.monitor.history.schema import PERCENTILES

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
        f"<title>{escape(title)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n<main>\n"
        + "\n".join(part for part in body if part)
        + "\n</main>\n</body>\n</html>\n"
    )


def _header(title: str, metrics: Sequence[MetricReport]) -> str:
    starts = [hour.start for metric in metrics for series in metric.series for hour in series.hours]
    first, last = min(starts), max(starts)
    hours = len(set(starts))
    span = f"{first:%Y-%m-%d %H:00}" + (f" to {last:%Y-%m-%d %H:59}" if last != first else " to " + f"{last:%H:59}")
    return (
        f"<header><p class='brand'>Heliograph</p><h1>{escape(title)}</h1>"
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
            f"<div class='tile'><h2>{escape(head)}</h2><p class='big'>{escape(value)}</p>"
            f"<p class='sub'>{escape(sub)}</p></div>"
            for head, value, sub in tiles
        )
        + "</section>"
    )


def _trouble(broken: Sequence[Broken]) -> str:
    if not broken:
        return ""
    items = "".join(f"<li><code>{escape(one.path)}</code>: {escape(one.reason)}</li>" for one in broken)
    return f"<section class='card trouble'><h2>Files that cannot be read, left out</h2><ul>{items}</ul></section>"


def _metric(metric: MetricReport) -> str:
    drawn = [series for series in metric.series if series.whole.n][:DRAWN]
    parts = [f"<section class='card'><h2>{escape(metric.title)}</h2>"]
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
        f"<li><span class='key c{index % COLOURS}'></span>{escape(one.name)}{_small(one)}</li>"
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
        f"<tr><th scope='row'>{escape(one.name)}{_small(one)}</th>{_figures(one.whole)}</tr>" for one in metric.series
    )
    return _table(("Series",), rows)


def _hours(metric: MetricReport) -> str:
    listed = [(hour, one) for one in metric.series for hour in one.hours]
    listed.sort(key=lambda pair: pair[0].start)
    rows = "".join(
        f"<tr><th scope='row'>{hour.start:%Y-%m-%d %H:%M}</th><td class='text'>{escape(one.name)}{_small(one)}</td>"
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
    return f" <small>{escape(series.detail)}</small>" if series.detail else ""


_STYLE = """
:root { color-scheme: light dark; --paper: #f6f7f9; --card: #ffffff; --ink: #17202c; --soft: #5d6b7c; --rule: #e2e6eb;
  --accent: #b4540a; --c0: #c2410c; --c1: #1d63b8; --c2: #0f7f68; --c3: #8a3ffc; --c4: #a16207; --c5: #be185d;
  --c6: #0e7490; --c7: #4b5563; }
@media (prefers-color-scheme: dark) { :root { --paper: #0f1318; --card: #171d25; --ink: #e7ecf2; --soft: #93a1b1;
  --rule: #29323d; --accent: #f5a04a; --c0: #fb923c; --c1: #60a5fa; --c2: #34d399; --c3: #c4a2ff; --c4: #facc15;
  --c5: #f472b6; --c6: #22d3ee; --c7: #cbd5e1; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink);
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", "Liberation Sans", sans-serif; }
main { max-width: 1320px; margin: 0 auto; padding: 32px 20px 48px; }
h1 { margin: 0; font-size: 30px; letter-spacing: -0.02em; }
h2 { margin: 0 0 4px; font-size: 19px; }
h3 { margin: 22px 0 8px; font-size: 15px; }
.brand { margin: 0; color: var(--accent); font-weight: 650; letter-spacing: 0.04em; }
.sub, small { color: var(--soft); font-size: 13px; }
.sub { margin: 2px 0 0; }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(190px, 1fr)); gap: 12px; margin: 24px 0; }
.tile, .card { background: var(--card); border: 1px solid var(--rule); border-radius: 10px; }
.tile { padding: 14px 16px; overflow-wrap: anywhere; }
.tile h2 { font-size: 13px; font-weight: 550; color: var(--soft); }
.big { margin: 0; font-size: 25px; font-weight: 650; font-variant-numeric: tabular-nums; }
.card { padding: 20px 22px 22px; margin: 0 0 20px; }
.trouble { border-left: 4px solid var(--accent); }
.trouble code { overflow-wrap: anywhere; }
.legend { display: flex; flex-wrap: wrap; gap: 4px 18px; margin: 0 0 6px; padding: 0; list-style: none;
  font-size: 13px; }
.key { display: inline-block; width: 14px; height: 4px; border-radius: 2px; margin: 0 7px 3px 0; }
.key.c0 { background: var(--c0); } .key.c1 { background: var(--c1); } .key.c2 { background: var(--c2); }
.key.c3 { background: var(--c3); } .key.c4 { background: var(--c4); } .key.c5 { background: var(--c5); }
.key.c6 { background: var(--c6); } .key.c7 { background: var(--c7); }
svg { display: block; width: 100%; height: auto; }
.grid { stroke: var(--rule); }
.tick { fill: var(--soft); font-size: 12px; }
.line { fill: none; stroke-width: 2; stroke-linejoin: round; }
.line:hover { stroke-width: 4; }
.line.c0 { stroke: var(--c0); } .line.c1 { stroke: var(--c1); } .line.c2 { stroke: var(--c2); }
.line.c3 { stroke: var(--c3); } .line.c4 { stroke: var(--c4); } .line.c5 { stroke: var(--c5); }
.line.c6 { stroke: var(--c6); } .line.c7 { stroke: var(--c7); }
.dot.c0 { fill: var(--c0); } .dot.c1 { fill: var(--c1); } .dot.c2 { fill: var(--c2); } .dot.c3 { fill: var(--c3); }
.dot.c4 { fill: var(--c4); } .dot.c5 { fill: var(--c5); } .dot.c6 { fill: var(--c6); } .dot.c7 { fill: var(--c7); }
.scroll { overflow-x: auto; }
table { width: 100%; border-collapse: collapse; font-size: 13px; font-variant-numeric: tabular-nums; }
th, td { padding: 6px 8px; text-align: right; white-space: nowrap; border-bottom: 1px solid var(--rule); }
thead th { color: var(--soft); font-weight: 550; }
th[scope=row], .text { text-align: left; }
th[scope=row] { font-weight: 550; }
tbody tr:hover { background: var(--paper); }
details { margin-top: 22px; }
summary { cursor: pointer; }
summary h3 { display: inline; }
footer { color: var(--soft); font-size: 13px; }
@media print { body { background: none; } .card, .tile { break-inside: avoid; } }
"""
