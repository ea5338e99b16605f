"""A second opinion: every stored histogram, read by the independent `hdrhistogram` package.

Of each row of a spool and of a history its cells, number of values, smallest and largest value, and percentiles must be
what our own kernel reads and what the columns of the row say. Percentiles are compared at our rank, ``ceil(p * n)``, in
exact arithmetic. Of each hour and day the sums must be those of its manifest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from heliograph.monitor import _hdr
from heliograph.monitor.errors import UserError
from heliograph.monitor.history.files import Broken, first_line, no_spool, read_table, scan
from heliograph.monitor.history.hours import Manifest, committed_days, committed_hours, load
from heliograph.monitor.history.remote import Place
from heliograph.monitor.history.rows import Row, needs_hdrhistogram, rows
from heliograph.monitor.history.schema import HISTORY, PERCENTILES, SPOOL, Column

__all__ = ["Difference", "Verified", "verify_history", "verify_spool"]

_RANKS = {name: Fraction(str(fraction)) for name, fraction in PERCENTILES.items()}

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Difference:
    """A row, or a manifest, that says something else than its histograms."""

    path: str
    row: int
    """Number of the row in its file, from 0; -1: the sum of all rows differs from the manifest."""
    column: str
    """The column; `cells` for the counts themselves."""
    stored: int
    """By the column, the manifest or our kernel."""
    found: int
    """By `hdrhistogram`."""
    series: str = ""
    """Labels of the row."""


@dataclass(frozen=True, slots=True)
class Verified:
    """The result for one kind of rows."""

    kind: str
    """``spool``, ``hours`` or ``days``."""
    files: int
    rows: int
    values: int
    differences: tuple[Difference, ...]
    broken: tuple[Broken, ...]
    """Files and rows that cannot be read."""


def verify_spool(spool: Place, progress: Progress = lambda text: None) -> Verified:
    """Check all rows of a spool.

    Raises:
        UserError: There is no spool, or `hdrhistogram` is not installed.
    """
    needs_hdrhistogram()
    if not spool.is_dir():
        raise no_spool(spool)
    found = scan(spool)
    checks = _Checks("spool", progress)
    checks.broken += found.broken
    for path in sorted(path for unit in found.units for path in unit.paths):
        checks.file(path, SPOOL)
    return checks.result()


def verify_history(history: Place, progress: Progress = lambda text: None) -> tuple[Verified, Verified]:
    """Check all hours and days of a history, also days that repeat their hours.

    Raises:
        UserError: There is no history, or `hdrhistogram` is not installed.
    """
    needs_hdrhistogram()
    if not history.is_dir():
        raise UserError(f"no history in {history}: create one with `heliograph history rollup`")
    of_kinds = (("hours", committed_hours(history)), ("days", committed_days(history)))
    hours, days = (_committed(_Checks(kind, progress), folders) for kind, folders in of_kinds)
    return hours, days


def _committed(checks: _Checks, folders: Iterable[Place]) -> Verified:
    for folder in folders:
        try:
            manifest = load(folder)
        except UserError as error:
            checks.broken.append(Broken(str(folder), first_line(error)))
            continue
        checks.folder(folder, manifest)
    return checks.result()


class _Checks:
    """Counts what is checked, and keeps what differs."""

    def __init__(self, kind: str, progress: Progress) -> None:
        self.broken: list[Broken] = []
        self._kind = kind
        self._progress = progress
        self._differences: list[Difference] = []
        self._files = self._rows = self._values = 0

    def result(self) -> Verified:
        return Verified(self._kind, self._files, self._rows, self._values, tuple(self._differences), tuple(self.broken))

    def folder(self, folder: Place, manifest: Manifest) -> None:
        """Check the data files of an hour or a day, and the sums of its manifest."""
        values = intervals = 0
        is_whole = True
        for one in manifest.files:
            sums = self.file(folder / one.name, HISTORY)
            is_whole = is_whole and sums is not None
            values += sums[0] if sums else 0
            intervals += sums[1] if sums else 0
        if is_whole and manifest.files:
            path = str(folder / f"manifest-{manifest.number:06d}.json")
            for name, stored, counted in (
                ("values", manifest.values, values),
                ("intervals", manifest.intervals, intervals),
            ):
                if stored != counted:
                    self._differences.append(Difference(path, -1, name, stored, counted))

    def file(self, path: str | Place, columns: tuple[Column, ...]) -> tuple[int, int] | None:
        """Check a file; returns its values and its intervals, None when it cannot be read in full."""
        try:
            table = read_table(path, columns)
        except (OSError, pa.ArrowException, ValueError) as error:
            self.broken.append(Broken(str(path), first_line(error)))
            return None
        self._files += 1
        values = intervals = 0
        is_whole = True
        for number, row in enumerate(rows(table)):
            try:
                self._differences += _differences(str(path), number, row)
            except Exception as error:  # hdrhistogram raises whatever the damage leads to
                self.broken.append(Broken(f"{path}: row {number}", first_line(error)))
                is_whole = False
            values += row.figures["n"]
            intervals += row.figures.get("intervals", 1)
            self._rows += 1
        self._values += values
        self._progress(f"{self._kind}: checked {self._rows:,} rows in {self._files:,} files")
        return (values, intervals) if is_whole else None


def _differences(path: str, number: int, row: Row) -> Iterator[Difference]:
    judged = row.histogram()
    ours = row.counts()
    theirs: npt.NDArray[np.uint64] = np.frombuffer(judged.counts, dtype=np.uint64)
    series = "/".join(row.labels[name] for name in ("instance", "topic", "stream", "metric", "tag") if row.labels[name])

    def different(column: str, stored: int, found: int) -> Iterator[Difference]:
        if stored != found:
            yield Difference(path, number, column, stored, found, series)

    width = min(len(theirs), len(ours.counts))
    unequal = np.flatnonzero(theirs[:width] != ours.counts[:width])
    beyond = int(theirs[width:].sum()) + int(ours.counts[width:].sum())
    yield from different("cells", 0, len(unequal) + beyond)
    figures = row.figures
    yield from different("digits", figures["digits"], judged.significant_figures)
    yield from different("lowest", figures["lowest"], judged.lowest_trackable_value)
    yield from different("n", figures["n"], int(judged.total_count))
    if judged.total_count:
        yield from different("min", figures["min"], int(judged.get_min_value()))
        yield from different("max", figures["max"], int(judged.get_max_value()))
    layout = ours.digits, ours.lowest, ours.highest
    kernel = _hdr.quantiles(ours.counts, *layout, list(PERCENTILES.values()))
    for (name, rank), of_kernel in zip(_RANKS.items(), kernel, strict=True):
        found = _value_at(judged, theirs, rank)
        yield from different(name, figures.get(name, of_kernel), found)


def _value_at(judged: Any, counts: npt.NDArray[np.uint64], fraction: Fraction) -> int:
    """Return the largest value of the cell at rank ``ceil(fraction * n)``, by the cells of `hdrhistogram`."""
    total = int(judged.total_count)
    if total == 0:
        return 0
    rank = max(1, -(-fraction.numerator * total // fraction.denominator))
    cell = int(np.searchsorted(np.cumsum(counts), np.uint64(rank)))
    return int(judged.get_highest_equivalent_value(judged.get_value_from_index(cell)))
