"""Spool files that a history has merged completely, so that a roll-up need not open them again.

The ledger saves time only. The manifests of the hours decide what is merged; a lost ledger makes the next roll-up read
the whole spool and merge nothing twice. So it does not matter either whose ledger stays when two writers save one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable

from heliograph.monitor.history.ranges import Ranges, union
from heliograph.monitor.history.remote import Place
from heliograph.monitor.history.writes import put

__all__ = ["Ledger"]

_NAME = "merged-files.json"
_SPOOL_FILE = re.compile(r"date=(\d{4}-\d\d-\d\d)/(.{1,200})-(\d{6,12})\.parquet", re.DOTALL)
"""A file as `write_spool` names it. A file of another name may be a copy, and is always opened."""

Key = tuple[str, str]


class Ledger:
    """Numbers of the merged files by day and source.

    Args:
        history: Directory of the history.
    """

    def __init__(self, history: Place) -> None:
        self._path = history / _NAME
        self._merged: dict[Key, Ranges] = {}
        try:
            content = json.loads(self._path.read_bytes())
            for day, sources in content["files"].items():
                for source, ranges in sources.items():
                    self._merged[str(day), str(source)] = [(int(first), int(last)) for first, last in ranges]
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            self._merged = {}

    def has(self, name: str) -> bool:
        """Whether the file with this path below the spool is merged completely."""
        found = _SPOOL_FILE.fullmatch(name)
        if found is None:
            return False
        number = int(found[3])
        return any(first <= number <= last for first, last in self._merged.get((found[1], found[2]), ()))

    def add(self, names: Iterable[str]) -> None:
        """Note files as merged."""
        numbers: dict[Key, list[int]] = {}
        for name in names:
            if found := _SPOOL_FILE.fullmatch(name):
                numbers.setdefault((found[1], found[2]), []).append(int(found[3]))
        for key, of_key in numbers.items():
            self._merged[key] = union([self._merged.get(key, []), [(number, number) for number in of_key]])

    def save(self) -> None:
        """Write the ledger.

        Raises:
            OSError: The directory cannot be written.
        """
        content: dict[str, dict[str, Ranges]] = {}
        for (day, source), ranges in sorted(self._merged.items()):
            content.setdefault(day, {})[source] = ranges
        put(self._path, json.dumps({"files": content}).encode("ascii"))
