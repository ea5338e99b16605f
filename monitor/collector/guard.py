"""Limits of a collector, so that no sender takes the resources of the others.

Senders are not authenticated: any process that reaches the endpoint may send reports of any origin. So memory and
processor time are limited for each origin, for each source (the stream of a report) and in total:

- Memory and objects: an origin may use a quarter, a source half of the total. If the total is exceeded, origins that
  never sent a snapshot are evicted first, then the origins that were silent longest. If that is not enough, the origin
  that grew is refused.
- Processor time: each source has a budget. The bytes it sends and the passing time fill it; reading its reports uses
  it. The reports of a source with an empty budget are dropped.
- Bans: after eight refused frames in a row, the reports of an origin are ignored for ten seconds, then twenty, up to
  five minutes. A ban applies to one source: reports of the same origin from another source are accepted.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from enum import StrEnum

__all__ = ["Bounds", "Cause", "Purse", "Source", "Sources"]

_STRIKES = 8
_FIRST_BAN = 10.0
_LONGEST_BAN = 300.0
_MOST_SOURCES = 4096
_MOST_STRIKERS = 256
"""Origins of one source whose refusals are remembered."""


class Cause(StrEnum):
    """Why a report was refused."""

    DAMAGED = "damaged"
    """Its frame cannot be read or exceeds a limit."""
    COST = "cost"
    """The processor time of its source is used up."""
    MEMORY = "memory"
    """It exceeds the memory limit of its origin, of its source or of the collector."""
    ORIGINS = "origins"
    """The number of origins is at its limit, in total or for its source."""
    BANNED = "banned"
    """Too many earlier reports in a row were refused."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """Limits of a collector."""

    memory_bytes: int = 512 << 20
    """Estimated memory of all origins."""
    objects: int = 1 << 18
    """Objects of all origins."""
    origins: int = 4096
    """Number of origins."""
    unproven: int = 64
    """Number of origins of one source that have not sent a snapshot yet."""

    @property
    def origin_bytes(self) -> int:
        """Memory of one origin."""
        return self.memory_bytes // 4

    @property
    def source_bytes(self) -> int:
        """Memory of all origins of one source."""
        return self.memory_bytes // 2

    @property
    def origin_objects(self) -> int:
        """Objects of one origin."""
        return self.objects // 4

    @property
    def source_origins(self) -> int:
        """Number of origins of one source."""
        return max(1, self.origins // 2)


class Purse:
    """Budget of processor time of a source. Times are seconds."""

    __slots__ = ("_left", "_seen")

    PER_BYTE = 7e-6
    PER_SECOND = 0.05
    MOST = 0.5

    def __init__(self, now: float) -> None:
        self._left = 0.1
        self._seen = now

    def earn(self, size: int, now: float) -> None:
        """Add the amounts for `size` bytes and for the time since the last call."""
        earned = self.PER_BYTE * size + self.PER_SECOND * max(0.0, now - self._seen)
        self._left = max(self._left, min(self._left + earned, self.MOST + self.PER_BYTE * size))
        self._seen = now

    @property
    def is_open(self) -> bool:
        """Whether the budget is not used up."""
        return self._left > 0

    def spend(self, seconds: float) -> None:
        """Subtract the time used."""
        self._left -= seconds


@dataclass(slots=True)
class _Strikes:
    count: int = 0
    ban: float = 0.0
    """Duration of the last ban, seconds; 0: none yet."""
    until: float = 0.0


@dataclass(slots=True)
class Source:
    """One stream that carries reports."""

    name: str
    purse: Purse
    _strikes: OrderedDict[int, _Strikes] = field(default_factory=OrderedDict)

    def is_banned(self, origin: int, now: float) -> bool:
        """Whether its reports of an origin are ignored."""
        found = self._strikes.get(origin)
        return found is not None and now < found.until

    def strike(self, origin: int, now: float) -> float:
        """Count a refused frame of an origin; return the duration of the ban that begins now, seconds, usually 0."""
        found = self._strikes.setdefault(origin, _Strikes())
        self._strikes.move_to_end(origin)
        while len(self._strikes) > _MOST_STRIKERS:
            self._strikes.popitem(last=False)
        found.count += 1
        if found.count < _STRIKES:
            return 0.0
        found.count = 0
        found.ban = min(2 * found.ban or _FIRST_BAN, _LONGEST_BAN)
        found.until = now + found.ban
        return found.ban

    def absolve(self, origin: int) -> None:
        """Clear the strikes of an origin after an accepted frame."""
        self._strikes.pop(origin, None)


class Sources:
    """The sources of recent reports."""

    def __init__(self) -> None:
        self._known: OrderedDict[str, Source] = OrderedDict()

    def __len__(self) -> int:
        return len(self._known)

    def of(self, name: str, now: float) -> Source:
        """The source of a name; a new one if it is unknown or was evicted."""
        found = self._known.get(name)
        if found is None:
            found = self._known[name] = Source(name, Purse(now))
            if len(self._known) > _MOST_SOURCES:
                self._known.popitem(last=False)
        self._known.move_to_end(name)
        return found
