"""Lag of the durable subscriptions of a store: what their positions lack to its newest messages."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Collection
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeAlias

from heliograph.engine import _store
from heliograph.engine.errors import Error
from heliograph.engine.store.protocol import parse_stream
from heliograph.engine.store.subscriptions import Position, kept_in

if TYPE_CHECKING:
    from collections.abc import Sequence

    from heliograph.engine._store import SubscriptionRow

__all__ = ["SHOWN_MAX", "Lags", "Shower"]

Key: TypeAlias = tuple[bytes, int, str]
"""GSI, port and topic."""

SHOWN_MAX = 256
"""Most positions that are shown; those with the largest lags."""
_LOOK_SECONDS = 2.0


class Shower(Protocol):
    """The part of a keeper that knows the newest messages and shows positions."""

    def end(self, gsi: bytes, port: int, topic: str, /) -> int: ...
    def show_subscriptions(self, rows: Sequence[SubscriptionRow], /) -> None: ...


class Lags:
    """Reads the files of subscriptions when they have changed, and has the keeper show their positions.

    The keeper knows the newest message of a topic while its stream is open. For others the files are searched from
    their end, each once, by a thread: in a large stream with many topics the search may take seconds.

    Anybody on the network can save a subscription at a store's service. So only topics that the store keeps are shown,
    of streams that it has, and at most `SHOWN_MAX` positions.
    """

    def __init__(self, path: str | os.PathLike[str], *, clock: Callable[[], float] = time.monotonic) -> None:
        """Begin.

        Args:
            path: Directory of the store.
            clock: Seconds that only grow.
        """
        self._path = Path(path)
        self._clock = clock
        self._looked = -_LOOK_SECONDS
        self._known: dict[str, tuple[int, Position | None]] = {}
        self._ends: dict[Key, int] = {}
        self._found: dict[Key, int] = {}
        self._searching: threading.Thread | None = None

    def tend(self, keeper: Shower, topics: Collection[str]) -> None:
        """Show the lags when it is time, every two seconds.

        Args:
            keeper: Shows them.
            topics: Topics that the store keeps.
        """
        now = self._clock()
        if now - self._looked < _LOOK_SECONDS:
            return
        self._looked = now
        self._known = kept_in(self._path, self._known)
        rows: list[SubscriptionRow] = []
        needed: set[Key] = set()
        for _, one in self._known.values():
            if one is None or one.topic not in topics:
                continue
            for stream, number in one.positions.items():
                gsi, port = parse_stream(stream)
                key = (gsi, port, one.topic)
                needed.add(key)
                end = self._end(keeper, key)
                if end:
                    rows.append((one.name, one.topic, gsi, port, number, end, one.saved_ns))
        self._search(needed)
        rows.sort(key=lambda row: row[4] - row[5])
        keeper.show_subscriptions(rows[:SHOWN_MAX])

    def _end(self, keeper: Shower, key: Key) -> int:
        """The number after the newest message; 0: none, or not known yet."""
        end = keeper.end(*key)
        if end:
            self._ends[key] = end
        return self._ends.get(key, 0)

    def _search(self, needed: set[Key]) -> None:
        """Have the ends that nobody knows searched for."""
        if self._searching and self._searching.is_alive():
            return
        for key, end in self._found.items():
            self._ends.setdefault(key, end)
        self._found = {}
        self._ends = {key: end for key, end in self._ends.items() if key in needed}
        if wanted := needed - self._ends.keys():
            self._searching = threading.Thread(target=self._run, args=(wanted,), name="store-lags", daemon=True)
            self._searching.start()

    def _run(self, wanted: set[Key]) -> None:
        for key in wanted:
            try:
                last = _store.last_number(self._path, *key)
            except Error:  # damaged: `heliograph store verify` says where
                last = None
            self._found[key] = 0 if last is None else last + 1
