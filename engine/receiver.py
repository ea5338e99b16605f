"""Receiver: gets one topic, by iteration, in lists, or by callback."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Self, TypeAlias

from heliograph.engine import _core
from heliograph.engine.batch import Batch
from heliograph.engine.errors import ClosedError, TimeoutExpired
from heliograph.engine.message import Action, Loss, Message, Notice, Reason, Replay
from heliograph.engine.options import OptionValue, encode

if TYPE_CHECKING:
    from heliograph.engine.instance import Instance

__all__ = ["OnLoss", "OnMessages", "Receiver"]

OnMessages: TypeAlias = Callable[[list[Message]], object]
OnLoss: TypeAlias = Callable[[Loss], object]

_REASONS = list(Reason)


def _notice(
    action: int, reason: int, by_hand: bool, seconds: float, text: str, stream: str | None, wall_ns: int
) -> Notice:
    why = _REASONS[reason] if reason < len(_REASONS) else Reason.NONE  # a later version may know more
    return Notice(Action(_core.ACTIONS[action]), why, by_hand, seconds, text, stream, wall_ns)


class Receiver(_core.Receiver):
    """Gets one topic. Made by `Instance.receiver`; closed by `close`, by a ``with`` block, or with its instance.

    Without callbacks, messages wait for ``for message in receiver`` or `receive`; use it from one thread at a time.
    With callbacks it works by itself until it or its instance is closed, also when nobody keeps it.
    """

    __slots__ = ("__weakref__",)

    def __new__(
        cls,
        instance: Instance,
        endpoint: str,
        topic: str,
        *,
        on_messages: OnMessages | None = None,
        on_loss: OnLoss | None = None,
        **options: OptionValue,
    ) -> Self:
        """As `Instance.receiver`."""
        tell = None if on_loss is None else _Tell(on_loss)
        return super().__new__(cls, instance, endpoint, topic, encode(options), on_messages, tell)

    def receive_batch(self, timeout: float | None = None, limit: int = 4096) -> Batch:
        """Take up to `limit` (1 to 65536) messages in one buffer; empty when none came in time.

        The quickest way to take very many small messages: no object is made for each.

        Args:
            timeout: seconds to wait for the first message; None: as long as it takes, 0: not at all.
            limit: most messages to take.

        Raises:
            The errors of `receive`.
        """
        return Batch(*self.receive_packed(timeout, limit))

    def acknowledge(self, message: Message | int, stream: str | None = None) -> None:
        """Acknowledge a message and all before it; with ``ack="app"`` transmitters may wait for this.

        May be called from any thread (mode ``thread``) and within callbacks. It only takes note: the engine tells the
        source within a millisecond, sooner when the source asks.

        Args:
            message: the message, or its number.
            stream: identity of the stream when a number is given; not needed while there is only one.

        Raises:
            UsageError: the option ``ack`` is not ``app``.
            ValueError: the receiver has met no such stream, or several and none was named.
            ClosedError: the receiver is closed.
        """
        if isinstance(message, int):
            self.acknowledge_number(message, stream)
        else:
            self.acknowledge_number(message.number, message.stream)

    def losses(self) -> list[Loss]:  # type: ignore[override]  # the thin coat hands out tuples
        """Take the reports of losses since the last call, oldest first.

        Raises:
            ClosedError: the receiver is closed.
            UsageError: another thread is receiving with it, or it is called within a callback of its instance.
        """
        return [Loss(*loss) for loss in super().losses()]

    def notices(self) -> list[Notice]:  # type: ignore[override]  # the thin coat hands out tuples
        """Take what sources have told this receiver since the last call, oldest first; the newest 256 are kept.

        A source that finds a receiver slow may warn it, repair less or nothing for it, or expel it, and says why. The
        receiver obeys by itself; the application may lessen its load, or tell somebody.

        Raises:
            ClosedError: the receiver is closed.
        """
        return [_notice(*notice) for notice in super().notices()]

    def replay(  # type: ignore[override]  # the thin coat hands out a receiver of the range
        self, first: int, last: int, *, stream: str | int = 0, timeout: float = 5.0
    ) -> Replay:
        """Get messages again that the source still has in its history, whether this receiver had them or not.

        The receiver goes on undisturbed, and nothing of a replay counts in its statistics. The source is asked as for
        lost packets, so a replay costs it repairs, which all receivers of a multicast group see (and drop).

        Args:
            first: number of the first message wanted, from 0.
            last: number of the last one; at least `first`.
            stream: `Message.stream`, or the number of a stream in the order this receiver met them.
            timeout: seconds for all of it.

        Returns:
            The messages of the range, in order, and what of it the history does not have any more, or not yet.

        Raises:
            OptionError: `first` is more than `last`.
            TimeoutExpired: not all of it came in time.
            ClosedError: the receiver is closed.
            UsageError: the stream is not followed now, or this is called within a callback of the instance.
        """
        end = time.monotonic() + timeout
        messages: list[Message] = []
        with contextlib.closing(super().replay(first, last, stream)) as replay:
            while True:
                left = end - time.monotonic()
                try:
                    some = replay.receive(timeout=max(left, 0.0), limit=4096)
                except ClosedError:
                    losses = [Loss(*loss) for loss in replay.losses()]
                    return Replay(messages, losses)
                if not some and left <= 0:
                    raise TimeoutExpired(f"{len(messages)} messages from {first} to {last} came within {timeout:g} s")
                messages += some

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Receiver {self.topic} on {self.endpoint}{', closed' if self.closed else ''}>"


class _Tell:
    """Turns the thin coat's tuple into a `Loss` for the callback."""

    __slots__ = ("on_loss",)

    def __init__(self, on_loss: OnLoss) -> None:
        if not callable(on_loss):
            raise TypeError(f"on_loss must be callable, not {on_loss!r}")
        self.on_loss = on_loss

    def __call__(self, loss: tuple[int, int, str]) -> None:
        self.on_loss(Loss(*loss))
