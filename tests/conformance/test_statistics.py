"""One catalogue for all transports: the same objects everywhere, and what does not apply is absent, never 0."""

from __future__ import annotations

import time
from collections import defaultdict
from contextlib import ExitStack

import pytest

from heliograph.engine import Instance, catalogue
from heliograph.monitor.model import Snapshot
from heliograph.monitor.sampler import Sampler
from tests.conformance.conftest import Pair, Transport, settle

UDP, TCP, RING = "udp", "tcp", "ring"
CARRIERS = {"rmm": UDP, "rmm+unicast": UDP, "rmm+unicast-ipv6": UDP, "rum": TCP, "shm": RING, "inproc": RING}

PLAUSIBLE = 1 << 62
"""No count of a test is beyond; a counter that began below 0, or at what means absent, is."""


def exchanged(transport: Transport, **options: object) -> Snapshot:
    """Statistics after a hundred messages, everything still open."""
    to, (at,) = transport.make(1)
    with ExitStack() as open_until_read:
        receiving = open_until_read.enter_context(Instance(name="receiving"))
        sending = open_until_read.enter_context(Instance(name="sending"))
        receiver = receiving.receiver(at, "T")
        transmitter = sending.transmitter(to, "T", linger=0.02, **options)  # type: ignore[arg-type]
        pair = Pair([sending, receiving], transmitter, [receiver])
        settle(pair)
        for number in range(100):
            transmitter.send(b"%d" % number)
        transmitter.flush()
        assert len(pair.receive(100)) == 100
        with Sampler() as sampler:
            end = time.monotonic() + 10
            while not any(True for _ in sampler.sample(histograms=False).of("tx_receiver")) and time.monotonic() < end:
                time.sleep(0.01)
            return sampler.sample()


def values(snapshot: Snapshot, scope: str, instance: str | None = None) -> dict[str, int]:
    """Cells of the only object of a scope."""
    (found,) = (
        item for owner, item in snapshot.of(scope) if item.live and (instance is None or owner.name == instance)
    )
    return dict(found.values)


def test_every_statistic_is_there_or_absent_for_a_feature_the_object_lacks(transport: Transport) -> None:
    snapshot = exchanged(transport)
    seen: defaultdict[str, int] = defaultdict(int)
    for item in (item for instance in snapshot.instances for item in instance.objects):
        seen[item.scope] += 1
        for cell in catalogue.scopes()[item.scope].cells:
            if cell.statistic.kind == "histogram":
                continue
            if cell.name in item.values:
                assert item.values[cell.name] < PLAUSIBLE, (item.scope, cell.name)
            else:
                assert cell.statistic.only, f"{item.scope}.{cell.name} is absent, though it always applies"
    assert {"instance", "tx_stream", "transmitter", "tx_receiver", "rx_stream", "receiver"} <= seen.keys()


def test_each_transport_says_what_it_can_and_nothing_of_the_others(transport: Transport) -> None:
    snapshot = exchanged(transport)
    carrier = CARRIERS[transport.name]
    for name in ("sending", "receiving"):
        cells = values(snapshot, "instance", name)
        assert ("socket_drops" in cells) == (carrier == UDP)
        assert ("connections" in cells) == (carrier in (TCP, RING))
        assert ("backlog_bytes" in cells) == (carrier == TCP)
        assert ("ring_overruns" in cells) == (carrier == RING)
    assert ("nak_backoff_advised" in values(snapshot, "tx_stream")) == (transport.name == "rmm")


@pytest.mark.parametrize("acks", [0, 1])
def test_what_acknowledgements_count_is_absent_where_none_are_wanted(transport: Transport, acks: int) -> None:
    snapshot = exchanged(transport, acks=acks, acks_missing="degrade")
    assert ("history_unacked" in values(snapshot, "tx_stream")) == (acks > 0)
    assert "acks_sent" not in values(snapshot, "rx_stream")  # this receiver acknowledges nothing
    assert "credit_limit" not in values(snapshot, "transmitter")
    assert "fragments_joined" not in values(snapshot, "receiver")
