"""Instance: one engine in one process."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import Literal, Self

from heliograph.engine import _core
from heliograph.engine.options import OptionValue, encode, stores_text
from heliograph.engine.receiver import OnLoss, OnMessages, Receiver
from heliograph.engine.transmitter import OnAck, Transmitter

__all__ = ["Instance"]


class Instance(_core.Instance):
    """One engine; creates transmitters and receivers. Closed by `close` or at the end of a ``with`` block.

    In mode ``thread`` (the default) it runs on its own thread. In mode ``poll`` the application runs it from one
    thread: it calls `poll`, and `wait` when there is no work. Send and receive calls then also run the engine.

    The option ``rate`` limits all its streams together, in bytes per second; they share the limit fairly.

    Open instances are closed at the end of the program. In a forked child the copies are closed.
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
            name: Name shown by monitors; default: the program's name and process id.
            mode: ``thread``: its own thread runs it; ``poll``: the application runs it.
            idle: Behaviour of its thread when there is no work.
            options: Other options of instances, see docs/options.md.

        Raises:
            OptionError: An option is unknown or its value invalid.
            ResourceError: Memory or the stats segment could not be allocated.
            SystemCallError: A system call failed.
        """
        return super().__new__(cls, encode({"name": name, "mode": mode, "idle": idle, **options}))

    def transmitter(
        self, endpoint: str, topic: str, *, on_ack: OnAck | None = None, **options: OptionValue
    ) -> Transmitter:
        """Create a transmitter of a topic.

        Args:
            endpoint: Destination: ``rmm://GROUP:PORT?interface=IP`` or ``rmm+unicast://HOST:PORT``. Query parameters
                may set options; keywords override them.
            topic: Name of the topic, 1 to 255 bytes of UTF-8.
            on_ack: Called with an `Ack` when a receiver has acknowledged more, on the engine's thread or within
                `poll`. The rules for callbacks of `receiver` apply.
            options: Options of transmitters, see docs/options.md.

        Raises:
            EndpointError: The endpoint is malformed, or its address cannot be used.
            OptionError: An option is unknown or its value invalid, or the topic's name is invalid.
            SystemCallError: A system call failed.
            ClosedError: The instance is closed.
            UsageError: Called within a callback of this instance.
        """
        return Transmitter(self, endpoint, topic, on_ack=on_ack, **options)

    def receiver(
        self,
        endpoint: str,
        topic: str,
        *,
        on_messages: OnMessages | None = None,
        on_loss: OnLoss | None = None,
        stores: str | PathLike[str] | Sequence[str | PathLike[str]] | None = None,
        **options: OptionValue,
    ) -> Receiver:
        """Create a receiver of a topic.

        The option ``credit`` limits the number of messages a transmitter may send before the application has taken
        them; each `Receiver.receive` grants credit for the messages of the previous call. So a slow application paces
        its source and queues stay short::

            receiver = instance.receiver(endpoint, "JOBS", credit=100)
            transmitter = elsewhere.transmitter(endpoint, "JOBS", await_credit=True)

        Callbacks run on the engine's thread or within `poll`. They must be short. They may send, but must not use the
        instance otherwise. `sys.unraisablehook` reports an exception in a callback; it is counted and ignored.

        With the option ``recover="store"`` it takes messages that the source can no longer repair from message stores,
        with ``join="store"`` all that the stores have before the live ones, without gap or duplicate. With ``durable``
        it continues where the last receiver of that name ended, on any host::

            with instance.receiver(endpoint, "ORDERS", durable="desk-1", stores=["store://10.0.0.5:7800"]) as receiver:
                for message in receiver:
                    ...

        Such a receiver has no callbacks, views and batches (docs/store.md, section 8).

        Args:
            endpoint: Address to receive on: ``rmm://GROUP:PORT?interface=IP`` or ``rmm+unicast://HOST:PORT``.
            topic: Name of the topic, 1 to 255 bytes of UTF-8.
            on_messages: Called with each list of messages; without it messages wait in the receiver.
            on_loss: Called with each `Loss`; requires `on_messages`.
            stores: Message stores of the topic, each a directory, or ``HOST:PORT`` of its service. A name with several
                addresses stands for several stores.
            options: Options of receivers, see docs/options.md.

        Raises:
            EndpointError: The endpoint is malformed, or its address cannot be used.
            OptionError: An option is unknown or its value invalid, or the topic's name is invalid.
            SystemCallError: A system call failed.
            ClosedError: The instance is closed.
            UsageError: Called within a callback of this instance.
            Error: A store that is needed at once, as by ``join="store"``, cannot be read.
        """
        text = encode({**options, "stores": stores_text(stores)})
        if on_messages is None and _core.following(endpoint, topic, text) is not None:
            from heliograph.engine.store.following import FollowingReceiver

            return FollowingReceiver(self, endpoint, topic, text)
        return Receiver(self, endpoint, topic, on_messages=on_messages, on_loss=on_loss, stores=stores, **options)

    def set_level(
        self,
        level: int,
        seconds: float,
        *,
        topic: str | None = None,
        receiver: str | None = None,
        stream: str | None = None,
    ) -> int:
        """Set the level of detail of the statistics for a limited time; afterwards the previous level returns.

        Without a pattern it applies to the whole instance. With patterns it applies to the objects that match all of
        them, including objects created later. If several settings match, the latest applies; up to 16 can be active.
        The change and its end are reported as the events ``level_changed`` and ``level_reverted``::

            instance.set_level(3, seconds=60, topic="PRICES.*")

        Args:
            level: 0 to 3; `heliograph info` shows the content and cost of each.
            seconds: Duration in seconds, above 0 and at most 30 days.
            topic: Pattern of topics sent and received; ``*`` matches any characters, ``?`` one.
            receiver: At a source, pattern of the name, id or address of its receivers; in the receiving instance,
                pattern of its name or of the address of its requests.
            stream: Pattern of streams, ``GSI:PORT``, including all objects of the stream.

        Returns:
            Number of objects that match now: streams, transmitters, and receivers at both ends.

        Raises:
            OptionError: The level, the duration or a pattern is invalid, or too many settings are active.
            UsageError: Called within a callback, or the library was built without statistics.
            ClosedError: The instance is closed.
        """
        return super().set_level(level, seconds, topic=topic, receiver=receiver, stream=stream)

    def reset_level(self, *, topic: str | None = None, receiver: str | None = None, stream: str | None = None) -> int:
        """End a setting of `set_level` early; the patterns must be the same (none: that of the whole instance).

        Returns:
            Number of objects that matched.

        Raises:
            OptionError: No setting with these patterns is active.
            UsageError: Called within a callback.
            ClosedError: The instance is closed.
        """
        return super().reset_level(topic=topic, receiver=receiver, stream=stream)

    def freeze_flight(self, why: str | None = None) -> None:
        """Keep the flight recording: all statistics in steps of 10 ms, up to two seconds after this call.

        The call returns at once. The file is written beside the segment two seconds later, or when the instance is
        closed. The event ``flight_frozen`` has its name, and ``heliograph flight FILE`` reads it. The call is
        permitted within a callback::

            if message_took_too_long:
                instance.freeze_flight("order 4711 took 80 ms")

        Args:
            why: Reason, for the recording and the event; at most 199 bytes of UTF-8.

        Raises:
            UsageError: There is no flight recorder (``flight_bytes=0``, ``stats="memory"``), it keeps no recordings
                (``flight_keep=0``), or another recording was requested within the last seconds.
            ClosedError: The instance is closed.
        """
        super().freeze_flight(why)

    @property
    def segment(self) -> Path | None:  # type: ignore[override]  # the compiled base returns text
        """File of the stats segment; None if the option ``stats`` is ``memory``."""
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
