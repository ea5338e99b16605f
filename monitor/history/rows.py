"""Rows of a spool or a history as Python objects, for notebooks and for checks.

    table, broken = read_history(Path("history"))
    for row in rows(table):
        print(row.labels["topic"], row.histogram().get_value_at_percentile(99))

`hdrhistogram` is imported when a histogram is wanted.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa

from heliograph.monitor import _hdr
from heliograph.monitor.errors import UserError
from heliograph.monitor.history.schema import LABELS, ORIGIN
from heliograph.monitor.model import Histogram

__all__ = ["Row", "needs_hdrhistogram", "rows"]


@dataclass(frozen=True, slots=True)
class Row:
    """One row: a series over some time."""

    labels: Mapping[str, str]
    """Labels and origin of the series."""
    start: datetime
    """UTC."""
    length: timedelta
    figures: Mapping[str, int]
    """All columns of numbers, such as `n`, `max` and `p99_9`; durations in ns."""
    body: bytes
    """HdrHistogram V2 body, without zlib."""

    def histogram(self) -> Any:
        """Return the counts as `hdrh.histogram.HdrHistogram`, values in ns.

        Its percentiles may differ by one rank from ours: it rounds the rank, we take ``ceil(p * n)``.

        Raises:
            UserError: `hdrhistogram` is not installed.
            Exception: The body is damaged; the kind depends on the damage.
        """
        needs_hdrhistogram()
        from hdrh.histogram import HdrHistogram

        return HdrHistogram.decode(zlib.compress(self.body, 1), b64_wrap=False)

    def counts(self) -> Histogram:
        """Return the counts as Heliograph's own decoder reads them.

        Raises:
            ValueError: The body is damaged.
        """
        counts, digits, lowest, highest = _hdr.decode(self.body)
        return Histogram(np.frombuffer(counts, dtype=np.uint64), lowest, highest, digits)


def rows(table: pa.Table) -> Iterator[Row]:
    """Yield the rows of a table of the spool (`files.read_table`) or of a history (`hours.read_history`)."""
    numbers = [field.name for field in table.schema if pa.types.is_integer(field.type) and field.name != "len_ms"]
    for batch in table.to_batches(max_chunksize=1000):
        for row in batch.to_pylist():
            yield Row(
                {name: row[name] for name in (*LABELS, *ORIGIN)},
                row["ts"],
                timedelta(milliseconds=row["len_ms"]),
                {name: row[name] for name in numbers},
                row["h"],
            )


def needs_hdrhistogram() -> None:
    """Check that the `hdrhistogram` package is there.

    Raises:
        UserError: It is not installed.
    """
    try:
        import hdrh.histogram  # noqa: F401 - only whether it is there
    except ModuleNotFoundError as error:
        raise UserError("this needs hdrhistogram: pip install 'heliograph[history]'") from error
