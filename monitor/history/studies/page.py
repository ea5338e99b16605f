"""Studies as self-contained HTML pages: the verdict, and for each series its intervals as a figure and as a table."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from heliograph.engine.catalogue.outside import html_text
from heliograph.monitor.history.studies.days import Note, notes_text
from heliograph.monitor.page import shell

__all__ = ["Part", "Span", "intervals_chart", "study_page"]

_STYLE = """
.limit { stroke: var(--accent); stroke-dasharray: 5 4; } .zero { stroke: var(--soft); }
.whisker { stroke: currentColor; stroke-width: 2; } .at { fill: currentColor; }
.name { fill: var(--ink); font-size: 13px; }
"""
_ROW, _NAMES, _WIDTH, _TAIL = 28, 150, 920, 150


@dataclass(frozen=True, slots=True)
class Span:
    """One figure with its 95 % interval."""

    name: str
    value: float
    low: float
    """NaN: there is no interval."""
    high: float
    text: str
    """The figure as people read it."""


@dataclass(frozen=True, slots=True)
class Part:
    """One series of a study."""

    title: str
    sentences: Sequence[str]
    heads: Sequence[str]
    rows: Sequence[Sequence[str]]
    """Texts, not markup."""
    spans: Sequence[Span] = ()
    zero: float = 0.0
    """Where nothing differs."""
    margin: float = math.nan
    """Largest increase that does not matter; NaN: none."""


def study_page(
    title: str, about: Iterable[str], verdict: str, parts: Iterable[Part], notes: Sequence[Note] = ()
) -> str:
    """Return a study as a page.

    Args:
        title: Name of the study.
        about: What was compared, one line each.
        verdict: In words; empty when the study has none.
        parts: Its series.
        notes: Days that the study cannot use.
    """
    head = [shell.tiles([("Verdict", verdict, "")])] if verdict else []
    return shell.document(
        title,
        [*about, *notes_text(notes)],
        [*head, *map(_card, parts)],
        "Bars are 95 % intervals; a dot alone has none. The solid line is zero, or no change; "
        "the dashed one is the margin. Percentiles are of merged counts, never averages.",
        style=_STYLE,
    )


def _card(part: Part) -> str:
    said = "".join(f"<p class='sub'>{html_text(line)}</p>" for line in part.sentences if line)
    figure = intervals_chart(part.spans, part.zero, part.margin, part.title) if part.spans else ""
    rows = [[html_text(cell) for cell in row] for row in part.rows]
    last = len(part.heads) - 1
    table = shell.table(part.heads, rows, (0, ~last)) if rows else ""
    return f"<section class='card'><h2>{html_text(part.title)}</h2>{said}{figure}{table}</section>"


def intervals_chart(spans: Sequence[Span], zero: float, margin: float, label: str) -> str:
    """Return values with their intervals, one below the other, beside the line of no change, as SVG."""
    known = [x for span in spans for x in (span.value, span.low, span.high) if math.isfinite(x)]
    known += [x for x in (zero, margin) if math.isfinite(x)]
    low, high = min(known), max(known)
    room = (high - low or 1.0) * 0.05
    low, high = low - room, high + room
    foot = len(spans) * _ROW + 8

    def x_of(value: float) -> float:
        return _NAMES + (value - low) / (high - low) * (_WIDTH - _NAMES - _TAIL)

    parts = [
        f'<svg viewBox="0 0 {_WIDTH} {foot}" role="img" aria-label="{html_text(label)}">',
        _upright(x_of, zero, foot),
    ]
    if math.isfinite(margin):
        parts.append(_upright(x_of, margin, foot, "limit"))
    for row, span in enumerate(spans):
        y = row * _ROW + 18
        parts.append(f'<text class="name" x="0" y="{y + 4}">{html_text(span.name)}</text><g class="c{row % 8}">')
        if math.isfinite(span.low) and math.isfinite(span.high):
            left, right = x_of(span.low), x_of(span.high)
            parts.append(
                f'<path class="whisker" d="M{left:.1f} {y}H{right:.1f}M{left:.1f} {y - 5}v10M{right:.1f} {y - 5}v10"/>'
            )
        parts.append(
            f'<circle class="at" cx="{x_of(span.value):.1f}" cy="{y}" r="4.5"/></g>'
            f'<text class="tick" x="{_WIDTH - _TAIL + 12}" y="{y + 4}">{html_text(span.text)}</text>'
        )
    return "".join([*parts, "</svg>"])


def _upright(x_of: Callable[[float], float], value: float, foot: int, kind: str = "zero") -> str:
    return f'<line class="{kind}" x1="{x_of(value):.1f}" x2="{x_of(value):.1f}" y1="2" y2="{foot - 2}"/>'
