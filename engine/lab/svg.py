"""A chart as inline SVG: curves over time, a band behind them, marks for moments.

Colours are classes of the page's style sheet, so that one file serves light and dark. A small script of the page shows
the values under the pointer; it finds them in the figure's ``data-`` attributes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from heliograph.engine.catalogue.outside import html_text, json_text

__all__ = ["COLOURS", "HEIGHT", "WIDTH", "Curve", "Mark", "chart", "scaled"]

COLOURS = 6
WIDTH, HEIGHT = 960, 270
LEFT, RIGHT, TOP, BOTTOM = 66, 14, 20, 42
_POINTS = 800
"""Most points of a curve; more are joined, each point keeping the extreme of what it stands for."""


@dataclass(frozen=True, slots=True)
class Curve:
    """A curve. style: line, thin or limit. low and high: the band around it, empty for none."""

    name: str
    style: str
    colour: int
    values: Sequence[float]
    low: Sequence[float]
    high: Sequence[float]


@dataclass(frozen=True, slots=True)
class Mark:
    """A moment. kind: plan (something on the network changes) or decision (the engine told something)."""

    at: float
    kind: str
    text: str


def scaled(value: float, unit: str) -> tuple[float, str]:
    """Divisor and unit that make a value of this size easy to read."""
    if unit.startswith(("B", "packets", "messages")):
        for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
            if value >= size:
                return size, f"{letter}{unit}" if unit.startswith("B") else f"{_WORDS[letter]} {unit}"
    return 1.0, unit


_WORDS = {"G": "billion", "M": "million", "k": "thousand"}


def _nice(top: float) -> tuple[float, float]:
    """The axis' end and the distance between its lines."""
    if top <= 0:
        return 1.0, 0.5
    step = 10.0 ** math.floor(math.log10(top / 4))
    for factor in (1, 2, 2.5, 5, 10):
        if top / (step * factor) <= 5:
            step *= factor
            break
    return step * math.ceil(top / step * 0.999999), step


def _thinned(values: Sequence[float], interval: float) -> tuple[list[float], list[float]]:
    """Moments and values of at most `_POINTS` points, the greatest of each stretch kept."""
    stride = max(1, math.ceil(len(values) / _POINTS))
    times = [(min(i + stride, len(values))) * interval for i in range(0, len(values), stride)]
    return times, [max(values[i : i + stride]) for i in range(0, len(values), stride)]


def chart(
    title: str, unit: str, curves: Sequence[Curve], marks: Sequence[Mark], interval: float, duration: float
) -> str:
    """One chart.

    Args:
        title: what it shows, for those who cannot see it.
        unit: of its values.
        curves: each with a value for the end of each interval.
        marks: moments, as vertical lines.
        interval: seconds.
        duration: seconds, the end of the time axis.
    """
    highest = max((max(max(one.values, default=0), max(one.high, default=0)) for one in curves), default=0.0)
    divisor, shown_unit = scaled(highest, unit)
    top, step = _nice(highest / divisor)

    def x_of(seconds: float) -> float:
        return LEFT + seconds / duration * (WIDTH - LEFT - RIGHT)

    def y_of(value: float) -> float:
        return HEIGHT - BOTTOM - min(1.0, value / divisor / top) * (HEIGHT - TOP - BOTTOM)

    parts = _axes(x_of, top, step, shown_unit, duration)
    parts += [_band(one, interval, x_of, y_of) for one in curves if one.low]
    parts += [_mark(one, x_of(one.at)) for one in marks if 0 <= one.at <= duration]
    parts += [_line(one, interval, x_of, y_of) for one in reversed(curves)]
    parts.append(f'<line class="here" x1="0" x2="0" y1="{TOP}" y2="{HEIGHT - BOTTOM}" visibility="hidden"/>')
    data = {
        "interval": interval,
        "duration": duration,
        "unit": shown_unit,
        "curves": [[one.name, [round(value / divisor, 4) for value in _compact(one.values)]] for one in curves],
        "stride": max(1, math.ceil(max((len(one.values) for one in curves), default=0) / _POINTS)),
    }
    return (
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{html_text(title)}" '
        f"data-chart='{html_text(json_text(data, separators=(',', ':')), most=None)}'>" + "".join(parts) + "</svg>"
    )


def _compact(values: Sequence[float]) -> list[float]:
    return _thinned(values, 1.0)[1]


def _axes(x_of: Callable[[float], float], top: float, step: float, unit: str, duration: float) -> list[str]:
    parts = []
    for i in range(round(top / step) + 1):
        y = HEIGHT - BOTTOM - i * step / top * (HEIGHT - TOP - BOTTOM)
        parts.append(f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts.append(f'<text class="tick" x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{i * step:g}</text>')
    end, apart = _nice(duration)
    for i in range(round(end / apart) + 1):
        if i * apart <= duration * 1.0001:
            x = x_of(i * apart)
            parts.append(
                f'<text class="tick" x="{x:.1f}" y="{HEIGHT - BOTTOM + 17}" text-anchor="middle">{i * apart:g}</text>'
            )
    parts.append(f'<text class="unit" x="{LEFT}" y="{TOP - 8}">{html_text(unit)}</text>')
    parts.append(f'<text class="unit" x="{WIDTH - RIGHT}" y="{HEIGHT - 6}" text-anchor="end">seconds</text>')
    return parts


def _line(curve: Curve, interval: float, x_of: Callable[[float], float], y_of: Callable[[float], float]) -> str:
    times, values = _thinned(curve.values, interval)
    points = " ".join(f"{x_of(at):.1f},{y_of(value):.1f}" for at, value in zip(times, values, strict=True))
    title = f"<title>{html_text(curve.name)}</title>"
    return f'<polyline class="{curve.style} c{curve.colour}" points="{points}">{title}</polyline>'


def _band(curve: Curve, interval: float, x_of: Callable[[float], float], y_of: Callable[[float], float]) -> str:
    times, low = _thinned([-value for value in curve.low], interval)
    high = _thinned(curve.high, interval)[1]
    edge = [f"{x_of(at):.1f},{y_of(value):.1f}" for at, value in zip(times, high, strict=True)]
    edge += [f"{x_of(at):.1f},{y_of(-value):.1f}" for at, value in reversed(list(zip(times, low, strict=True)))]
    return f'<polygon class="band f{curve.colour}" points="{" ".join(edge)}"/>'


def _mark(mark: Mark, x: float) -> str:
    foot = HEIGHT - BOTTOM
    sign = (
        f'<path d="M{x - 4:.1f} {TOP - 6}h8l-4 7z"/>'
        if mark.kind == "decision"
        else f'<circle cx="{x:.1f}" cy="{foot}" r="3.5"/>'
    )
    return (
        f'<g class="mark {mark.kind}"><line x1="{x:.1f}" x2="{x:.1f}" y1="{TOP}" y2="{foot}"/>{sign}'
        f"<title>{mark.at:.2f} s: {html_text(mark.text)}</title></g>"
    )
