"""What a one-way latency is worth, with clocks that are one, compared well, badly, or not at all."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from heliograph.exporters.families import fleet_families
from heliograph.exporters.items import Item, combined
from heliograph.monitor import fleet
from heliograph.monitor.cli import main
from heliograph.monitor.clocks import UNKNOWN, Clocks, ClockSource, OneWay, Trust, clocks_of, clocks_text, one_way
from heliograph.monitor.commands.top import frame
from heliograph.monitor.model import ObjectState, Snapshot
from heliograph.monitor.packing import Decoder, Encoder
from heliograph.monitor.sampler import Sampler
from tests.segments import SegmentObject, write_segment

MICROSECOND, MILLISECOND, SECOND = 1_000, 1_000_000, 1_000_000_000
NOW = 1_790_000_000 * SECOND
HOST = Clocks(ClockSource.HOST, 0, 0)


def exchanged(offset_ns: int, bound_ns: int) -> Clocks:
    return Clocks(ClockSource.EXCHANGE, offset_ns, bound_ns)


@pytest.mark.parametrize(
    ("raw_ns", "clocks", "trust", "text"),
    [
        (210 * MICROSECOND, HOST, Trust.SAME_CLOCK, "210 µs"),
        (210 * MICROSECOND, UNKNOWN, Trust.UNKNOWN, "210 µs ?"),
        (210 * MICROSECOND, exchanged(5 * MICROSECOND, 50 * MICROSECOND), Trust.TRUSTED, "210 µs"),
        (200 * MICROSECOND, exchanged(0, 3 * MILLISECOND), Trust.FLAGGED, "~200 µs ±3.00 ms"),
        (50 * MICROSECOND, exchanged(0, 50 * MICROSECOND), Trust.TRUSTED, "50.0 µs"),
        (50 * MICROSECOND, exchanged(0, 50 * MICROSECOND + 1), Trust.FLAGGED, "~50.0 µs ±50.0 µs"),
        # The offset is known well, and it is most of what was measured.
        (5_200 * MICROSECOND, exchanged(5 * MILLISECOND, 20 * MICROSECOND), Trust.FLAGGED, "~200 µs ±20.0 µs"),
        # A clock behind makes latencies too short.
        (10 * MICROSECOND, exchanged(-5 * MILLISECOND, 20 * MICROSECOND), Trust.FLAGGED, "~5.01 ms ±20.0 µs"),
    ],
)
def test_the_verdict_and_what_people_read(raw_ns: int, clocks: Clocks, trust: Trust, text: str) -> None:
    found = OneWay(raw_ns, clocks)
    assert (found.trust, found.text, found.raw_ns) == (trust, text, raw_ns)
    assert found.reason
    assert found.trust.is_fact == (text == text.strip("~ ?"))


def test_a_value_that_is_mostly_offset_is_never_a_fact() -> None:
    for offset in (-5 * MILLISECOND, 5 * MILLISECOND):
        for true_ns in (0, 10 * MICROSECOND, 4 * MILLISECOND):
            found = OneWay(true_ns + offset, exchanged(offset, 20 * MICROSECOND))
            assert found.trust is Trust.FLAGGED
            assert found.corrected_ns == true_ns
    assert "apart" in OneWay(5_200 * MICROSECOND, exchanged(5 * MILLISECOND, 20 * MICROSECOND)).reason


def test_the_corrected_value_has_a_bound_and_its_range_is_never_negative() -> None:
    found = OneWay(5_200 * MICROSECOND, exchanged(5 * MILLISECOND, 300 * MICROSECOND))
    assert found.corrected_ns == 200 * MICROSECOND
    assert found.bound_ns == 300 * MICROSECOND
    assert found.range_ns == (0.0, 500_000.0)
    below = OneWay(10 * MICROSECOND, exchanged(30 * MICROSECOND, 50 * MICROSECOND))
    assert below.range_ns == (0.0, 30_000.0)
    assert below.text == "~0 ±50.0 µs"
    unknown = OneWay(10 * MICROSECOND, UNKNOWN)
    assert (unknown.corrected_ns, unknown.bound_ns, unknown.range_ns) == (None, None, None)


def test_half_of_the_round_trip_is_offered_where_the_value_is_no_fact() -> None:
    flagged = OneWay(200 * MICROSECOND, exchanged(0, 3 * MILLISECOND), round_trip_ns=120 * MICROSECOND)
    assert flagged.instead_ns == 60 * MICROSECOND
    assert "error bound 3.00 ms exceeds the value 200 µs" in flagged.reason
    assert "half of the round trip is 60.0 µs" in flagged.reason
    assert OneWay(200 * MICROSECOND, HOST, round_trip_ns=120 * MICROSECOND).instead_ns is None
    assert OneWay(200 * MICROSECOND, UNKNOWN, round_trip_ns=120 * MICROSECOND).instead_ns == 60 * MICROSECOND
    assert OneWay(200 * MICROSECOND, UNKNOWN).instead_ns is None


def test_several_values_of_one_receiver_are_judged_one_by_one() -> None:
    values = one_way((100 * MICROSECOND, None, 10 * MILLISECOND), exchanged(0, MILLISECOND))
    assert [value and value.trust for value in values] == [Trust.FLAGGED, None, Trust.TRUSTED]


def test_clocks_are_read_from_what_an_engine_says() -> None:
    def item(**values: int) -> ObjectState:
        return ObjectState("rx_stream", {}, {}, values)

    told = item(clock_source=2, clock_offset=-40, clock_error_bound=7, last_clock_exchange=NOW - SECOND)
    assert clocks_of(told, NOW) == Clocks(ClockSource.EXCHANGE, -40, 7, SECOND)
    assert clocks_of(told).age_ns is None
    assert clocks_of(item(clock_source=1, clock_offset=0, clock_error_bound=0)) == HOST
    assert clocks_of(item(clock_source=0)) == UNKNOWN
    assert clocks_of(item(clock_source=2)) == UNKNOWN  # the rest is absent
    assert clocks_of(item(clock_source=9, clock_offset=1, clock_error_bound=1)) == UNKNOWN  # of a later version
    assert clocks_of(item()) == UNKNOWN  # of an earlier one
    assert clocks_of(None) == UNKNOWN


def test_how_clocks_stand_is_told_in_a_few_signs() -> None:
    assert clocks_text(HOST) == "one"
    assert clocks_text(UNKNOWN) == "?"
    assert clocks_text(exchanged(-3, 52 * MICROSECOND)) == "±52.0 µs"
    assert clocks_text(exchanged(5 * MILLISECOND, 52 * MICROSECOND)) == "+5.00 ms ±52.0 µs"
    assert clocks_text(exchanged(-5 * MILLISECOND, 52 * MICROSECOND)) == "-5.00 ms ±52.0 µs"


STREAM, ADDRESS = "0a0b0c0d0e0f.40001", "10.0.0.2:50000"


def two_hosts(folder: Path, offset_ns: int, bound_ns: int, source: int = 2) -> None:
    """A receiver on another host, and the source that knows it."""
    write_segment(
        folder / f"rx.{os.getpid()}.helio", name="rx",
        objects=[
            SegmentObject("instance", {"instance": "rx"}, {"host": "two"}, {}),
            SegmentObject(
                "rx_stream", {"instance": "rx", "stream": STREAM},
                {"endpoint": "e", "source": "10.0.0.1:40001", "feedback_address": ADDRESS},
                {"clock_source": source, "clock_offset": offset_ns % 2**64, "clock_error_bound": bound_ns,
                 "clock_exchanges": 9, "last_clock_exchange": NOW},
            ),
            SegmentObject(
                "receiver", {"instance": "rx", "stream": STREAM, "topic": "T"}, {"endpoint": "e"},
                {"messages_delivered": 100, "next_message": 100}, {"total_latency": {200_000: 100}},
            ),
        ],
    )  # fmt: skip
    write_segment(
        folder / f"tx.{os.getpid()}.helio", name="tx", incarnation=7,
        objects=[
            SegmentObject("instance", {"instance": "tx"}, {"host": "one"}, {}),
            SegmentObject(
                "tx_receiver", {"instance": "tx", "stream": STREAM, "receiver": ADDRESS},
                {"name": "rx", "receiver": "00000000000000ff"},
                {"round_trip": 80_000, "reports_received": 3, "clock_source": source,
                 "clock_offset": offset_ns % 2**64, "clock_error_bound": bound_ns},
            ),
        ],
    )  # fmt: skip


def sampled(folder: Path) -> Snapshot:
    with Sampler(folder) as sampler:
        return sampler.sample()


def test_a_fleet_over_two_hosts_carries_bound_flag_and_round_trip(tmp_path: Path) -> None:
    two_hosts(tmp_path, -2 * MILLISECOND, 3 * MILLISECOND)
    snapshot = sampled(tmp_path)
    (row,) = fleet.receivers(None, snapshot)
    assert row.clocks.source is ClockSource.EXCHANGE
    assert (row.clocks.offset_ns, row.clocks.bound_ns) == (-2 * MILLISECOND, 3 * MILLISECOND)
    assert row.trust is Trust.FLAGGED
    assert row.p50_ns is not None  # as measured
    assert row.p50_ns == pytest.approx(200_000, rel=0.002)
    assert row.round_trip_ns == 80_000
    assert row.latency[0] is not None
    assert row.latency[0].instead_ns == 40_000
    shown = "\n".join(frame(None, snapshot))
    assert "±3.00 ms" in shown
    assert "~2.20 ms ±3.00 ms" in shown
    assert " 200 µs " not in shown


def test_stats_tell_the_verdict_and_keep_the_raw_value(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    two_hosts(tmp_path, 0, 3 * MILLISECOND)
    assert main(["stats", "--segments", str(tmp_path), "--scope", "receiver"]) == 0
    assert "flagged: the clocks' error bound 3.00 ms exceeds the value 200 µs" in capsys.readouterr().out
    assert main(["stats", "--segments", str(tmp_path), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    (receiver,) = [o for i in told["instances"] for o in i["objects"] if o["scope"] == "receiver"]
    assert (receiver["clocks"]["source"], receiver["clocks"]["bound_ns"]) == ("exchange", 3 * MILLISECOND)
    verdict = receiver["clocks"]["latencies"]["total_latency"]
    assert verdict["trust"] == "flagged"
    assert verdict["p50_raw_ns"] == receiver["histograms"]["total_latency"]["p50_ns"]


def test_the_receivers_command_tells_how_each_clock_stands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    two_hosts(tmp_path, -5 * MILLISECOND, 20 * MICROSECOND)
    assert main(["receivers", "--segments", str(tmp_path), "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["receivers"]
    assert row["clocks"] == {"source": "exchange", "offset_ns": -5 * MILLISECOND, "bound_ns": 20_000, "age_ns": None}
    assert main(["receivers", "--segments", str(tmp_path)]) == 0
    assert "-5.00 ms ±20.0 µs" in capsys.readouterr().out


def test_an_offset_below_zero_travels_and_changes(tmp_path: Path) -> None:
    encoder, decoder = Encoder(), Decoder()
    for offset_ns in (-5 * MILLISECOND, 3, -1, -(2**62), 2**62, 0):
        two_hosts(tmp_path, offset_ns, 20 * MICROSECOND)
        snapshot = sampled(tmp_path)
        told = decoder.feed(encoder.frame(snapshot))
        assert told is not None
        for taken in (snapshot, told):
            assert {item.values["clock_offset"] for _, item in taken.of("rx_stream")} == {offset_ns}
            assert {item.values["clock_offset"] for _, item in taken.of("tx_receiver")} == {offset_ns}


@pytest.mark.parametrize(
    ("clocks", "shown"), [((1, 0, 0), 1.0), ((2, 0, 3 * MILLISECOND), 0.0), ((2, 7, 9), 1.0), ((0, 0, 0), 0.0)]
)
def test_prometheus_is_told_whether_latencies_can_be_trusted(
    tmp_path: Path, clocks: tuple[int, int, int], shown: float
) -> None:
    two_hosts(tmp_path, clocks[1], clocks[2], source=clocks[0])
    families = {family.name: family for family in fleet_families(fleet.receivers(None, sampled(tmp_path)))}
    (sample,) = families["heliograph_fleet_receiver_latency_trusted"].samples
    assert sample.value == shown


def test_of_several_offsets_the_farthest_stands_for_all() -> None:
    def item(offset_ns: int) -> Item:
        return Item("rx_stream", ("rx", "s"), {"clock_offset": offset_ns, "clock_error_bound": abs(offset_ns)}, {})

    whole = combined([item(3), item(-7), item(5)], ("rx", "_other"))
    assert (whole.values["clock_offset"], whole.values["clock_error_bound"]) == (-7, 7)
