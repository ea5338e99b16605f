"""Faults of senders, hosts and clocks: what is one and what is not, in which words, and for how long."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pytest

from heliograph.engine.catalogue.times import time_of_day
from heliograph.monitor.faults import KEPT_NS, MOST_PAST, Fault, Faults, Kind
from heliograph.monitor.hosts import hosts
from heliograph.monitor.latency import ENGINE_CELLS, cell_of
from heliograph.monitor.model import Event, Health, Histogram, InstanceState, ObjectState, Snapshot

SECOND = 1_000_000_000
NOW_NS = 1_800_000_000 * SECOND
STREAM = "0a0b0c0d0e0f.1"
LIMIT = 65536


def hiccups(*delays_ns: int, above: int = 0) -> Histogram:
    counts = np.zeros(ENGINE_CELLS, np.uint64)
    for delay_ns in delays_ns:
        counts[cell_of(delay_ns)] += 1
    return Histogram(counts, 1, 60 * SECOND, 3, above)


def item(
    scope: str,
    labels: Mapping[str, str],
    values: Mapping[str, int],
    info: Mapping[str, str] | None = None,
    histograms: Mapping[str, Histogram] | None = None,
) -> ObjectState:
    return ObjectState(scope, labels, info or {}, values, histograms or {}, created_ns=NOW_NS - SECOND)


def instance(name: str, *objects: ObjectState, health: Health = Health.LIVE) -> InstanceState:
    return InstanceState(name, health, "", 1, hash(name), NOW_NS - SECOND, NOW_NS, f"/{name}", objects)


def host(
    name: str, *delays_ns: int, machine: str = "vm", steps: int = 0, above: int = 0, usual: int = 1
) -> InstanceState:
    """An instance with the hiccups of its life: some usual ones, and others."""
    histograms = {"host_hiccup": hiccups(*[60_000] * usual, *delays_ns, above=above)}
    values = {"clock_steps": steps}
    return instance(name, item("instance", {"instance": name}, values, info={"host": machine}, histograms=histograms))


def feed(values: Mapping[str, int], queues: Mapping[str, Mapping[str, int]], refused: int = 0) -> InstanceState:
    """A sender with the topics and the values of their queues."""
    topics = [
        item(
            "transmitter",
            {"instance": "feed", "topic": topic, "stream": STREAM},
            {"queue_limit_bytes": LIMIT, **queue},
        )
        for topic, queue in queues.items()
    ]
    stream = item("tx_stream", {"instance": "feed", "stream": STREAM}, values)
    whole = item("instance", {"instance": "feed"}, {"send_would_block": refused}, info={"host": "vm"})
    return instance("feed", whole, stream, *topics)


def found(*fleets: Sequence[InstanceState], events: Sequence[Sequence[Event]] = ()) -> list[Fault]:
    """The faults after snapshots of some fleets, one a second."""
    faults = Faults()
    previous: Snapshot | None = None
    last: tuple[Fault, ...] = ()
    for place, fleet in enumerate(fleets):
        own = tuple(events[place]) if place < len(events) else ()
        current = Snapshot(NOW_NS + place * SECOND, tuple(fleet), own)
        last, previous = faults.update(previous, current), current
    return list(last)


def stepped(by_ns: int) -> Event:
    arguments = {"by": abs(by_ns), "forward": int(by_ns > 0)}
    return Event("feed", 1, 1, NOW_NS, "clock_stepped", "warning", {}, arguments, "")


@pytest.mark.parametrize(
    ("share", "reason", "is_fault"), [(0.6, "rate", True), (0.4, "rate", False), (0.3, "window", True)]
)
def test_a_wait_is_a_fault_from_its_share_on(share: float, reason: str, is_fault: bool) -> None:
    fleets = [[feed({f"wait_time_{reason}": int(n * share * SECOND)}, {"A": {}})] for n in range(5)]
    faults = found(*fleets)
    assert [one.kind for one in faults] == ([Kind.WAIT] if is_fault else [])
    if is_fault:
        text = {"rate": "for the rate of the stream", "window": "for a window of receivers, or of PGMCC"}[reason]
        assert faults[0].text == f"Data of feed waits {share * 100:.0f} % of the time {text}"
        assert faults[0].since_ns == NOW_NS + 3 * SECOND, "after three observations"


def test_a_burst_is_no_fault() -> None:
    fills = (0.0, 1.0, 1.0, 0.2, 1.0)
    fleets = [[feed({}, {"A": {"queue_bytes": int(fill * LIMIT)}})] for fill in fills]
    assert found(*fleets) == []


def test_a_full_queue_says_what_happens_to_messages_and_why() -> None:
    fleets = []
    for n in range(4):
        queue = {"queue_bytes": LIMIT, "messages_dropped_oldest": 5 * n}
        fleets.append([feed({"wait_time_rate": n * SECOND}, {"A": queue, "B": {}}, 7 * n)])
    (fault,) = found(*fleets)
    assert (fault.kind, fault.topic, fault.stream) == (Kind.QUEUE, "A", STREAM)
    assert fault.text == (
        "The submit queue of A at feed is 100 % full; feed refused 21 sends within 3.00 s; "
        "15 messages were dropped within 3.00 s; its data waits 100 % of the time for the rate of the stream"
    )


def test_one_process_that_stood_still_is_told_from_its_host() -> None:
    calm = [host("a"), host("b"), host("c", machine="other")]
    (fault,) = found(calm, [host("a", 2 * SECOND), host("b", usual=2), host("c", machine="other", usual=2)])
    assert (fault.kind, fault.instances) == (Kind.PAUSE, ("a",))
    until = time_of_day(NOW_NS + SECOND)
    assert fault.text == (
        f"a stood still for 2.00 s until {until}: none of its threads could run; "
        "the other instance of the host ran, so its process was stopped and not the host"
    )
    (whole,) = found(calm, [host("a", 2 * SECOND), host("b", 2 * SECOND + 5_000_000), host("c", machine="other")])
    assert set(whole.instances) == {"a", "b"}
    assert whole.text == f"Host vm stood still for 2.01 s until {until}: none of its 2 instances could run"
    apart = found(calm, [host("a", 2 * SECOND), host("b", SECOND // 2), host("c", machine="other")])
    assert [one.instances for one in apart] == [("a",), ("b",)], "a short delay beside a long one is another event"


def test_what_was_before_the_first_look_and_short_delays_are_no_pause() -> None:
    assert found([host("a", 2 * SECOND)], [host("a", 2 * SECOND)]) == []
    assert found([host("a")], [host("a", 100_000_000)]) == []


def test_a_pause_beyond_the_histogram_is_at_least_its_end() -> None:
    (fault,) = found([host("a")], [host("a", above=1)])
    assert "a stood still for 60.0 s" in fault.text


def test_a_pause_is_kept_for_a_time() -> None:
    faults = Faults()
    before = Snapshot(NOW_NS, (host("a"),))
    faults.update(None, before)
    after = Snapshot(NOW_NS + SECOND, (host("a", 2 * SECOND),))
    assert faults.update(before, after)
    later = Snapshot(NOW_NS + SECOND + KEPT_NS - 1, (host("a", 2 * SECOND),))
    assert faults.update(after, later)
    last = Snapshot(NOW_NS + SECOND + KEPT_NS, (host("a", 2 * SECOND),))
    assert faults.update(later, last) == ()


def test_a_host_that_stands_still_again_and_again_keeps_its_newest_pauses() -> None:
    fleets = [[host("a", *[2 * SECOND] * n), host("b", usual=n + 1)] for n in range(100)]
    faults = found(*fleets)
    assert len(faults) == MOST_PAST
    assert max(one.since_ns for one in faults) >= NOW_NS + 97 * SECOND


@pytest.mark.parametrize("late", [0, 1])
def test_a_step_of_a_clock_has_its_size_also_when_the_event_comes_late(late: int) -> None:
    fleets = [[host("feed", steps=steps)] for steps in (0, 1, 1)]
    events: list[list[Event]] = [[], [], []]
    events[1 + late].append(stepped(-5 * SECOND))
    (fault,) = found(*fleets, events=events)
    assert (fault.kind, fault.instances, fault.size) == (Kind.CLOCK, ("feed",), 5 * SECOND)
    assert fault.text == (
        f"The wall clock of feed was set 5.00 s back at {time_of_day(NOW_NS + SECOND)}: "
        "latencies across the step are off by as much"
    )


def test_a_step_without_its_event_has_no_size() -> None:
    (fault,) = found([host("feed")], [host("feed", steps=1)])
    assert f"was set at {time_of_day(NOW_NS + SECOND)}: " in fault.text


def test_a_storm_comes_first_and_names_who_requests_most() -> None:
    def asked(name: str, address: str, naks: int) -> ObjectState:
        labels = {"instance": "feed", "stream": STREAM, "receiver": address}
        return item("tx_receiver", labels, {"naks_received": naks}, info={"name": name})

    def fleet(n: int) -> list[InstanceState]:
        sender = feed({"storm_active": 1, "naks_received": 100 * n, "repair_queue": 9}, {"A": {}})
        own = (asked("far", "1", 60 * n), asked("near", "2", 40 * n))
        return [instance("feed", *sender.objects, *own), host("a", *([2 * SECOND] if n else []))]

    faults = found(fleet(0), fleet(1))
    assert [one.kind for one in faults] == [Kind.STORM, Kind.PAUSE]
    assert faults[0].text == (
        "NAK storm on the stream of feed: 100 NAKs/s, 9 repairs wait; far and near request 100 % of all repairs"
    )


def test_a_clock_of_this_host_that_is_set_back_does_no_harm() -> None:
    faults = Faults()
    full = feed({}, {"A": {"queue_bytes": LIMIT}})
    previous = None
    for moment in (0, 1, 2, -5, -4, -3, -2):
        current = Snapshot(NOW_NS + moment * SECOND, (full,))
        last, previous = faults.update(previous, current), current
    assert [one.kind for one in last] == [Kind.QUEUE]


def test_a_host_has_its_longest_hiccup_of_the_interval() -> None:
    before = Snapshot(NOW_NS, (host("a", 3 * SECOND), host("gone")))
    after = Snapshot(NOW_NS + SECOND, (host("a", 3 * SECOND, 70_000_000), host("new", 9 * SECOND)))
    (row,) = hosts(before, after)
    assert row.instance == "a"
    assert row.hiccup_ns == pytest.approx(70_000_000, rel=0.001)
    assert hosts(None, after) == []
