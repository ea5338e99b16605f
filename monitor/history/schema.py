"""The rows of the spool and of the history, as plain data.

`latency_interval` (the spool) is one histogram of one series over one interval, as it was recorded. `latency_hour` (the
history) is the same series over an hour: the same columns, less those that identify a recording, plus what was merged
and the percentiles. Both carry the whole histogram in `h`, so any hour can be merged again with any other.

Series are told apart by `LABELS`, which people know, and by `ORIGIN`: where and by which build they were measured. So
two hosts, builds or levels of detail are never added beyond recovery; a reader that wants their sum merges again by
fewer labels. A histogram that has no such label leaves it empty: a stream's recovery time has no topic; an imported log
has an instance (the name of the file) and a `tag`, and its metric is `imported_latency`. New labels are added to
`LABELS` or `ORIGIN`; in files written before, they read as empty. Layouts never mix: digits and lowest are part of the
identity of a series, and highest, which only ends the array, becomes the largest of those merged.

pyarrow and pyspark are imported by the functions that need them.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import lru_cache
from typing import TYPE_CHECKING, Literal

from heliograph.engine import catalogue
from heliograph.engine.catalogue import names

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql.types import StructType

__all__ = [
    "HISTORY",
    "IMPORTED",
    "LABELS",
    "ORIGIN",
    "PERCENTILES",
    "SERIES",
    "SPOOL",
    "Column",
    "LatencyInterval",
    "arrow_schema",
    "metric_titles",
    "spark_schema",
]

Kind = Literal["time", "integer", "small", "text", "binary"]


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a table."""

    name: str
    kind: Kind
    help: str


LABELS = ("instance", "topic", "stream", "metric", "tag")
"""Columns that name series."""

ORIGIN = ("host", "build", "link", "incarnation", "level")
"""Columns that say where and how a series was measured."""

SERIES = (*LABELS, *ORIGIN, "digits", "lowest")
"""Values that must be equal for two histograms to be added."""

PERCENTILES: dict[str, float] = {
    "p50": 0.5,
    "p90": 0.9,
    "p99": 0.99,
    "p99_9": 0.999,
    "p99_99": 0.9999,
    "p99_999": 0.99999,
}
"""Column of the history by fraction; `max` is a column of every row."""

IMPORTED = "imported_latency"
"""Metric of logs recorded by another program."""

_TIME = (
    Column("ts", "time", "Start of the interval, UTC, in microseconds."),
    Column("len_ms", "integer", "Length of the interval, ms."),
)
_LABELS = (
    Column("instance", "text", "Instance that measured."),
    Column("topic", "text", "Topic, empty when the metric has none."),
    Column("stream", "text", "Stream the topic was sent or received on."),
    Column("metric", "text", "Scope and statistic, such as receiver_total_latency."),
    Column("tag", "text", "Tag of an imported log."),
    Column("host", "text", "Host that measured."),
    Column("build", "text", "The instance's option `build`; without it the version of Heliograph."),
    Column("link", "text", "Address of the source's host; empty for what was not received from a stream."),
    Column("incarnation", "text", "Run of the instance, 16 hex digits; empty when imported."),
    Column("level", "text", "Level of detail of the instance, 0 to 3; empty when imported."),
)
_HISTOGRAM = (
    Column("digits", "small", "Significant digits of the histogram."),
    Column("lowest", "integer", "Lowest value told apart from 0."),
    Column("highest", "integer", "Highest value counted in the cells."),
    Column("n", "integer", "Number of values, the sum of the cells."),
    Column("min", "integer", "Smallest value of the first filled cell, ns."),
    Column("max", "integer", "Largest value of the last filled cell, ns."),
    Column("sum", "integer", "Sum of the values, ns; of imported logs by the middle of each cell."),
    Column("dropped", "integer", "Values outside the range (negative or above highest), in no cell."),
    Column("clock_error_ns", "integer", "Largest error bound of the clock offset, ns; 0: one clock, or unknown."),
)
_BODY = Column("h", "binary", "HdrHistogram V2 body, without zlib.")

SPOOL: tuple[Column, ...] = (
    *_TIME,
    *_LABELS,
    *_HISTOGRAM,
    Column("source", "text", "The recording: random for each run of an exporter, the content's hash of a log."),
    Column("seq", "integer", "Number of the row within its recording; (source, seq) is never used twice."),
    _BODY,
)
"""Columns of `latency_interval`."""

HISTORY: tuple[Column, ...] = (
    *_TIME,
    *_LABELS,
    *_HISTOGRAM,
    Column("intervals", "integer", "Intervals merged into the row."),
    Column("first_ts", "time", "Start of the first interval; equal to last_ts: unknown."),
    Column("last_ts", "time", "End of the last interval; later than the end of the hour if an interval crosses it."),
    Column("covered_ms", "integer", "Sum of the lengths of the intervals, ms; 0: unknown."),
    *(
        Column(name, "integer", f"Value at rank ceil({fraction} * n), ns: the largest its cell counts.")
        for name, fraction in PERCENTILES.items()
    ),
    _BODY,
)
"""Columns of `latency_hour`."""


@dataclass(frozen=True, slots=True)
class LatencyInterval:
    """One row of the spool."""

    ts_ns: int
    """Start, wall clock, ns since 1970; stored in whole microseconds as `ts`."""
    len_ms: int
    instance: str
    topic: str
    stream: str
    metric: str
    tag: str
    host: str
    build: str
    link: str
    incarnation: str
    level: str
    digits: int
    lowest: int
    highest: int
    n: int
    min: int
    max: int
    sum: int
    dropped: int
    clock_error_ns: int
    source: str
    seq: int
    h: bytes
    """HdrHistogram V2 body."""


@lru_cache(maxsize=16)
def arrow_schema(columns: tuple[Column, ...]) -> pyarrow.Schema:
    """The pyarrow form."""
    import pyarrow as pa

    kinds = {
        "time": pa.timestamp("us", tz="UTC"),
        "integer": pa.int64(),
        "small": pa.int32(),
        "text": pa.string(),
        "binary": pa.binary(),
    }
    return pa.schema([pa.field(column.name, kinds[column.kind], nullable=False) for column in columns])


def spark_schema(columns: tuple[Column, ...]) -> StructType:
    """The Spark form."""
    from pyspark.sql import types

    kinds = {
        "time": types.TimestampType(),
        "integer": types.LongType(),
        "small": types.IntegerType(),
        "text": types.StringType(),
        "binary": types.BinaryType(),
    }
    return types.StructType([types.StructField(column.name, kinds[column.kind], True) for column in columns])


def metric_titles() -> dict[str, str]:
    """Metrics as people read them: ``receiver_total_latency`` -> ``Receiver: total latency``."""
    titles = {IMPORTED: "Imported latency"}
    for scope in catalogue.scopes().values():
        for statistic in scope.statistics:
            if statistic.kind == "histogram":
                title = names.title(statistic)
                titles[names.column(statistic)] = f"{names.label(scope.name)}: {title[0].lower()}{title[1:]}"
    return titles


assert {column.name for column in SPOOL} - {"ts"} == {field.name for field in fields(LatencyInterval)} - {"ts_ns"}
