"""A latency history for the page of the past: read on a thread when a page asks, bounded, and kept until it changes.

All work is done by one thread, because a history is large: reading it, and each study of a selection. A page that asks
gets the newest result, or nothing yet. A history whose data files are larger than `MOST_BYTES` is not read; the
commands of `heliograph history` have no such limit.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from heliograph.monitor.errors import UserError

if TYPE_CHECKING:
    import pyarrow as pa

    from heliograph.monitor.history.report.figures import Figures, SeriesFigures, Stacked
    from heliograph.monitor.history.report.timeline import Event
    from heliograph.monitor.history.studies.calendar import Calendar
    from heliograph.monitor.history.studies.compare import Contrast
    from heliograph.monitor.history.studies.samples import Pair
    from heliograph.monitor.latency import Spectrum

__all__ = ["MARGIN", "MOST_BYTES", "Past", "Period", "Question", "Reading", "Series", "Studied", "Whole"]

MOST_BYTES = 64 << 20
_FRESH_SECONDS = 60.0
"""Whether the files have changed is looked up after this time."""
_MOST_RESULTS = 32
_MOST_POINTS = 160
_DAY_US = 86_400_000_000
MARGIN = 0.05
"""Largest relative increase of a percentile that does not matter."""

Series = tuple[str, ...]
"""Values of the labels by which a history tells series apart, in the order of `PAIR`."""


@dataclass(frozen=True, slots=True)
class Question:
    """The choice of a page: a series, a time zone, and two periods."""

    series: Series
    zone: str
    a: str
    """A selection of `heliograph history compare`; empty: the day before the last one."""
    b: str
    """The same; empty: the last day."""


@dataclass(frozen=True, slots=True)
class Period:
    """One of the two periods that are compared."""

    text: str
    values: int
    hours: int
    line: Spectrum | None
    """None: it has no values."""
    percentiles: tuple[int, ...]
    """In the order of `PERCENTILES`, then the maximum, ns; empty without values."""


@dataclass(frozen=True, slots=True)
class Whole:
    """A series over all the time of the history, as `heliograph history report` computes it."""

    series: tuple[SeriesFigures, ...]
    """One for each host, link and build, the worst p99.9 first."""
    stages: Stacked | None
    """Stages of its messages; None: they were not recorded, or other receivers are worse."""
    events: tuple[Event, ...]
    """Restarts and builds of its instance, in the order of time."""
    first: datetime
    end: datetime
    """The time of the history."""


@dataclass(frozen=True, slots=True)
class Studied:
    """The answer to a question."""

    calendar: Calendar | None
    """None: the series has no values."""
    notes: tuple[str, ...]
    """Sentences about days that are left out."""
    a: Period
    b: Period
    verdict: str
    """``slower``, ``not slower`` or ``cannot say``."""
    contrasts: tuple[Contrast, ...]
    effect: float | None
    """Probability that a value of B is larger than one of A."""
    trouble: str
    """Why the periods are not compared; empty: they are."""
    whole: Whole


@dataclass(frozen=True, slots=True)
class Reading:
    """The state of the history; immutable."""

    number: int = 0
    """Increases with each change."""
    folder: str = ""
    is_busy: bool = False
    """Whether it is being read."""
    trouble: str = ""
    """Why there is no history, in words; empty: there is one."""
    series: tuple[Series, ...] = ()
    """The series, those with the most values first."""
    first: datetime | None = None
    last: datetime | None = None
    """Start of the first and of the last hour, UTC."""
    size: int = 0
    """Bytes of the data files."""
    broken: tuple[str, ...] = ()
    """Files that could not be read."""


_Signature = tuple[tuple[str, int, int], ...]


class Past:
    """A history in a directory; safe to use from many threads."""

    def __init__(self, folder: Path, most_bytes: int = MOST_BYTES, fresh_seconds: float = _FRESH_SECONDS) -> None:
        """Take the directory; nothing is read before the first page asks.

        Args:
            folder: Directory of the history.
            most_bytes: Largest size of its data files.
            fresh_seconds: Time after which a change of the files is looked up.
        """
        self._folder = folder
        self._most = most_bytes
        self._fresh = fresh_seconds
        self._lock = threading.Lock()
        self._reading = Reading(folder=str(folder))
        self._table: pa.Table | None = None
        self._figures: Figures | None = None
        self._signature: _Signature | None = None
        self._looked: float | None = None
        self._results: OrderedDict[tuple[int, Question], Studied | str] = OrderedDict()
        self._worker: threading.Thread | None = None

    def reading(self) -> Reading:
        """Return the state of the history; reads it in the background when its files may have changed."""
        with self._lock:
            is_old = self._looked is None or time.monotonic() - self._looked > self._fresh
            if is_old and self._start(self._look):
                self._looked = time.monotonic()
                if self._table is None and not self._reading.trouble:
                    self._reading = replace(self._reading, number=self._reading.number + 1, is_busy=True)
            return self._reading

    def studied(self, question: Question) -> Studied | str | None:
        """Return the answer to a question, or why there is none; None: it is being worked out, ask again."""
        with self._lock:
            key = (self._reading.number, question)
            if key in self._results:
                self._results.move_to_end(key)
                return self._results[key]
            table, figures = self._table, self._figures
            if table is not None and figures is not None:
                self._start(lambda: self._study(key, table, figures))
            return None

    def _start(self, work: Callable[[], None]) -> bool:
        """Give the thread its next work unless it is busy; the lock is held."""
        if self._worker is not None and self._worker.is_alive():
            return False
        self._worker = threading.Thread(target=work, name="heliograph-live-history", daemon=True)
        self._worker.start()
        return True

    def _look(self) -> None:
        """Read the history if its files have changed."""
        try:
            signature = _signature(self._folder)
            if signature == self._signature:
                return
            size = sum(size for _, size, _ in signature)
            if size > self._most:
                raise UserError(
                    f"the history in {self._folder} has {size / (1 << 20):.0f} MiB, and this page reads at most "
                    f"{self._most / (1 << 20):.0f} MiB; heliograph history report and calendar read all of it"
                )
            table, figures, reading = _read(self._folder, size)
        except UserError as error:
            table, figures, reading, signature = None, None, Reading(trouble=str(error)), None
        except Exception as error:  # a page must survive any content of a directory, and show it
            trouble = f"the history cannot be read: {error}"
            table, figures, reading, signature = None, None, Reading(trouble=trouble), None
        with self._lock:
            if table is None and reading.trouble == self._reading.trouble:
                return
            self._table, self._figures, self._signature = table, figures, signature
            self._reading = replace(reading, number=self._reading.number + 1, folder=str(self._folder))
            self._results.clear()

    def _study(self, key: tuple[int, Question], table: pa.Table, figures: Figures) -> None:
        try:
            found: Studied | str = _answer(table, figures, key[1])
        except UserError as error:
            found = str(error)
        except Exception as error:  # as above
            found = f"the study failed: {error}"
        with self._lock:
            self._results[key] = found
            while len(self._results) > _MOST_RESULTS:
                self._results.popitem(last=False)


def _signature(folder: Path) -> _Signature:
    """Return name, size and time of the data files and manifests, sorted."""
    if not folder.is_dir():
        raise UserError(f"there is no history in {folder}; heliograph history rollup makes one from a spool")
    found = []
    for path in folder.rglob("*"):
        if path.suffix in (".parquet", ".json") and path.is_file():
            status = path.stat()
            found.append((str(path), status.st_size if path.suffix == ".parquet" else 0, status.st_mtime_ns))
    return tuple(sorted(found))


def _read(folder: Path, size: int) -> tuple[pa.Table, Figures, Reading]:
    """Return the rows of a history, the figures of its report, and its state."""
    try:
        import pyarrow.compute as pc
    except ModuleNotFoundError as error:
        raise UserError("a history needs pyarrow: pip install 'heliograph[history]'") from error
    from heliograph.monitor.history.hours import read_history
    from heliograph.monitor.history.report.figures import figures_of
    from heliograph.monitor.history.studies.samples import PAIR

    table, broken = read_history(folder)
    if not table.num_rows:
        hint = f" ({len(broken)} files cannot be read)" if broken else ""
        raise UserError(f"the history in {folder} is empty{hint}; heliograph history rollup fills it from a spool")
    grouped = table.select([*PAIR, "n"]).group_by(list(PAIR), use_threads=False).aggregate([("n", "sum")]).to_pylist()
    ordered = sorted(grouped, key=lambda row: (row["metric"] != "receiver_total_latency", -row["n_sum"], *_key(row)))
    bounds = pc.min_max(table["ts"]).as_py()
    return (
        table,
        figures_of(folder),
        Reading(
            series=tuple(_key(row) for row in ordered),
            first=bounds["min"],
            last=bounds["max"],
            size=size,
            broken=tuple(f"{one.path}: {one.reason}" for one in broken),
        ),
    )


def _key(row: Mapping[str, object]) -> Series:
    from heliograph.monitor.history.studies.samples import PAIR

    return tuple(str(row[name]) for name in PAIR)


def _answer(table: pa.Table, figures: Figures, question: Question) -> Studied:
    import pyarrow as pa
    import pyarrow.compute as pc

    from heliograph.monitor.history.merge import HOUR_US, merge
    from heliograph.monitor.history.studies.calendar import calendars, days_of, zone_of
    from heliograph.monitor.history.studies.days import Note, apart, choose_rows, day_names, notes_text
    from heliograph.monitor.history.studies.samples import PAIR, pairs, parse_selection

    zone = zone_of(question.zone)
    mask = pa.array([True] * table.num_rows)
    for name, value in zip(PAIR, question.series, strict=True):
        mask = pc.and_(mask, pc.equal(table[name], value))
    own = table.filter(mask)
    metric = question.series[PAIR.index("metric")]
    hours, whole = apart(own)
    days, others = days_of(zone, whole)
    notes = [Note("not in the hours of the week", day_names(days))] if days.num_rows else []
    if others.num_rows:
        notes.append(Note(f"left out: they are not days of {question.zone}", day_names(others)))
    found = calendars(hours, zone, PAIR, days)

    sides = []
    for text, default in ((question.a, 2), (question.b, 1)):
        chosen = parse_selection(text or _days_before_end(own, default))
        rows = choose_rows(own, chosen, metric)
        notes += [note for note in rows.notes if note not in notes]
        sides.append((chosen.text, rows, merge(rows.hours, HOUR_US, final=False, by=PAIR)[0]))
    (text_a, rows_a, hours_a), (text_b, rows_b, hours_b) = sides
    a, b = _period(text_a, rows_a.hours, rows_a.days), _period(text_b, rows_b.hours, rows_b.days)
    verdict, trouble, effect = "cannot say", "", None
    contrasts: tuple[Contrast, ...] = ()
    if hours_a.num_rows and hours_b.num_rows:
        verdict, contrasts, effect = _compared(pairs(hours_a, hours_b))
    else:
        trouble = f"period {'A' if not hours_a.num_rows else 'B'} has no hours of this series"
    said = tuple(notes_text(notes))
    calendar, whole = found[0] if found else None, _whole(figures, question.series)
    return Studied(calendar, said, a, b, verdict, contrasts, effect, trouble, whole)


def _whole(figures: Figures, series: Series) -> Whole:
    """Return the figures of a series, from those of a report."""
    from heliograph.monitor.history.report.cells import full
    from heliograph.monitor.history.studies.samples import PAIR
    from heliograph.monitor.history.studies.stages import TOTAL

    wanted = dict(zip(PAIR, series, strict=True))

    def is_of(one: SeriesFigures) -> bool:
        return all(one.labels[name] == value for name, value in wanted.items())

    found = tuple(one for metric in figures.metrics for one in metric.series if is_of(one))
    names = {full(one) for one in found if one.labels["metric"] == TOTAL}
    return Whole(
        found,
        next((one for one in figures.stages if one.name in names), None),
        tuple(event for event in figures.events if event.instance == wanted["instance"]),
        *figures.span,
    )


def _days_before_end(table: pa.Table, number: int) -> str:
    """Return the selection of the 24 hours that end some days before the end of a series."""
    import pyarrow as pa
    import pyarrow.compute as pc

    newest = pc.max(table["ts"].cast(pa.int64())).as_py() or 0
    end = newest + 3_600_000_000 - (number - 1) * _DAY_US

    def text(at_us: int) -> str:
        return datetime.fromtimestamp(at_us / 1e6, UTC).strftime("%Y-%m-%dT%H:%M")

    return f"from={text(end - _DAY_US)},to={text(end)}"


def _period(text: str, hours: pa.Table, days: pa.Table) -> Period:
    import numpy as np
    import pyarrow as pa

    from heliograph.monitor import _hdr
    from heliograph.monitor.history.merge import merge
    from heliograph.monitor.history.schema import PERCENTILES
    from heliograph.monitor.history.studies.samples import PAIR
    from heliograph.monitor.latency import spectrum
    from heliograph.monitor.model import Histogram

    rows = merge(pa.concat_tables([hours, days]), period=None, by=PAIR)[0].to_pylist()
    rows = [row for row in rows if row["n"]]
    if not rows:
        return Period(text, 0, 0, None, ())
    counts, digits, lowest, highest = _hdr.decode(rows[0]["h"])
    histogram = Histogram(np.frombuffer(counts, dtype=np.uint64), lowest, highest, digits)
    starts = set(hours["ts"].to_pylist())
    count = len(starts) + 24 * len(set(days["ts"].to_pylist()))
    at = tuple(int(rows[0][name]) for name in (*PERCENTILES, "max"))
    return Period(text, int(rows[0]["n"]), count, spectrum(histogram, _MOST_POINTS), at)


def _compared(found: Sequence[Pair]) -> tuple[str, tuple[Contrast, ...], float | None]:
    """Compare the hours of two periods, calibrated on the first one."""
    from heliograph.monitor.history.studies.bootstrap import check_installed

    check_installed()
    from heliograph.monitor.history.studies.compare import QUANTILES, calibrate, compare, verdict_of

    both = [pair for pair in found if pair.a is not None and pair.b is not None][:1]
    known = []
    for pair in both:
        assert pair.a is not None
        assert pair.b is not None
        window = min(pair.a.starts_us.size, pair.b.starts_us.size)
        known.append({quantile: calibrate(pair.a, window, quantile) for quantile in QUANTILES})
    results = compare(both, margin=MARGIN, calibrations=known)
    if not results:
        return "cannot say", (), None
    return verdict_of(results), results[0].contrasts, results[0].effect
