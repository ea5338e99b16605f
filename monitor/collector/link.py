"""Sending and receiving of reports: a small interface to the engine for publishers and collectors.

This is the monitor's only use of the engine; it is imported when a link is opened. Each link has its own instance and
shares no thread, queue or stream with the monitored instances. The instance has no segment (``stats=memory``), so it is
not sampled and publishing does not itself create changes to publish.
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
"""Size of the queues at both ends; memory is allocated when used. A keyframe of a whole fleet fits."""
HISTORY_BYTES = 16 << 20
_MOST_MESSAGES = 64
"""Messages received in one call; each may have megabytes."""


class Heard(bytes):
    """A message and its source."""

    source: str
    """Identity of the stream."""

    @classmethod
    def on(cls, data: bytes, source: str) -> Self:
        """A message with the identity of its stream."""
        heard = cls(data)
        heard.source = source
        return heard


class Outlet(Protocol):
    """Sending end of a publisher or relay."""

    @property
    def urls(self) -> Sequence[str]:
        """The endpoints, for display."""

    def send(self, message: bytes, timeout: float) -> bool:
        """Send a message; wait up to `timeout` seconds for room. False if there was no room."""

    def newcomers(self) -> bool:
        """Whether a new receiver appeared since the last call."""

    def close(self) -> None:
        """Send queued messages for a short time, and close."""


class Inlet(Protocol):
    """Receiving end of a collector."""

    @property
    def urls(self) -> Sequence[str]:
        """The endpoints, for display."""

    def receive(self, timeout: float) -> Sequence[bytes]:
        """Messages received; waits up to `timeout` seconds for the first. A message of type `Heard` has its
        source."""

    def lost(self) -> int:
        """Number of messages lost since the last call."""

    def close(self) -> None:
        """Stop receiving."""


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
    """Sends to one or more endpoints, with its own instance."""

    def __init__(self, urls: Sequence[str], rate: int, topic: str = TOPIC, **options: Any) -> None:
        """Open the transmitters.

        Args:
            urls: Endpoints.
            rate: Highest rate for each endpoint, bytes per second; 0: no limit.
            topic: Topic to send.
            options: Options of the engine; they override the defaults of this class.

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
        """As `Outlet.send`; with several endpoints, whether at least one had room."""
        sent = False
        for transmitter in self._transmitters:
            try:
                transmitter.send(message, timeout=timeout)
                sent = True
            except self._no_room:
                continue
        return sent

    def newcomers(self) -> bool:
        """As `Outlet.newcomers`, from the reports of receivers."""
        views = [view for transmitter in self._transmitters for view in transmitter.receivers()]
        now = {(view.receiver, view.incarnation) for view in views if view.state != "left"}
        found = not now <= self._known
        self._known = now
        return found

    def close(self) -> None:
        """As `Outlet.close`."""
        self._instance.close()


class EngineInlet(_Closing):
    """Receives from one or more endpoints, with its own instance."""

    def __init__(self, urls: Sequence[str], topic: str = TOPIC, **options: Any) -> None:
        """Open the receivers.

        Args:
            urls: Endpoints.
            topic: Topic to receive.
            options: Options of the engine; they override the defaults of this class.

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
