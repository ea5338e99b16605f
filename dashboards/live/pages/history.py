"""The page of the past: percentiles by day and by hour of the week, and two periods compared, from a history's files.

The history is read in the background (`past.py`). Until a result is there, the page says so.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dash import dcc

from heliograph.dashboards.live.figures.past import by_day, two_spectra
from heliograph.dashboards.live.pages import numbers, tables
from heliograph.dashboards.live.pages.address import refused
from heliograph.dashboards.live.pages.all_time import all_time
from heliograph.dashboards.live.pages.elements import html
from heliograph.dashboards.live.pages.head import head
from heliograph.dashboards.live.pages.parts import card, cell, chart, picker, table, tile
from heliograph.dashboards.live.past import MARGIN, Past, Period, Question, Reading, Series, Studied
from heliograph.dashboards.live.store import View
from heliograph.dashboards.words import Tone
from heliograph.monitor.history.schema import PERCENTILES, metric_titles

if TYPE_CHECKING:
    from heliograph.monitor.history.studies.calendar import Calendar, Cell

__all__ = ["CHOICES", "PLACES", "Choice", "choice", "layout", "parts"]

PLACES: Mapping[str, str] = {
    "hy-verdict": "children",
    "hy-tiles": "children",
    "hy-days": "figure",
    "hy-days-twin": "children",
    "hy-week": "children",
    "hy-spectrum": "figure",
    "hy-spectrum-twin": "children",
    "hy-compared": "children",
    "hy-whole": "children",
    "hy-series": "options",
}
"""Ids of the parts that change with the history or the selection, and the property that holds them."""

CHOICES = ("hy-series", "hy-quantile", "hy-zone", "hy-a", "hy-b")
"""Ids of the selections, in the address without the prefix."""

_MOST_SERIES = 500
_WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MOST_DAYS = 400
_SHADES = 6
_LONGEST = 300
_BETWEEN = " | "
"""Between the labels of a series, in the address and in the list."""
_NO_HISTORY = "This server shows no history: heliograph live --history DIR shows one."
_READING = "The history is being read"


@dataclass(frozen=True, slots=True)
class Choice:
    """The selections of one reader."""

    series: str = ""
    """Labels of a series; empty: the first one."""
    quantile: str = ""
    """Column of the history that the hours of the week show; empty: p99."""
    zone: str = ""
    """Time zone of days and hours; empty: UTC."""
    a: str = ""
    b: str = ""
    """The periods, as selections of `heliograph history compare`."""


def _text(series: Series) -> str:
    instance, topic, metric, tag = series
    return _BETWEEN.join((instance, topic, metric, tag)).removesuffix(_BETWEEN)


def _label(series: Series) -> str:
    instance, topic, metric, tag = series
    return " · ".join(filter(None, (instance, topic, metric_titles().get(metric, metric), tag)))


def choice(values: Mapping[str, Sequence[str]], past: Past | None) -> tuple[Choice, list[str]]:
    """Return the possible part of a selection, and messages about the rest.

    A series is checked once the history is read; until then any is possible.

    Args:
        values: Values by name: series, quantile, zone, a and b, from an address.
        past: The history; None: the server has none.
    """
    given = {name: str((values.get(name) or [""])[0])[:_LONGEST] for name in ("series", "quantile", "zone", "a", "b")}
    said = []
    if given["quantile"] and given["quantile"] not in PERCENTILES:
        said.append(refused("Quantile", given["quantile"], "is not in a history; the page shows p99"))
        given["quantile"] = ""
    known = past.reading().series if past is not None else ()
    if given["series"] and known and given["series"] not in map(_text, known):
        said.append(refused("Series", given["series"], "is not in the history; the page shows the first one"))
        given["series"] = ""
    return Choice(**given), said


def _question(chosen: Choice, reading: Reading) -> Question | None:
    found = {_text(series): series for series in reading.series}
    series = found.get(chosen.series) or next(iter(reading.series), None)
    if series is None:
        return None
    return Question(series, chosen.zone.strip() or "UTC", chosen.a.strip(), chosen.b.strip())


def _asked(past: Past | None, chosen: Choice) -> tuple[Reading, Question | None, Studied | str | None]:
    """Return the state of the history, the question, and its answer (see `Past.studied`)."""
    if past is None:
        return Reading(trouble=_NO_HISTORY), None, None
    reading = past.reading()
    question = _question(chosen, reading) if not reading.trouble else None
    return reading, question, past.studied(question) if question is not None else None


def parts(past: Past | None, chosen: Choice) -> dict[str, Any]:
    """Return the content by part (see PLACES)."""
    reading, question, found = _asked(past, chosen)
    study = found if isinstance(found, Studied) else None
    calendar = study.calendar if study is not None else None
    quantile = chosen.quantile or "p99"
    wait = "" if study is not None else _wait(reading, question, found)
    periods = {f"A: {study.a.text}": study.a, f"B: {study.b.text}": study.b} if study is not None else {}
    return {
        "hy-verdict": _verdict(reading, question, study, wait),
        "hy-tiles": _tiles(reading, study),
        "hy-days": by_day(calendar),
        "hy-days-twin": _days_twin(calendar),
        "hy-week": _week(calendar, quantile) if study is not None else html.P(wait, className="nothing"),
        "hy-spectrum": two_spectra([(name, one.line) for name, one in periods.items()]),
        "hy-spectrum-twin": _spectrum_twin(periods),
        "hy-compared": _contrasts(study) if study is not None else html.P(wait, className="nothing"),
        "hy-whole": all_time(study.whole) if study is not None else html.P(wait, className="nothing"),
        "hy-series": [{"label": _label(one), "value": _text(one)} for one in reading.series[:_MOST_SERIES]],
    }


def layout(
    view: View, state: Mapping[str, Any], chosen: Choice, past: Past | None, said: Sequence[str] = ()
) -> html.Main:
    """Return the whole page.

    Args:
        view: The view of the present, for the head.
        state: Its stamp.
        chosen: The selection of the reader.
        past: The history; None: the server has none.
        said: Messages about the address of the page.
    """
    found = parts(past, chosen)
    quantiles = [{"label": name.replace("_", "."), "value": name} for name in PERCENTILES]
    return html.Main(
        [
            *head("/history", "hy-", state, view, said),
            html.Div(
                [
                    picker("hy-series", "Series", found["hy-series"], chosen.series, "the one with most values"),
                    picker("hy-quantile", "Quantile of the week", quantiles, chosen.quantile, "p99"),
                    _input("zone", "Time zone", chosen.zone, "UTC, Europe/London"),
                    _input("a", "Period A", chosen.a, "the day before the last"),
                    _input("b", "Period B", chosen.b, "the last day"),
                ],
                className="controls",
            ),
            html.Div(found["hy-verdict"], id="hy-verdict"),
            html.Dl(found["hy-tiles"], id="hy-tiles", className="tiles"),
            html.Div(
                [
                    chart("hy-days", "Days", "percentiles of merged counts, by day of the time zone", found),
                    chart("hy-spectrum", "Periods A and B", "percentile spectrum; dashed: B", found),
                ],
                className="charts",
            ),
            card("B against A", "ratios with their 95 % intervals", html.Div(found["hy-compared"], id="hy-compared")),
            card(
                "All the time",
                "with 95 % intervals; thin: too few values lie beyond the percentile",
                html.Div(found["hy-whole"], id="hy-whole"),
            ),
            card("Hours of the week", "a darker cell is a higher latency", html.Div(found["hy-week"], id="hy-week")),
            html.P(
                "A period is a selection as in heliograph history compare: from=2026-11-20T08:00,to=2026-11-21, "
                "build=4.1*, host=ny4-*. Without one the last two days are compared. thin: too few values lie beyond "
                f"the percentile. An increase of up to {MARGIN:.0%} counts as not slower.",
                className="foot",
            ),
        ]
    )


def _input(name: str, title: str, value: str, example: str) -> html.Div:
    place = f"hy-{name}"
    box = dcc.Input(
        id=place, type="text", placeholder=example, value=value, maxLength=_LONGEST, debounce=True, autoComplete="off"
    )
    return html.Div([html.Label(title, htmlFor=place), box], className="picker")


def _wait(reading: Reading, question: Question | None, found: Studied | str | None) -> str:
    """Why there is nothing to show, in words."""
    if reading.trouble:
        return reading.trouble
    if isinstance(found, str):
        return found
    return f"{_READING}." if question is None else "The study of this selection is under way."


def _section(tone: Tone, headline: str, *more: str) -> html.Section:
    listed = [html.Ul([html.Li(text) for text in more])] if more else []
    return html.Section([html.H1(headline), *listed], className=f"verdict {tone}")


def _verdict(reading: Reading, question: Question | None, study: Studied | None, wait: str) -> html.Section:
    """The first line: whether B is slower than A, or why this is not known."""
    broken = [f"{len(reading.broken)} files cannot be read and are left out: {path}" for path in reading.broken[:1]]
    if study is None or question is None:
        is_waiting = (not reading.trouble and "under way" in wait) or wait.startswith(_READING)
        return _section("idle" if is_waiting or wait == _NO_HISTORY else "watch", _sentence(wait), *broken)
    name = _label(question.series)
    more = [*study.notes, *broken]
    if study.trouble:
        return _section("idle", f"{name}: the periods are not compared: {study.trouble}", *more)
    if study.effect is not None:
        more.insert(0, f"A value of B is larger than one of A with a probability of {study.effect:.0%}.")
    slower = [one for one in study.contrasts if one.verdict == "slower"]
    if slower:
        worst = max(slower, key=lambda one: one.ratio)
        said = (
            f"{name}: B is slower than A at {worst.quantile}: {numbers.latency(worst.b_ns)} instead of "
            f"{numbers.latency(worst.a_ns)}, {worst.ratio:.2f} times"
        )
        return _section("bad", said, *more)
    if study.verdict == "not slower":
        return _section("good", f"{name}: B is not slower than A by more than {MARGIN:.0%}", *more)
    reason = next((one.reason for one in study.contrasts if one.reason), "there are too few values")
    return _section("idle", f"{name}: whether B is slower than A cannot be said: {reason}", *more)


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:].removesuffix(".")


def _tiles(reading: Reading, study: Studied | None) -> list[html.Div]:
    days = study.calendar.days if study is not None and study.calendar is not None else ()
    values = sum(day.cell.n for day in days)
    a, b = (study.a, study.b) if study is not None else (None, None)
    return [
        tile("Series", numbers.count(len(reading.series)) if not reading.trouble else numbers.NONE, "in the history"),
        tile("From", f"{reading.first:%Y-%m-%d}" if reading.first else numbers.NONE, "UTC"),
        tile("To", f"{reading.last:%Y-%m-%d}" if reading.last else numbers.NONE, "UTC"),
        tile("Size", numbers.size(reading.size), "data files"),
        tile("Days", numbers.count(len(days)), f"{numbers.count(values)} values"),
        tile("Period A", numbers.count(a.values) if a else numbers.NONE, f"values in {a.hours} h" if a else ""),
        tile("Period B", numbers.count(b.values) if b else numbers.NONE, f"values in {b.hours} h" if b else ""),
    ]


def _value(found: Cell, column: str) -> str:
    value = found.percentiles[column]
    return "thin" if value is None else numbers.latency(value)


def _days_twin(calendar: Calendar | None) -> html.Table:
    days = calendar.days[-_MOST_DAYS:] if calendar is not None else ()
    rows = [
        (
            f"{day.day} {_WEEKDAYS[day.day.weekday()]}",
            (
                numbers.NONE if day.hours is None else str(day.hours),
                f"{day.cell.n:,}",
                *(_value(day.cell, column) for column in PERCENTILES),
                numbers.latency(day.cell.max),
            ),
        )
        for day in reversed(days)
    ]
    heads = ("hours", "values", *(name.replace("_", ".") for name in PERCENTILES), "max")
    return tables.twin("Percentiles by day, newest first", heads, rows)


def _shades(cells: Sequence[Cell], column: str) -> Callable[[Cell], int]:
    """Return the function that gives a cell its shade among these: 0 (none) to `_SHADES`, by the logarithm."""
    values = [math.log(max(1, value)) for one in cells if (value := one.percentiles[column]) is not None]
    low, high = min(values, default=0.0), max(values, default=0.0)

    def shade(found: Cell) -> int:
        value = found.percentiles[column]
        return 0 if value is None or low == high else round((math.log(max(1, value)) - low) / (high - low) * _SHADES)

    return shade


def _week(calendar: Calendar | None, column: str) -> html.Div:
    if calendar is None or not calendar.week:
        return html.Div(html.P("The history has no hours of this series.", className="nothing"))
    shade = _shades(list(calendar.week.values()), column)
    rows = []
    for hour in range(24):
        found = [calendar.week.get((day, hour)) for day in range(7)]
        if any(found):
            cells = [
                cell(numbers.NONE, "n") if one is None else cell(_value(one, column), f"n s{shade(one)}")
                for one in found
            ]
            rows.append(html.Tr([html.Th(f"{hour:02}:00", scope="row"), *cells]))
    heads = (("Hour", ""), *((name, "n") for name in _WEEKDAYS))
    return html.Div(table(heads, rows, f"{column.replace('_', '.')} by hour of the week"))


def _spectrum_twin(periods: Mapping[str, Period]) -> html.Table:
    rows = [(name, tuple(map(numbers.latency, one.percentiles))) for name, one in periods.items() if one.line]
    heads = (*(name.replace("_", ".") for name in PERCENTILES), "max")
    return tables.twin("Percentiles of the periods", heads, rows)


def _contrasts(study: Studied) -> html.Div:
    heads = (("Quantile", ""), ("A", "n"), ("B", "n"), ("B / A", "n"), ("95 % interval", "n"), ("Verdict", ""))
    if not study.contrasts:
        return html.Div(html.P(f"Nothing is compared: {study.trouble}.", className="nothing"))
    rows = [
        html.Tr(
            [
                cell(one.quantile),
                cell(numbers.latency(one.a_ns), "n"),
                cell(numbers.latency(one.b_ns), "n"),
                cell(f"{one.ratio:.3f}", "n"),
                cell(numbers.NONE if math.isnan(one.low) else f"{one.low:.3f} to {one.high:.3f}", "n"),
                html.Td(one.verdict + (f": {one.reason}" if one.reason else ""), className="why"),
            ],
            className={"slower": "bad", "not slower": "good"}.get(one.verdict),
        )
        for one in study.contrasts
    ]
    return html.Div(table(heads, rows, "B against A"))
