"""Line charts as inline SVG: pure functions from figures to markup, for the pages that are one file.

Colours come from the page's style sheet (classes c0 to c7, `style`), so that one file serves light and
dark. Points are given in the units of the axes; a logarithmic axis is the caller's logarithm.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from heliograph.engine.catalogue.outside import html_text

__all__ = ["COLOURS", "Axis", "Frame", "Line", "Mark", "chart", "nice_axis", "outlined", "thinned"]

COLOURS = 8


@dataclass(frozen=True, slots=True)
class Frame:
    """Size of a chart and of the margins around what is drawn."""

    width: int = 920
    height: int = 380
    left: int = 72
    right: int = 32
    top: int = 14
    bottom: int = 44


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a chart."""

    name: str
    xs: Sequence[float]
    ys: Sequence[float]
    """In the units of its axis; NaN breaks the line."""
    style: str = ""
    """thin, or limit for a dashed one."""
    band: Sequence[tuple[float, float]] = ()
    """Corners of an area behind it."""


@dataclass(frozen=True, slots=True)
class Axis:
    """The range an axis shows, and what is written at it."""

    low: float
    high: float
    ticks: Sequence[tuple[float, str]]
    title: str = ""
    """Written at its end."""

    def share(self, value: float) -> float:
        """Where a value lies, 0 to 1."""
        return (value - self.low) / (self.high - self.low)


@dataclass(frozen=True, slots=True)
class Mark:
    """A moment or a stretch of the x axis. kind: a class of the style sheet."""

    at: float
    end: float
    kind: str
    text: str
    sign: str = ""
    """triangle or dot: drawn as a line with this sign."""


_Floats = Sequence[float] | npt.NDArray[np.float64]


def thinned(xs: _Floats, ys: _Floats, most: int) -> tuple[list[float], list[float]]:
    """At most `most` of the points, each the greatest of the stretch it stands for."""
    values = np.asarray(ys, np.float64)
    stride = max(1, math.ceil(len(values) / most))
    if stride == 1:
        return [float(x) for x in xs], values.tolist()
    kept = []
    for start in range(0, len(values), stride):
        part = values[start : start + stride]
        kept.append(start if np.all(np.isnan(part)) else start + int(np.nanargmax(part)))
    return [float(xs[at]) for at in kept], values[kept].tolist()


def outlined(xs: _Floats, ys: _Floats, most: int) -> tuple[list[float], list[float]]:
    """At most `most` of the points, at least 2: the least and the greatest of each stretch, so that no peak vanishes.

    A stretch without a value keeps one NaN, which breaks the line.
    """
    values = np.asarray(ys, np.float64)
    if len(values) <= most:
        return [float(x) for x in xs], values.tolist()
    stride = math.ceil(len(values) / max(1, most // 2))
    kept: list[int] = []
    for start in range(0, len(values), stride):
        part = values[start : start + stride]
        if np.all(np.isnan(part)):
            kept.append(start)
        else:
            kept += sorted({start + int(np.nanargmin(part)), start + int(np.nanargmax(part))})
    return [float(xs[at]) for at in kept], values[kept].tolist()


def nice_axis(top: float, unit: str = "") -> Axis:
    """An axis from 0 to at least `top`, with about four round steps, written short: 20 k."""
    if top <= 0:
        return Axis(0.0, 1.0, [(0.0, "0"), (1.0, f"1{unit}")])
    step = 10.0 ** math.floor(math.log10(top / 4))
    step *= next(factor for factor in (1, 2, 2.5, 5, 10) if top / (step * factor) <= 5)
    high = step * math.ceil(top / step * 0.999999)
    size, letter = next(((s, c) for s, c in ((1e9, " G"), (1e6, " M"), (1e3, " k")) if high >= s), (1.0, ""))
    steps = [index * step for index in range(round(high / step) + 1)]
    return Axis(0.0, high, [(value, f"{value / size:g}{letter if value else ''}{unit}") for value in steps])


def chart(
    lines: Sequence[Line],
    x: Axis,
    y: Axis,
    label: str,
    *,
    step: bool = False,
    marks: Sequence[Mark] = (),
    frame: Frame = Frame(),
    data: str | None = None,
) -> str:
    """A chart.

    Args:
        lines: What to draw, the first on top; its colour is that of its place.
        x: The axis along the bottom.
        y: The axis at the left.
        label: What it shows, for those who cannot see it.
        step: Each value holds from the point before it up to its own (a spectrum).
        marks: Moments and stretches, behind the lines.
        frame: Size and margins.
        data: What a script of the page finds in `data-chart`; it also finds a line of class `here`.
    """
    right, foot = frame.width - frame.right, frame.height - frame.bottom

    def x_of(value: float) -> float:
        return frame.left + x.share(value) * (right - frame.left)

    def y_of(value: float) -> float:
        return foot - y.share(value) * (foot - frame.top)

    found = "" if data is None else f" data-chart='{html_text(data, most=None)}'"
    parts = [f'<svg viewBox="0 0 {frame.width} {frame.height}" role="img" aria-label="{html_text(label)}"{found}>']
    for mark in marks:
        parts.append(_mark(mark, max(frame.left, x_of(mark.at)), min(right, x_of(mark.end)), frame.top, foot))
    for value, text in y.ticks:
        at = y_of(value)
        parts.append(f'<line class="grid" x1="{frame.left}" x2="{right}" y1="{at:.1f}" y2="{at:.1f}"/>')
        parts.append(
            f'<text class="tick" x="{frame.left - 8}" y="{at + 4:.1f}" text-anchor="end">{html_text(text)}</text>'
        )
    for value, text in x.ticks:
        at = x_of(value)
        parts.append(f'<line class="grid" x1="{at:.1f}" x2="{at:.1f}" y1="{frame.top}" y2="{foot}"/>')
        parts.append(f'<text class="tick" x="{at:.1f}" y="{foot + 20}" text-anchor="middle">{html_text(text)}</text>')
    if y.title:
        parts.append(f'<text class="unit" x="{frame.left}" y="{frame.top - 8}">{html_text(y.title)}</text>')
    if x.title:
        at = frame.height - 6
        parts.append(f'<text class="unit" x="{right}" y="{at}" text-anchor="end">{html_text(x.title)}</text>')
    for index, line in enumerate(lines):
        if line.band:
            corners = " ".join(f"{x_of(at):.1f},{y_of(value):.1f}" for at, value in line.band)
            parts.append(f'<polygon class="band c{index % COLOURS}" points="{corners}"/>')
    for index, line in reversed(list(enumerate(lines))):
        points = [(x_of(at), y_of(float(value))) for at, value in zip(line.xs, line.ys, strict=True)]
        kind = f"{line.style} c{index % COLOURS}".strip()
        parts.append(_path(points, line.name, kind, frame.left if step else None))
    if data is not None:
        parts.append(f'<line class="here" x1="0" x2="0" y1="{frame.top}" y2="{foot}" visibility="hidden"/>')
    parts.append("</svg>")
    return "".join(parts)


def _mark(mark: Mark, start: float, end: float, top: int, foot: int) -> str:
    if mark.sign:
        sign = f'<circle cx="{start:.1f}" cy="{foot}" r="3.5"/>'
        if mark.sign == "triangle":
            sign = f'<path d="M{start - 4:.1f} {top - 6}h8l-4 7z"/>'
        return (
            f'<g class="mark {mark.kind}"><line x1="{start:.1f}" x2="{start:.1f}" y1="{top}" y2="{foot}"/>{sign}'
            f"<title>{html_text(mark.text)}</title></g>"
        )
    width = max(1.0, end - start)
    return (
        f'<rect class="mark {mark.kind}" x="{start:.1f}" y="{top}" width="{width:.1f}" height="{foot - top}">'
        f"<title>{html_text(mark.text)}</title></rect>"
    )


def _path(points: Sequence[tuple[float, float]], name: str, kind: str, step_from: int | None) -> str:
    """A line through the points. In a spectrum each value holds from the percentile before it up to its own."""
    title = f"<title>{html_text(name)}</title>"
    if len(points) == 1 and step_from is None:
        x0, y0 = points[0]
        return f'<circle class="dot {kind}" cx="{x0:.1f}" cy="{y0:.1f}" r="4">{title}</circle>'
    moves = []
    is_on = False
    for x, y in points:
        if math.isnan(y):
            is_on = False
        elif not is_on:
            moves.append(f"M{step_from if step_from is not None else round(x, 1)} {y:.1f}")
            if step_from is not None:
                moves.append(f"V{y:.1f}H{x:.1f}")
            is_on = True
        else:
            moves.append(f"V{y:.1f}H{x:.1f}" if step_from is not None else f"L{x:.1f} {y:.1f}")
    return f'<path class="line {kind}" d="{"".join(moves)}">{title}</path>'
