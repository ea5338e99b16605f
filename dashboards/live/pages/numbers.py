"""Numbers as text: short, with a unit, and of constant width."""

from __future__ import annotations

from datetime import datetime

__all__ = ["NONE", "count", "latency", "moment", "rate", "ratio", "seconds", "size"]

_STEPS = ((1e9, "G"), (1e6, "M"), (1e4, "k"))
_SIZES = ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))
NONE = "–"


def count(value: float) -> str:
    """``0``, ``4,213``, ``38.1 k``, ``2.4 M``."""
    for step, letter in _STEPS:
        if value >= step:
            scaled = value / (1e3 if letter == "k" else step)
            return f"{scaled:.{1 if scaled < 100 else 0}f} {letter}"
    return f"{value:,.0f}"


def rate(value: float | None) -> str:
    """Format a number per second, with one decimal when it is small."""
    if value is None:
        return NONE
    return f"{value:.1f}" if 0 < value < 10 else count(value)


def ratio(value: float) -> str:
    """``0``, ``2.1 %``, ``97 %``."""
    if not value:
        return "0"
    percent = value * 100
    return f"{percent:.0f} %" if percent >= 10 else f"{percent:.{1 if percent >= 0.1 else 2}f} %"


def latency(value_ns: float | None) -> str:
    """``870 ns``, ``18.4 µs``, ``2.31 ms``, ``1.04 s``."""
    if value_ns is None:
        return NONE
    for step, unit in ((1e9, "s"), (1e6, "ms"), (1e3, "µs")):
        if value_ns >= step:
            scaled = value_ns / step
            return f"{scaled:.{2 if scaled < 10 else 1 if scaled < 100 else 0}f} {unit}"
    return f"{value_ns:.0f} ns"


def seconds(value: float | None) -> str:
    """Format an age: ``0``, ``0.8 s``, ``42 s``, ``7 min``, ``3 h``."""
    if value is None:
        return NONE
    if value < 0.05:
        return "0"
    if value < 100:
        return f"{value:.1f} s" if value < 10 else f"{value:.0f} s"
    if value < 6000:
        return f"{value / 60:.0f} min"
    return f"{value / 3600:.0f} h" if value < 3600 * 72 else f"{value / 86400:.0f} d"


def size(value: float) -> str:
    """Format bytes: ``0``, ``512 B``, ``24.1 MiB``."""
    for step, unit in _SIZES:
        if value >= step:
            return f"{value / step:.1f} {unit}"
    return f"{value:.0f} B" if value else "0"


def moment(time_ns: int, newest_ns: int) -> str:
    """Return a time as text, with the date when it is not that of the newest sample."""
    found, newest = (datetime.fromtimestamp(ns / 1e9) for ns in (time_ns, newest_ns))
    return found.strftime("%H:%M:%S" if found.date() == newest.date() else "%Y-%m-%d %H:%M:%S")
