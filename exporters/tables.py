"""Families whose series share the text of their labels: built once for a set of objects, then filled by each snapshot.

A `Labels` holds the label values of some objects and the text they have in a line. A `Table` is a family: columns of
values over such labels. The text of an answer comes from it directly. `samples` gives the same series to the encoders
of prometheus-client.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

from prometheus_client.metrics_core import Metric
from prometheus_client.samples import Exemplar, Sample
from prometheus_client.utils import floatToGoString

from heliograph.engine.catalogue.outside import Output, outside
from heliograph.exporters._lines import lines
from heliograph.monitor.model import Histogram

__all__ = ["Column", "Exemplar", "Form", "Labels", "Table", "Tables", "number_text", "shown"]

_PLAIN_BELOW = 1_000_000
"""Go writes larger values with an exponent."""

Extra = tuple[str, str]
"""Name and value of a label beside those of the object."""

_Lines = tuple[str, Sequence[str], Sequence[float | None], int, Mapping[int, str]]
"""A column as `_lines.lines` takes it."""


@lru_cache(maxsize=1 << 15)
def shown(label: str) -> str:
    """Make a label value safe, so that every scraper can parse the answer."""
    return outside(label, Output.LABEL)


@lru_cache(maxsize=1 << 10)
def _escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")


def number_text(value: float) -> str:
    """Write a value as prometheus-client does."""
    number = float(value)
    if -_PLAIN_BELOW < number < _PLAIN_BELOW:
        return repr(number)
    text: str = floatToGoString(number)  # type: ignore[no-untyped-call]
    return text


def _exemplar_text(found: Exemplar) -> str:
    labels = ",".join([f'{name}="{_escaped(value)}"' for name, value in sorted(found.labels.items())])
    return f" # {{{labels}}} {number_text(found.value)} {found.timestamp}"


class Labels:
    """The label values of some objects, and their text; immutable."""

    def __init__(self, names: Sequence[str], values: Sequence[tuple[str, ...]], older: Labels | None = None) -> None:
        """Hold labels.

        Args:
            names: Names of the labels.
            values: Label values of each object, not yet safe for an output.
            older: The labels of the previous set of objects; what it has in common is not built again.
        """
        self.names = tuple(names)
        self.values = values
        self._of: Mapping[tuple[str, ...], tuple[Extra, ...]]
        known: Mapping[tuple[str, ...], tuple[Extra, ...]] = {}
        if older is not None and older.names == self.names:
            known = older._of
        self._of = {key: known.get(key) or self._pairs(key) for key in values}
        self._blocks: dict[Extra | None, list[str]] = {}

    def _pairs(self, key: tuple[str, ...]) -> tuple[Extra, ...]:
        return tuple(sorted(zip(self.names, map(shown, key), strict=True)))

    def blocks(self, extra: Extra | None = None) -> list[str]:
        """Return the label text of each object, with a further label if there is one."""
        found = self._blocks.get(extra)
        if found is None:
            found = self._blocks[extra] = [self._block(key, extra) for key in self.values]
        return found

    def _block(self, key: tuple[str, ...], extra: Extra | None) -> str:
        pairs = self._of[key] if extra is None else sorted((*self._of[key], extra))
        text = ",".join([f'{name}="{_escaped(value)}"' for name, value in pairs])
        return f"{{{text}}}" if text else ""

    def pairs(self, extra: Extra | None = None) -> list[tuple[Extra, ...]]:
        """Return the labels of each object as pairs of name and value, in the order of the names but for `extra`."""
        return [self._of[key] if extra is None else (*self._of[key], extra) for key in self.values]

    def dictionaries(self, extra: Extra | None = None) -> list[dict[str, str]]:
        """Return the labels of each object by name."""
        added = dict([extra]) if extra else {}
        return [dict(zip(self.names, map(shown, key), strict=True)) | added for key in self.values]


@dataclass(frozen=True, slots=True)
class Form:
    """Name, kind and text of a family."""

    name: str
    """As exposed; that of a counter ends in ``_total``."""
    kind: str
    help: str
    divisor: int = 1
    """Inverse of the catalogue's scale: division by 10^9 keeps decimals exact, multiplication by 10^-9 does not."""

    @property
    def family(self) -> str:
        """The name of the family: that of a counter has no ``_total``."""
        return self.name.removesuffix("_total") if self.kind == "counter" else self.name

    def is_named(self, wanted: frozenset[str]) -> bool:
        """Whether the family or one of its samples has a wanted name; no name: all are wanted."""
        suffixes = ("", "_bucket", "_count", "_sum") if self.kind == "histogram" else ("",)
        return not wanted or self.family in wanted or any(self.name + suffix in wanted for suffix in suffixes)


@dataclass(frozen=True, slots=True)
class Column:
    """One value for each object, under one sample name."""

    labels: Labels
    values: Sequence[float | None]
    """In internal units; None: the object has no such value."""
    extra: Extra | None = None
    suffix: str = ""
    """Ending of the sample name, for the parts of a histogram."""
    is_count: bool = False
    """Whether the value is a number of values of a histogram, which has no unit."""
    exemplars: Mapping[int, Exemplar] = field(default_factory=dict)
    """By place of the object."""


class Table(Metric):
    """A family as columns. All columns of a histogram are of the same objects."""

    def __init__(
        self,
        form: Form,
        columns: Sequence[Column] = (),
        histograms: Sequence[Histogram] = (),
        created_ns: Sequence[int] = (),
    ) -> None:
        """Combine a form with its values.

        Args:
            form: Name, kind and text.
            columns: The values.
            histograms: The counts of each object of a histogram.
            created_ns: Time at which the counts of each object began, ns; 0: unknown.
        """
        self.form = form
        self.histograms = histograms
        self.created_ns = created_ns
        self.columns = tuple(columns)
        self.name = form.family
        self.documentation = form.help
        self.unit = ""
        self.type = form.kind

    if not TYPE_CHECKING:

        @cached_property
        def samples(self) -> list[Sample]:
            """The series for the encoders of prometheus-client."""
            parts = [self._samples(column) for column in self.columns]
            if self.type == "histogram":
                return [sample for one in zip(*parts, strict=True) for sample in one]
            return [sample for part in parts for sample in part]

    def _samples(self, column: Column) -> list[Sample]:
        name, divisor = self.form.name + column.suffix, 1 if column.is_count else self.form.divisor
        rows = enumerate(zip(column.labels.dictionaries(column.extra), column.values, strict=True))
        return [
            Sample(name, labels, value / divisor, exemplar=column.exemplars.get(place))
            for place, (labels, value) in rows
            if value is not None
        ]

    def __len__(self) -> int:
        """Return the number of series."""
        return sum(len(column.values) - column.values.count(None) for column in self.columns)

    def __bool__(self) -> bool:
        return any(len(column.values) > column.values.count(None) for column in self.columns)

    @cached_property
    def text(self) -> bytes:
        """The lines of all series, as in the text format."""
        return self._text()

    @cached_property
    def openmetrics(self) -> bytes:
        """The same lines with exemplars, which only counters have."""
        return self._text(has_exemplars=True) if any(column.exemplars for column in self.columns) else self.text

    @cached_property
    def openmetrics_with_created(self) -> bytes:
        """Those, the lines of each object followed by the time at which its counts began."""
        return self._text(has_exemplars=True, has_created=True) if self.created_ns else self.openmetrics

    def _text(self, *, has_exemplars: bool = False, has_created: bool = False) -> bytes:
        groups = [self.columns] if self.type == "histogram" else [(column,) for column in self.columns]
        return b"".join(
            [
                lines(
                    [self._part(column, has_exemplars) for column in group]
                    + ([self._created(group[0])] if has_created else [])
                )
                for group in groups
            ]
        )

    def _part(self, column: Column, has_exemplars: bool) -> _Lines:
        name, divisor = self.form.name + column.suffix, 1 if column.is_count else self.form.divisor
        found = column.exemplars.items() if has_exemplars else ()
        endings = {place: _exemplar_text(exemplar) for place, exemplar in found}
        return name, column.labels.blocks(column.extra), column.values, divisor, endings

    def _created(self, column: Column) -> _Lines:
        """Return a line for each line of a column, where the time is known."""
        blocks = column.labels.blocks(None if self.type == "histogram" else column.extra)
        pairs = zip(column.values, self.created_ns, strict=True)
        times = [began / 1e9 if began and value is not None else None for value, began in pairs]
        return f"{self.name}_created", blocks, times, 1, {}

    def named(self, wanted: frozenset[str]) -> Table:
        """Return the part with wanted names, of samples or of families; no name: all."""
        if not wanted or self.name in wanted or self.form.name in wanted:
            return self
        columns = [column for column in self.columns if self.form.name + column.suffix in wanted]
        return Table(self.form, columns, self.histograms)


class Tables:
    """Keeps the labels of sets of objects from one snapshot to the next."""

    def __init__(self) -> None:
        """Create an empty store."""
        self._known: dict[Hashable, Labels] = {}

    def labels(self, key: Hashable, names: Sequence[str], values: Iterable[tuple[str, ...]]) -> Labels:
        """Return the labels of a set of objects; only those of new objects are built."""
        found = list(values)
        known = self._known.get(key)
        if known is None or known.names != tuple(names) or known.values != found:
            known = self._known[key] = Labels(names, found, known)
        return known
