"""Loads modules in C (engine/binding/module_host.c), whose structures it makes from tuples.

Pairs are flat tuples of keys and values in turn; arrays of numbers are bytes in the byte order of the machine.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

ABI: int
"""Version of the module interface."""

class Refused(Exception):
    """The file is no module that this host can use."""

class Failed(Exception):
    """A function of the module failed; the text is what it said."""

class Loaded:
    """A module that is loaded into this process. Its functions are called without the interpreter's lock."""

    name: str
    version: str

    def __init__(self, path: str, told: Callable[[str, int, str], object], /) -> None:
        """Load a shared object.

        Args:
            path: With a slash, or the loader looks elsewhere.
            told: Called with ("log", severity, text) and ("lost", count, "") when the module says so.
        """

    def open(self, options: str, /) -> None: ...
    def describe(
        self, product_version: str, scopes: tuple[tuple[Any, ...], ...], kinds: tuple[tuple[Any, ...], ...], /
    ) -> None:
        """Give it the schema.

        Args:
            product_version: Of this Heliograph.
            scopes: (id, name, help, labels, cells), a cell (name, statistic, unit, split label, split value, help,
                kind, level).
            kinds: (id, severity, name, help) of each kind of event.
        """

    def snapshot(
        self, time_ns: int, number: int, dropped: int, events_missed: int, instances: tuple[tuple[Any, ...], ...], /
    ) -> None:
        """Give it a snapshot.

        An instance is (name, health, reason, pid, incarnation, started, heartbeat, objects); an object (scope index,
        flags, created, labels, info pairs, values u64, valid u8, histograms); a histogram (cell index, digits, lowest,
        highest, above, negative, total, places u32, counts u64).
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
