"""Walks from Fleet to the cause of a fault: what a reader sees first, the links to click, the sentence at the end.

The fleet is the sample fleet with a fault added to its snapshots. `test_live_faults.py` has the same walks on a real
engine under the fault itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
import pytest

from heliograph.monitor.latency import ENGINE_CELLS, cell_of
from heliograph.monitor.model import Event, Histogram, ObjectState, Snapshot
from tests.dashboards.views import NOW_NS, SECOND, Fleet
from tests.dashboards.walking import Walk, arrived, opened, said

MOMENTS = 4
"""Samples of the fleet, a second apart."""
SEEN = 2
"""The moment at which what happens once is seen."""


def hiccups(seconds: float, times: int = 1000) -> Histogram:
    """Delays of 60 µs, and one of the given length."""
    counts = np.zeros(ENGINE_CELLS, np.uint64)
    counts[cell_of(60_000)] = times
    if seconds:
        counts[cell_of(int(seconds * SECOND))] = 1
    return Histogram(counts, 1, 60_000_000_000, 3)


def change(snapshot: Snapshot, scope: str, values: Mapping[str, int], *, of: str = "", topic: str = "") -> Snapshot:
    """The snapshot with other values in the objects of a scope, of one instance or topic where they are given."""

    def changed(item: ObjectState) -> ObjectState:
        is_meant = item.scope == scope and of in ("", item.labels["instance"])
        is_meant = is_meant and topic in ("", item.labels.get("topic"))
        return replace(item, values={**item.values, **values}) if is_meant else item

    owners = tuple(replace(one, objects=tuple(map(changed, one.objects))) for one in snapshot.instances)
    return replace(snapshot, instances=owners)


def storm(snapshot: Snapshot, moment: int) -> Snapshot:
    return change(snapshot, "tx_stream", {"storm_active": 1, "storms": 1, "repair_queue": 40})


def pause(snapshot: Snapshot, moment: int) -> Snapshot:
    """Each host has hiccups; alpha's has one of two seconds."""

    def with_hiccups(item: ObjectState) -> ObjectState:
        if item.scope != "instance":
            return item
        length = 2.0 if item.labels["instance"] == "alpha" and moment >= SEEN else 0.0
        return replace(item, histograms={**item.histograms, "host_hiccup": hiccups(length, 1000 * (moment + 1))})

    owners = tuple(replace(one, objects=tuple(map(with_hiccups, one.objects))) for one in snapshot.instances)
    return replace(snapshot, instances=owners)


def step(snapshot: Snapshot, moment: int) -> Snapshot:
    """The clock of the feed is set; the event comes one snapshot after the count."""
    if moment < SEEN:
        return snapshot
    found = change(snapshot, "instance", {"clock_steps": 1}, of="feed")
    if moment != SEEN + 1:
        return found
    arguments = {"by": 5 * SECOND, "forward": 1}
    event = Event("feed", 1, 9, snapshot.time_ns, "clock_stepped", "warning", {}, arguments, "the wall clock was set")
    return replace(found, events=(*found.events, event))


def stall(snapshot: Snapshot, moment: int) -> Snapshot:
    return change(snapshot, "tx_stream", {"wait_time_rate": moment * 900_000_000})


def full(snapshot: Snapshot, moment: int) -> Snapshot:
    """The queue of one topic is full and refuses messages, because their data waits for the rate."""
    found = change(stall(snapshot, moment), "transmitter", {"queue_bytes": 4 << 20}, topic="PRICES.B")
    return change(found, "instance", {"send_would_block": 100 * moment}, of="feed")


def left_on(snapshot: Snapshot, moment: int) -> Snapshot:
    return change(snapshot, "detail", {"until": NOW_NS + 9 * 3600 * SECOND})


def nothing(snapshot: Snapshot, moment: int) -> Snapshot:
    return snapshot


FAULTS: Mapping[str, Callable[[Snapshot, int], Snapshot]] = {
    "NAK storm": storm,
    "host pause": pause,
    "clock step": step,
    "sender stalls": stall,
    "queue full": full,
    "late detail left on": left_on,
}
"""What is added to the snapshots; the others are in the sample fleet."""

WALKS = {
    "slow consumer": Walk(
        "slow is falling behind on PRICES.D and 3 other topics: queue 100 % full",
        ("slow",),
        "/receiver",
        (
            "queue 100 % full",
            "feed sees: action suspend; falling behind",
            "packets it needs leave the history in 42.0 s",
        ),
        "rx-queue",
    ),
    "one lossy link": Walk(
        "lossy is lossy on PRICES.A",
        ("lossy",),
        "/receiver",
        ("loses 2.1 % of packets", "Most missing packets: the network lost them", "requests 87 % of all repairs"),
        "rx-losses",
    ),
    "NAK storm": Walk(
        "NAK storm on the stream of feed: 54 NAKs/s, 40 repairs wait; lossy, slow and bravo request 100 % of all",
        ("NAK storm on the stream of feed", "lossy"),
        "/receiver",
        ("NAK storm on the stream of feed", "Most missing packets: the network lost them", "requests 87 % of all"),
        "rx-losses",
    ),
    "host pause": Walk(
        "alpha stood still for 2.00 s until",
        ("alpha",),
        "/receiver",
        (
            "none of its threads could run; the other 4 instances of the host ran",
            "its process was stopped",
        ),
        "rx-hosts",
    ),
    "clock step": Walk(
        "The wall clock of feed was set 5.00 s forward at",
        ("The wall clock of feed",),
        "/topic",
        ("The wall clock of feed was set 5.00 s forward", "latencies across the step are off by as much"),
        "tp-hosts",
    ),
    "sender stalls": Walk(
        "Data of feed waits 90 % of the time for the rate of the stream",
        ("Data of feed",),
        "/congestion",
        ("Data of feed waits 90 % of the time for the rate of the stream", "Rate in force: 3.8 MiB/s"),
        "cc-axis",
    ),
    "queue full": Walk(
        "The submit queue of PRICES.B at feed is 100 % full; feed refused 300 sends within 3.00 s",
        ("The submit queue of PRICES.B at feed",),
        "/topic",
        ("PRICES.B at feed is 100 % full", "its data waits 90 % of the time for the rate of the stream"),
        "tp-queue",
    ),
    "late detail left on": Walk(
        "Detail was left on: level 3 of topic=PRICES.* at feed",
        ("Detail was left on",),
        "/detail",
        ("Detail was left on: level 3 of topic=PRICES.* at feed, which ends in", "End now, below, ends it."),
    ),
}


def spoilt(fleet: Fleet, *faults: str) -> None:
    """Take samples of the fleet with faults."""
    sound = fleet.store._sample

    def sample() -> Snapshot:
        found = sound()
        for fault in faults:
            found = FAULTS.get(fault, nothing)(found, (fleet.now_ns - NOW_NS) // SECOND)
        return found

    fleet.store._sample = sample
    for moment in range(MOMENTS):
        fleet.at(moment)


@pytest.mark.parametrize("fault", WALKS)
def test_a_fault_is_traced_from_fleet_to_its_cause_in_three_clicks(fault: str, fleet: Fleet) -> None:
    spoilt(fleet, fault)
    arrived(fleet.store, lambda: fleet.now_ns, WALKS[fault])


def test_of_several_faults_each_has_its_sentence_the_worst_first(fleet: Fleet) -> None:
    spoilt(fleet, "clock step", "NAK storm", "queue full")
    shown = said(opened(fleet.store, lambda: fleet.now_ns, "/"))
    subjects = ("NAK storm on", "slow is falling", "The submit queue of", "lossy is lossy", "The wall clock of feed")
    places = [shown.index(words) for words in subjects]
    assert places == sorted(places)
