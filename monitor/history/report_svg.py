"""Charts of the report as inline SVG: pure functions from figures to markup.

Colours come from the page's style sheet (classes c0 to c7), so that one file serves light and dark.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

__all__ = ["COLOURS", "Line", "duration", "spectrum_chart", "time_chart"]

COLOURS = 8

_WIDTH, _HEIGHT = 920, 380
_LEFT, _RIGHT, _TOP, _BOTTOM = 72, 32, 14, 44


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a chart."""

    name: str
    xs: Sequence[float]
    ys: Sequence[float]
    """Durations, ns."""


def duration(ns: float) -> str:
    """A duration as people read it, three digits: ``18.4 µs``."""
    value, unit = float(ns), "ns"
    for larger in ("µs", "ms", "s"):
        # 999.6 would be shown as 1000
        if value < 999.5:
            break
        value, unit = value / 1000, larger
    digits = 0 if unit == "ns" else max(0, 2 - math.floor(math.log10(max(value, 1))))
    return f"{value:,.{digits}f} {unit}"


def spectrum_chart(lines: Sequence[Line]) -> str:
    """Percentile spectrum: x is log10(1 / (1 - q)), y the latency on a log scale."""
    last = max(1.0, *(line.xs[-1] for line in lines))
    ticks = [(0.0, "0 %"), (-math.log10(0.5), "50 %")]
    ticks += [(float(nines), f"{_nines(nines)} %") for nines in range(1, math.floor(last) + 1)]
    return _chart(lines, (0.0, last), ticks, "Latency by percentile", step=True)


def time_chart(lines: Sequence[Line], ticks: Sequence[tuple[float, str]]) -> str:
    """A figure over time; x is hours since the first one."""
    last = max(1.0, *(line.xs[-1] for line in lines))
    return _chart(lines, (0.0, last), ticks, "99.9 % by hour", step=False)


def _nines(count: int) -> str:
    return "90" if count == 1 else f"99{'.' if count > 2 else ''}{'9' * (count - 2)}"


def _chart(
    lines: Sequence[Line],
    x_range: tuple[float, float],
    x_ticks: Sequence[tuple[float, str]],
    label: str,
    *,
    step: bool,
) -> str:
    values = [max(1.0, float(y)) for line in lines for y in line.ys]
    low = math.floor(math.log10(min(values)))
    high = max(low + 1, math.ceil(math.log10(max(values))))

    def x_of(value: float) -> float:
        share = (value - x_range[0]) / (x_range[1] - x_range[0])
        return _LEFT + share * (_WIDTH - _LEFT - _RIGHT)

    def y_of(ns: float) -> float:
        share = (math.log10(max(1.0, ns)) - low) / (high - low)
        return _HEIGHT - _BOTTOM - share * (_HEIGHT - _TOP - _BOTTOM)

    parts = [f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{escape(label)}">']
    for power in range(low, high + 1):
        y = y_of(10.0**power)
        parts.append(f'<line class="grid" x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts.append(f'<text class="tick" x="{_LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{_power(power)}</text>')
    for at, text in x_ticks:
        x = x_of(at)
        parts.append(f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="{_TOP}" y2="{_HEIGHT - _BOTTOM}"/>')
        parts.append(
            f'<text class="tick" x="{x:.1f}" y="{_HEIGHT - _BOTTOM + 20}" text-anchor="middle">{escape(text)}</text>'
        )
    for index, line in reversed(list(enumerate(lines))):
        points = [(x_of(x), y_of(float(y))) for x, y in zip(line.xs, line.ys, strict=True)]
        parts.append(_path(points, line.name, index % COLOURS, step=step))
    parts.append("</svg>")
    return "".join(parts)


def _power(power: int) -> str:
    scale, unit = ((0, "ns"), (3, "µs"), (6, "ms"), (9, "s"))[min(3, power // 3)]
    return f"{10 ** (power - scale):,} {unit}"


def _path(points: Sequence[tuple[float, float]], name: str, colour: int, *, step: bool) -> str:
    """A line through the points. In a spectrum each value holds from the percentile before it up to its own."""
    x0, y0 = points[0]
    moves = [f"M{_LEFT if step else round(x0, 1)} {y0:.1f}"]
    for x, y in points:
        moves.append(f"V{y:.1f}H{x:.1f}" if step else f"L{x:.1f} {y:.1f}")
    title = f"<title>{escape(name)}</title>"
    if len(points) == 1 and not step:
        return f'<circle class="dot c{colour}" cx="{x0:.1f}" cy="{y0:.1f}" r="4">{title}</circle>'
    return f'<path class="line c{colour}" d="{"".join(moves)}">{title}</path>'
