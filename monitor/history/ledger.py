"""Spool files that a history has merged completely, so that a roll-up need not open them again.

The ledger saves time only. The manifests of the hours decide what is merged; a lost ledger makes the next roll-up read
the whole spool and merge nothing twice. So it does not matter either whose ledger stays when two writers save one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any

from heliograph.monitor.history.ranges import Ranges, union
from heliograph.monitor.history.remote import Place
from heliograph.monitor.history.writes import put

__all__ = ["FileSet", "Ledger"]

_NAME = "merged-files.json"
_SPOOL_FILE = re.compile(r"date=(\d{4}-\d\d-\d\d)/(.{1,200})-(\d{6,12})\.parquet", re.DOTALL)
"""A file as `write_spool` names it. A file of another name may be a copy, and is always opened."""

Key = tuple[str, str]


class FileSet:
    """A set of spool files by their paths below the spool, kept as numbers by day and source.

    Args:
        content: What `content` returned.

    Raises:
        ValueError: It is something else; also `KeyError`, `TypeError`, `AttributeError`.
    """

    def __init__(self, content: Any = None) -> None:
        self._numbers: dict[Key, Ranges] = {}
        for day, sources in (content or {"files": {}})["files"].items():
            for source, ranges in sources.items():
                self._numbers[str(day), str(source)] = [(int(first), int(last)) for first, last in ranges]

    def has(self, name: str) -> bool:
        """Whether the file is one of the set; never, if its name may be that of a copy."""
        found = _SPOOL_FILE.fullmatch(name)
        if found is None:
            return False
        number = int(found[3])
        return any(first <= number <= last for first, last in self._numbers.get((found[1], found[2]), ()))

    def add(self, names: Iterable[str]) -> None:
        """Add files, except those whose names may be of copies."""
        numbers: dict[Key, list[int]] = {}
        for name in names:
            if found := _SPOOL_FILE.fullmatch(name):
                numbers.setdefault((found[1], found[2]), []).append(int(found[3]))
        for key, of_key in numbers.items():
            self._numbers[key] = union([self._numbers.get(key, []), [(number, number) for number in of_key]])

    def content(self) -> dict[str, Any]:
        """Return the set as plain data for JSON."""
        files: dict[str, dict[str, Ranges]] = {}
        for (day, source), ranges in sorted(self._numbers.items()):
            files.setdefault(day, {})[source] = ranges
        return {"files": files}


class Ledger(FileSet):
    """The merged files.

    Args:
        history: Directory of the history.
    """

    def __init__(self, history: Place) -> None:
        self._path = history / _NAME
        try:
            super().__init__(json.loads(self._path.read_bytes()))
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            super().__init__()

    def save(self) -> None:
        """Write the ledger.

        Raises:
            OSError: The directory cannot be written.
        """
        put(self._path, json.dumps(self.content()).encode("ascii"))
