"""Merged rows as text: a table for people, JSON lines for programs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

import pyarrow as pa

from heliograph.engine.catalogue.outside import json_text
from heliograph.monitor.history.report_svg import duration
from heliograph.monitor.history.schema import LABELS, PERCENTILES
from heliograph.monitor.text import printable

__all__ = ["json_lines", "text_table"]


def json_lines(table: pa.Table) -> Iterator[str]:
    """One object per row, without the histogram; times in ISO 8601, latencies in ns."""
    for row in table.drop_columns(["h"]).to_pylist():
        yield json_text(
            {name: value.isoformat() if isinstance(value, datetime) else value for name, value in row.items()}
        )


def text_table(table: pa.Table, *, by: Sequence[str] = LABELS, hourly: bool) -> Iterator[str]:
    """Aligned columns: the labels in use, number of values, percentiles, max and jitter."""
    rows = table.drop_columns(["h"]).to_pylist()
    labels = [label for label in by if any(row[label] for row in rows)]
    heads = [*(["hour"] if hourly else []), *labels, "values"]
    left = len(heads) - 1
    heads += [name.replace("_", ".") for name in PERCENTILES] + ["max", "jitter"]
    lines = [heads]
    for row in rows:
        cells = [f"{row['ts']:%Y-%m-%d %H:%M}"] if hourly else []
        cells += [printable(row[label] or "-") for label in labels]
        cells.append(f"{row['n']:,}")
        cells += [duration(row[name]) for name in (*PERCENTILES, "max")]
        cells.append(duration(row["p99_9"] - row["p50"]))
        lines.append(cells)
    widths = [max(len(line[column]) for line in lines) for column in range(len(heads))]
    for line in lines:
        padded = (
            cell.ljust(width) if column < left else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        )
        yield "  ".join(padded).rstrip()
