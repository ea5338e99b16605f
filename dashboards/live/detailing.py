"""The data of the levels of detail: which are raised, since when, until when, and what they cost.

A raised level exists as a statistics object while it is in force. Its cost is known by its effects in the
statistics: the objects that are measured, histograms that found no room in the segment, and long duty cycles of the
engine since the level was first seen. The engine does not count the time that a level takes.
"""

from __future__ import annotations

from dataclasses import dataclass

from heliograph.monitor.commands.levels import INSTANCE, Level, levels_of
from heliograph.monitor.model import Health, InstanceState, Snapshot

__all__ = ["LONG_NS", "Details", "Raised"]

LONG_NS = 3_600_000_000_000
"""A level that stays for longer than this, from now, was left on."""
_FULL = 3


@dataclass(frozen=True, slots=True)
class Raised:
    """A level of detail in force that somebody has raised, or that an instance began with."""

    level: Level
    pid: int
    """Process of the instance."""
    since_ns: int
    """When it was first seen, wall clock in ns."""
    is_whole: bool
    """Whether it began then; False: it was in force when this server first saw its instance."""
    is_live: bool
    """Whether the instance runs."""
    refused: int
    """Histograms without room in the segment since then."""
    overruns: int | None
    """Duty cycles above 50 ms since then; None: the engine has no thread."""
    cycle_max_ns: int | None
    """Longest duty cycle of the instance so far."""

    @property
    def is_left_on(self) -> bool:
        """Whether it stays for long; of an instance that began with it, for ever."""
        return self.level.until_ns is None or self.level.until_ns - self.since_ns > LONG_NS

    @property
    def selected(self) -> str:
        """The objects that are measured in more detail, as text."""
        return "the whole instance" if self.level.selector == INSTANCE else self.level.selector

    @property
    def clause(self) -> str:
        """The level as text: ``level 3 of topic=PRICES.* at feed``."""
        return f"level {self.level.level} of {self.selected} at {self.level.instance}"


_Key = tuple[str, int, str, int]


class Details:
    """Follows the levels from snapshot to snapshot; used by one thread."""

    def __init__(self) -> None:
        self._first: dict[_Key, tuple[int, bool, int, int]] = {}
        self._known: set[tuple[str, int]] = set()

    def update(self, snapshot: Snapshot) -> tuple[Raised, ...]:
        """Return the raised levels: the highest first, then those that stay longest."""
        found: list[Raised] = []
        first: dict[_Key, tuple[int, bool, int, int]] = {}
        for instance in snapshot.instances:
            if instance.health is Health.CLOSED:
                continue
            for level in levels_of([instance]):
                if level.objects is None and level.level < _FULL:
                    continue
                key = (instance.path, instance.incarnation, level.selector, level.level)
                refused, overruns, _ = _cost(instance)
                is_whole = (instance.path, instance.incarnation) in self._known and level.objects is not None
                first[key] = self._first.get(key, (snapshot.time_ns, is_whole, refused, overruns or 0))
                found.append(_raised(instance, level, *first[key]))
        self._first = first
        self._known = {(instance.path, instance.incarnation) for instance in snapshot.instances}
        return tuple(sorted(found, key=_order))


def _raised(
    instance: InstanceState, level: Level, since_ns: int, is_whole: bool, refused: int, overruns: int
) -> Raised:
    refused_now, overruns_now, longest = _cost(instance)
    return Raised(
        level,
        instance.pid,
        since_ns,
        is_whole,
        instance.health in (Health.LIVE, Health.STALE),
        refused_now - refused,
        None if overruns_now is None else overruns_now - overruns,
        longest,
    )


def _cost(instance: InstanceState) -> tuple[int, int | None, int | None]:
    """Return histograms refused, long duty cycles, and the longest one."""
    own = next(instance.of("instance"), None)
    values = own.values if own is not None else {}
    return values.get("histograms_refused", 0), values.get("cycle_overruns"), values.get("cycle_time_max")


def _order(item: Raised) -> tuple[int, int, str, bool, str]:
    until = item.level.until_ns
    return (
        -item.level.level,
        -(until if until is not None else 1 << 62),
        item.level.instance,
        item.level.selector != INSTANCE,
        item.level.selector,
    )
