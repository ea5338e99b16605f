"""Receiver: receives one topic, by iteration, in lists, or by callback."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Sequence
from os import PathLike
from types import TracebackType
from typing import TYPE_CHECKING, Self, TypeAlias

from heliograph.engine import _core
from heliograph.engine.batch import Batch
from heliograph.engine.errors import ClosedError, TimeoutExpired
from heliograph.engine.message import Action, Loss, Message, Notice, Reason, Replay
from heliograph.engine.options import OptionValue, encode, stores_text

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
    """Receives one topic. Created by `Instance.receiver`; closed by `close`, by a ``with`` block, or with its instance.

    Without callbacks, messages wait for ``for message in receiver`` or `receive`; use it from one thread at a time.
    With callbacks it stays active until it or its instance is closed, even without a reference to it.
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
        stores: str | PathLike[str] | Sequence[str | PathLike[str]] | None = None,
        **options: OptionValue,
    ) -> Self:
        """As `Instance.receiver`."""
        tell = None if on_loss is None else _Tell(on_loss)
        text = encode({**options, "stores": stores_text(stores)})
        return super().__new__(cls, instance, endpoint, topic, text, on_messages, tell)

    def receive_batch(self, timeout: float | None = None, limit: int = 4096) -> Batch:
        """Take messages in one buffer; the batch is empty if none arrived in time.

        This is the fastest way to take very many small messages, because no object is created for each.

        Args:
            timeout: Longest time to wait for the first message, seconds, at least 0; None: no limit.
            limit: Maximum number of messages, 1 to 65536.

        Raises:
            ClosedError: The receiver is closed, perhaps during the wait.
            UsageError: It has a callback, or another thread is receiving with it.
            ValueError: `timeout` or `limit` is out of range.
        """
        return Batch(*self.receive_packed(timeout, limit))

    def acknowledge(self, message: Message | int, stream: str | None = None) -> None:
        """Acknowledge a message and all before it; transmitters can wait for this. Requires ``ack="app"``.

        May be called from any thread (mode ``thread``) and within callbacks. It returns at once: the engine notifies
        the source within a millisecond, sooner if the source requests it.

        Args:
            message: The message, or its number.
            stream: Identity of the stream if a number is given; optional if the receiver has only one stream.

        Raises:
            UsageError: The option ``ack`` is not ``app``.
            ValueError: The receiver does not know the stream, or has several and `stream` is None.
            ClosedError: The receiver is closed.
        """
        if isinstance(message, int):
            self.acknowledge_number(message, stream)
        else:
            self.acknowledge_number(message.number, message.stream)

    def losses(self) -> list[Loss]:  # type: ignore[override]  # the compiled base returns tuples
        """Take the losses reported since the last call, oldest first.

        Raises:
            ClosedError: The receiver is closed.
            UsageError: Another thread is receiving with it, or it is called within a callback of its instance.
        """
        return [Loss(*loss) for loss in super().losses()]

    def notices(self) -> list[Notice]:  # type: ignore[override]  # the compiled base returns tuples
        """Take the notices of sources since the last call, oldest first; the newest 256 are kept.

        A source may warn a slow receiver, repair less or nothing for it, or expel it; the notice has the reason. The
        engine complies automatically. The application may reduce its load or alert an operator.

        Raises:
            ClosedError: The receiver is closed.
        """
        return [_notice(*notice) for notice in super().notices()]

    def stores(self) -> list[str]:  # type: ignore[override]  # the compiled base returns text
        """The message stores that the sources on the endpoint announce now, as ``store://HOST:PORT``, at most 16.

        A source announces the stores with a service that acknowledge its stream. They may keep other topics of the
        stream than this one.

        Raises:
            ClosedError: The receiver is closed.
            UsageError: It is called within a callback of its instance.
        """
        return [f"store://{place}" for place in super().stores().split(",") if place]

    def replay(  # type: ignore[override]  # the compiled base returns a receiver of the range
        self, first: int, last: int, *, stream: str | int = 0, timeout: float = 5.0
    ) -> Replay:
        """Receive messages again that are still in the source's history, even if this receiver never had them.

        Normal reception continues, and a replay does not count in the receiver's statistics. The source repairs the
        packets as if they were lost; in a multicast group all receivers get these repairs and drop them.

        Args:
            first: Number of the first message, from 0.
            last: Number of the last message, at least `first`.
            stream: `Message.stream`, or the index of the stream in this receiver, in the order of discovery.
            timeout: Longest time for the whole replay, seconds.

        Returns:
            The messages of the range, in order, and the ranges that are not in the history.

        Raises:
            OptionError: `first` is greater than `last`.
            TimeoutExpired: The replay did not finish in time.
            ClosedError: The receiver is closed.
            UsageError: The receiver does not track the stream, or this is called within a callback of the instance.
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
    """Calls the callback with a `Loss` made from the base's tuple."""

    __slots__ = ("on_loss",)

    def __init__(self, on_loss: OnLoss) -> None:
        if not callable(on_loss):
            raise TypeError(f"on_loss must be callable, not {on_loss!r}")
        self.on_loss = on_loss

    def __call__(self, loss: tuple[int, int, str]) -> None:
        self.on_loss(Loss(*loss))
