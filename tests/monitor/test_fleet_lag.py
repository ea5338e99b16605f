"""Lag of receivers joined with their sender: messages, bytes and seconds, and where the seconds come from."""

from __future__ import annotations

from dataclasses import replace

import pytest

from heliograph.monitor import fleet
from heliograph.monitor.model import Snapshot
from heliograph.monitor.rows import LagBasis, ReceiverRow
from heliograph.monitor.window import Watcher
from tests.fleet import MESSAGE_BYTES, TOPICS
from tests.monitor.conftest import SECOND, changed

TOPIC = next(iter(TOPICS))


def row(rows: list[ReceiverRow], name: str = "alpha") -> ReceiverRow:
    return next(item for item in rows if (item.instance, item.topic) == (name, TOPIC))


def test_the_age_of_the_oldest_message_in_the_queue_is_the_lag_in_seconds(moments: tuple[Snapshot, Snapshot]) -> None:
    aged = changed(moments[1], "receiver", {"queue_age": 3 * SECOND})
    slow = row(fleet.receivers(moments[0], aged), "slow")
    assert (slow.lag_seconds, slow.lag_basis) == (3.0, LagBasis.MEASURED)
    assert "(3.0 s) behind" in slow.reason


def test_who_has_watched_the_sender_knows_when_the_oldest_message_under_way_was_sent(
    moments: tuple[Snapshot, Snapshot],
) -> None:
    watcher = Watcher()
    empty = {"queue_messages": 0, "queue_bytes": 0}
    before, now = (changed(moment, "receiver", empty) for moment in moments)
    fleet.receivers(None, before, watcher)
    alpha = row(fleet.receivers(before, now, watcher))
    assert alpha.lag_basis is LagBasis.WATCHED
    assert alpha.lag_seconds == pytest.approx(3 / TOPICS[TOPIC], abs=1e-6)
    assert alpha.lag_bytes == 3 * MESSAGE_BYTES
    # Nothing more is sent: what is under way gets older, which a rate could not tell.
    later = replace(now, time_ns=now.time_ns + 5 * SECOND)
    resting = row(fleet.receivers(now, later, watcher))
    assert resting.lag_seconds == pytest.approx(5 + 3 / TOPICS[TOPIC], abs=1e-6)
    assert row(fleet.receivers(now, later)).lag_seconds is None


def test_without_a_past_the_lag_is_an_estimate_and_called_so(moments: tuple[Snapshot, Snapshot]) -> None:
    alpha = row(fleet.receivers(*moments))
    assert (alpha.lag_basis, alpha.looks, alpha.since_ns) == (LagBasis.ESTIMATED, 1, 0)
    assert alpha.lag_bytes == 7 * MESSAGE_BYTES
    alone = replace(moments[1], instances=tuple(item for item in moments[1].instances if item.name != "feed"))
    orphan = row(fleet.receivers(None, alone))
    assert (orphan.lag_seconds, orphan.lag_bytes, orphan.lag_basis) == (None, None, LagBasis.UNKNOWN)


def test_who_has_all_is_not_behind_and_no_lag_is_ever_below_nothing(moments: tuple[Snapshot, Snapshot]) -> None:
    ahead = changed(moments[1], "transmitter", {"next_message": 5})  # read before its receivers
    for item in fleet.receivers(moments[0], changed(ahead, "receiver", {"queue_messages": 0, "queue_bytes": 0})):
        assert (item.in_flight, item.lag_messages, item.lag_bytes, item.lag_seconds) == (0, 0, 0, 0.0)


def test_what_its_source_knows_stands_beside_and_is_told(moments: tuple[Snapshot, Snapshot]) -> None:
    slow = row(fleet.receivers(*moments), "slow")
    assert slow.forecast_ns == 42 * SECOND
    assert slow.blame_ns
    assert "packets it needs leave the history in 42.0 s" in slow.reason
    alpha = row(fleet.receivers(*moments))
    assert (alpha.forecast_ns, alpha.blame_ns) == (0, 0)
    assert "leave the history" not in alpha.reason


def test_a_watched_receiver_is_judged_by_all_looks(moments: tuple[Snapshot, Snapshot]) -> None:
    watcher = Watcher()
    fleet.receivers(None, moments[0], watcher)
    rows = fleet.receivers(*moments, watcher)
    assert {item.looks for item in rows} == {2}
    assert row(fleet.receivers(*moments, watcher), "alpha").looks == 2, "the same snapshot again is no other look"
