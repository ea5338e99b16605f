"""Charts of the report: latencies on a logarithmic axis, rates, stages and coverage, as inline SVG."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from heliograph.engine.catalogue.outside import html_text
from heliograph.monitor.page.svg import COLOURS, Axis, Frame, Line, Mark, chart, nice_axis

__all__ = ["STYLE", "Bar", "Track", "bars", "duration", "rate_chart", "spectrum_chart", "time_chart", "tracks"]

STYLE = """
.mark line { stroke: var(--soft); stroke-width: 1; stroke-dasharray: 2 3; opacity: .8; }
.mark path, .mark circle { fill: var(--soft); }
.mark.build line { stroke: var(--accent); } .mark.build path { fill: var(--accent); }
.seg { fill: currentColor; } .track { fill: var(--rule); } .gap { fill: var(--accent); }
.name { fill: var(--ink); font-size: 12px; }
"""
_RATES = Frame(height=180)
_ROW = 24
_NAMES = 300
"""Width of the names beside bars and tracks."""


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
    last = max(1.0, *(x for line in lines for x in line.xs[-1:]))
    ticks = [(0.0, "0 %"), (-math.log10(0.5), "50 %")]
    ticks += [(float(nines), f"{_nines(nines)} %") for nines in range(1, math.floor(last) + 1)]
    return _latencies(lines, Axis(0.0, last, ticks), "Latency by percentile", step=True)


def time_chart(lines: Sequence[Line], x: Axis, label: str, marks: Sequence[Mark] = ()) -> str:
    """A latency over time."""
    return _latencies(lines, x, label, marks=marks)


def rate_chart(lines: Sequence[Line], x: Axis, label: str, marks: Sequence[Mark] = ()) -> str:
    """Values per second over time."""
    top = max((y for line in lines for y in line.ys if not math.isnan(y)), default=0.0)
    return chart(lines, x, nice_axis(top, "/s"), label, marks=marks, frame=_RATES)


def _nines(count: int) -> str:
    return "90" if count == 1 else f"99{'.' if count > 2 else ''}{'9' * (count - 2)}"


def _log(ns: float) -> float:
    return math.log10(max(1.0, float(ns)))  # NaN stays NaN


def _latencies(lines: Sequence[Line], x: Axis, label: str, *, step: bool = False, marks: Sequence[Mark] = ()) -> str:
    """Lines whose ys are durations in ns."""
    logs = [
        replace(line, ys=[math.nan if math.isnan(y) else _log(y) for y in line.ys],
                band=[(at, _log(y)) for at, y in line.band])
        for line in lines
    ]  # fmt: skip
    values = [y for line in logs for y in (*line.ys, *(y for _, y in line.band)) if not math.isnan(y)]
    low = math.floor(min(values))
    high = max(low + 1, math.ceil(max(values)))
    ticks = [(float(power), _power(power)) for power in range(low, high + 1)]
    return chart(logs, x, Axis(low, high, ticks), label, step=step, marks=marks)


def _power(power: int) -> str:
    scale, unit = ((0, "ns"), (3, "µs"), (6, "ms"), (9, "s"))[min(3, power // 3)]
    return f"{10 ** (power - scale):,} {unit}"


@dataclass(frozen=True, slots=True)
class Bar:
    """A bar of parts that add up."""

    name: str
    parts: Sequence[tuple[str, float]]
    """Name and value, at least 0; the same names in all bars."""
    end: str
    """Written behind it."""


def bars(found: Sequence[Bar], label: str) -> str:
    """Horizontal bars on one scale; the colour of a part is that of its place."""
    width, tail = 920, 90
    longest = max((sum(value for _, value in bar.parts) for bar in found), default=0.0) or 1.0
    parts = [_opened(width, len(found), label)]
    for row, bar in enumerate(found):
        at, top = float(_NAMES), row * _ROW + 4
        parts.append(_named(bar.name, top))
        for index, (name, value) in enumerate(bar.parts):
            length = value / longest * (width - _NAMES - tail)
            parts.append(
                f'<rect class="seg c{index % COLOURS}" x="{at:.1f}" y="{top}" width="{length:.1f}" height="{_ROW - 8}">'
                f"<title>{html_text(name)}: {duration(value)}</title></rect>"
            )
            at += length
        parts.append(f'<text class="tick" x="{at + 6:.1f}" y="{top + 13}">{html_text(bar.end)}</text>')
    return "".join([*parts, "</svg>"])


@dataclass(frozen=True, slots=True)
class Track:
    """A stretch of time with gaps."""

    name: str
    gaps: Sequence[tuple[float, float, str]]
    """From and to, as parts of the whole time, and the text of the gap."""


def tracks(found: Sequence[Track], label: str) -> str:
    """One line of time per series; its gaps stand out."""
    width = 920
    whole = width - _NAMES - 8
    parts = [_opened(width, len(found), label)]
    for row, track in enumerate(found):
        top = row * _ROW + 4
        parts.append(_named(track.name, top))
        parts.append(f'<rect class="track" x="{_NAMES}" y="{top}" width="{whole}" height="{_ROW - 8}"/>')
        for begin, end, text in track.gaps:
            length = max(1.0, (end - begin) * whole)
            parts.append(
                f'<rect class="gap" x="{_NAMES + begin * whole:.1f}" y="{top}" width="{length:.1f}" '
                f'height="{_ROW - 8}"><title>{html_text(text)}</title></rect>'
            )
    return "".join([*parts, "</svg>"])


def _opened(width: int, rows: int, label: str) -> str:
    return f'<svg viewBox="0 0 {width} {rows * _ROW + 4}" role="img" aria-label="{html_text(label)}">'


def _named(name: str, top: int) -> str:
    shown = name if len(name) <= 44 else f"{name[:43]}…"
    title = f"<title>{html_text(name)}</title>"
    return f'<text class="name" x="0" y="{top + 13}">{html_text(shown)}{title}</text>'
