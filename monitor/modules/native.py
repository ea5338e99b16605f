"""A C module in this process: the calls that a child process makes.

Python identifies values by name, C by index: the schema is the catalogue, and the values of an object are in the order
of the cells of its scope. Scopes and cells that are not in the catalogue (of another version) are left out.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np

from heliograph.engine import catalogue
from heliograph.monitor import _module_host
from heliograph.monitor.errors import UserError
from heliograph.monitor.model import Event, Histogram, ObjectState
from heliograph.monitor.modules.lane import Ledger, Portion
from heliograph.monitor.modules.protocol import Direction, Topic
from heliograph.monitor.sparse import sparse_cells

__all__ = ["NativeSink", "schema_of"]

_KINDS = {"counter": 0, "gauge": 1, "peak": 2, "histogram": 3, "signed": 4}
_WORD = (1 << 64) - 1
_SEVERITIES = {"info": 0, "warning": 1, "error": 2}
_LIVE, _TORN = 1, 2


class _Places:
    """Indexes of the values of the objects of a scope."""

    __slots__ = ("cells", "histograms", "index")

    def __init__(self, index: int, scope: catalogue.Scope) -> None:
        self.index = index
        self.cells = tuple(cell.name for cell in scope.cells)
        self.histograms = {
            cell.name: place for place, cell in enumerate(scope.cells) if cell.statistic.kind == "histogram"
        }


def schema_of(scopes: Mapping[str, catalogue.Scope]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Return the scopes and kinds of events in the form of `Loaded.describe`."""

    def cell_of(cell: catalogue.Cell) -> tuple[Any, ...]:
        statistic = cell.statistic
        split = (statistic.split.label if statistic.split else "", cell.value or "")
        kind = _KINDS[statistic.kind]
        return cell.name, statistic.name, statistic.unit, *split, statistic.help, kind, statistic.level

    found = tuple(
        (scope.id, scope.name, scope.help, scope.labels, tuple(cell_of(cell) for cell in scope.cells))
        for scope in scopes.values()
    )
    kinds = tuple(
        (event.id, _SEVERITIES[event.severity], event.name, event.help) for event in catalogue.events().values()
    )
    return found, kinds


def _pairs(values: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(text for pair in values.items() for text in pair)


def _histogram(place: int, histogram: Histogram) -> tuple[Any, ...]:
    cells, counts = sparse_cells(histogram)
    return (
        place,
        histogram.digits,
        histogram.lowest,
        histogram.highest,
        histogram.above,
        histogram.negative,
        histogram.total_ns,
        cells.astype(np.uint32).tobytes(),
        counts.astype(np.uint64).tobytes(),
    )


class NativeSink:
    """Calls the functions of a C module in this process."""

    def __init__(self, path: str, options: str, ledger: Ledger) -> None:
        """Load and open the module.

        Args:
            path: The shared object.
            options: Options of the module.
            ledger: Receives messages of the module at any time.

        Raises:
            UserError: The file is not a module, or it rejects its options.
        """
        self._ledger = ledger
        try:
            self._module = _module_host.Loaded(path, self._told)
            self._module.open(options)
        except _module_host.Refused as error:
            raise UserError(str(error)) from None
        except _module_host.Failed as error:
            raise UserError(f"it failed to open: {error}") from None
        self.name = f"{self._module.name} {self._module.version}"
        self._places = {scope.name: _Places(index, scope) for index, scope in enumerate(catalogue.scopes().values())}

    def start(self, ledger: Ledger) -> None:
        """Pass the schema to the module."""
        try:
            product = version("heliograph")
        except PackageNotFoundError:
            product = ""
        self._call("describe", self._module.describe, product, *schema_of(catalogue.scopes()))

    def take(self, portion: Portion, ledger: Ledger) -> None:
        """Pass the snapshot, then its moments."""
        snapshot = portion.snapshot
        if snapshot is not None:
            instances = tuple(
                (
                    instance.name,
                    instance.health.value,
                    instance.reason,
                    instance.pid,
                    instance.incarnation,
                    instance.started_ns,
                    instance.heartbeat_ns,
                    tuple(self._object(item) for item in instance.objects if item.scope in self._places),
                )
                for instance in snapshot.instances
            )
            head = (snapshot.time_ns, portion.number, portion.dropped, snapshot.events_missed)
            self._call("snapshot", self._module.snapshot, *head, instances)
        for moment in portion.moments:
            if isinstance(moment, Event):
                self._call("event", self._module.event, *_event(moment))
            elif moment.created:
                self._call("topic_created", self._module.topic_created, *_topic(moment.topic))
            else:
                self._call("topic_destroyed", self._module.topic_destroyed, *_topic(moment.topic))

    def stop(self, within: float) -> None:
        """Do nothing: C code cannot be interrupted."""

    def close(self, ledger: Ledger) -> None:
        """Close the module."""
        self._module.close()

    def _object(self, item: ObjectState) -> tuple[Any, ...]:
        places = self._places[item.scope]
        values = item.values
        return (
            places.index,
            _LIVE * item.live | _TORN * item.torn,
            item.created_ns,
            tuple(item.labels.values()),
            _pairs(item.info),
            array("Q", [values.get(cell, 0) & _WORD for cell in places.cells]).tobytes(),
            bytes(cell in values for cell in places.cells),
            tuple(
                _histogram(place, item.histograms[name])
                for name, place in places.histograms.items()
                if name in item.histograms
            ),
        )

    def _call(self, name: str, function: Any, *arguments: Any) -> None:
        try:
            function(*arguments)
        except _module_host.Failed as error:
            self._ledger.failed(str(error), f"in {name}")
        except (TypeError, ValueError, OverflowError) as error:  # values that C cannot hold
            self._ledger.failed(f"its input cannot be converted to C: {error}", f"in {name}")

    def _told(self, kind: str, number: int, text: str) -> None:
        if kind == "lost":
            self._ledger.count(lost=number)
        else:
            self._ledger.say(f"says: {text}")


def _event(event: Event) -> tuple[Any, ...]:
    return (
        event.time_ns,
        event.incarnation,
        event.number,
        event.instance,
        event.name,
        _SEVERITIES.get(event.severity, 3),
        _pairs(event.labels),
        tuple(event.arguments),
        tuple(event.arguments.values()),
        event.text,
    )


def _topic(topic: Topic) -> tuple[Any, ...]:
    direction = 0 if topic.direction is Direction.TRANSMIT else 1
    return topic.time_ns, topic.incarnation, topic.instance, direction, topic.topic, topic.stream, topic.endpoint
