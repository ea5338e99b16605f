"""Unique display names of instances on several hosts.

A unique name stays as it is. A name that runs on two hosts becomes ``name@host`` on every host; a name that runs twice
on one host becomes ``name#pid``. Two origins with the same host name become ``host~1a2b``, with the first digits of
their identity. An instance keeps its display name while it is known, so its counters stay under one name.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from heliograph.monitor.model import Event, Health, InstanceState, ObjectState

__all__ = ["Names", "Place", "renamed_event"]

_RUNNING = (Health.LIVE, Health.STALE)

Place = tuple[int, int, str]
"""Origin, incarnation (0 of a damaged segment) and name of an instance."""


class Names:
    """Remembers the display names of instances."""

    def __init__(self) -> None:
        self._shared: set[str] = set()
        """Names used on two origins."""
        self._twins: dict[Place, str] = {}
        self._made: dict[int, tuple[ObjectState, ObjectState]] = {}
        """Pairs of an object and its renamed copy, by `id` of the object; the pair keeps the object alive."""

    def hosts(self, origins: Mapping[int, str]) -> Mapping[int, str]:
        """Display name of each origin's host, by origin."""
        count = Counter(origins.values())
        return {
            origin: host if count[host] == 1 else f"{host}~{origin:016x}"[: len(host) + 5]
            for origin, host in origins.items()
        }

    def called(self, found: Mapping[int, Sequence[InstanceState]], hosts: Mapping[int, str]) -> Mapping[Place, str]:
        """Display name of each instance.

        Args:
            found: Instances by origin.
            hosts: Display name of each origin's host.
        """
        on = Counter(name for instances in found.values() for name in {item.name for item in instances})
        self._shared &= on.keys()
        self._shared |= {name for name, origins in on.items() if origins > 1}
        names = {}
        twins = {}
        for origin, instances in found.items():
            running = Counter(item.name for item in instances if item.health in _RUNNING)
            for item in instances:
                place = (origin, item.incarnation, item.name)
                twin = self._twins.get(place, "")
                if item.health in _RUNNING and running[item.name] > 1:
                    twin = f"#{item.pid}"
                if twin:
                    twins[place] = twin
                shown = f"{item.name}@{hosts[origin]}" if item.name in self._shared else item.name
                names[place] = shown + twin
        self._twins = twins
        return names

    def renamed(self, instance: InstanceState, name: str) -> InstanceState:
        """An instance and its objects under another name. Unchanged objects keep their renamed copy."""
        if name == instance.name:
            return instance
        objects = tuple(self._renamed(item, instance.name, name) for item in instance.objects)
        return replace(instance, name=name, objects=objects)

    def _renamed(self, item: ObjectState, old: str, new: str) -> ObjectState:
        if item.labels.get("instance") != old:
            return item
        made = self._made.get(id(item))
        if made is None or made[0] is not item or made[1].labels["instance"] != new:
            made = (item, replace(item, labels={**item.labels, "instance": new}))
            self._made[id(item)] = made
        return made[1]

    def forget(self, objects: Sequence[ObjectState]) -> None:
        """Drop the renamed copies of all other objects."""
        if len(self._made) > 2 * len(objects):
            kept = {id(item) for item in objects}
            self._made = {key: made for key, made in self._made.items() if key in kept}


def renamed_event(event: Event, name: str) -> Event:
    """An event with the display name of its instance."""
    if event.instance == name:
        return event
    labels = event.labels
    if labels.get("instance") == event.instance:
        labels = {**labels, "instance": name}
    return replace(event, instance=name, labels=labels)
