"""Fetches what a store lacks from its peers, in a thread of its own; the thread of the store keeps it.

The thread reads from the peers and hands over batches, a bounded number of bytes at a time. It never touches the files.
"""

from __future__ import annotations

import contextlib
import socket
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeAlias

from heliograph.engine.errors import Error, SystemCallError
from heliograph.engine.store.protocol import NUMBER_AHEAD, Ask, Reading, host_and_port, identity_of
from heliograph.engine.store.remote import ask, runs_of

__all__ = ["CatchUp", "Filler"]

Key: TypeAlias = tuple[bytes, int, str]
"""GSI, port and topic of a hole."""

_MAX = 2**64 - 1
_QUEUE_BYTES = 4 << 20
"""Bytes of batches that wait for the store; one batch may be longer."""
_TURN_BYTES = 1 << 20
"""Bytes that the store keeps between two looks for live messages; one batch may be longer."""
_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 60.0
"""Seconds between two rounds that brought nothing."""
_END_SECONDS = 10.0
_USELESS_SECONDS = 120.0
"""A peer whose batches bring nothing for so long is left."""


class Filler(Protocol):
    """The part of a store that keeps what was fetched."""

    def holes(self) -> list[tuple[bytes, int, str, int, int]]:
        """GSI, port, topic, first and last number of what is missing."""

    def fill(self, gsi: bytes, port: int, topic: str, batch: bytes, /) -> tuple[int, int, bool]:
        """Messages kept; the number after a gap of the batch, or 0; whether to give the batch again."""

    def give_up(self, gsi: bytes, port: int, topic: str, until: int, /) -> bool:
        """No store has the messages before this number."""


@dataclass(frozen=True, slots=True)
class _Hole:
    key: Key
    first: int
    last: int


class _Stopped(BaseException):
    """`close` was called."""


class CatchUp:
    """Asks peers in turn for the messages of holes until they are filled or no peer has them.

    A hole is given up only when each peer has answered twice, half a second or more apart, that it has later messages
    but not those. A peer that is away, refuses or sends other bytes is tried again, in the end once a minute.
    """

    def __init__(
        self, peers: Sequence[str], path: Path, *, rate: float = 0.0, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Start the thread.

        Args:
            peers: ``store://HOST:PORT`` of their services.
            path: Directory of the store, which is not a peer of itself.
            rate: Limit on the bytes received per second, over all peers; 0: no limit.
            clock: Seconds that only grow.

        Raises:
            OptionError: An address is malformed.
        """
        for peer in peers:
            host_and_port(peer)
        self._peers = list(dict.fromkeys(peers))
        self._path = path
        self._rate = rate
        self._clock = clock
        self._free_at = 0.0
        self._changed = threading.Condition()
        self._holes: dict[Key, _Hole] = {}
        self._batches: deque[tuple[Key, bytes]] = deque()
        self._queued = 0
        self._found: dict[Key, int] = {}
        self._bad = ""
        self._surrender: tuple[Key, int] | None = None
        self._is_reading = False
        self._stopping = False
        self._connection: socket.socket | None = None
        self._pauses: dict[Key, tuple[float, float]] = {}
        self._doubts: dict[Key, int] = {}
        self._others: set[str] = set()
        self._troubles: dict[str, str] = {}
        self.failures = 0
        self._thread = threading.Thread(target=self._run, name="store-catch-up", daemon=True)
        self._thread.start()

    def trouble(self) -> str:
        """Why peers cannot be read, one sentence per peer; empty while nothing is wrong."""
        with self._changed:
            return "; ".join(self._troubles.values())

    def close(self) -> None:
        """End the thread. Idempotent."""
        with self._changed:
            self._stopping = True
            if self._connection:
                with contextlib.suppress(OSError):
                    self._connection.shutdown(socket.SHUT_RDWR)
            self._changed.notify_all()
        self._thread.join(_END_SECONDS)  # looking up a name cannot be ended

    # ---- the thread of the store ----

    def tend(self, filler: Filler) -> bool:
        """Keep what was fetched, at most a turn, and take note of the holes. Returns whether there is more to do soon.

        Raises:
            UsageError: As `StoreServer.step`.
        """
        self._keep(filler)
        with self._changed:
            if self._surrender:
                (gsi, port, topic), until = self._surrender
                filler.give_up(gsi, port, topic, until)
                self._surrender = None
            found = {(gsi, port, topic): (first, last) for gsi, port, topic, first, last in filler.holes()}
            self._holes = {key: _Hole(key, *span) for key, span in found.items()}
            self._changed.notify_all()
            return bool(self._batches) or self._is_reading

    def _keep(self, filler: Filler) -> None:
        kept = 0
        while self._batches and kept < _TURN_BYTES:
            key, batch = self._batches[0]
            found = 0
            try:
                _, found, is_blocked = filler.fill(*key, batch)
                if is_blocked:
                    return
            except ValueError as error:
                self._bad = str(error)
            kept += len(batch)
            with self._changed:
                if found:
                    self._found[key] = min(found, self._found.get(key, found))
                self._batches.popleft()
                self._queued -= len(batch)

    # ---- the thread that fetches ----

    def _run(self) -> None:
        with contextlib.suppress(_Stopped):
            while True:
                hole = self._next_hole()
                try:
                    is_better = self._round(hole)
                except Exception:  # a defect costs one round, and is seen
                    self._check()
                    is_better = False
                    traceback.print_exc()
                _, pause = self._pauses.get(hole.key, (0.0, _FIRST_PAUSE / 2))
                pause = 0.0 if is_better else min(pause * 2 or _FIRST_PAUSE, _LONGEST_PAUSE)
                self._pauses[hole.key] = (self._clock() + pause, pause)

    def _next_hole(self) -> _Hole:
        """A hole whose pause is over; waits for one."""
        with self._changed:
            while True:
                self._check()
                for old in (self._pauses, self._doubts):
                    for key in set(old) - set(self._holes):
                        del old[key]
                now = self._clock()
                due = sorted((self._pauses.get(key, (0.0, 0.0))[0], number) for number, key in enumerate(self._holes))
                self._is_reading = bool(due and due[0][0] <= now)
                if self._is_reading:
                    return list(self._holes.values())[due[0][1]]
                self._changed.wait(due[0][0] - now if due else None)

    def _check(self) -> None:
        if self._stopping:
            raise _Stopped

    def _settled(self, key: Key) -> _Hole | None:
        """The hole after the store has kept everything that was handed over."""
        with self._changed:
            self._changed.wait_for(lambda: self._stopping or (not self._queued and self._surrender is None))
            # The holes are noted after the batches were kept.
            before = self._holes
            self._changed.wait_for(lambda: self._stopping or self._holes is not before)
            self._check()
            return self._holes.get(key)

    def _round(self, begun: _Hole) -> bool:
        """Read from each peer. Returns whether the hole is smaller than before."""
        hole: _Hole | None = begun
        later: list[int] = []
        are_all = is_told = True
        for peer in list(self._peers):
            if hole is None:
                return True
            try:
                if self._is_itself(peer):
                    self._note(peer, f"the peer {peer} is this store itself")
                    continue
                number = self._fetch(peer, hole)
                self._note(peer, "")
                are_all = are_all and number is not None
                later += [] if number is None else [number]
            except Error as error:
                self._check()
                are_all = is_told = False
                self._others.discard(peer)
                self.failures += 1
                self._note(peer, str(error))
            hole = self._settled(begun.key)
        if hole is None or hole.first > begun.first:
            self._doubts.pop(begun.key, None)
            return True
        # Before the first message that the store has of a topic, a peer without any of it proves as much.
        if later and (are_all or (is_told and hole.first == 0)):
            until = min(*later, hole.last + 1)
            if until > hole.first and self._doubts.get(begun.key) == hole.first:
                del self._doubts[begun.key]
                with self._changed:
                    self._surrender = (begun.key, until)
                self._settled(begun.key)
                return True
            self._doubts[begun.key] = hole.first
        return False

    def _note(self, peer: str, trouble: str) -> None:
        with self._changed:
            if trouble:
                self._troubles[peer] = trouble
                self._peers.sort(key=lambda one: one == peer)  # it comes last
            else:
                self._troubles.pop(peer, None)

    def _is_itself(self, peer: str) -> bool:
        """Whether the peer serves the directory of this store; asked again after a failure. An older service does not
        tell."""
        if peer in self._others:
            return False
        try:
            is_same = b"".join(self._asked(peer, Ask.IDENTITY, b"")) == identity_of(self._path)
        except SystemCallError:
            raise
        except Error:
            is_same = False
        if not is_same:
            self._others.add(peer)
        return is_same

    def _fetch(self, peer: str, hole: _Hole) -> int | None:
        """Hand over what the peer has of the hole.

        Returns:
            The number of the first message that it has after those it lacks; None: it has no later one.

        Raises:
            Error: The peer cannot be read, or its bytes are not those of a store.
        """
        gsi, port, topic = hole.key
        self._found.pop(hole.key, None)
        self._bad = ""
        first, since = hole.first, self._clock()
        for batch in self._asked(
            peer, Ask.READ, Reading(gsi, port, NUMBER_AHEAD, hole.first, hole.last, topic).encode()
        ):
            self._hand_over(hole.key, batch)
            now = self._holes.get(hole.key)
            if now is None or self._bad or hole.key in self._found:
                break
            if now.first > first:
                first, since = now.first, self._clock()
            elif self._clock() - since > _USELESS_SECONDS:
                raise Error(f"the peer {peer} sends batches without the messages that are missing")
        rest = self._settled(hole.key)
        if self._bad:
            raise Error(f"the answer of {peer} is not one of a store: {self._bad}")
        if rest is None:
            return None
        found = self._found.pop(hole.key, 0)
        if found > rest.first:
            return found
        reading = Reading(gsi, port, NUMBER_AHEAD, rest.last + 1, _MAX, topic)
        if rest.last == _MAX:
            return None
        for run in runs_of(peer, reading, self._connect):
            return run[0].number
        return None

    def _asked(self, peer: str, kind: Ask, body: bytes) -> Iterator[bytes]:
        """The answers, as fast as the rate allows."""
        for data in ask(peer, kind, body, self._connect):
            yield data
            if self._rate > 0:
                begin = max(self._free_at, self._clock())
                self._free_at = begin + len(data) / self._rate
                with self._changed:
                    self._changed.wait_for(lambda: self._stopping, max(0.0, self._free_at - self._clock()))
                    self._check()

    def _connect(self, connection: socket.socket) -> None:
        """So that `close` can end it."""
        with self._changed:
            self._check()
            self._connection = connection

    def _hand_over(self, key: Key, batch: bytes) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._stopping or self._queued == 0 or self._queued < _QUEUE_BYTES)
            self._check()
            self._batches.append((key, batch))
            self._queued += len(batch)
