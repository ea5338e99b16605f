"""Objects under labels that nothing else has."""

from __future__ import annotations

from heliograph.exporters.items import Item, items, nodes
from heliograph.monitor.fleet import receiver_names
from heliograph.monitor.model import Health, Snapshot
from tests.exporters.making import SECOND, START, at, histogram, instance, receiver, state


def found(snapshot: Snapshot) -> list[Item]:
    return items(nodes(snapshot), receiver_names(snapshot))


def test_a_restarted_node_goes_before_what_its_earlier_run_left_behind() -> None:
    old = instance("feed", receiver("feed", messages_delivered=9), health=Health.DEAD, pid=1)
    new = instance("feed", receiver("feed", messages_delivered=2), pid=2, started_ns=START + SECOND)
    (node,) = nodes(at(5, old, new))
    assert (node.name, node.state.pid, node.remains) == ("feed", 2, 1)
    assert [item.values["messages_delivered"] for item in found(at(5, old, new))] == [2]


def test_a_dead_node_alone_is_shown_by_its_last_run() -> None:
    first = instance("feed", health=Health.DEAD, pid=1)
    second = instance("feed", health=Health.DEAD, pid=2, started_ns=START + SECOND)
    (node,) = nodes(at(5, first, second))
    assert (node.state.pid, node.remains) == (2, 1)


def test_two_running_nodes_of_one_name_are_told_apart_and_the_first_keeps_the_name() -> None:
    first = instance("feed", receiver("feed", messages_delivered=1), pid=1)
    second = instance("feed", receiver("feed", messages_delivered=2), pid=2, started_ns=START + SECOND)
    shown = {item.labels[0]: item.values["messages_delivered"] for item in found(at(5, second, first))}
    assert shown == {"feed": 1, "feed@2": 2}


def test_what_is_gone_or_belongs_to_an_ended_node_is_no_item() -> None:
    gone = instance("alpha", receiver("alpha", live=False), receiver("alpha", topic="PRICES.B"))
    ended = [
        instance(name, receiver(name), health=health)
        for name, health in {"b": Health.DEAD, "c": Health.CLOSED, "d": Health.DAMAGED}.items()
    ]
    assert [item.labels[:2] for item in found(at(1, gone, *ended))] == [("alpha", "PRICES.B")]


def test_a_stale_node_still_has_items() -> None:
    assert found(at(1, instance("alpha", receiver("alpha"), health=Health.STALE)))


def test_a_peer_is_called_by_the_node_that_asks_from_its_address() -> None:
    address = "10.0.0.7:41001"
    peers = [
        state("tx_receiver", {"instance": "feed", "stream": "s1", "receiver": peer}, {"naks_received": 4})
        for peer in (address, "10.0.0.9:5")
    ]
    stream = state("rx_stream", {"instance": "alpha", "stream": "s1"}, info={"feedback_address": address})
    shown = found(at(1, instance("feed", *peers), instance("alpha", stream)))
    assert sorted(item.labels[2] for item in shown if item.scope == "tx_receiver") == ["10.0.0.9:5", "alpha"]


def test_objects_under_the_same_labels_become_one() -> None:
    one = receiver(
        "alpha",
        messages_delivered=3,
        queue_bytes=10,
        queue_peak_bytes=50,
        next_message=70,
        histograms={"total_latency": histogram({1_000: 2})},
    )
    two = receiver(
        "alpha",
        messages_delivered=4,
        queue_bytes=5,
        queue_peak_bytes=40,
        next_message=90,
        histograms={"total_latency": histogram({1_000: 1})},
        generation=2,
    )
    (item,) = found(at(1, instance("alpha", one, two)))
    assert item.values["messages_delivered"] == 7
    assert item.values["queue_bytes"] == 15
    assert item.values["queue_peak_bytes"] == 50
    assert "next_message" not in item.values, "the sum of two positions is no position"
    assert item.histograms["total_latency"].count == 3
