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
    """Sends one topic. Created by `Instance.transmitter`; closed by `close`, by a ``with`` block, or with its instance.

    Transmitters of one instance on the same endpoint share a stream. In mode ``thread`` any thread may use it.

    By default a stream sends without a limit. The option ``rate`` limits it, in bytes per second: messages wait in the
    submit queue, and `send` waits for room in it; in mode ``poll`` `send` itself waits or raises `WouldBlock`. `close`
    waits until all submitted messages have been sent. `rate` is the current limit. `congested` is True if messages
    have waited longer than the option ``congestion_time``.
    """

    __slots__ = ("__weakref__",)

    def __new__(
        cls, instance: Instance, endpoint: str, topic: str, *, on_ack: OnAck | None = None, **options: OptionValue
    ) -> Self:
        """As `Instance.transmitter`."""
        tell = None if on_ack is None else _Tell(on_ack)
        return super().__new__(cls, instance, endpoint, topic, encode(options), tell)

    def acks(self) -> list[Ack]:  # type: ignore[override]  # the compiled base returns tuples
        """Take the new acknowledged positions since the last call, one for each receiver that has made progress.

        The first call returns the positions of all receivers that acknowledge. A newer position replaces an older one,
        so memory is bounded. With the callback `on_ack` the list is always empty.

        Raises:
            ClosedError: The transmitter is closed.
        """
        return [Ack(*ack) for ack in super().acks()]

    def notify(self, receiver: str | Ack | ReceiverView, why: str = "") -> None:
        """Warn a receiver of the stream; nothing else changes for it.

        Args:
            receiver: Its `ReceiverView` or `Ack`, or its identity of 16 hex digits.
            why: Reason, for the notice and the event; the notice has its first 40 bytes.

        Raises:
            UsageError: The stream does not track the receiver, or this is called within a callback of the instance.
            ClosedError: The transmitter is closed.
            ValueError: `receiver` is not a hexadecimal number.
        """
        self._do(receiver, Action.NOTIFY, 0.0, why)

    def shed(self, receiver: str | Ack | ReceiverView, seconds: float = 0.0, why: str = "") -> None:
        """Repair at most 64 KiB per second for a receiver. Arguments and errors as for `suspend`."""
        self._do(receiver, Action.SHED, seconds, why)

    def suspend(
        self, receiver: str | Ack | ReceiverView, seconds: float = 0.0, why: str = "", *, naks_only: bool = False
    ) -> None:
        """Repair nothing for a receiver and do not wait for it. The receiver is notified and sends no NAKs.

        The receiver loses packets that are still missing after its `nak_deadline`.

        Args:
            receiver: Its `ReceiverView` or `Ack`, or its identity of 16 hex digits.
            seconds: Duration, 0 to 1e9 seconds; 0: until `resume`.
            why: Reason, for the notice and the event; the notice has its first 40 bytes.
            naks_only: Continue to wait for its acknowledgements.

        Raises:
            UsageError: The stream does not track the receiver, the receiver is expelled, or this is called within a
                callback of the instance.
            ClosedError: The transmitter is closed.
            ValueError: `seconds` is out of range, or `receiver` is not a hexadecimal number.
        """
        self._do(receiver, Action.SUSPEND_NAKS if naks_only else Action.SUSPEND, seconds, why)

    def resume(self, receiver: str | Ack | ReceiverView, why: str = "") -> None:
        """End `shed` or `suspend`. Arguments as for `notify`.

        Raises:
            UsageError: Neither is active for the receiver, or as for `suspend`.
            ClosedError: The transmitter is closed.
        """
        self._do(receiver, Action.RESUME, 0.0, why)

    def expel(self, receiver: str | Ack | ReceiverView, seconds: float = 0.0, why: str = "") -> None:
        """Ignore a receiver. It is notified and leaves the stream; its later incarnations are refused too.

        Arguments and errors as for `suspend`; 0 seconds: until `readmit`.
        """
        self._do(receiver, Action.EXPEL, seconds, why)

    def readmit(self, receiver: str | Ack | ReceiverView, why: str = "") -> None:
        """End `expel`: the receiver joins the stream again, from the current position. Arguments as for `notify`.

        Raises:
            UsageError: The receiver is not expelled, or as for `suspend`.
            ClosedError: The transmitter is closed.
        """
        self._do(receiver, Action.READMIT, 0.0, why)

    def _do(self, receiver: str | Ack | ReceiverView, action: Action, seconds: float, why: str) -> None:
        identity = receiver if isinstance(receiver, str) else receiver.receiver
        self.act(int(identity, 16), _core.ACTIONS.index(action), seconds, why)

    def receivers(self) -> list[ReceiverView]:  # type: ignore[override]  # the compiled base returns tuples
        """The receivers of the transmitter's stream, worst first.

        Loss, lag and buffers come from the last report of each receiver, at most `report_interval` seconds old while
        they change, older with many receivers. Requests and repairs are counted by this source. A source tracks at
        most 1,024 receivers.

        Raises:
            ClosedError: The transmitter is closed.
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
    """Calls the callback with an `Ack` made from the base's tuple."""

    __slots__ = ("on_ack",)

    def __init__(self, on_ack: OnAck) -> None:
        if not callable(on_ack):
            raise TypeError(f"on_ack must be callable, not {on_ack!r}")
        self.on_ack = on_ack

    def __call__(self, ack: tuple[int, str, str, str, Literal["transport", "application"]]) -> None:
        self.on_ack(Ack(*ack))
