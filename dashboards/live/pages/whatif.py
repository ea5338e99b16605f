"""The page "What if": the recorded decisions of congestion control beside those that other options would have made.

The options are in the address, and nothing is changed: a replay reads a decision log and decides again (`replays.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from heliograph.dashboards.live.figures.whatif import rates
from heliograph.dashboards.live.pages import numbers, tables
from heliograph.dashboards.live.pages.address import refused
from heliograph.dashboards.live.pages.elements import html
from heliograph.dashboards.live.pages.head import head
from heliograph.dashboards.live.pages.parts import card, cell, chart, entry, picker, table
from heliograph.dashboards.live.replays import Question, Replays
from heliograph.dashboards.live.store import View
from heliograph.engine import catalogue
from heliograph.monitor.lab.whatif import OPTIONS, Side, WhatIf, fault, ranges

__all__ = ["CHOICES", "PLACES", "Choice", "choice", "layout", "parts"]

PLACES: Mapping[str, str] = {
    "wi-verdict": "children",
    "wi-rates": "figure",
    "wi-rates-twin": "children",
    "wi-sides": "children",
    "wi-log": "options",
}
"""Ids of the parts that change with the view, and the property that holds them."""

CHOICES = ("wi-log", *(f"wi-{name}" for name in OPTIONS))
"""Ids of the selections, in the address without the prefix."""

_NONE = (
    "No decision log is in reach. The option decision_log=DIR of an instance writes one for each stream it sends; "
    "heliograph live --decisions DIR shows them here."
)
_HONEST = (
    "A replay decides again about the recorded inputs. With another rate the network would have answered differently: "
    "other losses, other lags, other requests. Read it as the judgement of these options, not as a forecast."
)


@dataclass(frozen=True, slots=True)
class Choice:
    """The selections of one reader."""

    log: str = ""
    """Name of the file of a log; empty: there is none."""
    options: tuple[tuple[str, str], ...] = ()
    """Names and values of the options that differ from the recorded ones; their values are possible."""
    faults: tuple[str, ...] = ()
    """The errors in other values."""


def choice(values: Mapping[str, Sequence[str]], replays: Replays) -> tuple[Choice, list[str]]:
    """Return the possible part of a selection, and messages about the rest.

    Args:
        values: Values by name: log, which may also be a stream, and the options, from an address.
        replays: The logs.
    """
    said: list[str] = []
    asked = str((values.get("log") or [""])[0])
    log = replays.find(asked) if asked else next(iter(replays.logs().values()), None)
    if log is None and asked:
        said.append(refused("Log", asked, "is not in the directories of the server, and no log is of such a stream"))
        log = next(iter(replays.logs().values()), None)
    given = {name: str((values.get(name) or [""])[0]).strip() for name in OPTIONS}
    faults = {name: fault(name, value) for name, value in given.items() if value}
    options = tuple((name, given[name]) for name, wrong in faults.items() if not wrong)
    wrongs = tuple(wrong for wrong in faults.values() if wrong)
    return Choice(log.name if log else "", options, wrongs), said


def _answer(chosen: Choice, replays: Replays) -> WhatIf | str | None:
    """Return the replay, or why there is none; None: it is being made."""
    if chosen.faults:
        return "; ".join(chosen.faults)
    if not chosen.log:
        return _NONE
    return replays.answer(Question(chosen.log, chosen.options))


def parts(replays: Replays, chosen: Choice) -> dict[str, Any]:
    """Return the content by part (see PLACES)."""
    answer = _answer(chosen, replays)
    found = answer if isinstance(answer, WhatIf) else None
    return {
        "wi-verdict": _verdict(chosen, answer),
        "wi-rates": rates(found),
        "wi-rates-twin": _twin(found),
        "wi-sides": _sides(found),
        "wi-log": [{"label": log.title, "value": log.name} for log in replays.logs().values()],
    }


def layout(
    view: View, state: Mapping[str, Any], chosen: Choice, replays: Replays, said: Sequence[str] = ()
) -> html.Main:
    """Return the whole page.

    Args:
        view: The view to show.
        state: Its stamp.
        chosen: The selection of the reader.
        replays: The logs.
        said: Messages about the address of the page.
    """
    found = parts(replays, chosen)
    given = dict(chosen.options)
    return html.Main(
        [
            *head("/whatif", "wi-", state, view, [*said, *(f"{wrong}." for wrong in chosen.faults)]),
            html.Div([picker("wi-log", "Decision log", found["wi-log"], chosen.log, "none")], className="controls"),
            html.Div(found["wi-verdict"], id="wi-verdict"),
            card(
                "Options",
                "those that are empty stay as recorded; Enter replays",
                html.Div([_field(name, given.get(name, "")) for name in OPTIONS], className="controls"),
                html.P(_HONEST, className="more"),
            ),
            chart("wi-rates", "Rate", "solid: as recorded; dashed: with these options; a gap: no limit", found),
            card("Both sides", "over the time of the log", html.Div(found["wi-sides"], id="wi-sides")),
        ]
    )


def _field(name: str, value: str) -> html.Div:
    option = catalogue.options()[name]
    if option.choices:
        kinds = [{"label": kind, "value": kind} for kind in option.choices]
        return picker(f"wi-{name}", name, kinds, value, "as recorded")
    return entry(f"wi-{name}", name, ranges(name), value=value)


def _verdict(chosen: Choice, answer: WhatIf | str | None) -> html.Section:
    """The result in words."""
    if answer is None:
        return html.Section([html.H1("The log is being replayed")], className="verdict idle")
    if isinstance(answer, str):
        tone = "watch" if chosen.log else "idle"
        return html.Section(
            [html.H1("Nothing was replayed"), html.P(f"{answer}.".replace("..", "."))], className=f"verdict {tone}"
        )
    more = [f"{answer.intervals:,} control intervals of {answer.instance}, stream {answer.stream}"]
    if answer.is_damaged:
        more.append("The log is damaged: what follows its last complete record is missing here.")
    first = answer.first
    if first is None:
        words = ", ".join(f"{name}={value}" for name, value in chosen.options) or "the recorded options"
        return _section("good", f"With {words} every decision is the same", more)
    if not chosen.options:
        return _section("bad", f"{answer.differing:,} decisions do not come out again as recorded", more)
    more += [
        f"First after {numbers.seconds(first.seconds)}. Recorded: {first.recorded or 'no decision'}",
        f"With these options: {first.made or 'no decision'}",
    ]
    return _section("watch", f"{answer.differing:,} decisions differ", more)


def _section(tone: str, headline: str, more: Sequence[str]) -> html.Section:
    return html.Section([html.H1(headline), html.Ul([html.Li(text) for text in more])], className=f"verdict {tone}")


def _twin(found: WhatIf | None) -> html.Table | html.P:
    if found is None:
        return html.P("Nothing is drawn.", className="nothing")
    rows = [
        (name, tuple(_rate(value) for value in (side.steps[-1].rate if side.steps else None, side.lowest_rate)))
        for name, side in (("decided", found.recorded), ("with these options", found.made))
    ]
    return tables.twin("Rate", ("last", "lowest"), rows)


def _rate(value: float | None) -> str:
    if value is None:
        return numbers.NONE
    return f"{numbers.size(value)}/s" if value else "no limit"


_FIGURES: Mapping[str, Callable[[Side], str]] = {
    "Mean rate": lambda side: _rate(side.mean_rate),
    "Lowest rate": lambda side: _rate(side.lowest_rate),
    "Highest rate": lambda side: _rate(side.highest_rate),
    "Time without a limit": lambda side: numbers.seconds(side.unlimited_s),
    "Rate lowered": lambda side: f"{side.lowered:,} times",
    "Rate raised": lambda side: f"{side.raised:,} times",
    "Decisions about receivers": lambda side: f"{side.actions:,}",
    "Receivers restricted, total": lambda side: numbers.seconds(side.restricted_s),
    "NAK storms": lambda side: f"{side.storms:,}",
    "All requests cut off": lambda side: numbers.seconds(side.cut_off_s),
}


def _sides(found: WhatIf | None) -> html.Div:
    if found is None:
        return html.Div(html.P("Nothing was replayed.", className="nothing"))
    heads = (("", ""), ("Recorded", "n"), ("With these options", "n"), ("", ""))
    rows = []
    for name, shown in _FIGURES.items():
        before, after = shown(found.recorded), shown(found.made)
        rows.append(
            html.Tr(
                [cell(name), cell(before, "n"), cell(after, "n"), cell("" if before == after else "differs", "muted")]
            )
        )
    return html.Div(table(heads, rows, "Recorded and replayed decisions"))
