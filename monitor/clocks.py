"""The accuracy of a one-way latency: the offset between the clocks of its two ends, and its error bound.

A latency from submit to delivery is the receiver's wall clock minus the sender's. It is too long by the time that the
receiver's clock is ahead. Engines measure this offset and its error bound (`engine/docs/wire.md` 1.5). This module puts
them beside the latency. The measured value is never changed; a verdict and an estimate stand next to it.

- *same clock*: both ends are on one host, and the value is exact.
- *trusted*: offset and bound together do not exceed the latency.
- *flagged*: they exceed it. Only the estimate and its bound are known; half of the round trip may be more accurate.
- *unknown*: the clocks have not been compared.
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
    """The source of the offset between two clocks (statistic `clock_source`)."""

    UNKNOWN = "unknown"
    HOST = "host"
    """Both ends are on one host with one clock."""
    EXCHANGE = "exchange"
    """Time stamps were exchanged."""


class Trust(StrEnum):
    """Whether a one-way latency can be used as measured."""

    SAME_CLOCK = "same clock"
    TRUSTED = "trusted"
    FLAGGED = "flagged"
    UNKNOWN = "unknown"

    @property
    def is_fact(self) -> bool:
        """Whether the value may be shown without a mark."""
        return self in (Trust.SAME_CLOCK, Trust.TRUSTED)


@dataclass(frozen=True, slots=True)
class Clocks:
    """The clocks of a receiver and its source."""

    source: ClockSource = ClockSource.UNKNOWN
    offset_ns: int = 0
    """Time that the receiver's clock is ahead of the source's, ns; below 0: behind."""
    bound_ns: int = 0
    """Error bound of the offset, ns."""
    age_ns: int | None = None
    """Time since the last exchange, ns; None: there was none."""

    @property
    def is_known(self) -> bool:
        """Whether the clocks have been compared."""
        return self.source is not ClockSource.UNKNOWN

    @property
    def error_ns(self) -> int:
        """Largest error of a latency as measured, ns."""
        return abs(self.offset_ns) + self.bound_ns


UNKNOWN = Clocks()
_SOURCES = tuple(ClockSource)
"""Sources by their number in the segment."""


def clocks_of(item: ObjectState | None, now_ns: int = 0) -> Clocks:
    """Read the clocks from an object of the scope `rx_stream` or `tx_receiver`.

    Args:
        item: The object; None: it is out of reach.
        now_ns: Time of the snapshot, ns since 1970; 0: without the age.
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
    """A one-way latency and its accuracy."""

    raw_ns: float
    """Latency as measured, ns."""
    clocks: Clocks
    round_trip_ns: int | None = None
    """Round trip between the two ends, ns; None: unknown."""

    @property
    def corrected_ns(self) -> float | None:
        """The best estimate: as measured, minus the offset; its error is at most `bound_ns`. None: unknown clocks."""
        return self.raw_ns - self.clocks.offset_ns if self.clocks.is_known else None

    @property
    def bound_ns(self) -> int | None:
        """Largest error of `corrected_ns`; None: unknown clocks."""
        return self.clocks.bound_ns if self.clocks.is_known else None

    @property
    def range_ns(self) -> tuple[float, float] | None:
        """Range that contains the latency; never below 0. None: unknown clocks."""
        if not self.clocks.is_known:
            return None
        best = self.raw_ns - self.clocks.offset_ns
        return max(0.0, best - self.clocks.bound_ns), max(0.0, best + self.clocks.bound_ns)

    @property
    def instead_ns(self) -> float | None:
        """Half of the round trip, when the value is not a fact and the round trip is known: the one-way time of a
        symmetric network."""
        return self.round_trip_ns / 2 if self.round_trip_ns and not self.trust.is_fact else None

    @property
    def trust(self) -> Trust:
        """Return the verdict."""
        match self.clocks.source:
            case ClockSource.HOST:
                return Trust.SAME_CLOCK
            case ClockSource.EXCHANGE:
                best = self.raw_ns - self.clocks.offset_ns
                return Trust.TRUSTED if self.clocks.error_ns <= best else Trust.FLAGGED
        return Trust.UNKNOWN

    @property
    def reason(self) -> str:
        """Return the verdict as a sentence."""
        trust, clocks = self.trust, self.clocks
        best = self.raw_ns - clocks.offset_ns
        if trust is Trust.SAME_CLOCK:
            return "both ends use one clock"
        if trust is Trust.UNKNOWN:
            return "the two clocks have not been compared"
        if trust is Trust.TRUSTED:
            return f"the error of the clocks is at most {duration_text(clocks.error_ns)}"
        if clocks.bound_ns > best:
            value = duration_text(best) if best > 0 else "0"
            text = f"the clocks' error bound {duration_text(clocks.bound_ns)} exceeds the value {value}"
        else:
            text = (
                f"the clocks are {duration_text(abs(clocks.offset_ns))} ±{duration_text(clocks.bound_ns)} apart, so "
                f"{duration_text(self.raw_ns)} is not the latency"
            )
        half = self.instead_ns
        return f"{text}; half of the round trip is {duration_text(half)}" if half is not None else text

    @property
    def text(self) -> str:
        """Return the value as text: ``210 µs``; ``~200 µs ±3.00 ms`` when flagged; ``210 µs ?`` when unknown."""
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
    """Add the clocks to the latencies of one receiver, such as its percentiles; None where there is no value.

    For a study over two hosts use `OneWay.corrected_ns` and `OneWay.bound_ns` beside `OneWay.raw_ns`.
    """
    return tuple(None if value is None else OneWay(value, clocks, round_trip_ns) for value in values_ns)


def clocks_text(clocks: Clocks) -> str:
    """Return the clocks as short text: ``one``, ``±52.0 µs``, ``+5.00 ms ±52.0 µs``, ``?``."""
    if clocks.source is ClockSource.HOST:
        return "one"
    if not clocks.is_known:
        return "?"
    bound = f"±{duration_text(clocks.bound_ns)}"
    if abs(clocks.offset_ns) <= clocks.bound_ns:
        return bound
    return f"{'+' if clocks.offset_ns > 0 else '-'}{duration_text(abs(clocks.offset_ns))} {bound}"
