"""Many hosts as one fleet: told apart, never mixed, and what does not come is named. Without a network or a clock."""

from __future__ import annotations

import struct
from dataclasses import replace
from pathlib import Path

import pytest

from heliograph.monitor.collector import Collector, Publisher, Relay
from heliograph.monitor.collector.account import HostState
from heliograph.monitor.collector.report import MAX_HOPS, Report, pack_message, unpack_message
from heliograph.monitor.fleet import balance, receiver_names, receivers
from heliograph.monitor.model import Health, Snapshot
from heliograph.monitor.packing import PackingError
from heliograph.monitor.sampler import Sampler
from tests.fleet import sample_fleet
from tests.monitor.sameness import assert_same
from tests.monitor.wires import Clock, Paper, Wire, event, instance


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def wire() -> Wire:
    return Wire()


def _publisher(
    sampler: Paper, wire: Wire, clock: Clock, host: str, origin: int = 0, keyframe: float = 10.0
) -> Publisher:
    return Publisher(
        sampler,
        wire,
        origin=origin or sum(host.encode()),
        place=f"/{host}",
        host=host,
        keyframe=keyframe,
        clock=clock.wall,
    )


def _collector(wire: Wire, clock: Clock, **settings: object) -> Collector:
    return Collector(wire, clock=clock.wall, monotonic=clock.monotonic, patience=0.0, **settings)  # type: ignore[arg-type]


def _names(snapshot: Snapshot) -> dict[str, int]:
    """Messages sent by what each instance is called."""
    return {owner.name: item.values["messages_sent"] for owner, item in snapshot.of("instance")}


def _host(collector: Collector, name: str) -> HostState:
    return next(host for host in collector.account.hosts if host.host == name)


# Reports


def test_a_message_of_reports_comes_back() -> None:
    reports = [
        Report(1, "höst", "/place", 2, 3, 4, 5, (6, 2**64 - 1), False, b"frame"),
        Report(2**64 - 1, "", "", 0, 0, 0, ends=True),
    ]
    assert unpack_message(pack_message(reports)) == reports


def test_a_damaged_message_is_refused_and_counted(clock: Clock, wire: Wire) -> None:
    whole = pack_message([Report(1, "host", "/place", 2, 3, 4, frame=b"frame")])
    for bad in [whole[:size] for size in range(len(whole))] + [whole + b"x", b"HCOL\2" + whole[5:]]:
        with pytest.raises(PackingError):
            unpack_message(bad)
    collector = _collector(wire, clock)
    wire.waiting = [b"", b"nonsense", whole]
    assert collector.sample().instances == ()
    assert collector.account.stats.refused == 2
    assert _host(collector, "host").stats.damaged == 1  # its frame is none


def test_what_a_later_version_adds_to_a_report_is_passed_over() -> None:
    whole = pack_message([Report(1, "h", "p", 2, 3, 4, frame=b"frame")])
    size = whole[9]
    longer = whole[:9] + struct.pack("B", size + 2) + whole[10 : 10 + size] + b"\7\7" + whole[10 + size :]
    assert unpack_message(longer) == unpack_message(whole)


# One fleet


def test_the_fleet_collected_is_the_fleet_sampled(segments: Path, clock: Clock, wire: Wire) -> None:
    collector = _collector(wire, clock)
    with Sampler(segments) as sampler, Sampler(segments) as mine:
        publisher = _publisher(sampler, wire, clock, "one")  # type: ignore[arg-type]
        now, before, collected_before = None, None, None
        for moment in (0, 1):
            sample_fleet(segments, moment, now_ns=clock.wall())
            publisher.publish()
            now, collected = mine.sample(), collector.sample()
            shown = replace(collected, time_ns=now.time_ns, instances=tuple(_same_reason(collected, now)))
            assert_same(now, shown)
            assert receivers(before, now) == receivers(collected_before, shown)
            before, collected_before = now, shown
    assert now is not None
    assert len(now.instances) == 5


def _same_reason(one: Snapshot, other: Snapshot) -> list[object]:
    """Instances with the reasons of another snapshot: they tell ages, and the two were read one after the other."""
    return [replace(mine, reason=theirs.reason) for mine, theirs in zip(one.instances, other.instances, strict=True)]


def test_both_ends_of_a_stream_meet_across_hosts(segments: Path, tmp_path: Path, clock: Clock, wire: Wire) -> None:
    written = sample_fleet(segments, now_ns=clock.wall())
    far = tmp_path / "far"
    far.mkdir()
    written["feed"].path.rename(far / written["feed"].path.name)
    collector = _collector(wire, clock)
    with Sampler(segments) as here, Sampler(far) as there:
        for sampler, host in ((here, "here"), (there, "there")):
            _publisher(sampler, wire, clock, host).publish()  # type: ignore[arg-type]
    fleet = collector.sample()
    books = balance(fleet)
    assert {book.transmitter for book in books} == {"feed"}
    assert all(book.residual == 0 and book.in_flight is not None for book in books)
    assert set(receiver_names(fleet).values()) == {"alpha", "bravo", "slow", "lossy"}
    shares = {row.instance: row.nak_share for row in receivers(None, fleet)}
    assert shares["lossy"] == max(share for share in shares.values() if share is not None)
    assert sum({name: share or 0.0 for name, share in shares.items()}.values()) == pytest.approx(1.0)


def test_one_name_on_two_hosts_is_told_apart_for_good_and_never_mixed(clock: Clock, wire: Wire) -> None:
    collector = _collector(wire, clock)
    one, two = Paper(clock, instance("feed", 1, 10)), Paper(clock, instance("feed", 2, 20), instance("solo", 3, 30))
    publishers = [_publisher(one, wire, clock, "a"), _publisher(two, wire, clock, "b")]
    publishers[0].publish()
    assert _names(collector.sample()) == {"feed": 10}
    publishers[1].publish()
    fleet = collector.sample()
    assert _names(fleet) == {"feed@a": 10, "feed@b": 20, "solo": 30}
    assert {item.labels["instance"] for _, item in fleet.of("instance")} == {"feed@a", "feed@b", "solo"}
    two.instances = two.instances[1:]  # the other one is gone: the first keeps what it was called
    one.events.append(event("feed", 1, 0))
    for publisher in publishers:
        publisher.publish()
    fleet = collector.sample()
    assert _names(fleet) == {"feed": 10, "solo": 30} or _names(fleet) == {"feed@a": 10, "solo": 30}
    assert [item.instance for item in fleet.events] == [next(name for name in _names(fleet) if "feed" in name)]


def test_one_name_twice_on_a_host_is_told_apart_by_process(clock: Clock, wire: Wire) -> None:
    collector = _collector(wire, clock)
    twins = Paper(clock, instance("feed", 1, 10, pid=7), instance("feed", 2, 20, pid=8))
    publisher = _publisher(twins, wire, clock, "a")
    publisher.publish()
    assert _names(collector.sample()) == {"feed#7": 10, "feed#8": 20}
    twins.instances = (twins.instances[0], instance("feed", 2, 20, Health.DEAD, pid=8))
    publisher.publish()
    assert _names(collector.sample()) == {"feed#7": 10, "feed#8": 20}


def test_two_hosts_of_one_name_are_told_apart(clock: Clock, wire: Wire) -> None:
    collector = _collector(wire, clock)
    for origin in (0xA1B2 << 48, 0xC3D4 << 48):
        _publisher(Paper(clock, instance("feed", origin, 1)), wire, clock, "vm", origin).publish()
    assert set(_names(collector.sample())) == {"feed@vm~a1b2", "feed@vm~c3d4"}
    assert [host.host for host in collector.account.hosts] == ["vm~a1b2", "vm~c3d4"]


def test_an_object_that_did_not_change_is_the_same_one_under_its_other_name(clock: Clock, wire: Wire) -> None:
    collector = _collector(wire, clock)
    publishers = [
        _publisher(Paper(clock, instance("feed", 1)), wire, clock, "a"),
        _publisher(Paper(clock, instance("feed", 2)), wire, clock, "b"),
    ]
    seen = []
    for _ in range(2):
        for publisher in publishers:
            publisher.publish()
        seen.append([owner.objects[0] for owner in collector.sample().instances])
    assert all(one is other for one, other in zip(*seen, strict=True))


# Silence, late comers, restarts


def test_nobody_heard_is_said_with_where_and_for_how_long(clock: Clock, wire: Wire) -> None:
    collector = _collector(wire, clock)
    clock.seconds += 7
    assert collector.sample().instances == ()
    assert collector.absence == "no report received on wire://test for 7 s"


def test_a_host_that_falls_silent_is_stale_with_the_reason_and_forgotten_in_the_end(clock: Clock, wire: Wire) -> None:
    collector = _collector(wire, clock, forget=60.0)
    paper = Paper(clock, instance("feed", 1, 5), instance("old", 2, 3, Health.DEAD))
    _publisher(paper, wire, clock, "a").publish()
    collector.sample()
    clock.seconds += 2.9
    assert {item.name: item.health for item in collector.sample().instances} == {
        "feed": Health.LIVE,
        "old": Health.DEAD,
    }
    clock.seconds += 1.5
    fleet = collector.sample()
    assert {item.name: item.health for item in fleet.instances} == {"feed": Health.STALE, "old": Health.DEAD}
    assert fleet.instances[0].reason == "host a: silent for 4.4 s; it publishes every 1 s"
    assert _host(collector, "a").silent
    clock.seconds += 60
    assert collector.sample().instances == ()
    assert collector.account.hosts == ()


def test_a_publisher_that_says_goodbye_is_over_at_once(clock: Clock, wire: Wire) -> None:
    collector = _collector(wire, clock)
    publisher = _publisher(Paper(clock, instance("feed", 1)), wire, clock, "a")
    publisher.publish()
    publisher.farewell()
    (shown,) = collector.sample().instances
    assert (shown.health, shown.reason) == (Health.STALE, "host a: its publisher ended 0 s ago")


def test_who_comes_late_gets_on_with_the_next_keyframe_and_says_what_it_waits_for(clock: Clock, wire: Wire) -> None:
    publisher = _publisher(Paper(clock, instance("feed", 1, 5)), wire, clock, "a", keyframe=3.0)
    publisher.publish()
    wire.waiting.clear()
    collector = _collector(wire, clock)
    publisher.publish()
    assert collector.sample().instances == ()
    assert "a: frame 2 has the changes since frame 1" in collector.absence
    assert _host(collector, "a").stats.awaiting == 1
    publisher.publish()
    publisher.publish()
    assert _names(collector.sample()) == {"feed": 5}
    assert _host(collector, "a").reason == ""


def test_somebody_new_gets_a_keyframe_at_once(clock: Clock, wire: Wire) -> None:
    publisher = _publisher(Paper(clock, instance("feed", 1, 5)), wire, clock, "a")
    publisher.publish()
    wire.waiting.clear()
    collector = _collector(wire, clock)
    wire.new = True
    publisher.publish()
    assert _names(collector.sample()) == {"feed": 5}
    assert publisher.stats.keyframes == 2


def test_a_publisher_that_is_started_anew_takes_over_and_nothing_counts_twice(clock: Clock, wire: Wire) -> None:
    collector = _collector(wire, clock)
    paper = Paper(clock, instance("feed", 1, 5))
    paper.events = [event("feed", 1, number) for number in range(3)]
    _publisher(paper, wire, clock, "a").publish()
    assert len(collector.sample().events) == 3
    clock.seconds += 1
    paper.events = [event("feed", 1, number) for number in range(5)]  # a new sampler brings all the ring holds
    paper.instances = (instance("feed", 1, 9),)
    _publisher(paper, wire, clock, "a").publish()
    fleet = collector.sample()
    assert _names(fleet) == {"feed": 9}
    assert [item.number for item in fleet.events] == [3, 4]
    stats = _host(collector, "a").stats
    assert (stats.restarts, stats.events, stats.events_missed) == (1, 5, 0)


def test_a_second_publisher_of_a_folder_is_counted_and_takes_over_when_the_first_is_silent(
    clock: Clock, wire: Wire
) -> None:
    collector = _collector(wire, clock)
    paper = Paper(clock, instance("feed", 1, 5))
    old = _publisher(paper, wire, clock, "a")
    clock.seconds += 1
    young = _publisher(paper, wire, clock, "a")
    for _ in range(4):
        old.publish()
        young.publish()
        clock.seconds += 1
    assert _names(collector.sample()) == {"feed": 5}
    stats = _host(collector, "a").stats
    assert (stats.snapshots, stats.duplicates) == (5, 3)  # one before the other was heard
    for step in range(4):
        paper.instances = (instance("feed", 1, 6 + step),)
        paper.events.append(event("feed", 1, step))
        old.publish()
        clock.seconds += 1
    fleet = collector.sample()
    assert _names(fleet) == {"feed": 9}
    assert [item.number for item in fleet.events] == [0, 1, 2, 3]  # those that came before it took over too


def test_an_instance_that_closed_is_shown_once_though_no_snapshot_taken_has_it(clock: Clock, wire: Wire) -> None:
    collector = _collector(wire, clock)
    paper = Paper(clock, instance("feed", 1, 5))
    publisher = _publisher(paper, wire, clock, "a")
    for instances in ((instance("feed", 1, 5),), (instance("feed", 1, 7, Health.CLOSED),), ()):
        paper.instances = instances
        publisher.publish()
    (shown,) = collector.sample().instances
    assert (shown.health, shown.objects[0].values["messages_sent"]) == (Health.CLOSED, 7)
    assert collector.sample().instances == ()
    paper.instances = (instance("feed", 2, 8, Health.CLOSED),)
    publisher.publish()
    assert [len(collector.sample().instances) for _ in range(2)] == [1, 0]


def test_the_last_state_of_an_instance_waits_for_room(clock: Clock, wire: Wire) -> None:
    collector = _collector(wire, clock)
    paper = Paper(clock, instance("feed", 1, 5))
    publisher = _publisher(paper, wire, clock, "a")
    publisher.publish()
    paper.instances = (instance("feed", 1, 7, Health.CLOSED),)
    wire.full = True
    assert not publisher.publish()
    paper.instances = ()
    wire.full = False
    publisher.publish()
    (shown,) = collector.sample().instances
    assert (shown.health, shown.objects[0].values["messages_sent"]) == (Health.CLOSED, 7)
    publisher.publish()
    assert collector.sample().instances == ()


# Losses


def test_what_is_lost_is_named_by_host_and_by_instance(clock: Clock, wire: Wire) -> None:
    collector = _collector(wire, clock)
    wire.drop = lambda number: number in (3, 4, 6)
    paper = Paper(clock, instance("feed", 1, 0))
    publisher = _publisher(paper, wire, clock, "a")
    seen = []
    for step in range(8):
        paper.instances = (instance("feed", 1, step),)
        paper.events = [event("feed", 1, 2 * step), event("feed", 1, 2 * step + 1)]
        publisher.publish()
        fleet = collector.sample()
        seen += [item.number for item in fleet.events]
        assert _names(fleet)["feed"] == (step if step + 1 not in (3, 4, 6) else {2: 1, 3: 1, 5: 4}[step])
    host = _host(collector, "a")
    assert (host.stats.snapshots, host.stats.lost, host.stats.awaiting) == (5, 3, 0)
    assert seen == [0, 1, 2, 3, 8, 9, 12, 13, 14, 15]
    assert host.missed_by_instance == {"feed": 6}
    assert host.stats.events_missed == 6


def test_the_transports_own_losses_and_the_publishers_omissions_are_named(clock: Clock, wire: Wire) -> None:
    collector = _collector(wire, clock)
    paper = Paper(clock, instance("feed", 1, 1))
    publisher = _publisher(paper, wire, clock, "a")
    publisher.publish()
    wire.full = True
    paper.events = [event("feed", 1, 0)]
    assert not publisher.publish()
    wire.full = False
    publisher.skip(2)
    assert publisher.publish()
    wire.losses = 5
    fleet = collector.sample()
    assert [item.number for item in fleet.events] == [0]  # it waited for room
    assert (publisher.stats.published, publisher.stats.skipped) == (2, 3)
    assert (_host(collector, "a").stats.skipped, _host(collector, "a").stats.lost) == (3, 0)
    assert collector.account.stats.lost == 5


def test_a_keyframe_without_room_is_made_up_for(clock: Clock, wire: Wire) -> None:
    collector = _collector(wire, clock)
    publisher = _publisher(Paper(clock, instance("feed", 1, 1)), wire, clock, "a")
    wire.full = True
    publisher.publish()
    wire.full = False
    publisher.publish()
    assert _names(collector.sample()) == {"feed": 1}


# Relays


def test_a_chain_of_relays_carries_the_fleet_with_where_it_came_from(clock: Clock, wire: Wire) -> None:
    upper, top = Wire("wire://upper"), Wire("wire://top")
    low, middle = _collector(wire, clock, identity=1), _collector(upper, clock, identity=2)
    relays = [Relay(upper, 1), Relay(top, 2)]
    head = _collector(top, clock)
    papers = [Paper(clock, instance("feed", 1, 0)), Paper(clock, instance("feed", 2, 0))]
    publishers = [_publisher(paper, wire, clock, host) for paper, host in zip(papers, "ab", strict=True)]
    fleet = None
    for step in range(4):
        for number, (paper, publisher) in enumerate(zip(papers, publishers, strict=True), 1):
            paper.instances = (instance("feed", number, 10 * number + step),)
            paper.events = [event("feed", number, step)]
            publisher.publish()
        direct = low.sample()
        relays[0].forward(low.news)
        middle.sample()
        relays[1].forward(middle.news)
        fleet = head.sample()
        assert_same(replace(direct, time_ns=0), replace(fleet, time_ns=0))
    assert fleet is not None
    assert _names(fleet) == {"feed@a": 13, "feed@b": 23}
    assert [(host.host, host.hops) for host in head.account.hosts] == [("a", 2), ("b", 2)]
    assert relays[1].stats.messages == 4
    assert relays[1].stats.reports == 8


def test_who_comes_late_to_a_relay_gets_on_by_the_relays_keyframe(clock: Clock, wire: Wire) -> None:
    upper = Wire("wire://upper")
    low = _collector(wire, clock, identity=1)
    relay = Relay(upper, 1)
    publisher = _publisher(Paper(clock, instance("feed", 1, 3)), wire, clock, "a")
    publisher.publish()
    low.sample()
    relay.forward(low.news)
    upper.waiting.clear()
    head = _collector(upper, clock)
    upper.new = True
    publisher.publish()
    low.sample()
    relay.forward(low.news)
    assert _names(head.sample()) == {"feed": 3}


def test_relays_in_a_circle_pass_nothing_on_for_ever(clock: Clock, wire: Wire) -> None:
    other = Wire("wire://other")
    there, back = _collector(wire.also(), clock, identity=1), _collector(other, clock, identity=2)
    onward, backward = Relay(other, 1), Relay(wire, 2)
    publisher = _publisher(Paper(clock, instance("feed", 1, 3)), wire, clock, "a")
    head = _collector(wire, clock)
    for _ in range(5):
        publisher.publish()
        there.sample()
        onward.forward(there.news)
        back.sample()
        backward.forward(back.news)
        assert _names(head.sample()) == {"feed": 3}
    there.sample()
    assert there.account.stats.looped == 5
    assert onward.stats.reports == 5
    assert _host(head, "a").hops == 0
    assert _host(head, "a").stats.duplicates == 5


def test_a_report_that_came_through_too_many_relays_goes_no_further(clock: Clock, wire: Wire) -> None:
    publisher = _publisher(Paper(clock, instance("feed", 1)), wire, clock, "a")
    publisher.publish()
    (report,) = unpack_message(wire.waiting.pop())
    wire.waiting.append(pack_message([replace(report, path=tuple(range(100, 100 + MAX_HOPS)))]))
    collector = _collector(wire, clock, identity=1)
    assert _names(collector.sample()) == {"feed": 0}
    out = Wire()
    relay = Relay(out, 1)
    relay.forward(collector.news)
    assert out.sent == []
    assert relay.stats.stopped == 1


def test_a_relay_without_room_leaves_out_and_makes_up_events_and_keyframe(clock: Clock, wire: Wire) -> None:
    upper = Wire("wire://upper")
    low = _collector(wire, clock, identity=1)
    relay = Relay(upper, 1)
    head = _collector(upper, clock)
    paper = Paper(clock, instance("feed", 1, 3))
    publisher = _publisher(paper, wire, clock, "a")
    for step, full in enumerate((True, False)):
        paper.events = [event("feed", 1, step)]
        publisher.publish()
        low.sample()
        upper.full = full
        relay.forward(low.news)
    assert [item.number for item in head.sample().events] == [0, 1]
    assert relay.stats.skipped == 1


# Waiting


def test_a_sample_waits_a_little_for_what_is_due_and_no_longer(clock: Clock) -> None:
    class Late(Wire):
        """Gives what waits only when `due` has come, and moves the clock while it is waited for."""

        due = 0.0

        def receive(self, timeout: float) -> list[bytes]:
            clock.seconds += timeout
            return super().receive(timeout) if clock.seconds >= self.due else []

    wire = Late()
    collector = Collector(wire, clock=clock.wall, monotonic=clock.monotonic)
    paper = Paper(clock, instance("feed", 1, 1))
    publisher = _publisher(paper, wire, clock, "a")
    publisher.publish()
    assert _names(collector.sample()) == {"feed": 1}
    clock.seconds += 0.9
    paper.instances = (instance("feed", 1, 2),)
    publisher.publish()
    wire.due = clock.seconds + 0.12
    before = clock.seconds
    assert _names(collector.sample()) == {"feed": 2}
    assert 0.1 < clock.seconds - before < 0.2
    clock.seconds += 0.9
    before = clock.seconds
    assert _names(collector.sample()) == {"feed": 2}
    assert clock.seconds - before == pytest.approx(0.25)


def test_moments_of_snapshots_only_go_forward(clock: Clock, wire: Wire) -> None:
    collector = _collector(wire, clock)
    publisher = _publisher(Paper(clock, instance("feed", 1, 1)), wire, clock, "a")
    moments = []
    for step in (0.0, 1.0, -5.0, 1.0):
        clock.seconds += step
        publisher.publish()
        moments.append(collector.sample().time_ns)
    assert moments == sorted(set(moments))
