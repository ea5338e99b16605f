"""Charts of the report: latencies on a logarithmic axis, by percentile or over time."""

from __future__ import annotations

import math
from collections.abc import Sequence

from heliograph.monitor.page.svg import Axis, Line, chart

__all__ = ["duration", "spectrum_chart", "time_chart"]


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
    """Lines whose ys are durations in ns."""
    logs = [Line(line.name, line.xs, [math.log10(max(1.0, float(y))) for y in line.ys]) for line in lines]
    values = [y for line in logs for y in line.ys]
    low = math.floor(min(values))
    high = max(low + 1, math.ceil(max(values)))
    ticks = [(float(power), _power(power)) for power in range(low, high + 1)]
    return chart(logs, Axis(*x_range, x_ticks), Axis(low, high, ticks), label, step=step)


def _power(power: int) -> str:
    scale, unit = ((0, "ns"), (3, "µs"), (6, "ms"), (9, "s"))[min(3, power // 3)]
    return f"{10 ** (power - scale):,} {unit}"
