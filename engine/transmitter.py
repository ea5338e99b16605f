"""Transmitter: sends one topic."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Literal, Self, TypeAlias

from heliograph.engine import _core
from heliograph.engine.message import Ack
from heliograph.engine.options import OptionValue, encode

if TYPE_CHECKING:
    from heliograph.engine.instance import Instance

__all__ = ["OnAck", "Transmitter"]

OnAck: TypeAlias = Callable[[Ack], object]


class Transmitter(_core.Transmitter):
    """Sends one topic. Made by `Instance.transmitter`; closed by `close`, by a ``with`` block, or with its instance.

    Transmitters of one instance on the same endpoint share a stream. In mode ``thread`` any thread may use it.
    """

    __slots__ = ("__weakref__",)

    def __new__(
        cls, instance: Instance, endpoint: str, topic: str, *, on_ack: OnAck | None = None, **options: OptionValue
    ) -> Self:
        """As `Instance.transmitter`."""
        tell = None if on_ack is None else _Tell(on_ack)
        return super().__new__(cls, instance, endpoint, topic, encode("transmitter", options), tell)

    def acks(self) -> list[Ack]:  # type: ignore[override]  # the thin coat hands out tuples
        """Take what receivers have acknowledged since the last call: the newest of each that has made progress.

        The first call tells where all receivers are that acknowledge. What nobody takes is replaced by what is newer,
        so nothing piles up. With a callback `on_ack` it goes there, and there is nothing to take.

        Raises:
            ClosedError: the transmitter is closed.
        """
        return [Ack(*ack) for ack in super().acks()]

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
