"""Instance: one engine in one process."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import Literal, Self

from heliograph.engine import _core
from heliograph.engine.options import OptionValue, encode
from heliograph.engine.receiver import OnLoss, OnMessages, Receiver
from heliograph.engine.transmitter import OnAck, Transmitter

__all__ = ["Instance"]


class Instance(_core.Instance):
    """One engine, from which transmitters and receivers are made; closed by `close` or a ``with`` block.

    In mode ``thread`` (the default) it runs on its own thread. In mode ``poll`` you run it: call `poll`, and `wait`
    when there is nothing to do, all from one thread; sending and receiving then work the engine too.

    With the option ``rate`` (bytes per second) all its streams together send no more than that; they share it fairly.

    At the end of the program, open instances are closed. A forked child finds its copies closed.
    """

    __slots__ = ("__weakref__",)

    def __new__(
        cls,
        *,
        name: str | None = None,
        mode: Literal["thread", "poll"] | None = None,
        idle: Literal["spin", "yield", "backoff", "block"] | None = None,
        **options: OptionValue,
    ) -> Self:
        """Start an engine.

        Args:
            name: what monitors call it; the program's name and process id when not given.
            mode: who runs it.
            idle: what its thread does when there is nothing to do.
            options: any other option of instances, see docs/options.md.

        Raises:
            OptionError: an option is unknown or its value outside its range.
            ResourceError: memory or the stats segment could not be had.
            SystemCallError: the operating system refused something else.
        """
        return super().__new__(cls, encode({"name": name, "mode": mode, "idle": idle, **options}))

    def transmitter(
        self, endpoint: str, topic: str, *, on_ack: OnAck | None = None, **options: OptionValue
    ) -> Transmitter:
        """A transmitter of a topic.

        Args:
            endpoint: where to send: ``rmm://GROUP:PORT?interface=IP`` or ``rmm+unicast://HOST:PORT``. Options may be
                given as query parameters; the keywords win.
            topic: 1 to 255 bytes of UTF-8.
            on_ack: called with each `Ack`, on the engine's thread or within `poll`, when a receiver has acknowledged
                more; what `receiver` says of callbacks holds for it.
            options: see docs/options.md.

        Raises:
            EndpointError: the endpoint is malformed, or its address cannot be used.
            OptionError: an option or the topic's name is unfit.
            SystemCallError: the operating system refused.
            ClosedError: the instance is closed.
            UsageError: called within a callback of this instance.
        """
        return Transmitter(self, endpoint, topic, on_ack=on_ack, **options)

    def receiver(
        self,
        endpoint: str,
        topic: str,
        *,
        on_messages: OnMessages | None = None,
        on_loss: OnLoss | None = None,
        **options: OptionValue,
    ) -> Receiver:
        """A receiver of a topic.

        With ``credit`` it limits how many messages a transmitter sends beyond those taken, and given back by the next
        `Receiver.receive`, so that a slow application paces its source instead of filling queues on the way::

            receiver = instance.receiver(endpoint, "JOBS", credit=100)
            transmitter = elsewhere.transmitter(endpoint, "JOBS", await_credit=True)

        Callbacks run on the engine's thread, or within `poll`. They must be quick, and may send but do nothing else
        with this instance. An exception in one is shown by `sys.unraisablehook`, counted, and does no harm.

        Args:
            endpoint: where to listen: ``rmm://GROUP:PORT?interface=IP`` or ``rmm+unicast://HOST:PORT``.
            topic: the name the transmitter gave it.
            on_messages: called with each list of messages; without it they wait in the receiver.
            on_loss: called with each `Loss`; only together with `on_messages`.
            options: see docs/options.md.

        Raises:
            The errors of `transmitter`.
        """
        return Receiver(self, endpoint, topic, on_messages=on_messages, on_loss=on_loss, **options)

    def set_level(
        self,
        level: int,
        seconds: float,
        *,
        topic: str | None = None,
        receiver: str | None = None,
        stream: str | None = None,
    ) -> int:
        """Set the level of detail of the statistics for a time; then it is again what it was.

        Without a pattern it is that of the instance; with some, of what all of them fit, and of nothing else, also of
        what is made later. Of several that fit, the one set last decides; 16 can be in force. Both the change and
        its end are events, ``level_changed`` and ``level_reverted``::

            instance.set_level(3, seconds=60, topic="PRICES.*")

        Args:
            level: 0 to 3; `heliograph info` tells what each adds, and its cost here.
            seconds: for how long, at most 30 days.
            topic: pattern (``*`` any characters, ``?`` one) of topics sent and received.
            receiver: pattern of the name, id or address of receivers that transmitters know; in the receiving instance
                itself, of its name or the address its requests come from.
            stream: pattern of streams, ``GSI:PORT``, with all that belongs to them.

        Returns:
            How many objects it fits now: streams, transmitters, receivers, peers.

        Raises:
            OptionError: the level, the time or a pattern is out of range, or too many are in force.
            UsageError: within a callback, or the library was built without statistics.
            ClosedError: the instance is closed.
        """
        return super().set_level(level, seconds, topic=topic, receiver=receiver, stream=stream)

    def reset_level(self, *, topic: str | None = None, receiver: str | None = None, stream: str | None = None) -> int:
        """End early what `set_level` has begun with exactly these patterns (none: the instance's).

        Returns:
            How many objects it fitted.

        Raises:
            OptionError: nothing with these patterns is in force.
            UsageError: within a callback.
            ClosedError: the instance is closed.
        """
        return super().reset_level(topic=topic, receiver=receiver, stream=stream)

    def freeze_flight(self, why: str | None = None) -> None:
        """Keep the flight recording: all statistics, every 10 ms, of the last seconds or minutes and of two more.

        It returns at once. The recording is written two seconds later, or when the instance is closed, beside the
        segment; the event ``flight_frozen`` names its file, and ``heliograph flight FILE`` reads it. May be called
        within a callback::

            if message_took_too_long:
                instance.freeze_flight("order 4711 took 80 ms")

        Args:
            why: what the recording and the event say; at most 199 bytes.

        Raises:
            UsageError: there is no flight recorder (``flight_bytes=0``, ``stats="memory"``), it keeps nothing
                (``flight_keep=0``), or a recording was asked for a moment ago.
            ClosedError: the instance is closed.
        """
        super().freeze_flight(why)

    @property
    def segment(self) -> Path | None:  # type: ignore[override]  # the thin coat hands out text
        """The stats segment; None when the option ``stats`` is ``memory``."""
        path = super().segment
        return Path(path) if path else None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Instance {self.name}{', polled' if self.polled else ''}{', closed' if self.closed else ''}>"
