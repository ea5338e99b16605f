"""The state of a running fleet: reads segments, joins both ends, judges receivers, and passes the result on.

Each name is loaded when it is first used, so that the import of the package is cheap::

    from heliograph.monitor import Sampler, receivers

    with Sampler() as sampler:
        for row in receivers(None, sampler.sample()):
            print(row.instance, row.topic, row.behaviour, row.reason)
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from heliograph.monitor.behaviour import Behaviour
    from heliograph.monitor.directory import SegmentError
    from heliograph.monitor.errors import UserError
    from heliograph.monitor.fleet import (
        balance,
        instances,
        receiver_names,
        receivers,
        transmitters,
        worst_instances,
    )
    from heliograph.monitor.model import Event, Health, Histogram, InstanceState, ObjectState, Rate, Snapshot
    from heliograph.monitor.modules import Module
    from heliograph.monitor.rates import rates_between
    from heliograph.monitor.rows import Balance, InstanceRow, ReceiverRow, TransmitterRow
    from heliograph.monitor.sampler import Sampler, segment_folder
    from heliograph.monitor.segment import Segment

_ROOMS = {
    "behaviour": ("Behaviour",),
    "directory": ("SegmentError",),
    "errors": ("UserError",),
    "fleet": ("balance", "instances", "receiver_names", "receivers", "transmitters", "worst_instances"),
    "model": ("Event", "Health", "Histogram", "InstanceState", "ObjectState", "Rate", "Snapshot"),
    "modules": ("Module",),
    "rates": ("rates_between",),
    "rows": ("Balance", "InstanceRow", "ReceiverRow", "TransmitterRow"),
    "sampler": ("Sampler", "segment_folder"),
    "segment": ("Segment",),
}
_ROOM_OF = {name: room for room, names in _ROOMS.items() for name in names}

__all__ = [
    "Balance",
    "Behaviour",
    "Event",
    "Health",
    "Histogram",
    "InstanceRow",
    "InstanceState",
    "Module",
    "ObjectState",
    "Rate",
    "ReceiverRow",
    "Sampler",
    "Segment",
    "SegmentError",
    "Snapshot",
    "TransmitterRow",
    "UserError",
    "balance",
    "instances",
    "rates_between",
    "receiver_names",
    "receivers",
    "segment_folder",
    "transmitters",
    "worst_instances",
]


def __getattr__(name: str) -> Any:
    room = _ROOM_OF.get(name)
    if room is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{room}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
