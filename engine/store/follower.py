"""Follows a topic with stores: first what they have, then live messages, without gap or duplicate."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

from heliograph.engine.errors import Error, SystemCallError
from heliograph.engine.message import Loss, Message
from heliograph.engine.receiver import Receiver
from heliograph.engine.store.reader import MAX, StoredMessage, Where, runs, streams

__all__ = ["StoreFollower"]

AnyMessage: TypeAlias = Message | StoredMessage
Run: TypeAlias = list[AnyMessage]
"""Messages of one stream whose numbers follow each other."""

_LOOK_SECONDS = 0.005
"""Time between two looks for messages that a store is about to write."""
_IDLE_SECONDS = 1.0
"""After this time without a live message, the stores may have one that the receiver has lost."""
_WAIT_SECONDS = 0.05
"""Longest time that a service waits for them in each look."""


class StoreFollower:
    """A receiver together with stores that keep its topic.

    The messages of each stream come in order, each once. Those before the receiver joined, and those it has lost, come
    from the stores. So a subscriber that was away continues with its saved `positions`. The seam is by message number:
    before a live message, all earlier ones are read from the stores.

    A store is given by its directory (on this host, a copy or a mount) or by the address of its service. Of several,
    each message comes from the first that has it. A store that cannot be read is passed over while the others have
    what is needed.

        with instance.receiver(endpoint, "ORDERS") as receiver:
            follower = StoreFollower("store://10.0.0.5:7800", receiver, positions=saved)
            for message in follower.receive(timeout=1.0):
                ...
            saved = follower.positions()
    """

    def __init__(
        self,
        stores: Where | Sequence[Where],
        receiver: Receiver,
        *,
        positions: Mapping[str, int] | None = None,
        wait: float = 5.0,
    ) -> None:
        """Begin with the messages that the stores have.

        Args:
            stores: Directory of a store, or ``store://HOST:PORT`` of its service, or several of them.
            receiver: Live receiver without callbacks; nobody else may use it.
            positions: By stream, the number of the next message, from `positions` of an earlier follower. For other
                streams it begins with the oldest message in a store.
            wait: Longest time that a gap waits for a store to write its messages, seconds. Then it is a loss.

        Raises:
            Error: No store can be read.
        """
        self._stores = [stores] if isinstance(stores, str | os.PathLike) else list(stores)
        self._receiver = receiver
        self._wait = wait
        self._positions = dict(positions or {})
        self._losses: list[Loss] = []
        self._due: dict[str, int] = {}
        self._failures: dict[Where, Error] = {}
        self._looked = time.monotonic()
        self._ready: Run = []
        self._pending = self._kept(self._streams())

    def positions(self) -> dict[str, int]:
        """By stream, the number after the last message that `receive` has returned."""
        return dict(self._positions)

    def losses(self) -> list[Loss]:
        """Take the ranges that neither the receiver nor a store has, since the last call."""
        found, self._losses = self._losses, []
        return found

    def receive(self, timeout: float | None = None, limit: int = 256) -> list[AnyMessage]:
        """The next messages; those of the stores first.

        Args:
            timeout: Longest time to wait for a live message, seconds; None: without limit.
            limit: Most messages of a list.

        Returns:
            Messages, at most `limit`; an empty list when none came in time.

        Raises:
            ClosedError: The receiver is closed.
            Error: Messages are missing, and a store that may have them is damaged or cannot be read. Messages returned
                before stay valid; the next call tries again.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            try:
                self._ready = self._ready or next(self._pending, [])
            except Exception:
                self._due.clear()
                self._pending = self._again()
                raise
            if self._ready:
                taken, self._ready = self._ready[:limit], self._ready[limit:]
                self._positions[taken[-1].stream] = taken[-1].number + 1
                return taken
            left = _IDLE_SECONDS if deadline is None else min(_IDLE_SECONDS, max(0.0, deadline - time.monotonic()))
            live = self._receiver.receive(timeout=left, limit=limit)
            self._receiver.losses()  # they show as gaps
            now = time.monotonic()
            if live:
                self._looked = now
                self._pending = self._joined(live)
            elif now - self._looked >= _IDLE_SECONDS:
                self._looked = now
                self._pending = self._overdue()
            elif deadline is not None and now >= deadline:
                return []

    def _next(self, stream: str) -> int:
        return self._due.get(stream, self._positions.get(stream, 0))

    def _streams(self) -> list[str]:
        """The streams of all stores that can be read.

        Raises:
            Error: None can be read.
        """
        found: dict[str, None] = {}
        self._failures = {}
        for store in self._stores:
            try:
                found.update(dict.fromkeys(streams(store)))
            except Error as error:
                self._failures[store] = error
        self._refuse_without_store()
        return list(found)

    def _refuse_without_store(self) -> None:
        if len(self._failures) == len(self._stores):
            raise next(iter(self._failures.values()))

    def _again(self) -> Iterator[Run]:
        """After a failure: all that follows the positions."""
        yield from self._kept(list(dict.fromkeys([*self._positions, *self._streams()])))

    def _kept(self, found: list[str]) -> Iterator[Run]:
        """Messages of the streams that the stores have."""
        for stream in found:
            yield from self._stored(stream, MAX)

    def _overdue(self) -> Iterator[Run]:
        """The last messages of streams that have fallen silent. Stores that cannot be read are asked again later."""
        with contextlib.suppress(Error):
            yield from self._kept(list(dict.fromkeys([*self._positions, *self._streams()])))

    def _joined(self, live: list[Message]) -> Iterator[Run]:
        """Live messages, and before each what is missing of its stream."""
        run: Run = []
        for message in live:
            due = self._next(message.stream)
            if message.number < due:
                continue
            if run and (message.number > due or message.stream != run[-1].stream):
                yield run
                run = []
            if message.number > due:
                yield from self._filled(message.stream, message.number - 1)
            if message.number >= self._next(message.stream):  # the stores may have had it too
                self._due[message.stream] = message.number + 1
                run.append(message)
        if run:
            yield run

    def _stored(self, stream: str, last: int, wait: float = 0.0) -> Iterator[Run]:
        """The messages from the next to `last` that the stores have.

        Raises:
            Error: No store can be read, or messages are missing and a store that may have them cannot be read.
        """
        self._failures = {}
        for run in self._merged(stream, self._next(stream), last, self._stores, wait):
            if run[0].number > self._next(stream) and (stream in self._due or stream in self._positions):
                yield from self._filled(stream, run[0].number - 1)
            self._due[stream] = run[-1].number + 1
            yield run
        self._refuse_without_store()

    def _merged(self, stream: str, first: int, last: int, stores: Sequence[Where], wait: float) -> Iterator[Run]:
        """Messages `first` to `last` from the first store, and those that it lacks from the others."""
        store, *others = stores
        due = first
        for run in self._of(store, stream, first, last, wait):
            if run[-1].number < due:
                continue
            if run[0].number > due and others:
                yield from self._merged(stream, due, run[0].number - 1, others, 0.0)
            yield run[max(0, due - run[0].number) :]
            due = run[-1].number + 1
        if others and due <= last:
            yield from self._merged(stream, due, last, others, 0.0)

    def _of(self, store: Where, stream: str, first: int, last: int, wait: float = 0.0) -> Iterator[Run]:
        """The messages that one store has; they end when it cannot be read."""
        topic = self._receiver.topic
        try:
            yield from runs(store, stream, by="number", first=first, last=last, topic=topic, wait=wait)  # type: ignore[misc]
        except Error as error:
            self._failures[store] = error

    def _filled(self, stream: str, last: int) -> Iterator[Run]:
        """The messages up to `last`, as the stores write them. A store that is away may come back meanwhile."""
        end = time.monotonic() + self._wait
        is_last, wait = False, 0.0
        while True:
            try:
                yield from self._stored(stream, last, wait)
            except SystemCallError:
                if is_last:
                    raise
            if self._next(stream) > last:
                return
            if is_last:
                self._lose(stream, last + 1)
                return
            # The stores may write the messages between the last look and this one, so there is one look after it.
            is_last = time.monotonic() >= end or self._are_beyond(stream, last)
            if not is_last:
                wait = _WAIT_SECONDS
                time.sleep(_LOOK_SECONDS)

    def _are_beyond(self, stream: str, last: int) -> bool:
        """Each store has a later message of the topic: what they lack before that, they will not get."""
        beyond = [next(self._of(store, stream, last + 1, MAX), None) for store in self._stores]
        return None not in beyond

    def _lose(self, stream: str, until: int) -> None:
        """Pass over what is missing before `until`. Of a stream that is new to the subscriber it is no loss.

        Raises:
            Error: A store that may have the messages cannot be read.
        """
        first = self._next(stream)
        if stream in self._due or stream in self._positions:
            for failure in self._failures.values():
                raise failure
            self._losses.append(Loss(first, until - first, stream))
        self._due[stream] = until
