"""The data of each message store for one interval: its streams, subscriptions, files, disk and service, and its state.

Pure functions from two snapshots and their rows. Rates are per second, times in ns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from heliograph.monitor.behaviour import Behaviour
from heliograph.monitor.fleet import ReceiverRow
from heliograph.monitor.groups import rows_of_instance
from heliograph.monitor.joining import Interval, value_of
from heliograph.monitor.latency import percentiles
from heliograph.monitor.model import Health, InstanceState, ObjectState, Snapshot

if TYPE_CHECKING:
    from heliograph.dashboards.live.series import Point

__all__ = [
    "QUANTILES",
    "STORE_HISTOGRAMS",
    "Judged",
    "Keeping",
    "KeptStream",
    "Stability",
    "Subscribed",
    "judged",
    "keeping",
]

STORE_HISTOGRAMS = frozenset({"write_time", "sync_time", "durable_latency", "stability_latency"})
"""Histograms that a snapshot needs for the stores."""
QUANTILES: Mapping[str, float] = {"p50": 0.5, "p99": 0.99, "max": 1.0}

_FULL = 0.95
_IN_USE = 0.6
_AHEAD_SECONDS = 4 * 3600.0
_LEAST_SECONDS = 10.0
"""Shortest time from which the filling of a disk is forecast."""
_BEHIND = frozenset({Behaviour.FALLING_BEHIND, Behaviour.STALLED})

Times = Mapping[str, int]
"""Percentiles by name (see QUANTILES); empty without values in the interval."""


@dataclass(frozen=True, slots=True)
class Stability:
    """The quorum of a stream, as its source sees it."""

    source: str = ""
    """Name of its instance."""
    present: int = 0
    required: int = 0
    """Stores or receivers whose acknowledgements count, and how many must acknowledge a message."""
    messages: int = 0
    bytes: int = 0
    """Sent and not stable."""
    limit_messages: int = 0
    limit_bytes: int = 0
    """Their limits; 0: none."""
    times: Times = field(default_factory=dict)
    """From the closing of a packet until the quorum has it."""


@dataclass(frozen=True, slots=True)
class Subscribed:
    """A durable subscription in one stream."""

    name: str
    topic: str
    stream: str
    next_message: int = 0
    waiting: int = 0
    """Messages that the store has from there on."""
    progress: float = 0.0
    """Messages per second by which its position advances."""
    saved_seconds: float = 0.0
    """Age of the position."""


@dataclass(frozen=True, slots=True)
class KeptStream:
    """A stream that a store keeps."""

    first: int = 0
    """Position of the oldest message in the files; 0: none."""
    last: int = 0
    """Position of the newest message."""
    written: int = 0
    """Position of the newest message in the files."""
    durable: int = 0
    """Position of the newest message that survives a power failure; 0 with fsync=never."""
    kept: float = 0.0
    """Messages taken per second."""
    data: float = 0.0
    """Bytes of their payloads per second."""
    bytes: int = 0
    """Bytes of all payloads taken."""
    lost: int = 0
    """Messages that the files lack."""
    behind: int | None = None
    """Messages sent and not taken; None: its source is out of reach."""
    lag_seconds: float | None = None
    """Age of the oldest of them."""
    durable_times: Times = field(default_factory=dict)
    """From the arrival of messages until they are durable."""
    stability: Stability | None = None
    """None: its source is out of reach, or asks for no acknowledgements."""


@dataclass(frozen=True, slots=True)
class Keeping:
    """A store in one interval."""

    health: Health = Health.LIVE
    reason: str = ""
    """Why its instance is not live."""
    directory: str = ""
    fsync: str = ""
    streams: Mapping[str, KeptStream] = field(default_factory=dict)
    behaviour: Behaviour = Behaviour.OK
    """The worst class of its receivers."""
    why: str = ""
    """The reason for this class."""
    segments: int = 0
    segment_bytes: int = 0
    segments_removed: int = 0
    disk_bytes: int = 0
    disk_free: int = 0
    is_blocked: bool = False
    failures: int = 0
    """Writes and syncs that failed."""
    readers: int = 0
    """Subscribers that are being served."""
    requests: float = 0.0
    """Requests answered per second."""
    sent: float = 0.0
    """Bytes per second to subscribers."""
    refused: int = 0
    aborted: int = 0
    restarts: int = 0
    """Restarts of the service."""
    write_times: Times = field(default_factory=dict)
    sync_times: Times = field(default_factory=dict)
    subscriptions: Sequence[Subscribed] = ()
    """Durable subscriptions, the one furthest behind first."""

    @property
    def used(self) -> float:
        """Share of the disk in use, 0 to 1."""
        return 1 - self.disk_free / self.disk_bytes if self.disk_bytes else 0.0

    @property
    def kept(self) -> float:
        """Messages taken per second."""
        return sum(one.kept for one in self.streams.values())

    @property
    def behind(self) -> int | None:
        """Messages behind the sources in reach; None: none is."""
        known = [one.behind for one in self.streams.values() if one.behind is not None]
        return sum(known) if known else None

    @property
    def lag_seconds(self) -> float | None:
        """Largest lag of the streams."""
        return max((one.lag_seconds for one in self.streams.values() if one.lag_seconds is not None), default=None)

    @property
    def lost(self) -> int:
        """Messages that the files lack."""
        return sum(one.lost for one in self.streams.values())


@dataclass(frozen=True, slots=True)
class Judged:
    """The state of a store."""

    state: str
    """A name in `dashboards.words.STORE`."""
    reason: str
    full_seconds: float | None
    """Forecast: seconds until the disk is full; None: it does not fill, or the time was too short."""


def keeping(older: Snapshot | None, newer: Snapshot, rows: Sequence[ReceiverRow]) -> dict[str, Keeping]:
    """Return the data of each store by the name of its instance.

    Args:
        older: Start of the interval; None: rates cover the life of each store.
        newer: End of the interval.
        rows: Receivers of this interval.
    """
    interval = Interval(older, newer)
    found: dict[str, Keeping] = {}
    for owner, item in sorted(newer.of("store"), key=lambda pair: (pair[0].health is Health.LIVE, pair[1].live)):
        found[owner.name] = _keeping(interval, owner, item, rows_of_instance(rows, owner.name))
    return found


def _times(interval: Interval, owner: InstanceState, item: ObjectState, name: str) -> Times:
    histogram = interval.histogram(owner, item, name)
    if histogram is None:
        return {}
    return dict(zip(QUANTILES, percentiles(histogram, tuple(QUANTILES.values())), strict=True))


def _keeping(interval: Interval, owner: InstanceState, item: ObjectState, rows: Sequence[ReceiverRow]) -> Keeping:
    rows = [row for row in rows if row.behaviour is not Behaviour.STOPPED]  # of a killed run with the same name
    worst = max(rows, key=lambda row: row.badness, default=None)
    return Keeping(
        health=owner.health,
        reason=owner.reason,
        directory=item.info.get("directory", ""),
        fsync=item.info.get("fsync", ""),
        streams={
            one.labels["stream"]: _stream(interval, owner, one, rows) for one in owner.of("store_stream") if one.live
        },
        behaviour=worst.behaviour if worst is not None else Behaviour.OK,
        why=f"{worst.topic}: {worst.reason}" if worst is not None else "",
        segments=value_of(item, "segments"),
        segment_bytes=value_of(item, "segment_bytes"),
        segments_removed=value_of(item, "segments_removed"),
        disk_bytes=value_of(item, "disk_bytes"),
        disk_free=value_of(item, "disk_free_bytes"),
        is_blocked=bool(value_of(item, "is_blocked")),
        failures=value_of(item, "write_failures"),
        readers=value_of(item, "service_readers"),
        requests=interval.rate(owner, item, "service_requests"),
        sent=interval.rate(owner, item, "service_bytes_sent"),
        refused=value_of(item, "service_requests_refused"),
        aborted=value_of(item, "service_requests_aborted"),
        restarts=value_of(item, "service_restarts"),
        write_times=_times(interval, owner, item, "write_time"),
        sync_times=_times(interval, owner, item, "sync_time"),
        subscriptions=_subscriptions(interval, owner),
    )


def _subscriptions(interval: Interval, owner: InstanceState) -> list[Subscribed]:
    found = []
    for one in owner.of("store_subscription"):
        if one.live:
            labels = one.labels
            age = interval.now.snapshot.time_ns - value_of(one, "last_saved")
            found.append(
                Subscribed(
                    labels["subscription"],
                    labels["topic"],
                    labels["stream"],
                    next_message=value_of(one, "next_message"),
                    waiting=value_of(one, "messages_waiting"),
                    progress=interval.rate(owner, one, "next_message") if interval.earlier(owner, one) else 0.0,
                    saved_seconds=max(0.0, age / 1e9),
                )
            )
    return sorted(found, key=lambda one: (-one.waiting, one.name, one.topic, one.stream))


def _stability(interval: Interval, stream: str) -> Stability | None:
    for owner, item in interval.now.snapshot.of("tx_stream"):
        if item.live and item.labels["stream"] == stream and value_of(item, "quorum_required"):
            return Stability(
                owner.name,
                present=value_of(item, "quorum_present"),
                required=value_of(item, "quorum_required"),
                messages=value_of(item, "unstable_messages"),
                bytes=value_of(item, "unstable_bytes"),
                limit_messages=value_of(item, "unstable_limit_messages"),
                limit_bytes=value_of(item, "unstable_limit_bytes"),
                times=_times(interval, owner, item, "stability_latency"),
            )
    return None


def _stream(interval: Interval, owner: InstanceState, item: ObjectState, rows: Sequence[ReceiverRow]) -> KeptStream:
    stream = item.labels["stream"]
    own = [row for row in rows if row.stream == stream]
    sent = [row for row in own if interval.now.senders.get((stream, row.topic)) is not None]
    return KeptStream(
        first=value_of(item, "first_position"),
        last=value_of(item, "last_position"),
        written=value_of(item, "written_position"),
        durable=value_of(item, "durable_position"),
        kept=interval.rate(owner, item, "messages_kept"),
        data=interval.rate(owner, item, "bytes_kept"),
        bytes=value_of(item, "bytes_kept"),
        lost=value_of(item, "messages_lost"),
        behind=sum(row.lag_messages for row in sent) if sent else None,
        lag_seconds=max((row.lag_seconds for row in own if row.lag_seconds is not None), default=None),
        durable_times=_times(interval, owner, item, "durable_latency"),
        stability=_stability(interval, stream),
    )


def judged(name: str, found: Keeping, points: Sequence[Point]) -> Judged:
    """Return the state of a store: the worst that is true of it.

    Args:
        name: Name of its instance.
        found: Its newest data.
        points: The points that are shown, oldest first.
    """
    before = [(point.time_ns, point.keeping[name]) for point in points if name in point.keeping]
    full = _full_seconds(before, found)
    if found.health is not Health.LIVE:
        return Judged(f"health:{found.health.value}", found.reason, full)
    if found.is_blocked:
        return Judged("blocked", f"it cannot write; {found.failures} writes have failed", full)
    if found.disk_bytes and found.used >= _FULL:
        return Judged("full", f"{found.used:.0%} of its disk is in use", full)
    if found.behaviour in _BEHIND:
        return Judged("behind", found.why, full)
    if full is not None and full < _AHEAD_SECONDS and found.used >= _IN_USE:
        return Judged("filling", "at the present rate the disk is full within 4 h", full)
    lost = found.lost - before[0][1].lost if before else 0
    if lost > 0:
        return Judged("gap", f"it has lost {lost} messages; its files have a gap", full)
    restarts = found.restarts - before[0][1].restarts if before else 0
    if restarts > 0:
        return Judged("restarted", f"its service ended and was started again ({restarts})", full)
    if found.behaviour is not Behaviour.OK and found.behaviour is not Behaviour.UNKNOWN:
        return Judged("catching_up", found.why, full)
    return Judged("keeping", "", full)


def _full_seconds(before: Sequence[tuple[int, Keeping]], found: Keeping) -> float | None:
    """The time until the disk is full, if it continues to fill as it did while it was looked at."""
    if len(before) < 2 or not found.disk_bytes:
        return None
    seconds = (before[-1][0] - before[0][0]) / 1e9
    filled = before[0][1].disk_free - before[-1][1].disk_free
    if seconds < _LEAST_SECONDS or filled <= 0:
        return None
    return found.disk_free * seconds / filled
