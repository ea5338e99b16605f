"""The transport: `Instance`, `Transmitter`, `Receiver` and their values.

    from heliograph.engine import Instance

    with Instance() as instance, instance.receiver("rmm://239.192.77.1:7500", "PRICES.FX") as receiver:
        for message in receiver:
            print(message.data)

Names are imported on first use, so that `heliograph.engine.catalogue` works without the compiled engine.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from heliograph.engine.batch import Batch
    from heliograph.engine.errors import (
        AckersError,
        ClosedError,
        EndpointError,
        Error,
        MessageSizeError,
        OptionError,
        ResourceError,
        SystemCallError,
        TimeoutExpired,
        UsageError,
        WouldBlock,
    )
    from heliograph.engine.instance import Instance
    from heliograph.engine.message import Ack, Action, Loss, Message, Notice, Reason, Replay, Views
    from heliograph.engine.receiver import Receiver
    from heliograph.engine.receiver_view import ReceiverView
    from heliograph.engine.transmitter import Transmitter

__all__ = [
    "Ack",
    "AckersError",
    "Action",
    "Batch",
    "ClosedError",
    "EndpointError",
    "Error",
    "Instance",
    "Loss",
    "Message",
    "MessageSizeError",
    "Notice",
    "OptionError",
    "Reason",
    "Receiver",
    "ReceiverView",
    "Replay",
    "ResourceError",
    "SystemCallError",
    "TimeoutExpired",
    "Transmitter",
    "UsageError",
    "Views",
    "WouldBlock",
]

_HOMES = {
    "Ack": "message",
    "Action": "message",
    "Batch": "batch",
    "Instance": "instance",
    "Loss": "message",
    "Message": "message",
    "Notice": "message",
    "Reason": "message",
    "Receiver": "receiver",
    "ReceiverView": "receiver_view",
    "Replay": "message",
    "Transmitter": "transmitter",
    "Views": "message",
}


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(f"{__name__}.{_HOMES.get(name, 'errors')}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
