"""Receivers that take messages from stores too: the options ``recover=store``, ``join=store`` and ``durable``."""

from __future__ import annotations

import argparse
import threading
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import inf
from types import TracebackType
from typing import TYPE_CHECKING, Never, Self, cast

from heliograph.engine import _core
from heliograph.engine.errors import ClosedError, Error, UsageError
from heliograph.engine.message import Loss, Message
from heliograph.engine.options import refusal
from heliograph.engine.receiver import Receiver
from heliograph.engine.store.arguments import number_or_time
from heliograph.engine.store.follower import OLDEST, Account, Begin, Origin, StoreFollower, Taken
from heliograph.engine.store.places import Places
from heliograph.engine.store.reader import is_remote, streams
from heliograph.engine.store.subscriptions import Subscription

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from heliograph.engine.instance import Instance

__all__ = ["FollowingReceiver"]

_AT_ONCE = 256
"""Messages taken at once for calls that return one; a durable subscription is saved after this number."""
_SAVE_SECONDS = 0.2
_RETRY_SECONDS = 5.0
_REPORT_SECONDS = 0.1
_SLICE_SECONDS = 0.5
_END_SECONDS = 1.0
_LIMIT_MAX = 65536

_NS = 1e9


@dataclass
class _News:
    """What has happened to a stream since the last report; names as in docs/statistics.md, scope follower."""

    covered: int = 0
    live: int = 0
    joined: int = 0
    recovered: int = 0
    lost: int = 0
    first_lost: int = 0
    repeated: int = 0
    failures: int = 0
    failure: str | None = None


class _Books(Account):
    """What the application was given, and reports of it to the engine ten times a second."""

    def __init__(self, receiver: FollowingReceiver) -> None:
        self._receiver = receiver
        self._news: dict[str, _News] = {}
        self._next: dict[str, int] = {}
        self._reported = time.monotonic()
        self._is_urgent = False

    def begin(self, positions: dict[str, int]) -> None:
        """Streams whose next message is known."""
        self._next = dict(positions)

    def given(self, messages: Sequence[Message], origin: Origin) -> None:
        """The application gets messages of one stream whose numbers follow each other."""
        first, last = messages[0], messages[-1]
        news = self._of(last.stream)
        news.covered += last.number + 1 - self._next.get(last.stream, first.number)
        self._next[last.stream] = last.number + 1
        if origin is Origin.LIVE:
            news.live += len(messages)
        elif origin is Origin.JOIN:
            news.joined += len(messages)
        else:
            news.recovered += len(messages)

    def repeated(self, stream: str) -> None:
        self._of(stream).repeated += 1

    def lost(self, loss: Loss) -> None:
        news = self._of(loss.stream)
        news.first_lost = news.first_lost if news.lost else loss.first
        news.lost += loss.count
        news.covered += loss.last + 1 - self._next.get(loss.stream, loss.first)
        self._next[loss.stream] = loss.last + 1
        self._is_urgent = True

    def failed(self, stream: str, error: Error) -> None:
        news = self._of(stream)
        news.failures += 1
        news.failure = str(error)[:400]

    def report(self, *, now: bool = False) -> None:
        """Pass the news on when it is time, or `now`."""
        moment = time.monotonic()
        if not self._news or not (now or self._is_urgent or moment - self._reported >= _REPORT_SECONDS):
            return
        news, self._news = self._news, {}
        self._reported, self._is_urgent = moment, False
        for stream, one in news.items():
            self._receiver.followed(
                *(stream, self._next.get(stream, 0), one.covered, one.live, one.joined, one.recovered, one.lost),
                *(one.first_lost, one.repeated, one.failures, one.failure),
            )

    def _of(self, stream: str) -> _News:
        return self._news.setdefault(stream, _News())


class _Durable:
    """The positions of a durable subscription, and when they are saved.

    A message counts as done when the application asks for the next ones or closes the receiver; with ``ack=app`` when
    it acknowledges the message.
    """

    def __init__(self, subscription: Subscription, acks: bool) -> None:
        self._subscription = subscription
        self._acks = acks
        self._done = subscription.positions
        self._given: dict[str, int] = {}
        self._waiting = 0
        self._due = 0.0

    def given(self, messages: Sequence[Message]) -> None:
        """The application gets messages."""
        if not self._acks:
            self._given.update({message.stream: message.number + 1 for message in messages})
            self._waiting += len(messages)

    def asked(self) -> None:
        """The application is done with what it was given."""
        if self._given:
            self._done.update(self._given)
            self._given.clear()

    def acknowledged(self, stream: str, number: int) -> None:
        """The application has acknowledged a message and all before it."""
        if self._acks and number >= self._done.get(stream, 0):
            self._done[stream] = number + 1
            self._waiting += 1

    def save(self, *, now: bool = False) -> None:
        """Save the positions when it is time, or `now`. After a failure it is time again after some seconds.

        Raises:
            UsageError: Another receiver has the subscription now.
            Error: No store can be reached.
        """
        moment = time.monotonic()
        is_time = self._waiting and moment >= self._due
        if not now and not is_time and self._waiting < _AT_ONCE:
            return
        if not now and self._due > moment + _SAVE_SECONDS:  # it has failed
            return
        self._due = moment + _RETRY_SECONDS
        if self._done != self._subscription.positions:
            self._subscription.save(self._done)
        self._due = time.monotonic() + _SAVE_SECONDS
        self._waiting = 0


class _Live:
    """The live messages of a receiver, without those of the stores."""

    def __init__(self, receiver: Receiver) -> None:
        self._receiver = receiver
        self.topic = receiver.topic

    def receive(self, timeout: float | None = None, limit: int = _AT_ONCE) -> list[Message]:
        """The next live messages."""
        return Receiver.receive(self._receiver, timeout, limit)

    def losses(self) -> list[Loss]:
        """The losses of the live stream."""
        return Receiver.losses(self._receiver)


class FollowingReceiver(Receiver):
    """A receiver with one of the options ``recover=store``, ``join=store`` and ``durable``.

    It is used as any other receiver without callbacks, from one thread at a time. While it reads stores, live messages
    wait in its receive queue; if that overflows, the stores give them back.
    """

    __slots__ = ("_books", "_busy", "_durable", "_follower", "_is_over", "_places", "_rest")

    def __new__(cls, instance: Instance, endpoint: str, topic: str, options: str | None) -> Self:
        """As `Instance.receiver`, for options as text."""
        self = _core.Receiver.__new__(cls, instance, endpoint, topic, options, follows=True)
        try:
            self._follow(endpoint, topic, options)
        except BaseException:
            if places := getattr(self, "_places", None):
                places.close()
            super().close(self)
            raise
        return self

    def _follow(self, endpoint: str, topic: str, options: str | None) -> None:
        found = _core.following(endpoint, topic, options)
        assert found is not None
        joins, acks, wait_ns, texts, join_from, name = found
        stores = Places((text for text in texts.split(",") if text), announced=super().stores)
        self._places = stores
        if joins:
            stores.await_announced(endpoint, self._pause)
        _check(stores)
        subscription = Subscription(name, topic, stores) if name else None
        self._is_over = False
        self._busy = threading.Lock()
        self._rest: deque[Message] = deque()
        self._books = _Books(self)
        self._durable = None if subscription is None else _Durable(subscription, acks)
        self._follower = StoreFollower(
            stores,
            _Live(self),
            positions=subscription.positions if subscription else None,
            wait=wait_ns / _NS,
            begin=_begin(join_from) if joins else Begin("live"),
            fails=False,
            account=self._books,
            pause=self._pause,
        )
        self._books.begin(self._follower.positions())

    def receive(self, timeout: float | None = None, limit: int = _AT_ONCE) -> list[Message]:
        """Take up to `limit` messages; a list, empty when none came in time.

        A durable subscription has the messages of the call before as done.

        Args:
            timeout: Longest time to wait for a live message, seconds, at least 0; None: no limit. Reading stores may
                take longer.
            limit: Maximum number of messages, 1 to 65536.

        Raises:
            ClosedError: The receiver is closed, perhaps during the wait.
            UsageError: Another thread is receiving with it, or another receiver has the durable subscription now.
            ValueError: `timeout` or `limit` is out of range.
        """
        if timeout is not None and not timeout >= 0:
            raise ValueError(f"timeout must be at least 0 seconds, not {timeout}")
        if not 1 <= limit <= _LIMIT_MAX:
            raise ValueError(f"limit must be 1 to {_LIMIT_MAX} messages, not {limit}")
        with self._alone():
            if not self._rest:
                self._fetch(timeout, limit)
            taken = [self._rest.popleft() for _ in range(min(limit, len(self._rest)))]
            if self._durable:
                self._durable.given(taken)
            return taken

    def receive_one(self, timeout: float | None = None) -> Message | None:
        """Take the next message; None when none came in time. Errors as `receive`."""
        return self._one(timeout, None)

    def receive_bytes(self, timeout: float | None = None, limit: int = _AT_ONCE) -> list[bytes]:
        """As `receive`, but the list holds plain bytes."""
        return [message.data for message in self.receive(timeout, limit)]

    def receive_into(self, buffer: Buffer, timeout: float | None = None) -> int | None:
        """Copy the next message to the start of a writable, contiguous buffer; returns its length, None: none came.

        Raises:
            ValueError: The message is longer than the buffer. It stays for the next call.
            BufferError: The buffer is read-only or not contiguous.
            Error: As `receive`.
        """
        with memoryview(buffer) as view:
            if view.readonly or not view.c_contiguous:
                raise BufferError("the buffer must be writable and contiguous")
            with view.cast("B") as room:
                message = self._one(timeout, len(room))
                if message is None:
                    return None
                room[: len(message)] = message.data
                return len(message)

    def receive_views(self, timeout: float | None = None, limit: int = _AT_ONCE) -> Never:
        """Not for messages that may come from stores.

        Raises:
            UsageError: Always.
        """
        raise UsageError("a receiver that takes messages from stores has no views and batches: use receive")

    def receive_packed(self, timeout: float | None = None, limit: int = 4096) -> Never:
        """As `receive_views`."""
        self.receive_views()

    def losses(self) -> list[Loss]:  # type: ignore[override]  # the compiled base returns tuples
        """Take the losses since the last call, oldest first: what neither the source nor a store had in time."""
        self._check_open()
        return self._follower.losses()

    def acknowledge_number(self, number: int, stream: str | None = None) -> None:
        """As the base; a durable subscription continues after the message."""
        known = self._follower.positions()
        try:
            super().acknowledge_number(number, stream)
        except ValueError:  # the stream is only in the stores
            if stream not in known:
                raise
        if self._durable:
            self._durable.acknowledged(stream or next(iter(known), ""), number)

    def close(self) -> None:
        """Stop receiving. A durable subscription has all messages as done that the application was given."""
        self._close(done=True)

    def __iter__(self) -> Self:
        self._check_open()
        return self

    def __next__(self) -> Message:
        try:
            while (message := self.receive_one()) is None:
                pass
        except ClosedError:
            raise StopIteration from None
        return message

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close(done=kind is None)

    def _one(self, timeout: float | None, room: int | None) -> Message | None:
        """The next message, if it is not longer than `room`."""
        if timeout is not None and not timeout >= 0:
            raise ValueError(f"timeout must be at least 0 seconds, not {timeout}")
        with self._alone():
            if not self._rest:
                self._fetch(timeout, _AT_ONCE)
            if not self._rest:
                return None
            if room is not None and len(self._rest[0]) > room:
                raise ValueError(
                    f"the next message has {len(self._rest[0])} bytes and the buffer {room}; the message is kept for "
                    "the next call"
                )
            message = self._rest.popleft()
            if self._durable:
                self._durable.given([message])
            return message

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """One thread at a time."""
        self._check_open()
        if not self._busy.acquire(blocking=False):
            raise UsageError("another thread is receiving with this receiver")
        try:
            if self._durable:
                self._durable.asked()
                self._save()
            yield
        finally:
            self._busy.release()

    def _fetch(self, timeout: float | None, limit: int) -> None:
        """Wait for messages, and report and save meanwhile."""
        deadline = inf if timeout is None else time.monotonic() + timeout
        while True:
            self._tend()
            left = min(_SLICE_SECONDS, max(0.0, deadline - time.monotonic()))
            taken = self._follower.take(left, limit)
            messages = self._as_messages(taken)
            if messages:
                self._books.given(messages, taken.origin)
                self._rest.extend(messages)
            if trouble := self._places.trouble():
                self._failed(Error(trouble))
            self._books.report(now=not messages)
            if messages or time.monotonic() >= deadline:
                return
            self._save()

    def _as_messages(self, taken: Taken) -> Sequence[Message]:
        if taken.origin is Origin.LIVE:
            return cast("Sequence[Message]", taken.messages)
        is_loss = taken.origin is Origin.LOSS
        return [
            _core.stored_message(
                one.data, one.topic, one.stream, one.number, one.submit_ns, one.receive_ns, is_loss or one.recovered
            )
            for one in taken.messages
        ]

    def _save(self, *, now: bool = False) -> None:
        """Save the durable subscription when it is time. Stores that are away are tried again.

        Raises:
            UsageError: Another receiver has the subscription now.
        """
        if self._durable:
            try:
                self._durable.save(now=now)
            except UsageError:
                raise
            except Error as error:
                self._failed(error)

    def _failed(self, error: Error) -> None:
        """A failure that belongs to no stream is reported with one of them."""
        for stream in list(self._follower.positions())[:1]:
            self._books.failed(stream, error)

    def _close(self, *, done: bool) -> None:
        """Close; the messages that the application was given last are `done`.

        While another thread receives, it ends first: it was done with what it was given when it asked for more.
        """
        if self._is_over:
            super().close()
            return
        self._is_over = True
        self._places.close()
        is_alone = self._busy.acquire(blocking=False)
        try:
            if is_alone and self._durable and done:
                self._durable.asked()
            if is_alone and not self.closed:
                self._books.report(now=True)
        finally:
            super().close()
            is_alone = is_alone or self._busy.acquire(timeout=_END_SECONDS)
            try:
                self._save(now=True)
            finally:
                if is_alone:
                    self._busy.release()

    def _check_open(self) -> None:
        if self.closed:
            raise ClosedError("the receiver is closed")

    def _pause(self, seconds: float) -> None:
        """Between two looks into the stores."""
        self._check_open()
        self._tend()
        time.sleep(seconds)

    def _tend(self) -> None:
        """Let the engine run where no thread does, and look which stores are announced."""
        if self.instance.polled:
            self.instance.poll()
        self._places.listen()


def _begin(join_from: str) -> Begin:
    """The option ``join_from``."""
    if not join_from:
        return OLDEST
    try:
        return Begin("number" if join_from.isdecimal() else "time", number_or_time(join_from))
    except argparse.ArgumentTypeError as error:
        raise refusal(f"option join_from: {error}") from error


def _check(stores: Places) -> None:
    """Refuse what cannot be a store before something is missing. Services may be away.

    Raises:
        Error: All stores are directories, and none can be read.
    """
    if stores.listens:
        return
    failures = []
    for store in stores:
        if is_remote(store):
            continue
        try:
            streams(store)
        except Error as error:
            failures.append(error)
    if len(failures) == len(stores):
        raise failures[0] if failures else refusal("option stores has no store")
