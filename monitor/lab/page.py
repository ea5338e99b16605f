"""The page of a scenario: verdicts, curves with the decisions on them, what was told. One file, nothing fetched."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from heliograph.engine.catalogue.outside import html_text, json_text
from heliograph.monitor.lab.charts import Chart
from heliograph.monitor.lab.curves import Event
from heliograph.monitor.lab.page_style import SCRIPT, STYLE
from heliograph.monitor.lab.runs import Trials
from heliograph.monitor.lab.scenario import Pipe, Plan, Receivers, Source
from heliograph.monitor.page.shell import document, legend, table
from heliograph.monitor.page.svg import Axis, Frame, Line, Mark, chart, nice_axis, thinned

__all__ = ["page", "scaled", "timed_chart"]

_MARKS = 200
"""Most decisions marked in a chart, and events listed; the JSON file has all."""
_POINTS = 800
"""Most points of a line."""
_FRAME = Frame(width=960, height=270, left=66, right=14, top=20, bottom=42)
_WORDS = {"G": "billion", "M": "million", "k": "thousand"}


def page(trials: Trials) -> str:
    """The page, as HTML."""
    scenario = trials.scenario
    return document(
        scenario.title,
        [scenario.shows],
        [_verdicts(trials), *(_variant(trials, variant, plan) for variant, plan in scenario.plans.items())],
        f"Scenario <code>{html_text(scenario.name)}</code>, {len(trials.outcomes)} runs on a simulated network "
        "with the engine's own code. Lines are the first seed; the bands hold what eight of ten runs did. A triangle "
        "is a decision the engine told, a dot a change of the network: point at them for the words.",
        brand="Heliograph lab",
        style=STYLE,
        script=SCRIPT,
    )


def _number(value: float | None) -> str:
    return "never" if value is None else f"{value:,.4g}"


def _verdicts(trials: Trials) -> str:
    rows = []
    for verdict in trials.verdicts:
        facts = verdict.as_json()
        bound = "reported" if verdict.bound is None else f"{facts['wanted']} {_number(verdict.bound)}"
        rows.append(
            (
                html_text(verdict.name),
                f"<span class='verdict {facts['verdict']}'>{facts['verdict']}</span>",
                _number(facts["value"]),
                _number(facts["median"]),
                html_text(bound),
                html_text(verdict.unit),
                str(verdict.worst_seed),
            )
        )
    heads = ("Criterion", "Verdict", "Worst seed's", "Median", "Wanted", "Unit", "Seed")
    return f"<section class='card'><h2>What must come out</h2>{table(heads, rows, (0, 1, 4, 5))}</section>"


def _variant(trials: Trials, variant: str, plan: Plan) -> str:
    first = trials.outcomes[0]
    events = [event for event in first.events.get(variant, []) if event.source is not None]
    marks = list(_plan_marks(trials, plan)) + [
        _moment(event.at, "decision", f"{event.name}: {event.text}") for event in events[:_MARKS]
    ]
    parts = [_chart(trials, variant, i, one, marks, plan) for i, one in enumerate(first.drawn[variant]) if one.series]
    head = f"<h2 class='variant'>{html_text(variant)}</h2>" if variant else ""
    return f"<section>{head}{''.join(parts)}{_told(events)}</section>"


def _plan_marks(trials: Trials, plan: Plan) -> Iterator[Mark]:
    for at, text in trials.scenario.marks:
        yield _moment(at, "plan", text)
    for turn in plan.turns:
        things: Sequence[Pipe | Source | Receivers] = (
            plan.pipes if turn.knob == "pipe" else plan.sources if turn.knob == "offered" else plan.receivers
        )
        thing, what = things[turn.which].name, "rate" if turn.knob == "pipe" else turn.knob
        words = f"{thing}: all leave" if what == "leave" else f"{thing}: {what} becomes {turn.value:,.10g}"
        yield _moment(turn.at, "plan", words)


def _moment(at: float, kind: str, text: str) -> Mark:
    return Mark(at, at, kind, f"{at:.2f} s: {text}", "triangle" if kind == "decision" else "dot")


def _chart(trials: Trials, variant: str, place: int, drawn: Chart, marks: Sequence[Mark], plan: Plan) -> str:
    ends = [plan.interval * (i + 1) for i in range(max((len(one.values) for one in drawn.series), default=0))]
    lines = []
    for i, one in enumerate(drawn.series):
        has_band = len(trials.outcomes) > 1 and one.style != "limit"
        low, high = trials.band(variant, place, i) if has_band else ((), ())
        upper = list(zip(*thinned(ends[: len(high)], high, _POINTS), strict=True))
        lower = [(at, -value) for at, value in zip(*thinned(ends[: len(low)], [-v for v in low], _POINTS), strict=True)]
        style = "" if one.style == "line" else one.style
        lines.append(Line(one.name, ends[: len(one.values)], one.values, style, [*upper, *reversed(lower)]))
    names = legend((line.name, "", line.style) for line in lines)
    drawing = timed_chart(drawn.title, drawn.unit, lines, marks, plan.interval, plan.duration)
    return f"<figure class='card'><figcaption>{html_text(drawn.title)}</figcaption>{names}{drawing}</figure>"


def scaled(value: float, unit: str) -> tuple[float, str]:
    """Divisor and unit that make a value of this size easy to read."""
    if unit.startswith(("B", "packets", "messages")):
        for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
            if value >= size:
                return size, f"{letter}{unit}" if unit.startswith("B") else f"{_WORDS[letter]} {unit}"
    return 1.0, unit


def timed_chart(
    title: str, unit: str, lines: Sequence[Line], marks: Sequence[Mark], interval: float, duration: float
) -> str:
    """A chart of lines over `duration` seconds, with the values of each interval for the page's script."""
    highest = max((max([*line.ys, *(y for _, y in line.band)], default=0) for line in lines), default=0.0)
    divisor, shown = scaled(highest, unit)
    y = nice_axis(highest / divisor)
    seconds = [(at, f"{at:g}") for at, _ in nice_axis(duration).ticks if at <= duration * 1.0001]
    few = []
    for line in lines:
        xs, ys = thinned(line.xs, [value / divisor for value in line.ys], _POINTS)
        few.append(Line(line.name, xs, ys, line.style, [(at, value / divisor) for at, value in line.band]))
    data = {
        "interval": interval,
        "duration": duration,
        "unit": shown,
        "curves": [[line.name, [round(value, 4) for value in line.ys]] for line in few],
        "stride": max(1, -(-max((len(line.xs) for line in lines), default=0) // _POINTS)),
    }
    return chart(
        few,
        Axis(0.0, duration, seconds, "seconds"),
        Axis(y.low, y.high, y.ticks, shown),
        title,
        marks=[mark for mark in marks if 0 <= mark.at <= duration],
        frame=_FRAME,
        data=json_text(data, separators=(",", ":")),
    )


def _told(events: Sequence[Event]) -> str:
    if not events:
        return ""
    rows = [
        (f"{event.at:.3f}", f"<code>{html_text(event.name)}</code>", html_text(event.text)) for event in events[:_MARKS]
    ]
    more = f", the first {_MARKS} of {len(events)}" if len(events) > _MARKS else ""
    return (
        f"<details class='card'><summary>What the sources told ({len(events)}{more})</summary>"
        f"{table(('Seconds', 'Event', 'Words'), rows, (0, 1, ~2))}</details>"
    )
