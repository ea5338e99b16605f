"""Receivers and streams as sources see them, from the sample fleet."""

from __future__ import annotations

import pytest

from heliograph.monitor.behaviour import Behaviour
from heliograph.monitor.commands.top import frame
from heliograph.monitor.model import Snapshot
from heliograph.monitor.sources import OTHER_ACTION, ReceiverOfStream, receivers_of, streams
from heliograph.monitor.worst import worst
from tests.fleet import PACKET_BYTES, PACKETS_PER_SECOND, RATE, RATE_DECIDED, STREAM
from tests.monitor.conftest import SECOND, changed


def by_name(rows: list[ReceiverOfStream]) -> dict[str, ReceiverOfStream]:
    return {row.name: row for row in rows}


def test_a_receiver_is_what_it_reported_and_what_is_done_to_it(moments: tuple[Snapshot, Snapshot]) -> None:
    slow = by_name(receivers_of(moments[1], moments[0]))["slow"]
    assert (slow.instance, slow.stream, slow.called) == ("feed", STREAM, "slow")
    assert (slow.behaviour, slow.action) == (Behaviour.FALLING_BEHIND, "suspend")
    assert (slow.loss, slow.lag, slow.buffer_fill) == (0.003, 1500, 1.0)
    assert (slow.round_trip_ns, slow.forecast_ns, slow.slow_ns) == (180_000, 42 * SECOND, 2_500_000_000)
    assert slow.naks_per_s == 6.0
    alpha = by_name(receivers_of(moments[1], moments[0]))["alpha"]
    assert (alpha.behaviour, alpha.action, alpha.forecast_ns, alpha.slow_ns) == (Behaviour.OK, "", None, 0)
    assert (alpha.forecast, alpha.forecast_text) == ("none", "none")
    assert (slow.forecast, slow.forecast_text) == ("ahead", "42.0 s")


def test_lag_is_told_in_packets_bytes_and_time_or_not_at_all(moments: tuple[Snapshot, Snapshot]) -> None:
    slow = by_name(receivers_of(moments[1]))["slow"]
    assert (slow.lag, slow.lag_bytes) == (1500, 1500 * PACKET_BYTES)
    assert slow.lag_ns == 1500 * SECOND // PACKETS_PER_SECOND
    silent = by_name(receivers_of(changed(moments[1], "tx_receiver", {"reports_received": 0})))["slow"]
    assert (silent.lag, silent.lag_bytes, silent.lag_ns) == (None, None, None)


def test_the_shares_of_all_requests_add_up_ever_and_lately(moments: tuple[Snapshot, Snapshot]) -> None:
    before, now = moments
    rows = receivers_of(now, before)
    assert sum(row.nak_share or 0.0 for row in rows) == pytest.approx(1.0)
    assert sum(row.nak_share_lately or 0.0 for row in rows) == pytest.approx(1.0)
    crying = max(rows, key=lambda row: row.nak_share_lately or 0.0)
    assert crying.name == "lossy"
    assert f"requests {crying.nak_share_lately or 0:.0%}".replace("%", " %") in crying.reason
    assert {row.nak_share_lately for row in receivers_of(now)} == {None}
    asked_by_nobody = changed(changed(now, "tx_receiver", {"naks_received": 0}), "tx_stream", {"naks_received": 0})
    assert {row.nak_share for row in receivers_of(asked_by_nobody)} == {None}


def test_who_is_in_trouble_is_told_with_what_is_in_sight(moments: tuple[Snapshot, Snapshot]) -> None:
    rows = by_name(receivers_of(moments[1], moments[0]))
    assert rows["slow"].reason.startswith("action suspend; falling behind, ")
    assert "leave the history in 42.0 s" in rows["slow"].reason
    assert "data waited" in rows["slow"].reason
    assert rows["alpha"].reason == ""


def test_rates_need_two_snapshots(moments: tuple[Snapshot, Snapshot]) -> None:
    assert {row.naks_per_s for row in receivers_of(moments[1])} == {None}
    assert {row.naks_per_s for row in receivers_of(moments[1], moments[1])} == {None}
    (row,) = streams(None, moments[1])
    assert (row.limited_share, row.naks_per_s) == (0.0, 0.0)


def test_who_is_isolated_comes_first_then_who_behaves_badly_then_who_loses(moments: tuple[Snapshot, Snapshot]) -> None:
    rows = worst(receivers_of(moments[1]))
    assert [row.name for row in rows] == ["slow", "lossy", "bravo", "alpha"]


def test_a_receiver_that_reports_nothing_is_known_by_its_address_alone(moments: tuple[Snapshot, Snapshot]) -> None:
    quiet = changed(moments[1], "tx_receiver", {"reports_received": 0, "state": 0})
    rows = receivers_of(quiet)
    assert {(row.loss, row.lag, row.buffer_fill, row.behaviour) for row in rows} == {
        (None, None, None, Behaviour.UNKNOWN)
    }


def test_numbers_of_a_newer_engine_are_not_taken_for_known_ones(moments: tuple[Snapshot, Snapshot]) -> None:
    newer = changed(moments[1], "tx_receiver", {"state": 77, "action": 9})
    assert {(row.behaviour, row.action) for row in receivers_of(newer)} == {(Behaviour.UNKNOWN, OTHER_ACTION)}
    (row,) = streams(None, changed(moments[1], "tx_stream", {"rate_state": 9}))
    assert row.rate_state == "rate_state 9"


def test_a_stream_tells_its_rate_what_it_is_decided_by_and_how_long_it_waits(
    moments: tuple[Snapshot, Snapshot],
) -> None:
    (row,) = streams(*moments)
    assert (row.rate, row.rate_decided, row.rate_state, row.loss) == (RATE, RATE_DECIDED, "lowered", 0.021)
    assert row.limited_share == pytest.approx(0.3)
    assert (row.receivers, row.troubled, row.isolated, row.storm) == (4, 1, 1, False)
    assert row.naks_per_s == 54.0
    assert row.is_controlled


def test_top_shows_streams_and_receivers_as_sources_see_them(moments: tuple[Snapshot, Snapshot]) -> None:
    lines = frame(*moments)
    stream = next(line for line in lines if line.startswith("feed") and STREAM in line and "lowered" in line)
    for wanted in ("3.81 MiB/s", "3.43 MiB/s", "2.1 %", "30 %"):
        assert wanted in stream
    head = next(index for index, line in enumerate(lines) if line.split()[:2] == ["SOURCE", "RECEIVER"])
    assert lines[head + 1].split()[:5] == ["feed", "slow", "falling", "behind", "suspend"]
    assert "100 %" in lines[head + 1]
    assert "42.0 s" in lines[head + 1]
    assert "NAK STORM" not in "\n".join(lines)
    assert "NAK STORM" in "\n".join(frame(moments[0], changed(moments[1], "tx_stream", {"storm_active": 1})))
