"""The books in running instances: what balances, what does not and why, and what is between the ends."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from pathlib import Path

import pytest

from heliograph.engine import catalogue
from heliograph.monitor import reconciliation
from heliograph.monitor.cli import main
from heliograph.monitor.model import ObjectState, Snapshot
from heliograph.monitor.records import ABSENT
from heliograph.monitor.sampler import Sampler
from tests.fleet import RECEIVERS, STREAM, TOPICS, sample_fleet
from tests.segments import SegmentObject, write_segment

START = 1_700_000_000_000_000_000


@pytest.fixture
def fleet(segments: Path) -> Snapshot:
    with Sampler(segments, clock=lambda: START) as sampler:
        sample_fleet(segments, 0, START)
        return sampler.sample()


def changed(snapshot: Snapshot, instance: str, scope: str, **values: int | None) -> Snapshot:
    """The snapshot with other values in the first object of a scope; None takes a cell away."""

    def other(item: ObjectState) -> ObjectState:
        merged: dict[str, int | None] = {**item.values, **values}
        return replace(item, values={name: value for name, value in merged.items() if value is not None})

    instances = []
    for owner in snapshot.instances:
        if owner.name == instance:
            at = next(i for i, item in enumerate(owner.objects) if item.scope == scope)
            objects = (*owner.objects[:at], other(owner.objects[at]), *owner.objects[at + 1 :])
            owner = replace(owner, objects=objects)
        instances.append(owner)
    return replace(snapshot, instances=tuple(instances))


def test_every_sum_of_every_object_is_there_and_balances(fleet: Snapshot) -> None:
    rows = reconciliation.accounts(fleet)
    assert {(row.scope, row.identity) for row in rows} == {(one.scope, one.name) for one in catalogue.identities()}
    assert [row for row in rows if row.residual] == []
    assert sum(row.scope == "receiver" for row in rows) == 2 * len(RECEIVERS) * len(TOPICS)
    assert set(reconciliation.worst(fleet.instances).values()) == {0}


def test_a_residual_names_its_object_its_sum_and_its_terms(fleet: Snapshot) -> None:
    wrong = changed(fleet, "alpha", "rx_stream", duplicates=7)
    (row,) = [row for row in reconciliation.accounts(wrong) if row.residual]
    assert (row.instance, row.scope, row.identity, row.unit) == ("alpha", "rx_stream", "received", "packets")
    assert (row.residual, row.labels, row.terms["duplicates"]) == (-7, {"stream": STREAM}, 7)
    assert reconciliation.sentence(row).startswith("7 packets are counted twice: ")
    short = changed(fleet, "alpha", "rx_stream", packets_received=row.left + 5)
    (row,) = [row for row in reconciliation.accounts(short) if row.residual]
    assert reconciliation.sentence(row).startswith("5 packets are not accounted for: ")
    found = reconciliation.worst(wrong.instances)
    assert {key: value for key, value in found.items() if value} == {("alpha", "rx_stream.received"): -7}


@pytest.mark.parametrize("is_decoded", [False, True])
def test_the_worst_residuals_are_those_of_the_single_sums(segments: Path, is_decoded: bool) -> None:
    chance = random.Random(11)
    lacks = {"rx_stream": ("window_first", "duplicates"), "receiver": ("fragments_joined", "messages_lost")}
    for node in ("alpha", "beta"):
        objects = [
            SegmentObject(
                scope,
                {"instance": node, **dict.fromkeys(catalogue.scopes()[scope].labels[1:], f"{number}")},
                {},
                {
                    cell.name: chance.choice((0, 1, 7, 2**40, ABSENT if cell.name in lacks.get(scope, ()) else 3))
                    for cell in catalogue.scopes()[scope].cells
                    if cell.statistic.kind != "histogram"
                },
            )
            for scope in sorted({one.scope for one in catalogue.identities()})
            for number in range(6)
        ]
        write_segment(segments / f"{node}.1.helio", name=node, objects=objects)
    with Sampler(segments) as sampler:
        snapshot = sampler.sample()
    if is_decoded:
        snapshot = changed(
            changed(snapshot, "alpha", "rx_stream", window_first=None), "beta", "receiver", messages_lost=5
        )
    expected: dict[tuple[str, str], int] = {}
    for row in reconciliation.accounts(snapshot):
        key = (row.instance, f"{row.scope}.{row.identity}")
        if abs(row.residual) >= abs(expected.get(key, 0)):
            expected[key] = row.residual
    assert len(expected) == 2 * len(catalogue.identities())
    assert any(value < 0 for value in expected.values())
    assert reconciliation.worst(snapshot.instances) == expected


def test_a_cell_that_does_not_apply_adds_nothing_and_one_not_known_yet_closes_the_book(fleet: Snapshot) -> None:
    absent = changed(fleet, "alpha", "receiver", fragments_joined=None)
    assert len(reconciliation.accounts(absent)) == len(reconciliation.accounts(fleet))
    older = changed(fleet, "alpha", "rx_stream", window_first=None)
    assert len(reconciliation.accounts(older)) == len(reconciliation.accounts(fleet)) - 1
    assert [row for row in reconciliation.accounts(older) if row.residual] == []


def test_an_object_whose_writer_stopped_within_an_update_is_not_judged(fleet: Snapshot) -> None:
    wrong = changed(fleet, "alpha", "rx_stream", duplicates=7)
    torn = replace(
        wrong,
        instances=tuple(
            replace(owner, objects=tuple(replace(item, torn=True) for item in owner.objects))
            for owner in wrong.instances
        ),
    )
    assert reconciliation.accounts(torn) == []
    assert reconciliation.worst(torn.instances) == {}


def test_what_is_between_the_ends_is_in_flight(fleet: Snapshot) -> None:
    ends = [end for end in reconciliation.crossings(fleet) if end.join == "messages" and end.receiver == "slow"]
    assert {end.labels["topic"] for end in ends} == set(TOPICS)
    for end in ends:
        assert end.sender == "feed"
        assert end.in_flight == end.sent - end.passed > 100


def test_a_receiver_read_after_its_sender_is_not_behind_it_and_widened_numbers_agree(fleet: Snapshot) -> None:
    def packets(snapshot: Snapshot) -> reconciliation.Crossing:
        (end,) = [
            end for end in reconciliation.crossings(snapshot) if end.join == "packets" and end.receiver == "alpha"
        ]
        return end

    before = packets(fleet)
    assert before.in_flight == 0
    assert packets(changed(fleet, "alpha", "rx_stream", window_trail=before.passed + 9)).in_flight == 0
    far = packets(changed(fleet, "alpha", "rx_stream", window_trail=before.passed - 4 + (5 << 32)))
    assert (far.in_flight, far.passed) == (4, before.passed - 4)


def test_quiet_is_when_nothing_counted_changes(fleet: Snapshot) -> None:
    assert reconciliation.is_quiet(fleet, fleet)
    assert not reconciliation.is_quiet(fleet, changed(fleet, "alpha", "rx_stream", packets_received=1))


def test_the_command_says_that_all_balances(segments: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sample_fleet(segments)
    assert main(["reconcile", "--segments", str(segments), "--wait", "5"]) == 0
    out = capsys.readouterr().out
    assert "every residual is 0; traffic is quiet" in out
    assert "IN FLIGHT" in out
    assert main(["reconcile", "--segments", str(segments), "--all", "--instance", "alpha"]) == 0
    assert "RESIDUAL" in capsys.readouterr().out


def test_the_command_fails_where_something_does_not_add_up(segments: Path, capsys: pytest.CaptureFixture[str]) -> None:
    values = {"messages_sent": 7, "messages_accepted": 10, "messages_waiting": 1}
    write_segment(
        segments / "feed.1.helio",
        name="feed",
        objects=[SegmentObject("transmitter", {"instance": "feed", "topic": "T", "stream": "s"}, {}, values)],
    )
    assert main(["reconcile", "--segments", str(segments)]) == 1
    assert "feed: 2 messages are not accounted for" in capsys.readouterr().out
    assert main(["reconcile", "--segments", str(segments), "--json"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert told["balanced"] is False
    (row,) = [row for row in told["sums"] if row["residual"]]
    assert (row["identity"], row["left"], row["right"], row["residual"]) == ("submitted", 10, 8, 2)


@pytest.mark.parametrize("wait", ["-1", "nan", "soon", "1e9"])
def test_a_time_that_is_none_is_refused(segments: Path, wait: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["reconcile", "--segments", str(segments), f"--wait={wait}"])
    assert stopped.value.code == 2
    assert "is not a time in seconds from 0 to 86400" in capsys.readouterr().err


def test_the_command_tells_where_packets_died(segments: Path, capsys: pytest.CaptureFixture[str]) -> None:
    values = {"packets_received": 90, "packets_delivered": 90, "packets_recovered": 10, "packets_missed": 10}
    values |= {"window_trail": 90, "losses_located_socket": 8, "losses_located_outside": 2}
    write_segment(
        segments / "alpha.1.helio",
        name="alpha",
        objects=[SegmentObject("rx_stream", {"instance": "alpha", "stream": "s"}, {}, values)],
    )
    assert main(["reconcile", "--segments", str(segments)]) == 0
    out = capsys.readouterr().out
    assert "alpha: of stream s 8 of 10 packets: this host's kernel dropped them" in out
    assert "confidence 0.80" in out
    assert main(["reconcile", "--segments", str(segments), "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["losses"]
    assert (row["place"], row["places"]) == ("socket", {"socket": 8, "outside": 2})


def test_without_instances_there_are_no_books(segments: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reconcile", "--segments", str(segments)]) == 0
    assert "no running instance" in capsys.readouterr().out
