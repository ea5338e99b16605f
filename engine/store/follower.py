"""Follows a topic with stores: first what they have, then live messages, without gap or duplicate."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Literal, Protocol, TypeAlias

from heliograph.engine.errors import Error, SystemCallError
from heliograph.engine.message import Loss, Message
from heliograph.engine.store.reader import MAX, StoredMessage, Where, runs, streams

__all__ = ["OLDEST", "Account", "Begin", "Live", "Origin", "StoreFollower", "Taken"]

AnyMessage: TypeAlias = Message | StoredMessage

_LOOK_SECONDS = 0.005
"""Time between two looks for messages that a store is about to write."""
_IDLE_SECONDS = 1.0
"""After this time without a live message, the stores may have one that the receiver has lost."""
_IDLE_SECONDS_MAX = 30.0
"""Looks that find nothing are further and further apart, up to this."""
_WAIT_SECONDS = 0.05
"""Longest time that a service waits for them in each look."""


class Origin(Enum):
    """Where messages come from."""

    LIVE = "live"
    JOIN = "join"
    """From a store, and from before the first live message of the stream."""
    LOSS = "loss"
    """From a store, because the receiver has lost or dropped them."""


@dataclass(frozen=True, slots=True)
class Taken:
    """Messages of one stream and one origin whose numbers follow each other."""

    messages: Sequence[AnyMessage]
    origin: Origin


@dataclass(frozen=True, slots=True)
class Begin:
    """The first message of streams without a position.

    Attributes:
        by: ``oldest``: the oldest message in a store; ``time``: the first one that a store received then or later;
            ``number``: the message with this number in the streams that the stores have now, the oldest in others;
            ``live``: the first message that the receiver was to get.
        value: The number, or the time in ns since 1970.
    """

    by: Literal["oldest", "number", "time", "live"]
    value: int = 0


OLDEST = Begin("oldest")


class Live(Protocol):
    """A receiver, as a follower uses it."""

    @property
    def topic(self) -> str:
        """The topic it receives."""

    def receive(self, timeout: float | None = None, limit: int = 256) -> list[Message]:
        """As `Receiver.receive`."""

    def losses(self) -> list[Loss]:
        """As `Receiver.losses`."""


class Account:
    """Is told what a follower passes over and cannot read. This one ignores it."""

    def repeated(self, stream: str) -> None:
        """A live message was passed over, because a store had given it before."""

    def lost(self, loss: Loss) -> None:
        """Neither the receiver nor a store has the messages."""

    def failed(self, stream: str, error: Error) -> None:
        """A store could not be read."""


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

    Receivers with the options ``recover``, ``join=store`` or ``durable`` have one inside.
    """

    def __init__(
        self,
        stores: Where | Sequence[Where],
        receiver: Live,
        *,
        positions: Mapping[str, int] | None = None,
        wait: float = 5.0,
        begin: Begin = OLDEST,
        fails: bool = True,
        account: Account | None = None,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        """Begin with the messages that the stores have.

        Args:
            stores: Directory of a store, or ``store://HOST:PORT`` of its service, or several of them. The sequence may
                change meanwhile (`Places`).
            receiver: Live receiver without callbacks; nobody else may use it.
            positions: By stream, the number of the next message, from `positions` of an earlier follower.
            wait: Longest time that a gap waits for a store to write its messages, seconds. Then it is a loss.
            begin: First message of other streams.
            fails: When stores that may have missing messages cannot be read until `wait` is over, `receive` raises the
                error. If False, the messages count as lost.
            account: Is told what is passed over and what cannot be read.
            pause: Called with seconds to wait between two looks; it may raise an `Error`, which ends `receive`.

        Raises:
            Error: No store can be read. With `begin` ``live`` the stores are not read before something is missing.
        """
        self._stores: Sequence[Where] = [stores] if isinstance(stores, str | os.PathLike) else stores
        self._receiver = receiver
        self._wait = wait
        self._begin = begin
        self._fails = fails
        self._account = account or Account()
        self._pause = pause
        self._positions = dict(positions or {})
        self._losses: list[Loss] = []
        self._reported: list[Loss] = []
        self._due: dict[str, int] = {}
        self._met: set[str] = set()
        self._failures: dict[Where, Error] = {}
        self._looked, self._idle = time.monotonic(), _IDLE_SECONDS
        self._is_away = False
        self._ready: Taken | None = None
        found = self._candidates()
        if begin.by == "number":
            self._positions = {**dict.fromkeys(found, begin.value), **self._positions}
        self._pending = self._kept(found)

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
        return list(self.take(timeout, limit).messages)

    def take(self, timeout: float | None = None, limit: int = 256) -> Taken:
        """As `receive`, and where the messages come from."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            try:
                self._ready = self._ready or next(self._pending, None)
            except Exception:
                self._due.clear()
                self._pending = self._again()
                raise
            if self._ready:
                return self._given(limit)
            left = _IDLE_SECONDS if deadline is None else min(_IDLE_SECONDS, max(0.0, deadline - time.monotonic()))
            live = self._live(left, limit)
            now = time.monotonic()
            if live:
                self._looked, self._idle = now, _IDLE_SECONDS
                self._pending = self._joined(live)
            elif self._reported:
                self._pending = self._recovered()
            elif now - self._looked >= self._idle:
                self._looked, self._idle = now, min(2 * self._idle, _IDLE_SECONDS_MAX)
                self._pending = self._overdue()
            elif deadline is not None and now >= deadline:
                return Taken([], Origin.LIVE)

    def _given(self, limit: int) -> Taken:
        """At most `limit` of what is ready."""
        assert self._ready is not None
        all_, self._ready = self._ready, None
        if len(all_.messages) > limit:
            self._ready = replace(all_, messages=all_.messages[limit:])
            all_ = replace(all_, messages=all_.messages[:limit])
        last = all_.messages[-1]
        self._positions[last.stream] = last.number + 1
        return all_

    def _live(self, timeout: float, limit: int) -> list[Message]:
        """Live messages. A loss shows as a gap before the next one; the last losses of a stream are noted."""
        live = self._receiver.receive(timeout=timeout, limit=limit)
        lost = self._receiver.losses()
        if lost and not live:  # messages from before the losses may have come meanwhile
            live = self._receiver.receive(timeout=0.0, limit=limit)
        self._reported += lost
        if self._begin.by == "live":
            self._meet(live)
        self._reported = [loss for loss in self._reported if loss.last >= self._next(loss.stream)]
        return live

    def _meet(self, live: list[Message]) -> None:
        """Streams that begin with a loss begin there."""
        firsts: dict[str, int] = {}
        for message in live:
            firsts.setdefault(message.stream, message.number)
        for loss in self._reported:
            is_first = loss.first < firsts[loss.stream] if loss.stream in firsts else not live
            if is_first and not self._knows(loss.stream):
                self._due[loss.stream] = loss.first

    def _next(self, stream: str) -> int:
        return self._due.get(stream, self._positions.get(stream, 0))

    def _knows(self, stream: str) -> bool:
        """The stream has a position."""
        return stream in self._due or stream in self._positions

    def _candidates(self) -> list[str]:
        """The streams that a store may have messages of.

        Raises:
            Error: No store can be read.
        """
        known = dict.fromkeys([*self._positions, *self._due])
        return list(known if self._begin.by == "live" else {**known, **dict.fromkeys(self._streams())})

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
        if self._all_fail():
            raise next(iter(self._failures.values()))

    def _all_fail(self) -> bool:
        return bool(self._failures) and all(store in self._failures for store in self._stores)

    def _again(self) -> Iterator[Taken]:
        """After a failure: all that follows the positions."""
        yield from self._kept(self._candidates())

    def _kept(self, found: list[str]) -> Iterator[Taken]:
        """Messages of the streams that the stores have."""
        for stream in found:
            try:
                yield from self._stored(stream, MAX)
            except Error:
                if self._fails:
                    raise

    def _overdue(self) -> Iterator[Taken]:
        """The last messages of streams that have fallen silent. Stores that cannot be read are asked again later."""
        try:
            yield from self._kept(self._candidates())
        except Error:
            return

    def _recovered(self) -> Iterator[Taken]:
        """Losses at the end of streams, which no later message shows."""
        while self._reported:
            loss = self._reported.pop(0)
            if self._knows(loss.stream) and loss.last >= self._next(loss.stream):
                self._met.add(loss.stream)
                yield from self._filled(loss.stream, loss.last)

    def _joined(self, live: list[Message]) -> Iterator[Taken]:
        """Live messages, and before each what is missing of its stream."""
        if self._follow(live):
            yield Taken(live, Origin.LIVE)
            return
        run: list[AnyMessage] = []
        for message in live:
            due = self._next(message.stream)
            if message.number < due:
                self._account.repeated(message.stream)
                continue
            if run and (message.number > due or message.stream != run[-1].stream):
                yield Taken(run, Origin.LIVE)
                run = []
            if message.number > due and (self._begin.by != "live" or self._knows(message.stream)):
                yield from self._filled(message.stream, message.number - 1)
            self._met.add(message.stream)
            if message.number >= self._next(message.stream):  # the stores may have had it too
                self._due[message.stream] = message.number + 1
                run.append(message)
            else:
                self._account.repeated(message.stream)
        if run:
            yield Taken(run, Origin.LIVE)

    def _follow(self, live: list[Message]) -> bool:
        """Whether they are the next messages of one stream, as most lists are. Then they count as given."""
        first, last = live[0], live[-1]
        stream = first.stream
        if first.number != self._next(stream) or last.number - first.number != len(live) - 1:
            return False
        if any(message.stream != stream for message in live):  # the numbers of a stream increase
            return False
        self._met.add(stream)
        self._due[stream] = last.number + 1
        return True

    def _stored(self, stream: str, last: int, wait: float = 0.0) -> Iterator[Taken]:
        """The messages from the next to `last` that the stores have.

        Raises:
            Error: No store can be read, or messages are missing and a store that may have them cannot be read.
        """
        self._failures = {}
        is_loss = stream in self._met or self._begin.by == "live"
        for run in self._merged(stream, self._next(stream), last, self._stores, wait):
            if run[0].number > self._next(stream) and self._knows(stream):
                yield from self._filled(stream, run[0].number - 1)
            self._due[stream] = run[-1].number + 1
            yield Taken(run, Origin.LOSS if is_loss else Origin.JOIN)
        self._refuse_without_store()
        self._is_away = False

    def _merged(
        self, stream: str, first: int, last: int, stores: Sequence[Where], wait: float
    ) -> Iterator[list[StoredMessage]]:
        """Messages `first` to `last` from the first store, and those that it lacks from the others."""
        if not stores:  # none is known yet
            return
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

    def _of(self, store: Where, stream: str, first: int, last: int, wait: float = 0.0) -> Iterator[list[StoredMessage]]:
        """The messages that one store has; they end when it cannot be read."""
        try:
            if self._knows(stream) or self._begin.by != "time":
                yield from self._read(store, stream, first, last, wait)
            elif (at := self._number_at(store, stream, wait)) is not None and max(first, at) <= last:
                yield from self._read(store, stream, max(first, at), last, 0.0)
        except Error as error:
            self._failures[store] = error
            self._account.failed(stream, error)

    def _read(self, store: Where, stream: str, first: int, last: int, wait: float) -> Iterator[list[StoredMessage]]:
        return runs(store, stream, by="number", first=first, last=last, topic=self._receiver.topic, wait=wait)

    def _number_at(self, store: Where, stream: str, wait: float) -> int | None:
        """Number of the first message that the store received at the time of `begin` or later; None: there is none."""
        since = runs(store, stream, by="time", first=self._begin.value, last=MAX, topic=self._receiver.topic, wait=wait)
        for run in since:
            return run[0].number
        return None

    def _filled(self, stream: str, last: int) -> Iterator[Taken]:
        """The messages up to `last`, as the stores write them. Stores that are away may come back meanwhile.

        Where they did not, later gaps are not waited for until a store can be read again.
        """
        end = time.monotonic() + (0.0 if self._is_away else self._wait)
        is_last, wait = False, 0.0
        while True:
            try:
                yield from self._stored(stream, last, wait)
            except SystemCallError:
                if is_last and self._fails:
                    raise
            except Error:
                if self._fails:
                    raise
            if self._next(stream) > last:
                return
            if is_last:
                self._is_away = self._all_fail()
                self._lose(stream, last + 1)
                return
            # The stores may write the messages between the last look and this one, so there is one look after it.
            is_last = time.monotonic() >= end or self._are_beyond(stream, last)
            if not is_last:
                wait = _WAIT_SECONDS
                self._pause(_LOOK_SECONDS)

    def _are_beyond(self, stream: str, last: int) -> bool:
        """There are stores, and each has a later message: what they lack before that, they will not get."""
        beyond = [next(self._of(store, stream, last + 1, MAX), None) for store in self._stores]
        return bool(beyond) and None not in beyond

    def _lose(self, stream: str, until: int) -> None:
        """Pass over what is missing before `until`. Of a stream that is new to the subscriber it is no loss.

        Raises:
            Error: A store that may have the messages cannot be read.
        """
        first = self._next(stream)
        if self._knows(stream):
            for failure in self._failures.values():
                if self._fails:
                    raise failure
            loss = Loss(first, until - first, stream)
            self._losses.append(loss)
            self._positions[stream] = until  # all before has been given
            self._account.lost(loss)
        self._due[stream] = until
