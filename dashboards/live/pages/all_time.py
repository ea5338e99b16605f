"""A series over all the time of a history: the figures of `heliograph history report`, with their uncertainty."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from heliograph.dashboards.live.pages import numbers
from heliograph.dashboards.live.pages.elements import html
from heliograph.dashboards.live.pages.parts import cell, table

if TYPE_CHECKING:
    from heliograph.dashboards.live.past import Whole
    from heliograph.monitor.history.report.figures import SeriesFigures, Stacked
    from heliograph.monitor.history.report.uncertainty import Limits

__all__ = ["all_time"]

_MOST_SERIES = 20
_MOST_CHANGES = 20


def all_time(whole: Whole) -> html.Div:
    """Return percentiles with 95 % intervals, stages, time without a record, and what changed.

    Args:
        whole: The figures of the series.
    """
    parts = [_percentiles(whole)]
    if whole.stages:
        parts.append(_stages(whole.stages))
    return html.Div([*parts, _coverage(whole), *_changes(whole)])


def _percentiles(whole: Whole) -> html.Div:
    from heliograph.monitor.history.schema import PERCENTILES

    heads = [("Host, link, build", ""), ("Values", "n"), ("Mean", "n")]
    heads += [(name.replace("_", "."), "n") for name in PERCENTILES] + [("Max", "n"), ("Jitter", "n")]
    rows = [_row(one) for one in whole.series[:_MOST_SERIES]]
    found: list[Any] = [table(heads, rows, "Percentiles of all the time with 95 % intervals")]
    if len(whole.series) > _MOST_SERIES:
        found.append(html.P(f"{_MOST_SERIES} of {len(whole.series)}, those with the worst p99.9.", className="more"))
    return html.Div(found)


def _row(one: SeriesFigures) -> html.Tr:
    from heliograph.monitor.history.report.cells import THIN
    from heliograph.monitor.history.report.uncertainty import is_thin
    from heliograph.monitor.history.schema import PERCENTILES

    name, whole = one.detail or "the series", one.whole
    if not whole.n:
        return html.Tr([cell(name), cell("0", "n"), *[cell(numbers.NONE, "n")] * (len(PERCENTILES) + 3)])
    percentiles = [
        cell(THIN, "n") if is_thin(whole.n, fraction) else _between(value, limits)
        for fraction, value, limits in zip(PERCENTILES.values(), whole.percentiles, one.limits, strict=True)
    ]
    return html.Tr(
        [
            cell(name),
            cell(f"{whole.n:,}", "n"),
            _with_reach(whole.mean, one.mean_reach),
            *percentiles,
            cell(numbers.latency(whole.max), "n"),
            cell(THIN if whole.jitter is None else numbers.latency(whole.jitter), "n"),
        ]
    )


def _between(value: int, limits: Limits | None) -> html.Td:
    shown: list[Any] = [numbers.latency(value)]
    if limits is not None and limits.high is None:
        shown.append(html.Small(f" at least {numbers.latency(limits.low)}"))
    elif limits is not None:
        shown.append(html.Small(f" {numbers.latency(limits.low)} to {numbers.latency(limits.high)}"))
    return cell(shown, "n")


def _with_reach(value: float, reach: float | None) -> html.Td:
    """A mean and, where it is known, the half width of its interval."""
    shown: list[Any] = [numbers.latency(value)]
    if reach is not None and not math.isnan(reach):
        shown.append(html.Small(f" ± {numbers.latency(reach)}"))
    return cell(shown, "n")


def _stages(found: Stacked) -> html.Div:
    from heliograph.monitor.history.report.cells import THIN

    heads = (("Stage of a message", ""), ("Mean", "n"), ("p50", "n"), ("p99", "n"))
    rows = []
    for name, mean, reach in zip(found.stages.names, found.stages.means.tolist(), found.reaches, strict=True):
        quantiles = found.stages.quantiles.get(name)
        shown = [
            numbers.NONE if quantiles is None else THIN if (value := quantiles[at]) is None else numbers.latency(value)
            for at in ("p50", "p99")
        ]
        rows.append(html.Tr([cell(name), _with_reach(max(0.0, mean), reach), *(cell(x, "n") for x in shown)]))
    return html.Div(table(heads, rows, "Stages of a message, means of all the time"))


def _coverage(whole: Whole) -> html.Div:
    from heliograph.monitor.history.report.cells import percent
    from heliograph.monitor.history.report.timeline import covered, gaps

    found: list[Any] = []
    for one in whole.series[:_MOST_SERIES]:
        missing = gaps([(hour.start, hour.length, hour.covered_ms) for hour in one.hours], whole.first, whole.end)
        name = f"{one.detail}: " if one.detail else ""
        if not missing:
            found.append(html.Li(f"{name}every hour is covered to 98 % or more."))
            continue
        longest = max(missing, key=lambda gap: gap.end - gap.start)
        found.append(
            html.Li(
                f"{name}{percent(covered(missing, whole.first, whole.end))} of the time is covered. "
                f"Gaps: {len(missing):,}; the longest is {longest.start:%Y-%m-%d %H:%M} to "
                f"{longest.end:%Y-%m-%d %H:%M} UTC, {percent(longest.covered)} covered."
            )
        )
    return html.Div([html.H3("Coverage"), html.Ul(found)])


def _changes(whole: Whole) -> list[Any]:
    if not whole.events:
        return []
    heads = (("Hour, UTC", ""), ("Change", ""), ("Host", ""))
    rows = [
        html.Tr([cell(f"{one.hour:%Y-%m-%d %H:%M}"), cell(one.what), cell(one.host or numbers.NONE)])
        for one in whole.events[-_MOST_CHANGES:][::-1]
    ]
    found = table(heads, rows, "Restarts and builds of the instance, newest first")
    return [html.Div([html.H3("What changed"), found])]
