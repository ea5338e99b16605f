"""What a one-way latency is worth: how far apart the clocks of its two ends are, and how surely that is known.

A latency from submit to delivery is the receiver's wall clock less the sender's, so it is too long by as much as the
receiver's is ahead. Engines measure that offset and a bound of its error (`engine/docs/wire.md` 1.5); here they are
put beside the latency. The measured value is never changed: a verdict and an estimate stand next to it.

- *same clock*: both ends are on one host, the value is what it says.
- *trusted*: offset and bound together are no more than the latency itself.
- *flagged*: they are more. The estimate, with its bound, is all that is known; half of the round trip may say more.
- *unknown*: nobody has compared the clocks.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from heliograph.monitor.model import ObjectState
from heliograph.monitor.text import duration_text

__all__ = ["ONE_WAY", "UNKNOWN", "ClockSource", "Clocks", "OneWay", "Trust", "clocks_of", "clocks_text", "one_way"]


ONE_WAY = ("total_latency", "network_latency")
"""Statistics of a receiver that are measured from one end of a stream to the other."""


class ClockSource(StrEnum):
    """What the offset of two clocks is known by (statistic `clock_source`)."""

    UNKNOWN = "unknown"
    HOST = "host"
    """Both are on one host: there is one clock."""
    EXCHANGE = "exchange"
    """Time stamps were exchanged."""


class Trust(StrEnum):
    """Whether a one-way latency can be taken for what it says."""

    SAME_CLOCK = "same clock"
    TRUSTED = "trusted"
    FLAGGED = "flagged"
    UNKNOWN = "unknown"

    @property
    def is_fact(self) -> bool:
        """The value may be shown as it is."""
        return self in (Trust.SAME_CLOCK, Trust.TRUSTED)


@dataclass(frozen=True, slots=True)
class Clocks:
    """The clocks of a receiver and its source."""

    source: ClockSource = ClockSource.UNKNOWN
    offset_ns: int = 0
    """How far the receiver's clock is ahead of the source's; below 0: behind."""
    bound_ns: int = 0
    """The offset is off by no more than this."""
    age_ns: int | None = None
    """Since the last exchange; None: there was none."""

    @property
    def is_known(self) -> bool:
        """Somebody has compared them."""
        return self.source is not ClockSource.UNKNOWN

    @property
    def error_ns(self) -> int:
        """A latency taken as it was measured is off by no more than this."""
        return abs(self.offset_ns) + self.bound_ns


UNKNOWN = Clocks()
_SOURCES = tuple(ClockSource)
"""By the number in the segment."""


def clocks_of(item: ObjectState | None, now_ns: int = 0) -> Clocks:
    """What an object of the scope `rx_stream`, or `peer`, says of the clocks.

    Args:
        item: The object; None: it is not in reach.
        now_ns: The moment of the snapshot, ns since 1970; 0: the age is not wanted.
    """
    values = item.values if item is not None else {}
    number = values.get("clock_source", 0)
    source = _SOURCES[number] if number < len(_SOURCES) else ClockSource.UNKNOWN
    offset, bound = values.get("clock_offset"), values.get("clock_error_bound")
    if source is ClockSource.UNKNOWN or offset is None or bound is None:
        return UNKNOWN
    last = values.get("last_clock_exchange", 0)
    return Clocks(source, offset, bound, max(0, now_ns - last) if last and now_ns else None)


@dataclass(frozen=True, slots=True)
class OneWay:
    """A one-way latency and what it is worth."""

    raw_ns: float
    """As it was measured."""
    clocks: Clocks
    round_trip_ns: int | None = None
    """Between the two ends; None: not known."""

    @property
    def corrected_ns(self) -> float | None:
        """The best estimate: as measured, less the offset; off by `bound_ns` at most. None: the clocks are unknown."""
        return self.raw_ns - self.clocks.offset_ns if self.clocks.is_known else None

    @property
    def bound_ns(self) -> int | None:
        """Most that `corrected_ns` may be off; None: the clocks are unknown."""
        return self.clocks.bound_ns if self.clocks.is_known else None

    @property
    def range_ns(self) -> tuple[float, float] | None:
        """Between which the latency surely was; never below 0. None: the clocks are unknown."""
        if not self.clocks.is_known:
            return None
        best = self.raw_ns - self.clocks.offset_ns
        return max(0.0, best - self.clocks.bound_ns), max(0.0, best + self.clocks.bound_ns)

    @property
    def instead_ns(self) -> float | None:
        """Half of the round trip, where the value is no fact and it is known: what the network takes, one way, if both
        ways take alike."""
        return self.round_trip_ns / 2 if self.round_trip_ns and not self.trust.is_fact else None

    @property
    def trust(self) -> Trust:
        """The verdict."""
        match self.clocks.source:
            case ClockSource.HOST:
                return Trust.SAME_CLOCK
            case ClockSource.EXCHANGE:
                best = self.raw_ns - self.clocks.offset_ns
                return Trust.TRUSTED if self.clocks.error_ns <= best else Trust.FLAGGED
        return Trust.UNKNOWN

    @property
    def reason(self) -> str:
        """The verdict in a sentence, for people."""
        trust, clocks = self.trust, self.clocks
        best = self.raw_ns - clocks.offset_ns
        if trust is Trust.SAME_CLOCK:
            return "both ends read one clock"
        if trust is Trust.UNKNOWN:
            return "nobody has compared the two clocks"
        if trust is Trust.TRUSTED:
            return f"the clocks make it wrong by {duration_text(clocks.error_ns)} at most"
        if clocks.bound_ns > best:
            value = duration_text(best) if best > 0 else "0"
            told = f"the clocks' error bound {duration_text(clocks.bound_ns)} exceeds the value {value}"
        else:
            told = (
                f"the clocks are {duration_text(abs(clocks.offset_ns))} ±{duration_text(clocks.bound_ns)} apart, so "
                f"{duration_text(self.raw_ns)} is not the latency"
            )
        half = self.instead_ns
        return f"{told}; half of the round trip is {duration_text(half)}" if half is not None else told

    @property
    def text(self) -> str:
        """The value as people may read it: ``210 µs``; ``~200 µs ±3.00 ms`` when flagged; ``210 µs ?`` when unknown."""
        trust = self.trust
        if trust.is_fact:
            return duration_text(self.raw_ns)
        if trust is Trust.UNKNOWN:
            return f"{duration_text(self.raw_ns)} ?"
        best = max(0.0, self.raw_ns - self.clocks.offset_ns)
        return f"~{duration_text(best)} ±{duration_text(self.clocks.bound_ns)}"


def one_way(
    values_ns: Iterable[float | None], clocks: Clocks, round_trip_ns: int | None = None
) -> tuple[OneWay | None, ...]:
    """Latencies of one receiver, such as its percentiles, with what they are worth; None where there is no value.

    For a study over two hosts: `OneWay.corrected_ns` and `OneWay.bound_ns`, beside `OneWay.raw_ns`.
    """
    return tuple(None if value is None else OneWay(value, clocks, round_trip_ns) for value in values_ns)


def clocks_text(clocks: Clocks) -> str:
    """How the clocks stand, in a few signs: ``one``, ``±52.0 µs``, ``+5.00 ms ±52.0 µs``, ``?``."""
    if clocks.source is ClockSource.HOST:
        return "one"
    if not clocks.is_known:
        return "?"
    bound = f"±{duration_text(clocks.bound_ns)}"
    if abs(clocks.offset_ns) <= clocks.bound_ns:
        return bound
    return f"{'+' if clocks.offset_ns > 0 else '-'}{duration_text(abs(clocks.offset_ns))} {bound}"
