"""The card of one metric: spectrum, percentiles with their intervals, a percentile over time, and every hour."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta
from itertools import islice

from heliograph.engine.catalogue.outside import html_text
from heliograph.monitor.history.report.cells import HEADS, full, named, of_hour, of_whole
from heliograph.monitor.history.report.charts import duration, rate_chart, spectrum_chart, time_chart
from heliograph.monitor.history.report.figures import Hour, MetricFigures, SeriesFigures
from heliograph.monitor.history.report.timeline import Event
from heliograph.monitor.history.report.uncertainty import MIN_TAIL
from heliograph.monitor.history.schema import PERCENTILES
from heliograph.monitor.history.studies.stages import TOTAL
from heliograph.monitor.page import shell
from heliograph.monitor.page.svg import COLOURS, Axis, Line, Mark

__all__ = ["DRAWN", "LISTED", "Clock", "metric_card"]

DRAWN = COLOURS
"""Series in one chart; the tables have all."""
LISTED = 2000
"""Rows of one table of hours; the download has all."""
_STOPS = 2
"""Hosts whose hiccups are drawn."""
_MARKS = 60

Clock = tuple[datetime, datetime]
"""First and last moment of a report."""


def metric_card(
    metric: MetricFigures, hiccups: MetricFigures | None, events: Sequence[Event], clock: Clock, *, has_rate: bool
) -> str:
    """Return the card of a metric as markup.

    Args:
        metric: Its series.
        hiccups: Those of the hosts, drawn over a latency; None: not recorded, or this is no latency of messages.
        events: What changed meanwhile.
        clock: The time that the charts show.
        has_rate: Show values per second too.
    """
    drawn = [series for series in metric.series if series.whole.n][:DRAWN]
    parts = [f"<section class='card'><h2>{html_text(metric.title)}</h2>"]
    lines = [_spectrum(one) for one in drawn]
    if any(line.xs for line in lines):
        names = shell.legend((one.name, one.detail, "") for one in drawn)
        parts.append(f"<h3>Percentile spectrum</h3>{names}{spectrum_chart([line for line in lines if line.xs])}")
        if len(metric.series) > len(drawn):
            parts.append(f"<p class='sub'>Drawn: the {len(drawn)} of {len(metric.series)} with the worst 99.9 %.</p>")
    parts.append("<h3>All the time</h3>" + _table(("Series",), [(named(one), *of_whole(one)) for one in metric.series]))
    parts.append(_clock_errors(metric))
    if len({hour.start for one in drawn for hour in one.hours}) > 1:
        parts += _over_time(drawn, hiccups, events, clock, has_rate=has_rate)
    parts.append(_hours(metric))
    parts.append("</section>")
    return "".join(parts)


def _spectrum(one: SeriesFigures) -> Line:
    """The spectrum as far as ten values lie beyond, with the intervals of the percentiles as its band."""
    last = math.log10(max(1.0, one.whole.n / MIN_TAIL))
    xs, ys = one.spectrum.nines.tolist(), one.spectrum.values.tolist()
    inside = sum(x <= last for x in xs)
    points = list(zip(xs[:inside], ys[:inside], strict=True))
    if inside < len(ys) and last > 0:  # the cell in which the line ends
        points.append((last, ys[inside]))
    known = [
        (-math.log10(1 - fraction), limits)
        for fraction, limits in zip(PERCENTILES.values(), one.limits, strict=True)
        if limits is not None and limits.high is not None
    ]
    band = [(x, limits.low) for x, limits in known] + [(x, limits.high or 0.0) for x, limits in reversed(known)]
    return Line(full(one), [x for x, _ in points], [y for _, y in points], band=band)


def _clock_errors(metric: MetricFigures) -> str:
    """Name the series whose clocks may err by as much as their median."""
    worst = [one for one in metric.series if one.clock_error_ns and one.clock_error_ns >= (one.whole.at("p50") or 0)]
    known = max((one.clock_error_ns for one in metric.series), default=0)
    if not known:
        return ""
    text = f"Largest error bound of the clocks: {duration(known)}."
    if worst:
        names = ", ".join(f"{full(one)} ({duration(one.clock_error_ns)})" for one in worst[:DRAWN])
        more = f" and {len(worst) - DRAWN} more" if len(worst) > DRAWN else ""
        text += f" At least as large as the median, so that its value says little: {names}{more}."
    return f"<p class='sub'>{html_text(text)}</p>"


# -- over time --------------------------------------------------------------------------------------------------------


def _over_time(
    drawn: Sequence[SeriesFigures],
    hiccups: MetricFigures | None,
    events: Sequence[Event],
    clock: Clock,
    *,
    has_rate: bool,
) -> Iterator[str]:
    quantile = _quantile(drawn)
    title = f"{PERCENTILES[quantile] * 100:g} % by hour"
    stops = _stops(drawn, hiccups)

    def value(hour: Hour) -> float:
        found = hour.at(quantile)
        return math.nan if found is None else float(found)

    lines = [_line(full(one), one.hours, clock, value) for one in drawn]
    lines += [_line(f"hiccups: {full(one)}", one.hours, clock, value, "limit") for one in stops]
    axis, marks = _axis(clock), _marks(events, clock)
    if any(not math.isnan(y) for line in lines for y in line.ys):
        legend = [(one.name, one.detail, "") for one in drawn]
        legend += [(f"hiccups of {one.labels['host'] or one.labels['instance']}", "", "limit") for one in stops]
        yield f"<h3>{title}</h3>{shell.legend(legend)}{time_chart(lines, axis, title, marks)}"
        about = [f"Broken where fewer than {MIN_TAIL} values lie beyond the percentile, and where hours are missing."]
        about += [f"Upright lines are the last {len(marks)} changes: triangles builds, dots restarts."] if marks else []
        yield f"<p class='sub'>{html_text(' '.join(about))}</p>"
    if has_rate:
        rates = [_line(full(one), one.hours, clock, lambda hour: hour.per_second) for one in drawn]
        yield f"<h3>Values per second</h3>{rate_chart(rates, axis, 'Values per second by hour', marks)}"


def _quantile(drawn: Sequence[SeriesFigures]) -> str:
    """Return the highest percentile up to p99.9 that half of the hours have."""
    hours = [hour for one in drawn for hour in one.hours if hour.n]
    for name in ("p99_9", "p99", "p90"):
        if 2 * sum(hour.at(name) is not None for hour in hours) >= len(hours):
            return name
    return "p50"


def _stops(drawn: Sequence[SeriesFigures], hiccups: MetricFigures | None) -> list[SeriesFigures]:
    """Return the hiccups of the hosts of the drawn series, the worst first."""
    if hiccups is None or not any(one.labels["metric"] == TOTAL for one in drawn):
        return []
    places = {(one.labels["host"], "" if one.labels["host"] else one.labels["instance"]) for one in drawn}
    found: dict[tuple[str, str], SeriesFigures] = {}
    for one in hiccups.series:
        place = one.labels["host"], "" if one.labels["host"] else one.labels["instance"]
        if one.whole.n and place in places:
            found.setdefault(place, one)
    return list(found.values())[:_STOPS]


def _line(name: str, hours: Sequence[Hour], clock: Clock, value: Callable[[Hour], float], style: str = "") -> Line:
    """A line of one point per hour, and of two per day, broken where hours are missing."""
    xs: list[float] = []
    ys: list[float] = []
    end: datetime | None = None
    for hour in hours:
        if not hour.n:
            continue
        at = _at(hour.start, clock)
        if end is not None and hour.start > end:
            xs.append(at)
            ys.append(math.nan)
        end = hour.start + hour.length
        xs += [at, at + 23] if hour.is_day else [at]
        ys += [value(hour)] * (2 if hour.is_day else 1)
    return Line(name, xs, ys, style)


def _at(moment: datetime, clock: Clock) -> float:
    return (moment - clock[0]).total_seconds() / 3600


def _axis(clock: Clock) -> Axis:
    last = max(1.0, _at(clock[1], clock) - 1)
    step = next(step for step in (1, 2, 3, 6, 12, 24, 48, 168, 672, 10**9) if last / step <= 12)
    ticks = []
    for at in range(0, math.floor(last) + 1, step):
        moment = clock[0] + timedelta(hours=at)
        ticks.append((float(at), f"{moment:%H:%M}" if last <= 48 else f"{moment:%m-%d %H:%M}"))
    return Axis(0.0, last, ticks[:: max(1, -(-len(ticks) // 13))])


def _marks(events: Sequence[Event], clock: Clock) -> list[Mark]:
    """The last changes, builds before restarts."""
    chosen = sorted(events, key=lambda one: (one.is_build, one.hour))[-_MARKS:]
    return [
        Mark(
            _at(one.hour, clock),
            _at(one.hour, clock),
            "build" if one.is_build else "restart",
            f"{one.hour:%Y-%m-%d %H:%M} {one.instance}: {one.what}",
            "triangle" if one.is_build else "dot",
        )
        for one in chosen
    ]


# -- tables -----------------------------------------------------------------------------------------------------------


def _hours(metric: MetricFigures) -> str:
    count = sum(len(one.hours) for one in metric.series)
    of_series = map(_latest_first, reversed(metric.series))
    latest_first = heapq.merge(*of_series, key=lambda pair: pair[0].start, reverse=True)
    listed = [*islice(latest_first, LISTED)][::-1]
    rows = [(_start(hour), named(one), *of_hour(hour)) for hour, one in listed]
    more = ""
    if count > LISTED:
        more = f"<p class='sub'>The last {LISTED:,} of {count:,} rows; the download has all.</p>"
    state = " open" if count <= 60 else ""
    table = _table(("Hour", "Series"), rows)
    return f"<details{state}><summary><h3>Hour by hour ({count:,})</h3></summary>{table}{more}</details>"


def _latest_first(one: SeriesFigures) -> Iterator[tuple[Hour, SeriesFigures]]:
    return ((hour, one) for hour in reversed(one.hours))


def _start(hour: Hour) -> str:
    return f"{hour.start:%Y-%m-%d} whole day" if hour.is_day else f"{hour.start:%Y-%m-%d %H:%M}"


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    return shell.table((*heads, "Values", "Mean", *HEADS, "Max", "Jitter"), rows, range(len(heads)))
