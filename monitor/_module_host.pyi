"""Loads C modules (engine/binding/module_host.c) and converts tuples to their structures.

Pairs are flat tuples of alternating keys and values. Arrays of numbers are bytes in the byte order of the machine.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

ABI: int
"""Version of the module interface."""

class Refused(Exception):
    """The file is not a module that this host can use."""

class Failed(Exception):
    """A function of the module failed; the text is its error."""

class Loaded:
    """A module loaded into this process. Its functions are called without the interpreter lock."""

    name: str
    version: str

    def __init__(self, path: str, told: Callable[[str, int, str], object], /) -> None:
        """Load a shared object.

        Args:
            path: Path with a slash; otherwise the loader searches elsewhere.
            told: Called with ("log", severity, text) and ("lost", count, "") when the module reports this.
        """

    def open(self, options: str, /) -> None: ...
    def describe(
        self, product_version: str, scopes: tuple[tuple[Any, ...], ...], kinds: tuple[tuple[Any, ...], ...], /
    ) -> None:
        """Pass the schema to the module.

        Args:
            product_version: Version of Heliograph.
            scopes: (id, name, help, labels, cells), a cell is (name, statistic, unit, split label, split value, help,
                kind, level).
            kinds: (id, severity, name, help) of each kind of event.
        """

    def snapshot(
        self, time_ns: int, number: int, dropped: int, events_missed: int, instances: tuple[tuple[Any, ...], ...], /
    ) -> None:
        """Pass a snapshot to the module.

        An instance is (name, health, reason, pid, incarnation, started, heartbeat, objects); an object is (scope index,
        flags, created, labels, info pairs, values u64, valid u8, histograms); a histogram is (cell index, digits,
        lowest, highest, above, negative, total, places u32, counts u64).
        """

    def event(
        self,
        time_ns: int,
        incarnation: int,
        number: int,
        instance: str,
        name: str,
        severity: int,
        labels: tuple[str, ...],
        argument_names: tuple[str, ...],
        argument_values: tuple[int, ...],
        text: str,
        /,
    ) -> None: ...
    def topic_created(
        self,
        time_ns: int,
        incarnation: int,
        instance: str,
        direction: int,
        topic: str,
        stream: str,
        endpoint: str,
        /,
    ) -> None: ...
    def topic_destroyed(
        self,
        time_ns: int,
        incarnation: int,
        instance: str,
        direction: int,
        topic: str,
        stream: str,
        endpoint: str,
        /,
    ) -> None: ...
    def close(self) -> None: ...
