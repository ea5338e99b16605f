"""Follows a topic with a store on this host: first what the store has, then live messages, without gap or duplicate."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import TypeAlias

from heliograph.engine.message import Loss, Message
from heliograph.engine.receiver import Receiver
from heliograph.engine.store.reader import MAX, StoredMessage, read, streams

__all__ = ["StoreFollower"]

AnyMessage: TypeAlias = Message | StoredMessage

_LOOK_SECONDS = 0.005
"""Time between two looks for messages that the store is about to write."""


class StoreFollower:
    """A receiver together with the files of a store that keeps its topic.

    The messages of each stream come in order, each once. Those before the receiver joined, and those it has lost, come
    from the store. So a subscriber that was away continues with its saved `positions`. The seam is by message number:
    before a live message, all earlier ones are read from the files.

    The store may run on this host, or its directory may be a copy or a mount. It is read only.

        with instance.receiver(endpoint, "ORDERS") as receiver:
            follower = StoreFollower("/var/lib/heliograph/store", receiver, positions=saved)
            for message in follower.receive(timeout=1.0):
                ...
            saved = follower.positions()
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        receiver: Receiver,
        *,
        positions: Mapping[str, int] | None = None,
        wait: float = 5.0,
    ) -> None:
        """Begin with the messages that the store has.

        Args:
            path: Directory of the store.
            receiver: Live receiver without callbacks; nobody else may use it.
            positions: By stream, the number of the next message, from `positions` of an earlier follower. For other
                streams it begins with the oldest message in the store.
            wait: Longest time that a gap waits for the store to write its messages, seconds. Then it is a loss.

        Raises:
            Error: The directory cannot be read, is not a store, or has another version.
        """
        self._path = path
        self._receiver = receiver
        self._wait = wait
        self._positions = dict(positions or {})
        self._losses: list[Loss] = []
        self._due: dict[str, int] = {}
        self._pending = self._kept(streams(path))

    def positions(self) -> dict[str, int]:
        """By stream, the number after the last message that `receive` has returned."""
        return dict(self._positions)

    def losses(self) -> list[Loss]:
        """Take the ranges that neither the receiver nor the store has, since the last call."""
        found, self._losses = self._losses, []
        return found

    def receive(self, timeout: float | None = None, limit: int = 256) -> list[AnyMessage]:
        """The next messages; those of the store first.

        Args:
            timeout: Longest time to wait for a live message, seconds; None: without limit.
            limit: Most messages of a list.

        Returns:
            Messages, at most `limit`; an empty list when none came in time.

        Raises:
            ClosedError: The receiver is closed.
            Error: A segment of the store is damaged or cannot be read. Messages returned before stay valid; the next
                call tries again.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            taken: list[AnyMessage] = []
            try:
                taken.extend(islice(self._pending, limit))
            except Exception:
                self._due.clear()
                self._pending = self._kept(list(self._positions))
                raise
            if taken:
                for message in taken:
                    self._positions[message.stream] = message.number + 1
                return taken
            left = None if deadline is None else max(0.0, deadline - time.monotonic())
            live = self._receiver.receive(timeout=left, limit=limit)
            self._receiver.losses()  # they show as gaps
            if not live:
                return []
            self._pending = self._joined(live)

    def _next(self, stream: str) -> int:
        return self._due.get(stream, self._positions.get(stream, 0))

    def _kept(self, found: list[str]) -> Iterator[AnyMessage]:
        """Messages of the streams that the store has."""
        for stream in found:
            yield from self._stored(stream, MAX)

    def _joined(self, live: list[Message]) -> Iterator[AnyMessage]:
        """Live messages, and before each what is missing of its stream."""
        for message in live:
            if message.number > self._next(message.stream):
                yield from self._filled(message.stream, message.number - 1)
            if message.number >= self._next(message.stream):
                self._due[message.stream] = message.number + 1
                yield message

    def _stored(self, stream: str, last: int) -> Iterator[AnyMessage]:
        """The messages from the next to `last` that the store has. A range that is missing between them is a loss."""
        if stream not in streams(self._path):
            return
        for message in read(self._path, stream, by="number", first=self._next(stream), last=last):
            if message.topic == self._receiver.topic and message.number >= self._next(stream):
                if message.number > self._next(stream):
                    self._lose(stream, message.number)
                self._due[stream] = message.number + 1
                yield message

    def _filled(self, stream: str, last: int) -> Iterator[AnyMessage]:
        """The messages up to `last`, as the store writes them."""
        end = time.monotonic() + self._wait
        while self._next(stream) <= last:
            yield from self._stored(stream, last)
            if self._next(stream) > last:
                return
            if time.monotonic() >= end or self._is_beyond(stream, last):
                self._lose(stream, last + 1)
                return
            time.sleep(_LOOK_SECONDS)

    def _is_beyond(self, stream: str, last: int) -> bool:
        """The store has a later message of the topic: what it lacks before that, it will not get."""
        if stream not in streams(self._path):
            return False
        return any(one.topic == self._receiver.topic for one in read(self._path, stream, by="number", first=last + 1))

    def _lose(self, stream: str, until: int) -> None:
        """Pass over what is missing before `until`. Of a stream that is new to the subscriber it is no loss."""
        first = self._next(stream)
        if stream in self._due or stream in self._positions:
            self._losses.append(Loss(first, until - first, stream))
        self._due[stream] = until
