"""Transmitter: sends one topic."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Literal, Self, TypeAlias

from heliograph.engine import _core
from heliograph.engine.message import Ack, Action
from heliograph.engine.options import OptionValue, encode
from heliograph.engine.receiver_view import ReceiverView

if TYPE_CHECKING:
    from heliograph.engine.instance import Instance

__all__ = ["OnAck", "Transmitter"]

OnAck: TypeAlias = Callable[[Ack], object]


class Transmitter(_core.Transmitter):
    """Sends one topic. Made by `Instance.transmitter`; closed by `close`, by a ``with`` block, or with its instance.

    Transmitters of one instance on the same endpoint share a stream. In mode ``thread`` any thread may use it.

    By default a stream sends as fast as it can. With the option ``rate`` (bytes per second) it sends no more than that:
    messages wait in the submit queue, where `send` waits for room; in mode ``poll`` `send` itself waits, or raises
    `WouldBlock`. Closing waits until what was submitted has left. `rate` tells the limit in force, `congested` whether
    messages have waited for longer than the option ``congestion_time``.
    """

    __slots__ = ("__weakref__",)

    def __new__(
        cls, instance: Instance, endpoint: str, topic: str, *, on_ack: OnAck | None = None, **options: OptionValue
    ) -> Self:
        """As `Instance.transmitter`."""
        tell = None if on_ack is None else _Tell(on_ack)
        return super().__new__(cls, instance, endpoint, topic, encode(options), tell)

    def acks(self) -> list[Ack]:  # type: ignore[override]  # the thin coat hands out tuples
        """Take what receivers have acknowledged since the last call: the newest of each that has made progress.

        The first call returns the positions of all receivers that acknowledge. A newer position replaces an older one,
        so nothing piles up. With a callback `on_ack` it goes there, and there is nothing to take.

        Raises:
            ClosedError: the transmitter is closed.
        """
        return [Ack(*ack) for ack in super().acks()]

    def notify(self, receiver: str | Ack | ReceiverView, why: str = "") -> None:
        """Warn a receiver of the stream; nothing else changes for it.

        Args:
            receiver: who: a `ReceiverView` or an `Ack` of it, or its 16 hex digits.
            why: told to it and in an event; up to 40 bytes go out.

        Raises:
            UsageError: the stream knows no such receiver, or this is called within a callback of the instance.
            ClosedError: the transmitter is closed.
        """
        self._do(receiver, Action.NOTIFY, 0.0, why)

    def shed(self, receiver: str | Ack | ReceiverView, seconds: float = 0.0, why: str = "") -> None:
        """Repair at most 64 KiB a second for a receiver; else as `suspend`."""
        self._do(receiver, Action.SHED, seconds, why)

    def suspend(
        self, receiver: str | Ack | ReceiverView, seconds: float = 0.0, why: str = "", *, naks_only: bool = False
    ) -> None:
        """Repair nothing for a receiver and do not wait for it; it is notified, and requests nothing.

        Packets it misses in this time are lost to it after its `nak_deadline`.

        Args:
            receiver: who: a `ReceiverView` or an `Ack` of it, or its 16 hex digits.
            seconds: how long; 0: until `resume`.
            why: told to it and in an event; up to 40 bytes go out.
            naks_only: its acknowledgements are waited for all the same.

        Raises:
            UsageError: the stream knows no such receiver, it is expelled, or this is called within a callback.
            ClosedError: the transmitter is closed.
            ValueError: the seconds are below 0.
        """
        self._do(receiver, Action.SUSPEND_NAKS if naks_only else Action.SUSPEND, seconds, why)

    def resume(self, receiver: str | Ack | ReceiverView, why: str = "") -> None:
        """End `shed` or `suspend`.

        Raises:
            UsageError: there is nothing to end, or as `suspend`.
        """
        self._do(receiver, Action.RESUME, 0.0, why)

    def expel(self, receiver: str | Ack | ReceiverView, seconds: float = 0.0, why: str = "") -> None:
        """Do not hear a receiver any more; it is told, and does not follow the stream, nor does a later life of it.

        Args and errors as `suspend`; 0 seconds: until `readmit`.
        """
        self._do(receiver, Action.EXPEL, seconds, why)

    def readmit(self, receiver: str | Ack | ReceiverView, why: str = "") -> None:
        """End `expel`: the receiver follows the stream again, from what is sent then.

        Raises:
            UsageError: it is not expelled, or as `suspend`.
        """
        self._do(receiver, Action.READMIT, 0.0, why)

    def _do(self, receiver: str | Ack | ReceiverView, action: Action, seconds: float, why: str) -> None:
        who = receiver if isinstance(receiver, str) else receiver.receiver
        self.act(int(who, 16), _core.ACTIONS.index(action), seconds, why)

    def receivers(self) -> list[ReceiverView]:  # type: ignore[override]  # the thin coat hands out tuples
        """Return the receivers of the stream of this transmitter, the worst first.

        It is a look at one moment: losses, lag and buffers as each receiver told last, at most `report_interval`
        seconds ago while there is news, later when they are many; requests and repairs as counted here. At most 1,024
        receivers are known one by one.

        Raises:
            ClosedError: the transmitter is closed.
        """
        return [ReceiverView(*view) for view in super().receivers()]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Transmitter {self.topic} on {self.endpoint}{', closed' if self.closed else ''}>"


class _Tell:
    """Turns the thin coat's tuple into an `Ack` for the callback."""

    __slots__ = ("on_ack",)

    def __init__(self, on_ack: OnAck) -> None:
        if not callable(on_ack):
            raise TypeError(f"on_ack must be callable, not {on_ack!r}")
        self.on_ack = on_ack

    def __call__(self, ack: tuple[int, str, str, str, Literal["transport", "application"]]) -> None:
        self.on_ack(Ack(*ack))
