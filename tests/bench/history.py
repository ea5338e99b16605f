"""Speed and memory of the latency history: merge, roll-up, and one hour more for a long history.

    python -m tests.bench.history                     # refreshes RESULTS.md
    python -m tests.bench.history --rows 20000 --dry

The merge is compared with a plain merge by pyarrow and with DuckDB, which read the same counts as lists of (cell,
count) and add them by series, hour and cell. They compute no percentiles and encode nothing. The roll-up on Spark is
compared with the roll-up on threads, on a spool of its own size: a job of Spark has a fixed cost. A pair is ours,
reference, reference, ours, each in its own process; the ratio is the median of neighbours. Before the clock starts, a
merge has imported its libraries, and the session of Spark has rolled up a small spool.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from heliograph.monitor import _hdr
from heliograph.monitor.history.files import write_spool_table, write_table
from heliograph.monitor.history.hours import DataFile, Manifest, commit, folder_of
from heliograph.monitor.history.ledger import Ledger
from heliograph.monitor.history.merge import HOUR_US, merge, merge_spool
from heliograph.monitor.history.rollup import Threads, rollup
from heliograph.monitor.history.schema import SPOOL, arrow_schema
from heliograph.monitor.latency import highest_of
from tests.bench.report import machine, put_section

SHAPE = (3, 1, 60_000_000_000)
SERIES = 50
INTERVAL_US = 10_000_000
MINUTE_ROWS = SERIES * 6
COMPACTED_ROWS = 25_000
VALUES = 4262
"""Values of an interval."""
BEGIN_US = 1_763_726_400_000_000
SOURCE = "0123456789abcdef"
DAYS = 30
TOP = Path(__file__).resolve().parents[2]


# -- data -------------------------------------------------------------------------------------------------------------


class Rows:
    """Rows of a spool, from a pool of histograms."""

    def __init__(self, pool: int = 64) -> None:
        random = np.random.default_rng(7)
        top = np.asarray(highest_of(np.arange(_hdr.cells(*SHAPE)), *SHAPE))
        self.counts = []
        self._bodies = []
        self._summaries = []
        for _ in range(pool):
            values = np.exp(random.normal(10.0, 0.8, VALUES))
            counts = np.bincount(np.searchsorted(top, values), minlength=top.size).astype(np.uint64)
            self.counts.append(counts)
            self._bodies.append(_hdr.encode(counts, *SHAPE))
            self._summaries.append(_hdr.summary(counts, *SHAPE))

    def chosen(self, first: int, rows: int) -> list[int]:
        """Index in the pool of each row."""
        return [(7 * number + number // SERIES) % len(self._bodies) for number in range(first, first + rows)]

    def table(self, first: int, rows: int) -> pa.Table:
        """The rows from number `first` on: one per series and interval."""
        numbers = np.arange(first, first + rows)
        chosen = self.chosen(first, rows)
        summaries = [self._summaries[index] for index in chosen]
        columns: dict[str, Any] = {
            "ts": BEGIN_US + numbers // SERIES * INTERVAL_US,
            "len_ms": np.full(rows, INTERVAL_US // 1000),
            "instance": ["feed"] * rows,
            "topic": [f"T{number % SERIES:02}" for number in numbers],
            "metric": ["receiver_total_latency"] * rows,
            "source": [SOURCE] * rows,
            "seq": numbers,
            "n": [int(one[0]) for one in summaries],
            "min": [int(one[1]) for one in summaries],
            "max": [int(one[2]) for one in summaries],
            "sum": [int(one[3]) for one in summaries],
            "h": [self._bodies[index] for index in chosen],
            **dict(zip(("digits", "lowest", "highest"), ([number] * rows for number in SHAPE), strict=True)),
        }
        schema = arrow_schema(SPOOL)
        empty = {True: [""] * rows, False: [0] * rows}
        arrays = [
            pa.array(columns.get(field.name, empty[pa.types.is_string(field.type)])).cast(field.type)
            for field in schema
        ]
        return pa.table(arrays, schema=schema)

    def lists(self, first: int, rows: int) -> pa.Table:
        """The same as lists of cells and counts, for the references."""
        cells = [np.flatnonzero(counts) for counts in self.counts]
        chosen = self.chosen(first, rows)
        numbers = np.arange(first, first + rows)
        begins = BEGIN_US + numbers // SERIES * INTERVAL_US
        return pa.table(
            {
                "hour": begins // HOUR_US,
                "series": numbers % SERIES,
                "cell": pa.array([cells[index].astype(np.int32) for index in chosen]),
                "count": pa.array([self.counts[index][cells[index]].astype(np.int64) for index in chosen]),
            }
        )


def file_name(number: int, at_us: int) -> str:
    """Path of a file below the spool."""
    return f"date={datetime.fromtimestamp(at_us // 1_000_000, UTC):%Y-%m-%d}/{SOURCE}-{number:06d}.parquet"


def make_spool(folder: Path, rows: Rows, count: int, per_file: int, begin: int = 0) -> None:
    """Write rows as files of equal size."""
    for number, first in enumerate(range(begin, begin + count, per_file), begin // per_file):
        table = rows.table(first, min(per_file, begin + count - first))
        write_spool_table(folder / file_name(number, table["ts"][0].cast(pa.int64()).as_py()), table)


def make_history(history: Path, spool: Path, rows: Rows, days: int) -> None:
    """Write a history, its ledger, and the merged files of its spool.

    All hours have the same rows. The merged files are empty: a roll-up does not open them.
    """
    per_hour = MINUTE_ROWS * 60
    hour = merge(rows.table(0, per_hour))[0]
    names = []
    for number in range(days * 24):
        begin = BEGIN_US + number * HOUR_US
        moved = hour
        for name in ("ts", "first_ts", "last_ts"):
            at = moved.column_names.index(name)
            shifted = pa.array(hour[name].cast(pa.int64()).to_numpy() + number * HOUR_US)
            moved = moved.set_column(at, moved.schema.field(at), shifted.cast(moved.schema.field(at).type))
        folder = folder_of(history, begin)
        write_table(folder / "rows.parquet", moved)
        files = (DataFile("rows.parquet", moved.num_rows, (folder / "rows.parquet").stat().st_size),)
        merged = {SOURCE: [(number * per_hour, (number + 1) * per_hour - 1)]}
        commit(folder, Manifest(1, files, merged, per_hour, per_hour * VALUES))
        for minute in range(60):
            names.append(file_name(number * 60 + minute, begin + minute * 60_000_000))
    for name in names:
        (spool / name).parent.mkdir(parents=True, exist_ok=True)
        (spool / name).touch()
    ledger = Ledger(history)
    ledger.add(names)
    ledger.save()


# -- what is measured, each in its own process ------------------------------------------------------------------------


def merge_ours(spool: Path) -> int:
    """Merge a spool into hours with percentiles."""
    table, problems = merge_spool(spool)
    assert not problems
    return int(sum(table["n"].to_pylist()))


def merge_pyarrow(lists: Path) -> int:
    """Add counts by series, hour and cell with pyarrow."""
    import pyarrow.compute as pc

    keys = ["hour", "series", "cell"]
    parts = []
    file = pq.ParquetFile(lists)
    for group in range(file.num_row_groups):
        table = file.read_row_group(group).combine_chunks()
        parents = pc.list_parent_indices(table["cell"])
        flat = {name: table[name].take(parents) for name in ("hour", "series")}
        flat |= {name: pc.list_flatten(table[name]) for name in ("cell", "count")}
        parts.append(pa.table(flat).group_by(keys).aggregate([("count", "sum")]).rename_columns([*keys, "count"]))
    whole = pa.concat_tables(parts).group_by(keys).aggregate([("count", "sum")])
    return int(pc.sum(whole["count_sum"]).as_py())


def merge_duckdb(lists: Path) -> int:
    """The same with DuckDB."""
    import duckdb

    query = """
        select sum(n) from (
            select hour, series, cell, sum(count) as n
            from (select hour, series, unnest(cell) as cell, unnest("count") as count from read_parquet(?))
            group by all)
    """
    return int(duckdb.execute(query, [str(lists)]).fetchone()[0])


@contextmanager
def _spark(small: Path) -> Iterator[Callable[[], Any]]:
    """Return a source of runners on a session that has done a roll-up."""
    from heliograph.monitor.history.rollup_spark import OnSpark
    from heliograph.monitor.history.spark import spark_session

    with spark_session() as session, tempfile.TemporaryDirectory() as folder:
        rollup(OnSpark(session), small, Path(folder, "history"))
        yield lambda: OnSpark(session)


def _runners(kind: str, small: Path) -> Any:
    return _spark(small) if kind == "spark" else nullcontext(lambda: Threads(2))


def rolled_up(kind: str, small: Path, spool: Path) -> dict[str, float]:
    """Roll a spool up into an empty history; returns seconds and values."""
    with _runners(kind, small) as runner, tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        done = rollup(runner(), spool, Path(folder, "history"))
        return {"seconds": time.perf_counter() - began, "values": done.values}


def hours_added(kind: str, small: Path, spool: Path, history: Path, hours: int) -> dict[str, float]:
    """Add hours to a history, one by one; returns the median of the seconds."""
    rows, per_hour, taken = Rows(), MINUTE_ROWS * 60, []
    first = len(list((history / "1h").glob("*/*")))
    with _runners(kind, small) as runner:
        for number in range(first, first + hours):
            make_spool(spool, rows, per_hour, MINUTE_ROWS, number * per_hour)
            began = time.perf_counter()
            done = rollup(runner(), spool, history)
            taken.append(time.perf_counter() - began)
            assert (done.intervals, done.hours, done.problems) == (per_hour, 1, ())
    return {"seconds": statistics.median(taken), "values": hours * per_hour * VALUES}


def reported(history: Path) -> dict[str, float]:
    """Make the report of a history; returns processor seconds, values, and the size of the page."""
    from heliograph.monitor.history.report.make import report

    began = time.process_time()
    made = report(history)
    size = len(made.html.encode("utf-8"))
    return {"seconds": time.process_time() - began, "values": made.series, "bytes": size}


def _timed(function: Callable[[Path], int], path: Path) -> dict[str, float]:
    began = time.perf_counter()
    values = function(path)
    return {"seconds": time.perf_counter() - began, "values": values}


def child(words: Sequence[str]) -> dict[str, float]:
    """Do what the words say in this process."""
    name, *rest = words
    paths = [Path(word) for word in rest if "/" in word]
    if name == "rollup":
        return rolled_up(rest[0], *paths)
    if name == "report":
        return reported(paths[0])
    if name == "add":
        return hours_added(rest[0], paths[0], paths[1], paths[2], int(rest[-1]))
    for library in ("pandas", "pyarrow.compute", "duckdb" if name == "duckdb" else "pyarrow.acero"):
        importlib.import_module(library)  # pyarrow itself imports pandas at the first array
    return _timed({"merge": merge_ours, "pyarrow": merge_pyarrow, "duckdb": merge_duckdb}[name], *paths)


# -- measurement ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Figures:
    """One run."""

    seconds: float
    values: int
    mib: float
    """Peak of resident memory of the process, or of the largest Python worker of Spark."""
    bytes: int = 0
    """Size of what was made."""


def run(*words: object) -> Figures:
    """Run a measurement in its own process.

    Raises:
        RuntimeError: It failed.
    """
    command = [sys.executable, "-m", "tests.bench.history", "--child", *map(str, words)]
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(command, stdout=out, stderr=errors, cwd=TOP)
        peaks: dict[int, float] = {}
        try:
            while process.poll() is None:
                for pid in _pythons_below(process.pid):
                    peaks[pid] = max(peaks.get(pid, 0.0), _peak_mib(pid))
                time.sleep(0.1)
        finally:
            process.kill()
            process.wait()
        if process.returncode != 0:
            errors.seek(0)
            raise RuntimeError(f"{' '.join(command)}: {errors.read().decode(errors='replace')[-500:]}")
        out.seek(0)
        found: Mapping[str, float] = json.loads(out.read().splitlines()[-1])
    workers = [peak for pid, peak in peaks.items() if pid != process.pid]
    return Figures(
        found["seconds"],
        int(found["values"]),
        max(workers, default=peaks.get(process.pid, 0.0)),
        int(found.get("bytes", 0)),
    )


def _pythons_below(pid: int) -> Iterator[int]:
    """Yield a process and those below it that run Python."""
    try:
        if "python" in Path(f"/proc/{pid}/comm").read_text(encoding="ascii", errors="replace"):
            yield pid
        below = [int(word) for task in Path(f"/proc/{pid}/task").iterdir() for word in _words(task / "children")]
    except OSError:
        return
    for one in below:
        yield from _pythons_below(one)


def _words(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="ascii").split()
    except OSError:
        return []


def _peak_mib(pid: int) -> float:
    try:
        lines = Path(f"/proc/{pid}/status").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return 0.0
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM:")), 0.0)


@dataclass(frozen=True, slots=True)
class Row:
    """A line of the table."""

    what: str
    rows: int
    seconds: float
    mib: float
    gate: str
    reference: str = ""
    ratios: tuple[float, ...] = ()
    """Speed of ours over the reference's."""

    def cells(self) -> list[str]:
        """The line."""
        ratio = "-"
        if self.ratios:
            ratio = f"{statistics.median(self.ratios):.2f} ({min(self.ratios):.2f} to {max(self.ratios):.2f})"
        figures = [f"{self.rows / self.seconds:,.0f}", f"{self.seconds:.2f}", f"{self.mib:.0f}"]
        return [self.what, *figures, self.gate, self.reference or "-", ratio]


def paired(
    what: str, rows: int, gate: str, ours: Sequence[object], other: str, words: Sequence[object], pairs: int
) -> Row:
    """Measure ours, reference, reference, ours, `pairs` times."""
    mine: list[Figures] = []
    ratios: list[float] = []
    for _ in range(pairs):
        a, b, c, d = run(*ours), run(*words), run(*words), run(*ours)
        assert a.values == b.values == c.values == d.values, f"{what}: {other} has another number of values"
        mine += [a, d]
        ratios += [b.seconds / a.seconds, c.seconds / d.seconds]
    seconds = statistics.median(one.seconds for one in mine)
    return Row(what, rows, seconds, max(one.mib for one in mine), gate, other, tuple(ratios))


def alone(what: str, rows: int, gate: str, words: Sequence[object]) -> Row:
    """Measure once."""
    found = run(*words)
    return Row(what, rows, found.seconds, found.mib, gate)


def on_spark(folder: Path, rows: Rows, small: Path, count: int) -> Row:
    """Measure the roll-up of `count` rows on Spark beside threads, one pair."""
    make_spool(folder, rows, count, MINUTE_ROWS)
    gate = "40,000 rows/s (want 80,000); 1,024 MiB"
    ours, other = ("rollup", "spark", small, folder), ("rollup", "threads", small, folder)
    what = f"roll-up of {count:,} rows, Spark local[2], net of start"
    return paired(what, count, gate, ours, "threads", other, 1)


def measured(
    folder: Path, count: int, pairs: int, days: int, *, spark: bool, spark_rows: int = 0
) -> tuple[list[Row], list[str]]:
    """Generate the data and measure every row; returns the rows and notes."""
    rows = Rows()
    minutes, compacted, small = folder / "minutes", folder / "compacted", folder / "small"
    make_spool(minutes, rows, count, MINUTE_ROWS)
    make_spool(compacted, rows, count, COMPACTED_ROWS)
    make_spool(small, rows, MINUTE_ROWS, MINUTE_ROWS)
    lists = folder / "lists.parquet"
    with pq.ParquetWriter(lists, rows.lists(0, 1).schema, compression="zstd") as writer:
        for first in range(0, count, 5000):
            writer.write_table(rows.lists(first, min(5000, count - first)))
    notes = []
    references = ["pyarrow"]
    if importlib.util.find_spec("duckdb"):
        references.append("duckdb")
    else:
        notes.append("DuckDB is absent: `pip install duckdb` adds its rows.")
    found = []
    for what, spool, gate in (
        ("merge, files of a minute", minutes, "25,000 rows/s (want 50,000)"),
        ("merge, files of 25,000 rows", compacted, "60,000 rows/s (want 90,000)"),
    ):
        for name in references:
            found.append(paired(what, count, gate, ("merge", spool), name, (name, lists), pairs))
    if spark:
        found.append(on_spark(folder / "large", rows, small, spark_rows))
    found.append(alone("roll-up, threads", count, "-", ("rollup", "threads", small, minutes)))
    spool, history = folder / "long-spool", folder / "long-history"
    make_history(history, spool, rows, days)
    made = run("report", history)
    what = f"report of {days} days x {SERIES} series, processor seconds"
    gate = "10 s, 500 MiB, 5 MB (want 5 s, 300 MiB, 2 MB)"
    found.append(Row(what, days * 24 * SERIES, made.seconds, made.mib, gate))
    notes.append(f"The page of the report has {made.bytes / 1e6:.2f} MB. Its rows are hours of a series.")
    for kind in ("threads", "spark") if spark else ("threads",):
        what = f"one hour more for {days} days, {kind}"
        found.append(alone(what, MINUTE_ROWS * 60, "10 s (want 2 s)", ("add", kind, small, spool, history, 3)))
    if not spark:
        notes.append("Spark is absent or was left out: its rows are missing.")
    notes.append(
        f"The {days} days have {days * 24 * MINUTE_ROWS * 60:,} intervals, generated; their merged files are empty."
    )
    return found, notes


def section(rows: Sequence[Row], notes: Sequence[str], count: int, load: float) -> str:
    """Return the section of RESULTS.md; `load` is that of the machine before the first run."""
    facts = machine()
    lines = [
        "## Latency history",
        "",
        f"`make bench-history`, {facts['date']}, {facts['processor']}.",
        f"{count:,} intervals of {SERIES} series, {VALUES:,} values each, 3 digits.",
        "A ratio is ours over the reference by speed, in paired runs.",
        "pyarrow and DuckDB add lists of (cell, count) and compute no percentiles.",
        "Libraries are imported before the clock starts.",
        "Memory is the peak of the process, or of the largest Python worker of Spark.",
        f"The load of the machine before the first run was {load:.1f}, on {os.cpu_count()} cores.",
        "Other programs lower the rates. They change ratios and processor seconds less.",
        "",
        "| what | rows/s | s | MiB | gate | reference | ratio |",
        "| --- | ---: | ---: | ---: | --- | --- | ---: |",
    ]
    lines += [f"| {' | '.join(row.cells())} |" for row in rows]
    return "\n".join([*lines, "", *notes])


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, and write the section of RESULTS.md."""
    parser = argparse.ArgumentParser(description="Speed and memory of the latency history.")
    parser.add_argument("--rows", type=int, default=50_000, help="intervals; default 50,000")
    parser.add_argument("--spark-rows", type=int, default=1_000_000, help="intervals of the roll-up on Spark")
    parser.add_argument("--pairs", type=int, default=3, help="pairs of runs of each row; default 3")
    parser.add_argument("--days", type=int, default=DAYS, help="length of the long history; default 30")
    parser.add_argument("--no-spark", action="store_true", help="leave out the rows that need Spark")
    parser.add_argument("--dry", action="store_true", help="do not write RESULTS.md")
    parser.add_argument("--child", nargs="+", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.child:
        print(json.dumps(child(options.child)))
        return 0
    load = os.getloadavg()[0]
    spark = not options.no_spark and importlib.util.find_spec("pyspark") is not None
    with tempfile.TemporaryDirectory(prefix="heliograph-bench-", dir=os.environ.get("TMPDIR")) as folder:
        rows, notes = measured(
            Path(folder), options.rows, options.pairs, options.days, spark=spark, spark_rows=options.spark_rows
        )
    body = section(rows, notes, options.rows, load)
    print(body)
    if not options.dry:
        put_section("history", body)
    return 0


if __name__ == "__main__":
    sys.exit(main())
