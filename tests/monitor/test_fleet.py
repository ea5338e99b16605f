"""Both ends joined: who is slow, who asks for repairs, and whether the books balance."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from heliograph.monitor import fleet
from heliograph.monitor.behaviour import Behaviour
from heliograph.monitor.model import Health, InstanceState, ObjectState, Snapshot
from heliograph.monitor.sampler import Sampler
from tests.fleet import BEFORE_JOIN, MESSAGE_BYTES, RECEIVERS, STREAM, TOPICS, sample_fleet
from tests.segments import SegmentObject, write_segment

SECOND = 1_000_000_000
START = 1_700_000_000 * SECOND


@pytest.fixture
def moments(segments: Path) -> tuple[Snapshot, Snapshot]:
    """The sample fleet, a second apart."""
    now = START
    with Sampler(segments, clock=lambda: now) as sampler:
        sample_fleet(segments, 0, START)
        before = sampler.sample()
        now += SECOND
        sample_fleet(segments, 1, START)
        return before, sampler.sample()


def _changed(snapshot: Snapshot, name: str, **changes: object) -> Snapshot:
    """A snapshot in which one instance is different."""
    instances = (
        replace(item, **changes) if item.name == name else item  # type: ignore[arg-type]
        for item in snapshot.instances
    )
    return replace(snapshot, instances=tuple(instances))


def _without(snapshot: Snapshot, name: str) -> Snapshot:
    return replace(snapshot, instances=tuple(item for item in snapshot.instances if item.name != name))


def test_the_slow_and_the_lossy_receiver_are_the_two_worst_of_four(moments: tuple[Snapshot, Snapshot]) -> None:
    for previous, current in ((moments[0], moments[1]), (None, moments[0])):
        worst = fleet.worst_instances(fleet.receivers(previous, current))
        assert [row.instance for row in worst[:2]] == ["slow", "lossy"]
        assert [row.behaviour for row in worst[:2]] == [Behaviour.FALLING_BEHIND, Behaviour.LOSSY]
        assert {row.instance for row in worst[2:]} == {"alpha", "bravo"}
        assert {row.behaviour for row in worst[2:]} == {Behaviour.OK}


def test_rows_are_ordered_worst_first(moments: tuple[Snapshot, Snapshot]) -> None:
    rows = fleet.receivers(*moments)
    assert len(rows) == len(RECEIVERS) * len(TOPICS)
    scores = [row.badness for row in rows]
    assert scores == sorted(scores, reverse=True)
    assert {row.instance for row in rows[:4]} == {"slow"}
    assert {row.instance for row in rows[4:8]} == {"lossy"}


def test_a_receiver_is_joined_to_its_sender_by_the_stream(moments: tuple[Snapshot, Snapshot]) -> None:
    for row in fleet.receivers(*moments):
        assert row.transmitter == "feed"
        assert row.sent == TOPICS[row.topic] * 11
        assert row.sent_per_s == TOPICS[row.topic]


def test_rates_latencies_and_lag_are_those_of_the_interval(moments: tuple[Snapshot, Snapshot]) -> None:
    rows = {(row.instance, row.topic): row for row in fleet.receivers(*moments)}
    alpha, slow = rows["alpha", "PRICES.A"], rows["slow", "PRICES.A"]
    assert alpha.seconds == 1.0
    assert alpha.delivered_per_s == 4000
    assert alpha.in_flight == 3
    assert alpha.lag_messages == 7
    assert alpha.lag_seconds == pytest.approx(7 / 4000)
    assert alpha.p50_ns is not None
    assert 17_000 <= alpha.p50_ns <= 20_000
    assert slow.p50_ns is not None
    assert slow.p50_ns > 10 * alpha.p50_ns
    assert slow.queue_fill == 1.0
    assert slow.lost_per_s == 20
    assert slow.delivered_per_s == 2380
    lossy = rows["lossy", "PRICES.A"]
    assert lossy.missing_ratio == pytest.approx(0.021)
    assert lossy.naks_per_s == 47
    assert lossy.nak_ratio == pytest.approx(0.0235)


def test_the_lossy_receiver_asks_for_most_repairs_and_is_named(moments: tuple[Snapshot, Snapshot]) -> None:
    shares = {row.instance: row.nak_share for row in fleet.receivers(*moments)}
    assert shares["lossy"] == pytest.approx(47 / 54)
    assert shares["alpha"] == 0
    assert fleet.receiver_names(moments[1])[STREAM, "127.0.0.1:41004"] == "lossy"


def test_the_books_balance_at_both_moments(moments: tuple[Snapshot, Snapshot]) -> None:
    for snapshot in moments:
        books = fleet.balance(snapshot)
        assert [(book.instance, book.topic) for book in books] == sorted(
            (name, topic) for name in RECEIVERS for topic in TOPICS
        )
        for book in books:
            assert book.residual == 0
            assert book.before_join == BEFORE_JOIN
            assert book.sent is not None
            assert book.in_flight is not None
            assert book.sent == book.before_join + book.delivered + book.trimmed + book.lost + book.in_flight
            assert book.trimmed == (30 if book.instance == "slow" else 0)


def test_books_that_do_not_balance_show_what_is_missing(moments: tuple[Snapshot, Snapshot]) -> None:
    snapshot = moments[1]
    alpha = next(item for item in snapshot.instances if item.name == "alpha")

    def short(item: ObjectState) -> ObjectState:
        if item.scope != "receiver":
            return item
        return replace(item, values={**item.values, "messages_delivered": item.values["messages_delivered"] - 2})

    wrong = _changed(snapshot, "alpha", objects=tuple(short(item) for item in alpha.objects))
    assert {book.residual for book in fleet.balance(wrong) if book.instance == "alpha"} == {2}
    assert {book.residual for book in fleet.balance(wrong) if book.instance != "alpha"} == {0}


def test_a_receiver_read_after_its_sender_is_never_ahead_of_it(moments: tuple[Snapshot, Snapshot]) -> None:
    """The sender's record is a second older than the receivers'."""
    early = next(item for item in moments[0].instances if item.name == "feed")
    mixed = _changed(moments[1], "feed", objects=early.objects)
    for book in fleet.balance(mixed):
        assert book.residual == 0
        assert book.in_flight is not None
        assert book.in_flight >= 0


def test_a_sender_out_of_reach_is_unknown_and_the_rest_is_still_told(moments: tuple[Snapshot, Snapshot]) -> None:
    previous, current = (_without(snapshot, "feed") for snapshot in moments)
    rows = fleet.receivers(previous, current)
    assert {(row.transmitter, row.sent, row.in_flight, row.sent_per_s, row.nak_share) for row in rows} == {
        (None, None, None, None, None)
    }
    assert [row.instance for row in fleet.worst_instances(rows)][:2] == ["slow", "lossy"]
    assert {row.residual for row in rows} == {0}


def test_a_sender_that_has_just_gone_is_still_known_for_the_books(moments: tuple[Snapshot, Snapshot]) -> None:
    gone = _without(moments[1], "feed")
    assert {book.transmitter for book in fleet.balance(gone)} == {None}
    assert {book.transmitter for book in fleet.balance(gone, moments[0])} == {"feed"}


def test_a_restarted_instance_has_its_whole_life_as_interval_and_no_negative_rate(
    moments: tuple[Snapshot, Snapshot],
) -> None:
    previous, current = moments
    restarted = _changed(current, "alpha", incarnation=99, started_ns=current.time_ns - SECOND // 2)
    rows = [row for row in fleet.receivers(previous, restarted) if row.instance == "alpha"]
    assert {row.seconds for row in rows} == {0.5}
    assert all(row.delivered_per_s > 0 for row in rows)


def test_a_dead_receiver_comes_first_and_a_closed_one_last(moments: tuple[Snapshot, Snapshot]) -> None:
    previous, current = moments
    current = _changed(current, "bravo", health=Health.DEAD, reason="process 7 is gone")
    current = _changed(current, "alpha", health=Health.CLOSED)
    worst = fleet.worst_instances(fleet.receivers(previous, current))
    assert [row.instance for row in worst] == ["bravo", "slow", "lossy", "alpha"]
    assert worst[0].reason.startswith("process 7 is gone")


def test_what_a_dead_run_left_is_nobodys_trouble_once_its_name_runs_again(moments: tuple[Snapshot, Snapshot]) -> None:
    previous, current = moments
    bravo = next(item for item in current.instances if item.name == "bravo")
    remains = replace(bravo, incarnation=1, health=Health.DEAD, reason="process 7 is gone")
    again = replace(current, instances=(*current.instances, remains))
    assert fleet.receivers(previous, again) == fleet.receivers(previous, current)
    assert fleet.balance(again) == fleet.balance(current)
    assert [row.health for row in fleet.instances(previous, again) if row.name == "bravo"] == [
        Health.LIVE,
        Health.DEAD,
    ]


def test_a_closed_receiver_of_a_running_instance_is_history(segments: Path) -> None:
    labels = {"instance": "alpha", "topic": "T", "stream": "s"}
    gone = SegmentObject("receiver", labels, values={"messages_delivered": 5, "next_message": 5}, state="gone")
    write_segment(segments / "alpha.1.helio", name="alpha", objects=[gone])
    with Sampler() as sampler:
        snapshot = sampler.sample()
    assert fleet.receivers(None, snapshot) == []
    ended = _changed(snapshot, "alpha", health=Health.CLOSED)
    assert [book.delivered for book in fleet.balance(ended)] == [5]


def test_transmitters_show_their_rates_repairs_and_listeners(moments: tuple[Snapshot, Snapshot]) -> None:
    rows = fleet.transmitters(*moments)
    assert [row.topic for row in rows] == list(TOPICS)
    first = rows[0]
    assert (first.sent_per_s, first.receivers, first.tracked_receivers, first.messages_sent) == (4000, 4, 4, 44_000)
    assert first.repairs_per_s == 54
    assert first.repair_ratio == pytest.approx(54 / 2000)
    assert first.batch_p99_ns is not None


def test_instances_show_what_goes_in_and_out(moments: tuple[Snapshot, Snapshot]) -> None:
    rows = {row.name: row for row in fleet.instances(*moments)}
    assert rows["feed"].sent_per_s == sum(TOPICS.values())
    assert rows["alpha"].received_per_s == sum(TOPICS.values())
    bytes_per_s = sum(TOPICS.values()) * MESSAGE_BYTES
    assert (rows["feed"].bytes_sent_per_s, rows["feed"].bytes_received_per_s) == (bytes_per_s, 0)
    assert (rows["alpha"].bytes_sent_per_s, rows["alpha"].bytes_received_per_s) == (0, bytes_per_s)
    assert (rows["feed"].memory_bytes, rows["alpha"].memory_bytes) == (24_000_000, 42_000_000)
    assert rows["lossy"].naks_sent_per_s == 47
    assert rows["feed"].uptime_s == 11
    assert rows["feed"].version == "0.1.0"


def test_a_damaged_instance_has_a_row_and_no_figures() -> None:
    damaged = InstanceState("broken", Health.DAMAGED, "it ends within its header", 7, 0, 0, 0, "/x")
    snapshot = Snapshot(START, (damaged,))
    (row,) = fleet.instances(None, snapshot)
    assert (row.health, row.uptime_s, row.sent_per_s) == (Health.DAMAGED, 0.0, 0.0)
    assert fleet.receivers(None, snapshot) == []
