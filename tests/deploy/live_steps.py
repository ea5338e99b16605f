"""Steps that many faults of the live fire have in common."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from tests.deploy.live_fire import QUIET, Fleet
from tests.deploy.live_firing import Expected, Fault, Step


def pair(
    name: str,
    about: str,
    alerts: Iterable[Expected],
    *,
    feed: Mapping[str, Any] | None = None,
    source: Mapping[str, Any] | None = None,
    sick: Mapping[str, Any] | None = None,
    others: int = 0,
    **more: Any,
) -> Fault:
    """A source, and a receiver that is sick until it is replaced by a healthy one.

    Args:
        name: Name of the receiver; NAME-source is that of the source.
        about: The fault.
        alerts: What it must raise.
        feed: Settings of the source beside its options: rate, size, bursts.
        source: Options of its transmitter.
        sick: Options of the sick receiver; `pause` and `role` are settings of the actor.
        others: Healthy receivers beside it.
        more: Fields of the fault.
    """
    common = {"topics": [name.upper()], "instance": QUIET}

    def receiver(fleet: Fleet, options: Mapping[str, Any]) -> None:
        options = dict(options)
        own = {key: options.pop(key) for key in ("pause", "role") if key in options}
        role = own.pop("role", "receiver")
        fleet.actor(name, role, endpoint=fleet.place(name), options=options, **own, **common)

    def inject(fleet: Fleet) -> None:
        feeding = {"rate": 60, "size": 1000, "options": dict(source or {}), **(feed or {})}
        fleet.actor(f"{name}-source", "feed", endpoint=fleet.place(name), **feeding, **common)
        for number in range(others):
            fleet.actor(f"{name}-{number}", "receiver", endpoint=fleet.place(name), **common)
        receiver(fleet, sick or {})

    def heal(fleet: Fleet) -> None:
        fleet.end(name)
        receiver(fleet, {})

    def clear(fleet: Fleet) -> None:
        for each in (name, f"{name}-source", *(f"{name}-{number}" for number in range(others))):
            fleet.end(each)

    return Fault(about, tuple(alerts), inject, heal, clear, **more)


def replaced(name: str, start: Step) -> Step:
    """A step that ends a process and starts another one."""

    def step(fleet: Fleet) -> None:
        fleet.end(name)
        start(fleet)

    return step


def ends(*names: str) -> Step:
    """A step that ends processes."""

    def step(fleet: Fleet) -> None:
        for name in names:
            fleet.end(name)

    return step


def alone(name: str, role: str, **more: Any) -> Step:
    """A step that starts one instance on an endpoint of its own."""
    return lambda fleet: fleet.actor(name, role, endpoint=fleet.place(name), topics=[name.upper()], **more)
