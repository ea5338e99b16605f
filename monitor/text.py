"""Formats numbers and names for a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from heliograph.engine.catalogue.outside import outside

__all__ = ["bytes_text", "count_text", "duration_text", "percent_text", "printable", "rate_text", "table"]


def printable(text: str) -> str:
    """Make a text from outside safe for a terminal: it cannot move the cursor, change colours or hide."""
    return outside(text)


def _scaled(value: float, steps: Sequence[tuple[float, str]]) -> str:
    for size, unit in steps:
        if abs(value) >= size:
            scaled = value / size
            digits = 0 if abs(scaled) >= 100 else 1 if abs(scaled) >= 10 else 2
            return f"{scaled:.{digits}f} {unit}"
    return "0"


def count_text(value: int | None) -> str:
    """Format a count in full; a dash for None."""
    return "-" if value is None else str(value)


def rate_text(value: float | None) -> str:
    """Format a rate per second: 0, 0.25, 12, 9 870, 1.23 M; a dash for None."""
    if value is None:
        return "-"
    if abs(value) >= 1e5:
        return _scaled(value, ((1e9, "G"), (1e6, "M"), (1e3, "k")))
    if abs(value) >= 10 or value == 0:
        return f"{value:.0f}"
    return f"{value:.1f}" if abs(value) >= 0.05 else f"{value:.2g}"


def bytes_text(value: float) -> str:
    """Format a size: 512 B, 1.50 KiB, 24.0 MiB."""
    return _scaled(value, ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB"), (1, "B")))


def duration_text(ns: float | None) -> str:
    """Format a duration: 850 ns, 18.1 µs, 4.20 ms, 1.50 s; a dash for None."""
    return "-" if ns is None else _scaled(ns, ((1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1, "ns")))


def percent_text(ratio: float | None) -> str:
    """Format a share: 0 %, 0.05 %, 2.1 %, 97 %; a dash for None."""
    if ratio is None:
        return "-"
    percent = ratio * 100
    digits = 0 if percent == 0 or percent >= 9.95 else 1 if percent >= 0.095 else 2
    return f"{percent:.{digits}f} %"


def table(head: Sequence[str], rows: Sequence[Sequence[str]], left: int = 1, width: int | None = None) -> list[str]:
    """Return the lines of a table.

    Args:
        head: Titles of the columns.
        rows: Cells; made printable here.
        left: The first `left` columns, and the last, are left-aligned; the others, numbers, are right-aligned.
        width: Lines are cut to this width.
    """
    lines = [list(head), *([printable(cell) for cell in row] for row in rows)]
    widths = [max(len(line[index]) for line in lines) for index in range(len(head))]
    last = len(head) - 1
    out = []
    for line in lines:
        cells = (
            cell.ljust(widths[index]) if index < left or index == last else cell.rjust(widths[index])
            for index, cell in enumerate(line)
        )
        out.append("  ".join(cells).rstrip()[:width])
    return out
