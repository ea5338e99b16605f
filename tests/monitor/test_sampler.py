"""Snapshots of a folder in which instances come, go, die and lie."""

from __future__ import annotations

import os
import struct
from dataclasses import replace
from pathlib import Path

import pytest

from heliograph.monitor import ownership
from heliograph.monitor.errors import UserError
from heliograph.monitor.model import Health, Snapshot
from heliograph.monitor.sampler import Sampler, segment_folder
from tests.fleet import RECEIVERS, sample_fleet
from tests.segments import SegmentEvent, SegmentObject, Written, write_segment

SECOND = 1_000_000_000
START = 1_700_000_000 * SECOND
FIELD = {"state": 24, "incarnation": 40, "heartbeat": 56, "directory version": 136}


class _Clock:
    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> int:
        return self.now


@pytest.fixture
def clock() -> _Clock:
    return _Clock()


def _runs(pid: int) -> int:
    return START - 100 * SECOND


def _sampler(folder: Path, clock: _Clock) -> Sampler:
    return Sampler(folder, clock, _runs)


def _alpha(folder: Path, received: int = 5, incarnation: int = 1, events: int = 1, **other: object) -> Written:
    return write_segment(
        folder / "alpha.42.helio",
        name="alpha",
        pid=42,
        objects=[SegmentObject("instance", {"instance": "alpha"}, values={"messages_received": received})],
        events=[SegmentEvent("instance_started", f"event {number}", time_ns=number) for number in range(events)],
        incarnation=incarnation,
        started_ns=START - 50 * SECOND,
        heartbeat_ns=START,
        **other,  # type: ignore[arg-type]
    )


def _set(written: Written, field: str, value: int) -> None:
    written.poke(FIELD[field], struct.pack("<Q", value))


def _states(snapshot: Snapshot) -> dict[str, Health]:
    return {instance.name: instance.health for instance in snapshot.instances}


def _received(snapshot: Snapshot) -> list[int]:
    return [item.values["messages_received"] for _, item in snapshot.of("instance")]


def test_a_folder_that_is_not_there_or_empty_holds_nobody(segments: Path, clock: _Clock) -> None:
    assert _sampler(segments / "none", clock).sample().instances == ()
    assert _sampler(segments, clock).sample() == Snapshot(START, ())


def test_a_folder_that_cannot_be_listed_is_told(segments: Path, clock: _Clock) -> None:
    (segments / "file").write_text("")
    with pytest.raises(UserError, match="file"):
        _sampler(segments / "file", clock).sample()


def test_the_folder_comes_from_the_argument_then_the_environment_then_the_default(
    segments: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert segment_folder(Path("/x")) == Path("/x")
    assert segment_folder() == segments
    monkeypatch.delenv("HELIOGRAPH_SEGMENT_DIR")
    assert segment_folder() == Path("/dev/shm/heliograph")


def test_an_empty_default_folder_names_those_beside_it_with_segments(
    segments: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A demo has a directory of its own; commands without --segments look into the default one."""
    default, demo, writable = (tmp_path / f"heliograph{suffix}" for suffix in ("", "-demo-7", "-writable"))
    for folder in (demo, writable, tmp_path / "heliograph-empty"):
        folder.mkdir()
    (demo / "feed.7.helio").write_text("")
    (writable / "feed.8.helio").write_text("")
    writable.chmod(0o777)
    monkeypatch.setattr(ownership, "DEFAULT_FOLDER", str(default))
    assert Sampler(default).absence == f"no running instance found; elsewhere: --segments {demo}"
    assert Sampler(demo).absence == "no running instance found"
    assert Sampler(segments).absence == "no running instance found"


def test_every_instance_of_the_folder_is_in_the_snapshot(segments: Path) -> None:
    sample_fleet(segments, now_ns=START)
    (segments / "notes.txt").write_text("not a segment")
    with Sampler(clock=lambda: START) as sampler:
        assert _states(sampler.sample()) == dict.fromkeys(("feed", *RECEIVERS), Health.LIVE)


def test_values_and_events_move_on_with_the_instance(segments: Path, clock: _Clock) -> None:
    with _sampler(segments, clock) as sampler:
        _alpha(segments, 5, events=2)
        first = sampler.sample()
        _alpha(segments, 9, events=3)
        second, third = sampler.sample(), sampler.sample()
    assert (_received(first), _received(second)) == ([5], [9])
    assert [[event.number for event in taken.events] for taken in (first, second, third)] == [[0, 1], [2], []]


def test_events_of_all_instances_come_in_the_order_of_their_times(segments: Path) -> None:
    sample_fleet(segments)
    with Sampler() as sampler:
        times = [event.time_ns for event in sampler.sample().events]
    assert times == sorted(times)
    assert len(times) == 9


def test_overwritten_events_are_counted(segments: Path, clock: _Clock) -> None:
    with _sampler(segments, clock) as sampler:
        _alpha(segments, events=1, event_capacity=4)
        sampler.sample()
        _alpha(segments, events=11, event_capacity=4)
        snapshot = sampler.sample()
    assert (len(snapshot.events), snapshot.events_missed) == (4, 6)


def test_an_old_heartbeat_turns_an_instance_stale_and_back(segments: Path, clock: _Clock) -> None:
    with _sampler(segments, clock) as sampler:
        written = _alpha(segments)
        clock.now += 2 * SECOND
        assert _states(sampler.sample()) == {"alpha": Health.STALE}
        _set(written, "heartbeat", clock.now)
        assert _states(sampler.sample()) == {"alpha": Health.LIVE}


def test_a_clean_end_is_seen_once_with_the_final_values_though_the_file_is_gone(segments: Path, clock: _Clock) -> None:
    with _sampler(segments, clock) as sampler:
        written = _alpha(segments, 5)
        sampler.sample()
        _alpha(segments, 8, events=2)
        _set(written, "state", 2)
        written.path.unlink()
        last = sampler.sample()
        assert _states(last) == {"alpha": Health.CLOSED}
        assert _received(last) == [8]
        assert [event.number for event in last.events] == [1]
        assert sampler.sample().instances == ()


def test_a_closed_instance_is_shown_once_even_if_its_file_goes_later(segments: Path, clock: _Clock) -> None:
    with _sampler(segments, clock) as sampler:
        written = _alpha(segments)
        sampler.sample()
        _set(written, "state", 2)
        assert _states(sampler.sample()) == {"alpha": Health.CLOSED}
        assert sampler.sample().instances == ()
        written.path.unlink()
        assert sampler.sample().instances == ()


def test_a_dead_instance_is_shown_with_its_last_values_until_its_file_is_removed(segments: Path, clock: _Clock) -> None:
    with Sampler(segments, clock, lambda pid: None) as sampler:
        written = _alpha(segments, 7)
        for _ in range(3):
            snapshot = sampler.sample()
            assert _states(snapshot) == {"alpha": Health.DEAD}
            assert _received(snapshot) == [7]
        written.path.unlink()
        sampler.sample()
        assert sampler.sample().instances == ()


def test_an_instance_of_another_container_is_dead_at_first_sight_and_live_once_its_heartbeat_moves(
    segments: Path, clock: _Clock
) -> None:
    with Sampler(segments, clock, lambda pid: None) as sampler:
        written = _alpha(segments)
        assert _states(sampler.sample()) == {"alpha": Health.DEAD}
        clock.now += SECOND
        _set(written, "heartbeat", clock.now)
        assert _states(sampler.sample()) == {"alpha": Health.LIVE}
        clock.now += SECOND
        assert _states(sampler.sample()) == {"alpha": Health.DEAD}


def test_a_live_instance_whose_file_was_taken_away_is_still_read(segments: Path, clock: _Clock) -> None:
    with _sampler(segments, clock) as sampler:
        written = _alpha(segments)
        sampler.sample()
        written.path.unlink()
        assert _states(sampler.sample()) == {"alpha": Health.LIVE}


def test_a_restart_under_the_same_name_shows_both_ends(segments: Path, clock: _Clock) -> None:
    with _sampler(segments, clock) as sampler:
        written = _alpha(segments, 5, incarnation=1)
        sampler.sample()
        _set(written, "state", 2)
        written.path.unlink()
        _alpha(segments, 1, incarnation=2)
        snapshot = sampler.sample()
        assert [(item.incarnation, item.health) for item in snapshot.instances] == [
            (1, Health.CLOSED),
            (2, Health.LIVE),
        ]
        assert [event.incarnation for event in snapshot.events] == [2]
        assert [item.incarnation for item in sampler.sample().instances] == [2]


def test_another_engine_in_the_same_file_starts_its_events_anew(segments: Path, clock: _Clock) -> None:
    with _sampler(segments, clock) as sampler:
        _alpha(segments, 5, incarnation=1, events=3)
        sampler.sample()
        _alpha(segments, 1, incarnation=2, events=2)
        snapshot = sampler.sample()
    assert [(event.incarnation, event.number) for event in snapshot.events] == [(2, 0), (2, 1)]
    assert snapshot.events_missed == 0


def test_a_directory_that_changes_is_read_again_and_no_event_twice(segments: Path, clock: _Clock) -> None:
    with _sampler(segments, clock) as sampler:
        written = _alpha(segments, events=2)
        sampler.sample()
        text = written.path.read_bytes()[written.directory : written.directory + written.directory_bytes]
        place = written.directory + text.index(b"\tmessages_received\t") + 1
        written.poke(place, b"messages_RECEIVED")
        _set(written, "directory version", 2)
        snapshot = sampler.sample()
    ((_, item),) = snapshot.of("instance")
    assert item.values["messages_RECEIVED"] == 5
    assert snapshot.events == ()


def test_a_damaged_file_is_shown_with_the_reason_and_hides_nobody(segments: Path, clock: _Clock) -> None:
    _alpha(segments)
    (segments / "broken.77.helio").write_bytes(b"HELIOSEG")
    with _sampler(segments, clock) as sampler:
        for _ in range(2):
            snapshot = sampler.sample()
            assert _states(snapshot) == {"alpha": Health.LIVE, "broken": Health.DAMAGED}
        broken = snapshot.instances[1]
        assert broken.pid == 77
        assert "broken.77.helio" in broken.reason
        os.unlink(segments / "broken.77.helio")
        assert _states(sampler.sample()) == {"alpha": Health.LIVE}


def test_a_file_that_is_damaged_while_open_recovers_when_it_does(segments: Path, clock: _Clock) -> None:
    with _sampler(segments, clock) as sampler:
        written = _alpha(segments)
        sampler.sample()
        whole = written.path.read_bytes()
        os.truncate(written.path, 300)
        assert _states(sampler.sample()) == {"alpha": Health.DAMAGED}
        written.poke(0, whole)
        assert _states(sampler.sample()) == {"alpha": Health.LIVE}


def test_a_file_being_written_is_left_out_until_it_is_ready(segments: Path, clock: _Clock) -> None:
    with _sampler(segments, clock) as sampler:
        written = _alpha(segments, state="writing")
        os.utime(written.path, ns=(START, START))
        assert sampler.sample().instances == ()
        _set(written, "state", 1)
        assert _states(sampler.sample()) == {"alpha": Health.LIVE}


def test_a_file_that_never_got_ready_is_damaged(segments: Path, clock: _Clock) -> None:
    written = _alpha(segments, state="writing")
    os.utime(written.path, ns=(START - 10 * SECOND, START - 10 * SECOND))
    with _sampler(segments, clock) as sampler:
        (instance,) = sampler.sample().instances
    assert instance.health is Health.DAMAGED
    assert "never finished" in instance.reason


def test_a_closed_sampler_leaves_no_file_open(segments: Path) -> None:
    sample_fleet(segments)
    before = len(os.listdir("/proc/self/fd"))
    sampler = Sampler()
    sampler.sample()
    assert len(os.listdir("/proc/self/fd")) == before + 5
    sampler.close()
    assert len(os.listdir("/proc/self/fd")) == before


def test_histograms_are_read_as_asked(segments: Path) -> None:
    sample_fleet(segments)
    with Sampler() as sampler:
        for wanted, expected in ((False, 0), (True, 44), ({"total_latency"}, 16)):
            taken = sampler.sample(wanted)
            assert sum(len(item.histograms) for each in taken.instances for item in each.objects) == expected


def test_a_glance_has_health_and_events_and_no_objects_at_rest(segments: Path, clock: _Clock) -> None:
    with _sampler(segments, clock) as sampler, _sampler(segments, clock) as other:
        written = _alpha(segments, 7)
        seen, whole = sampler.glance(), other.sample()
        assert [replace(item, objects=()) for item in whole.instances] == list(seen.instances)
        assert _states(seen) == {"alpha": Health.LIVE}
        assert seen.events == whole.events
        assert _received(sampler.sample()) == [7]
        written.poke(written.records[0], struct.pack("<Q", 3))
        assert [item.torn for owner in sampler.glance().instances for item in owner.objects] == [True]
        _set(written, "state", 2)
        assert _states(sampler.glance()) == {"alpha": Health.CLOSED}
        assert sampler.glance().instances == ()
