"""What a collector grants to those it hears, so that no one of them takes what belongs to the others.

Nobody on the network is authenticated: whoever reaches the endpoint may send reports of any origin. So everything a
report makes the collector keep or do is limited, per origin, per source (the stream it came on) and in total:

- Memory and objects: an origin may hold a quarter, a source half of what the collector may. When all of it is taken,
  origins that never sent a snapshot give way first, then those silent the longest; then the one that grew is refused.
- Processor time: each source has a purse, filled by the bytes it sends and a little by time. Who has spent more than
  came in is not looked at until it is filled again.
- Attention: an origin whose frames are refused one after the other is not looked at for ten seconds, then twenty, up
  to five minutes. That holds for the source they came on: another source's reports of the same origin are taken.
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
    """Its frame is none, or over a limit."""
    COST = "cost"
    """Its source has used up its processor time."""
    MEMORY = "memory"
    """Holding it would take more than its origin, its source or all may."""
    ORIGINS = "origins"
    """Too many origins, or too many of its source."""
    BANNED = "banned"
    """Those before it were refused one after the other."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """The most a collector takes."""

    memory_bytes: int = 512 << 20
    """Of all origins together, by estimate."""
    objects: int = 1 << 18
    origins: int = 4096
    unproven: int = 64
    """Origins of one source that have not sent a snapshot yet."""

    @property
    def origin_bytes(self) -> int:
        """Most memory of one origin."""
        return self.memory_bytes // 4

    @property
    def source_bytes(self) -> int:
        """Most memory of one source's origins."""
        return self.memory_bytes // 2

    @property
    def origin_objects(self) -> int:
        """Most objects of one origin."""
        return self.objects // 4

    @property
    def source_origins(self) -> int:
        """Most origins of one source."""
        return max(1, self.origins // 2)


class Purse:
    """Processor time that a source may use. Times are seconds."""

    __slots__ = ("_left", "_seen")

    PER_BYTE = 7e-6
    PER_SECOND = 0.05
    MOST = 0.5

    def __init__(self, now: float) -> None:
        self._left = 0.1
        self._seen = now

    def earn(self, size: int, now: float) -> None:
        """Put in what `size` bytes and the time since the last ones are worth."""
        earned = self.PER_BYTE * size + self.PER_SECOND * max(0.0, now - self._seen)
        self._left = max(self._left, min(self._left + earned, self.MOST + self.PER_BYTE * size))
        self._seen = now

    @property
    def is_open(self) -> bool:
        """Whether anything is left."""
        return self._left > 0

    def spend(self, seconds: float) -> None:
        """Take out what was used."""
        self._left -= seconds


@dataclass(slots=True)
class _Strikes:
    count: int = 0
    ban: float = 0.0
    """Seconds of the last ban; 0: none yet."""
    until: float = 0.0


@dataclass(slots=True)
class Source:
    """One stream that reports come on."""

    name: str
    purse: Purse
    _strikes: OrderedDict[int, _Strikes] = field(default_factory=OrderedDict)

    def is_banned(self, origin: int, now: float) -> bool:
        """Whether its reports of an origin are not looked at."""
        found = self._strikes.get(origin)
        return found is not None and now < found.until

    def strike(self, origin: int, now: float) -> float:
        """A frame of an origin was refused; the seconds for which none of it is looked at from now on, mostly 0."""
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
        """A frame of an origin was taken."""
        self._strikes.pop(origin, None)


class Sources:
    """The sources heard lately."""

    def __init__(self) -> None:
        self._known: OrderedDict[str, Source] = OrderedDict()

    def __len__(self) -> int:
        return len(self._known)

    def of(self, name: str, now: float) -> Source:
        """The source of a name, new when it is not known or was forgotten for newer ones."""
        found = self._known.get(name)
        if found is None:
            found = self._known[name] = Source(name, Purse(now))
            if len(self._known) > _MOST_SOURCES:
                self._known.popitem(last=False)
        self._known.move_to_end(name)
        return found
