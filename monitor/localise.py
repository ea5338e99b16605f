"""Loss locations: the sender, the network, the receiver's socket, or lack of space at the receiver.

The receiving engine assigns a location to each missing packet by the evidence at that moment
(`rx_stream.losses_located`, engine/docs/adr/0020-where-packets-die.md). It cannot distinguish causes outside its host.
With both ends in reach, the sender's count of packets that its driver could not send helps. Packets without evidence at
any end stay `outside`.

Pure functions from a snapshot (and the previous one) to rows, as in `fleet`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from heliograph.monitor.model import InstanceState, ObjectState, Snapshot

__all__ = ["PLACES", "Location", "Verdict", "judge", "locate"]

PLACES: Mapping[str, str] = {
    "sender": "the sender's host could not send them",
    "network": "the network lost them",
    "outside": "they never reached this host; the sender is out of reach, so it is unknown whether it sent them",
    "socket": "this host's kernel dropped them: the socket's buffer was full",
    "window": "the receive window was full behind a missing packet",
    "queue": "the application was slow, and the receive window was full",
}
"""Loss locations and their descriptions."""

_AT_RECEIVER = ("socket", "window", "queue")
_BY_ELIMINATION = 0.9
_COPIES = 0.7
_NOT_KNOWN = 0.5


@dataclass(frozen=True, slots=True)
class Verdict:
    """The main loss location of the packets of a stream that a receiver missed."""

    places: Mapping[str, int]
    """Packets by location; locations without packets are left out."""
    place: str | None
    """Location with most packets; None: no losses."""
    confidence: float
    """0 to 1: share of the location; lower when it was found by elimination or by a count that others share."""
    evidence: str
    """One sentence."""


@dataclass(frozen=True, slots=True)
class Location:
    """The losses of one stream at one receiving instance in an interval."""

    instance: str
    stream: str
    sender: str | None
    """Name of the sending instance; None: out of reach."""
    seconds: float
    lost: int
    """Packets that were missing at first, whether or not they were recovered."""
    late: int
    """Packets that arrived late after a request: not lost."""
    verdict: Verdict


def judge(located: Mapping[str, int], unsent: int | None, copies: int = 1) -> Verdict:
    """Combine the evidence of both ends.

    Args:
        located: Packets by location, as counted by the receiving engine.
        unsent: Data packets that the sender's driver could not send in the interval; None: sender out of reach.
        copies: Number of hosts the sender sends each packet to; the failed send may concern any of them.
    """
    outside = located.get("outside", 0)
    places = {place: located.get(place, 0) for place in _AT_RECEIVER}
    trust = dict.fromkeys(_AT_RECEIVER, 1.0)
    if unsent is None:
        places["outside"], trust["outside"] = outside, _NOT_KNOWN
    else:
        places["sender"] = min(outside, unsent)
        places["network"] = outside - places["sender"]
        trust["sender"] = 1.0 if copies <= 1 else _COPIES
        trust["network"] = _BY_ELIMINATION
    places = {place: count for place, count in places.items() if count}
    total = sum(places.values())
    if not total:
        return Verdict({}, None, 0.0, "no losses")
    place = max(places, key=lambda one: (places[one], one))
    said = [f"{count} of {total} packets: {PLACES[one]}" for one, count in sorted(places.items(), key=lambda x: -x[1])]
    return Verdict(places, place, trust[place] * places[place] / total, "; ".join(said))


def _changes(item: ObjectState, before: ObjectState | None, prefix: str) -> dict[str, int]:
    old = before.values if before is not None else {}
    return {
        name.removeprefix(prefix): max(0, value - old.get(name, 0))
        for name, value in item.values.items()
        if name.startswith(prefix)
    }


_STREAMS = frozenset({"rx_stream", "tx_stream"})


def _index(snapshot: Snapshot | None) -> dict[tuple[int, tuple[str, ...]], ObjectState]:
    instances = snapshot.instances if snapshot is not None else ()
    return {
        (owner.incarnation, item.key): item for owner in instances for item in owner.objects if item.scope in _STREAMS
    }


def locate(previous: Snapshot | None, current: Snapshot) -> list[Location]:
    """Return every received stream, the one with most losses first.

    Args:
        previous: Start of the interval; objects that it lacks, or all for None, count from their own start.
        current: End of the interval.
    """
    before = _index(previous)
    senders: dict[str, tuple[InstanceState, ObjectState]] = {
        item.labels["stream"]: (owner, item) for owner, item in current.of("tx_stream") if item.live
    }
    found = []
    for owner, item in current.of("rx_stream"):
        if not item.live:
            continue
        old = before.get((owner.incarnation, item.key))
        sender = senders.get(item.labels["stream"])
        unsent: int | None = None
        if sender is not None and "packets_unsent" in sender[1].values:
            sent_before = before.get((sender[0].incarnation, sender[1].key))
            unsent = _changes(sender[1], sent_before, "packets_unsent")[""]
        located = _changes(item, old, "losses_located_")
        born_ns = previous.time_ns if previous is not None and old is not None else item.created_ns
        found.append(
            Location(
                instance=owner.name,
                stream=item.labels["stream"],
                sender=sender[0].name if sender else None,
                seconds=max(0.0, (current.time_ns - born_ns) / 1e9),
                lost=sum(located.get(place, 0) for place in (*_AT_RECEIVER, "outside")),
                late=located.get("late", 0),
                verdict=judge(located, unsent, sender[1].values.get("destinations", 1) if sender else 1),
            )
        )
    return sorted(found, key=lambda row: (-row.lost, row.instance, row.stream))
