"""Merged rows as text: a table for people, one JSON object for programs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from heliograph.engine.catalogue.outside import json_text
from heliograph.monitor.history.report.charts import duration
from heliograph.monitor.history.schema import HISTORY, LABELS, PERCENTILES
from heliograph.monitor.text import printable

__all__ = ["series_json", "text_table"]

_TIMES = tuple(column.name for column in HISTORY if column.kind == "time")
_DURATIONS = frozenset({"lowest", "highest", "min", "max", "sum", *PERCENTILES})
"""Columns in ns whose names do not say so."""


def series_json(table: pa.Table) -> str:
    """Return merged rows as one JSON object, without the histograms; times (since 1970) and durations in ns."""
    plain = table.drop_columns(["h"])
    for name in _TIMES:
        plain = plain.set_column(plain.schema.get_field_index(name), name, plain[name].cast(pa.int64()))
    return json_text({"series": [dict(_in_ns(*item) for item in row.items()) for row in plain.to_pylist()]})


def _in_ns(name: str, value: Any) -> tuple[str, Any]:
    """Return a column with times and durations in ns, and a name that says so."""
    if name in _TIMES:
        return f"{name}_ns", value * 1_000
    if name.endswith("_ms"):
        return f"{name.removesuffix('_ms')}_ns", value * 1_000_000
    return (f"{name}_ns" if name in _DURATIONS else name), value


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
