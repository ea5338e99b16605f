"""What instances are called where several hosts are seen at once.

Alone, a name is enough. A name that runs on two hosts is shown as ``name@host`` from then on, on every host; one that
runs twice on a host as ``name#pid``; two origins of one host name as ``host~1a2b``, by the first digits of their
identity. An instance keeps what it was called for as long as it is seen, so no counter changes hands.
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
    """Remembers what instances are called."""

    def __init__(self) -> None:
        self._shared: set[str] = set()
        """Names met on two origins."""
        self._twins: dict[Place, str] = {}
        self._made: dict[int, tuple[ObjectState, ObjectState]] = {}
        """Objects under another name, by the identity of the one they were made from, which is kept for it."""

    def hosts(self, origins: Mapping[int, str]) -> Mapping[int, str]:
        """What each origin's host is called, by origin."""
        count = Counter(origins.values())
        return {
            origin: host if count[host] == 1 else f"{host}~{origin:016x}"[: len(host) + 5]
            for origin, host in origins.items()
        }

    def called(self, found: Mapping[int, Sequence[InstanceState]], hosts: Mapping[int, str]) -> Mapping[Place, str]:
        """What each instance is called.

        Args:
            found: Instances by origin.
            hosts: What each origin's host is called.
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
        """An instance under another name, its objects too. An object that has not changed is the same one again."""
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
        """Forget what was made of any but these objects."""
        if len(self._made) > 2 * len(objects):
            kept = {id(item) for item in objects}
            self._made = {key: made for key, made in self._made.items() if key in kept}


def renamed_event(event: Event, name: str) -> Event:
    """An event under the name its instance is called by."""
    if event.instance == name:
        return event
    labels = event.labels
    if labels.get("instance") == event.instance:
        labels = {**labels, "instance": name}
    return replace(event, instance=name, labels=labels)
