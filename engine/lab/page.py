"""The page of a scenario: verdicts, curves with the decisions on them, what was told. One file, nothing fetched."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from heliograph.engine.catalogue.outside import html_text
from heliograph.engine.lab.charts import Chart
from heliograph.engine.lab.curves import Event
from heliograph.engine.lab.page_style import SCRIPT, STYLE
from heliograph.engine.lab.runs import Trials
from heliograph.engine.lab.scenario import Pipe, Plan, Receivers, Source
from heliograph.engine.lab.svg import COLOURS, Curve, Mark, chart

__all__ = ["page"]

_MARKS = 200
"""Most decisions marked in a chart, and events listed; the JSON file has all."""


def page(trials: Trials) -> str:
    """The page, as HTML."""
    scenario = trials.scenario
    body = [
        f"<header><p class='brand'>Heliograph lab</p><h1>{html_text(scenario.title)}</h1>"
        f"<p class='sub'>{html_text(scenario.shows)}</p></header>",
        _verdicts(trials),
        *(_variant(trials, variant, plan) for variant, plan in scenario.plans.items()),
        f"<footer>Scenario <code>{html_text(scenario.name)}</code>, {len(trials.outcomes)} runs on a simulated network "
        "with the engine's own code. Lines are the first seed; the bands hold what eight of ten runs did. A triangle "
        "is a decision the engine told, a dot a change of the network: point at them for the words.</footer>",
    ]
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{html_text(scenario.title)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<main>\n"
        + "\n".join(part for part in body if part)
        + f"\n</main>\n<script>{SCRIPT}</script>\n</body>\n</html>\n"
    )


def _number(value: float | None) -> str:
    return "never" if value is None else f"{value:,.4g}"


def _verdicts(trials: Trials) -> str:
    rows = []
    for verdict in trials.verdicts:
        facts = verdict.as_json()
        bound = "reported" if verdict.bound is None else f"{facts['wanted']} {_number(verdict.bound)}"
        rows.append(
            f"<tr><td><span class='verdict {facts['verdict']}'>{facts['verdict']}</span></td>"
            f"<td>{html_text(verdict.name)}</td><td class='n'>{_number(facts['value'])}</td>"
            f"<td class='n'>{_number(facts['median'])}</td><td>{html_text(bound)}</td>"
            f"<td>{html_text(verdict.unit)}</td>"
            f"<td class='n'>{verdict.worst_seed}</td></tr>"
        )
    return (
        "<section class='card'><h2>What must come out</h2><table><thead><tr><th></th><th>Criterion</th>"
        "<th class='n'>Worst seed's</th><th class='n'>Median</th><th>Wanted</th><th>Unit</th><th class='n'>Seed</th>"
        f"</tr></thead><tbody>{''.join(rows)}</tbody></table></section>"
    )


def _variant(trials: Trials, variant: str, plan: Plan) -> str:
    first = trials.outcomes[0]
    events = [event for event in first.events.get(variant, []) if event.source is not None]
    marks = list(_plan_marks(trials, plan)) + [
        Mark(event.at, "decision", f"{event.name}: {event.text}") for event in events[:_MARKS]
    ]
    parts = [_chart(trials, variant, i, one, marks, plan) for i, one in enumerate(first.drawn[variant]) if one.series]
    head = f"<h2 class='variant'>{html_text(variant)}</h2>" if variant else ""
    return f"<section>{head}{''.join(parts)}{_told(events)}</section>"


def _plan_marks(trials: Trials, plan: Plan) -> Iterator[Mark]:
    for at, text in trials.scenario.marks:
        yield Mark(at, "plan", text)
    for turn in plan.turns:
        things: Sequence[Pipe | Source | Receivers] = (
            plan.pipes if turn.knob == "pipe" else plan.sources if turn.knob == "offered" else plan.receivers
        )
        thing, what = things[turn.which].name, "rate" if turn.knob == "pipe" else turn.knob
        words = f"{thing}: all leave" if what == "leave" else f"{thing}: {what} becomes {turn.value:,.10g}"
        yield Mark(turn.at, "plan", words)


def _chart(trials: Trials, variant: str, place: int, drawn: Chart, marks: Sequence[Mark], plan: Plan) -> str:
    curves = []
    for i, one in enumerate(drawn.series):
        has_band = len(trials.outcomes) > 1 and one.style != "limit"
        low, high = trials.band(variant, place, i) if has_band else ((), ())
        curves.append(Curve(one.name, one.style, i % COLOURS, one.values, low, high))
    legend = "".join(
        f"<li><svg viewBox='0 0 26 10' aria-hidden='true'><line class='{one.style} c{one.colour}' x1='1' x2='25' "
        f"y1='5' y2='5'/></svg>{html_text(one.name)}</li>"
        for one in curves
    )
    drawing = chart(drawn.title, drawn.unit, curves, marks, plan.interval, plan.duration)
    return f"<figure class='card'><figcaption>{html_text(drawn.title)}</figcaption><ul>{legend}</ul>{drawing}</figure>"


def _told(events: Sequence[Event]) -> str:
    if not events:
        return ""
    rows = "".join(
        f"<tr><td class='n'>{event.at:.3f}</td><td><code>{html_text(event.name)}</code></td>"
        f"<td>{html_text(event.text)}</td></tr>"
        for event in events[:_MARKS]
    )
    more = f", the first {_MARKS} of {len(events)}" if len(events) > _MARKS else ""
    return (
        f"<details class='card'><summary>What the sources told ({len(events)}{more})</summary><table><thead><tr>"
        f"<th class='n'>Seconds</th><th>Event</th><th>Words</th></tr></thead><tbody>{rows}</tbody></table></details>"
    )
