"""The two ends of the way snapshots take: the engine, behind the little that publishers and collectors need.

Here alone the monitor uses the engine, and loads it when a link is opened. Each link has an instance of its own, so it
shares no thread, queue or stream with what it watches. The instance counts privately (``stats=memory``): it has no
segment, so nobody samples it, and publishing does not make news to publish.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Protocol, Self

from heliograph.monitor.collector.report import TOPIC

__all__ = ["EngineInlet", "EngineOutlet", "Heard", "Inlet", "Outlet"]

QUEUE_BYTES = 64 << 20
"""Of the queues at both ends; memory is taken as it is used. A whole fleet's keyframe fits."""
HISTORY_BYTES = 16 << 20
_MOST_MESSAGES = 64
"""Taken at a time: each may be megabytes."""


class Heard(bytes):
    """A message, and what it came on."""

    source: str
    """Identity of the stream."""

    @classmethod
    def on(cls, data: bytes, source: str) -> Self:
        """A message that came on a stream."""
        heard = cls(data)
        heard.source = source
        return heard


class Outlet(Protocol):
    """Where a publisher or relay sends to."""

    @property
    def urls(self) -> Sequence[str]:
        """The endpoints, for people."""

    def send(self, message: bytes, timeout: float) -> bool:
        """Send, waiting for room at most `timeout` seconds; False when there is none."""

    def newcomers(self) -> bool:
        """Whether somebody listens who did not when this was asked last."""

    def close(self) -> None:
        """Send what waits, for a short while, and end."""


class Inlet(Protocol):
    """Where a collector hears from."""

    @property
    def urls(self) -> Sequence[str]:
        """The endpoints, for people."""

    def receive(self, timeout: float) -> Sequence[bytes]:
        """Messages that have come; waits for the first at most `timeout` seconds. Those that are `Heard` say what they
        came on."""

    def lost(self) -> int:
        """Messages the transport could not get any more, since this was asked last."""

    def close(self) -> None:
        """Hear no more."""


def _split(options: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Options of the instance and those of its transmitters or receivers."""
    from heliograph.engine import catalogue

    mine: dict[str, Any] = {}
    theirs: dict[str, Any] = {}
    for name, value in options.items():
        option = catalogue.options().get(name)
        of_instance = option is not None and "instance" in option.on and name != "rate"
        (mine if of_instance else theirs)[name] = value
    return mine, theirs


class _Closing(ABC):
    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @abstractmethod
    def close(self) -> None: ...


class EngineOutlet(_Closing):
    """Sends to one endpoint or several, on an instance of its own."""

    def __init__(self, urls: Sequence[str], rate: int, topic: str = TOPIC, **options: Any) -> None:
        """Open the transmitters.

        Args:
            urls: Endpoints.
            rate: Bytes per second that leave at most, for each endpoint; 0: no limit.
            topic: What to send on.
            options: Of the engine; they go before what is chosen here.

        Raises:
            heliograph.engine.errors.Error: An endpoint or option is refused.
        """
        from heliograph.engine.errors import WouldBlock
        from heliograph.engine.instance import Instance

        self._no_room = WouldBlock
        self.urls = tuple(urls)
        mine, theirs = _split(
            {
                **{"name": f"publish-{os.getpid()}", "stats": "memory", "idle": "block"},
                **{"rate": rate, "submit_queue": QUEUE_BYTES, "history_bytes": HISTORY_BYTES, **options},
            },
        )
        self._instance = Instance(**mine)
        try:
            self._transmitters = [self._instance.transmitter(url, topic, **theirs) for url in urls]
        except BaseException:
            self._instance.close()
            raise
        self._known: set[tuple[str, int]] = set()

    def send(self, message: bytes, timeout: float) -> bool:
        """As `Outlet.send`; with several endpoints, whether any had room."""
        sent = False
        for transmitter in self._transmitters:
            try:
                transmitter.send(message, timeout=timeout)
                sent = True
            except self._no_room:
                continue
        return sent

    def newcomers(self) -> bool:
        """As `Outlet.newcomers`, by the reports that receivers send."""
        views = [view for transmitter in self._transmitters for view in transmitter.receivers()]
        now = {(view.receiver, view.incarnation) for view in views if view.state != "left"}
        found = not now <= self._known
        self._known = now
        return found

    def close(self) -> None:
        """As `Outlet.close`."""
        self._instance.close()


class EngineInlet(_Closing):
    """Hears one endpoint or several, on an instance of its own."""

    def __init__(self, urls: Sequence[str], topic: str = TOPIC, **options: Any) -> None:
        """Open the receivers.

        Args:
            urls: Endpoints.
            topic: What to hear.
            options: Of the engine; they go before what is chosen here.

        Raises:
            heliograph.engine.errors.Error: An endpoint or option is refused.
        """
        from heliograph.engine.instance import Instance

        self.urls = tuple(urls)
        mine, theirs = _split(
            {
                **{"name": f"collect-{os.getpid()}", "stats": "memory", "idle": "block"},
                **{"join": "live", "receive_queue": QUEUE_BYTES, "max_streams": 4096, **options},
            },
        )
        self._instance = Instance(**mine)
        try:
            self._receivers = [self._instance.receiver(url, topic, **theirs) for url in urls]
        except BaseException:
            self._instance.close()
            raise

    def receive(self, timeout: float) -> Sequence[bytes]:
        """As `Inlet.receive`."""
        share = timeout / len(self._receivers)
        return [
            Heard.on(message.data, message.stream)
            for receiver in self._receivers
            for message in receiver.receive(share, _MOST_MESSAGES)
        ]

    def lost(self) -> int:
        """As `Inlet.lost`."""
        return sum(loss.count for receiver in self._receivers for loss in receiver.losses())

    def close(self) -> None:
        """As `Inlet.close`."""
        self._instance.close()
