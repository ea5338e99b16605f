"""Where packets died, by what both ends count."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from heliograph.monitor import fleet
from heliograph.monitor.localise import PLACES, judge, locate
from heliograph.monitor.model import Snapshot
from heliograph.monitor.sampler import Sampler
from tests.fleet import STREAM, sample_fleet

START = 1_700_000_000_000_000_000
SECOND = 1_000_000_000


@pytest.mark.parametrize(
    ("located", "unsent", "place"),
    [
        ({"outside": 40}, 0, "network"),
        ({"outside": 40}, 40, "sender"),
        ({"outside": 40}, 90, "sender"),  # more than this receiver missed: others missed the rest
        ({"outside": 40}, 15, "network"),
        ({"outside": 40, "socket": 41}, 0, "socket"),
        ({"outside": 5, "queue": 30, "window": 4}, 0, "queue"),
        ({"outside": 5, "queue": 3, "window": 14}, 2, "window"),
        ({"outside": 40}, None, "outside"),
        ({"history": 900, "late": 12}, 7, None),
        ({}, None, None),
    ],
)
def test_the_place_with_most_losses_is_named(located: dict[str, int], unsent: int | None, place: str | None) -> None:
    verdict = judge(located, unsent)
    assert verdict.place == place
    assert sum(verdict.places.values()) == sum(located.get(one, 0) for one in ("outside", "socket", "queue", "window"))
    assert 0 <= verdict.confidence <= 1
    assert (verdict.confidence > 0) == (place is not None)
    if place is not None:
        assert PLACES[place] in verdict.evidence


def test_direct_evidence_is_trusted_more_than_elimination_and_that_more_than_half_a_view() -> None:
    by_count = judge({"socket": 10}, 0).confidence
    by_elimination = judge({"outside": 10}, 0).confidence
    half = judge({"outside": 10}, None).confidence
    assert 1.0 == by_count > by_elimination > half
    assert judge({"outside": 10}, 10, copies=8).confidence < judge({"outside": 10}, 10, copies=1).confidence


def with_values(snapshot: Snapshot, instance: str, scope: str, **values: int) -> Snapshot:
    instances = tuple(
        replace(
            owner,
            objects=tuple(
                replace(item, values={**item.values, **values})
                if owner.name == instance and item.scope == scope
                else item
                for item in owner.objects
            ),
        )
        for owner in snapshot.instances
    )
    return replace(snapshot, instances=instances)


def test_both_ends_are_joined_over_the_interval(segments: Path) -> None:
    now = START
    with Sampler(segments, clock=lambda: now) as sampler:
        sample_fleet(segments, 0, START)
        before = with_values(sampler.sample(), "alpha", "rx_stream", losses_located_outside=100)
        now += SECOND
        sample_fleet(segments, 1, START)
        after = with_values(sampler.sample(), "alpha", "rx_stream", losses_located_outside=160, losses_located_late=3)
    after = with_values(after, "feed", "tx_stream", packets_unsent=50)
    rows = locate(before, after)
    first = rows[0]
    assert (first.instance, first.stream, first.sender, first.lost, first.late) == ("alpha", STREAM, "feed", 60, 3)
    assert (first.verdict.place, first.verdict.places) == ("sender", {"sender": 50, "network": 10})
    assert first.seconds == pytest.approx(1.0)
    assert [(row.instance, row.lost) for row in rows[1:]] == [("lossy", 42), ("slow", 6), ("bravo", 1)]
    alone = replace(after, instances=tuple(one for one in after.instances if one.name != "feed"))
    assert locate(before, alone)[0].verdict.place == "outside"
    assert {row.loss_place for row in fleet.receivers(before, after) if row.instance == "alpha"} == {"sender"}
    whole = locate(None, after)[0]
    assert (whole.instance, whole.lost) == ("lossy", 42 * 11)


def test_an_engine_that_does_not_count_unsent_packets_is_a_sender_out_of_sight(segments: Path) -> None:
    with Sampler(segments, clock=lambda: START) as sampler:
        sample_fleet(segments, 0, START)
        snapshot = with_values(sampler.sample(), "alpha", "rx_stream", losses_located_outside=4)
    older = replace(
        snapshot,
        instances=tuple(
            replace(
                owner,
                objects=tuple(
                    replace(item, values={k: v for k, v in item.values.items() if k != "packets_unsent"})
                    for item in owner.objects
                ),
            )
            for owner in snapshot.instances
        ),
    )
    assert locate(None, older)[0].verdict.place == "outside"
