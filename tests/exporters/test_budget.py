"""The cap on series: who is shown, and counters under _other that stay counters."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from heliograph.exporters.budget import OTHER, Budget, Share, joined_series, series_of
from heliograph.exporters.collector import SnapshotCollector
from heliograph.exporters.items import Item, items, nodes
from heliograph.exporters.selection import EVERYTHING, Selection
from heliograph.monitor.model import Snapshot
from tests.exporters.making import at, histogram, instance, receiver, state

TOPICS = ("A", "B", "C", "D")
COST = series_of(items(nodes(at(0, instance("alpha", receiver("alpha")))), {})[0])
SUM = COST - joined_series(EVERYTHING)


def fleet(lost: Mapping[str, int], delivered: int = 100) -> list[Item]:
    """One node with a receiver per topic, and what each lost."""
    objects = [
        receiver("alpha", topic, messages_lost=count, messages_delivered=delivered, queue_bytes=7)
        for topic, count in lost.items()
    ]
    return items(nodes(at(0, instance("alpha", state("instance", {"instance": "alpha"}), *objects))), {})


def kept_topics(share: Share) -> set[str]:
    return {item.labels[1] for item in share.kept if item.scope == "receiver"}


def other(share: Share) -> Item:
    (item,) = share.others
    return item


def room_for(receivers: int) -> int:
    """A limit for some receivers of a node and the sum of the others."""
    (node,) = [item for item in fleet({"A": 0}) if item.scope == "instance"]
    return series_of(node) + receivers * COST + SUM


def test_within_the_limit_everything_is_kept() -> None:
    share = Budget(room_for(4)).share(fleet(dict.fromkeys(TOPICS, 0)), {})
    assert kept_topics(share) == set(TOPICS)
    assert (share.others, dict(share.folded)) == ((), {})


def test_over_the_limit_the_worst_are_kept_and_the_rest_is_summed() -> None:
    share = Budget(room_for(2)).share(fleet({"A": 1, "B": 50, "C": 0, "D": 9}), {})
    assert kept_topics(share) == {"B", "D"}
    assert other(share).labels == ("alpha", OTHER, OTHER)
    assert other(share).values["messages_lost"] == 1
    assert other(share).values["messages_delivered"] == 200
    assert other(share).values["queue_bytes"] == 14
    assert "next_message" not in other(share).values
    assert share.folded == {"receiver": 2 * COST}


def test_the_instance_is_never_folded() -> None:
    share = Budget(1).share(fleet(dict.fromkeys(TOPICS, 0)), {})
    assert [item.scope for item in share.kept] == ["instance"]


def test_what_happened_lately_weighs_more_than_old_sins() -> None:
    budget = Budget(room_for(1))
    before = {item.key: item for item in fleet({"A": 1000, "B": 0})}
    assert kept_topics(budget.share(fleet({"A": 1000, "B": 1}), before)) == {"B"}


def test_counters_of_the_others_move_by_what_was_counted_however_membership_changes() -> None:
    budget = Budget(room_for(1))
    first = budget.share(fleet({"A": 9, "B": 0, "C": 0}, delivered=100), {})
    assert kept_topics(first) == {"A"}
    start = other(first).values["messages_delivered"]
    # B becomes the worst: it comes out, A goes in, and ten messages more arrive at each of the three.
    second = budget.share(fleet({"A": 9, "B": 50, "C": 0}, delivered=110), {})
    assert kept_topics(second) == {"B"}
    assert other(second).values["messages_delivered"] - start == 20, "A and C counted 10 each while folded"
    third = budget.share(fleet({"A": 999, "B": 50, "C": 0}, delivered=115), {})
    assert other(third).values["messages_delivered"] - other(second).values["messages_delivered"] == 10


def test_counters_of_the_others_stay_when_nobody_is_folded_any_more() -> None:
    budget = Budget(room_for(1))
    folded = budget.share(fleet({"A": 1, "B": 0}), {})
    alone = budget.share(fleet({"A": 1}), {})
    assert other(alone).values["messages_delivered"] == other(folded).values["messages_delivered"]
    assert "queue_bytes" not in other(alone).values, "a gauge belongs to those who are folded now"
    assert budget.share([], {}).others == (), "the node is gone, and its others with it"


def test_a_folded_receiver_that_starts_again_adds_its_new_counts() -> None:
    budget = Budget(room_for(1))
    first = budget.share(fleet({"A": 9, "B": 0}, delivered=100), {})
    again = budget.share(fleet({"A": 9, "B": 0}, delivered=4), {})
    assert other(again).values["messages_delivered"] - other(first).values["messages_delivered"] == 4


def test_histograms_of_the_others_add_up() -> None:
    def pair(often: int) -> list[Item]:
        objects = [
            receiver("alpha", topic, messages_lost=lost, histograms={"total_latency": histogram({1_000: often})})
            for topic, lost in {"A": 9, "B": 0, "C": 0}.items()
        ]
        return items(nodes(at(0, instance("alpha", *objects))), {})

    one = series_of(pair(1)[0])
    budget = Budget(2 * one - joined_series(EVERYTHING))
    assert other(budget.share(pair(5), {})).histograms["total_latency"].count == 10
    assert other(budget.share(pair(8), {})).histograms["total_latency"].count == 16


@pytest.mark.parametrize("detail", [False, True])
@pytest.mark.parametrize("limit", [100, 333, 1000, 4000])
def test_an_answer_never_has_more_series_than_the_limit(limit: int, detail: bool) -> None:
    def fleet_of(second: int, nodes_of_fleet: int) -> Snapshot:
        counts = histogram({1_000: second})
        made = []
        for number in range(nodes_of_fleet):
            name = f"node-{number}"
            objects = [
                receiver(name, topic, messages_lost=number, histograms={"total_latency": counts})
                for topic in "ABCDEFG"[: 2 + number]
            ]
            sent = state(
                "transmitter", {"instance": name, "topic": "A", "stream": "s2"}, histograms={"pace_latency": counts}
            )
            made.append(instance(name, sent, *objects))
        return at(second, *made)

    collector, unlimited = SnapshotCollector(max_series=limit), SnapshotCollector(max_series=100_000)
    for second, nodes_of_fleet in enumerate((5, 2, 5, 3), 1):
        collector.update(fleet_of(second, nodes_of_fleet))
        unlimited.update(fleet_of(second, nodes_of_fleet))
        found = list(collector.families(Selection(detail)))
        own = ("heliograph_exporter", "heliograph_node", "heliograph_reconciliation", "heliograph_stats")
        count = sum(len(family) for family in found if not family.name.startswith(own))
        assert count <= limit
        (told,) = [family for family in found if family.name == "heliograph_exporter_series"]
        assert told.samples[0].value == count
        folded = [family for family in found if family.name == "heliograph_exporter_series_folded"]
        whole = [family for family in unlimited.families(Selection(detail)) if not family.name.startswith(own)]
        assert folded or sum(map(len, whole)) <= count, "sums of earlier rounds stay"
