"""Transmitter: sends one topic."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING, Self

from heliograph.engine import _core
from heliograph.engine.options import OptionValue, encode

if TYPE_CHECKING:
    from heliograph.engine.instance import Instance

__all__ = ["Transmitter"]


class Transmitter(_core.Transmitter):
    """Sends one topic. Made by `Instance.transmitter`; closed by `close`, by a ``with`` block, or with its instance.

    Transmitters of one instance on the same endpoint share a stream. In mode ``thread`` any thread may use it.
    """

    __slots__ = ("__weakref__",)

    def __new__(cls, instance: Instance, endpoint: str, topic: str, **options: OptionValue) -> Self:
        """As `Instance.transmitter`."""
        return super().__new__(cls, instance, endpoint, topic, encode("transmitter", options))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Transmitter {self.topic} on {self.endpoint}{', closed' if self.closed else ''}>"
