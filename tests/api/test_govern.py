"""rate_policy=dynamic on real sockets: a receiver that loses packets slows its source, unless it is only watched."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from heliograph.engine import Instance
from heliograph.monitor.segment import Segment

TOPIC = "PRICES.FX"
RATE = 20_000_000


def cell(instance: Instance, name: str) -> int:
    """A statistic of the instance's only stream."""
    assert isinstance(instance.segment, Path)
    with Segment(instance.segment) as segment:
        return sum(int(o.values[name]) for o in segment.objects(histograms=False) if o.scope == "tx_stream")


@pytest.mark.parametrize("mode", ["enforce", "observe"])
def test_a_receiver_that_loses_packets_slows_its_source(multicast: str, mode: str) -> None:
    with Instance() as source, Instance() as sink:
        transmitter = source.transmitter(multicast, TOPIC, rate_policy="dynamic", rate=RATE, rate_mode=mode, linger=0.0)
        receiver = sink.receiver(multicast, TOPIC, inject_loss=0.2)
        limit = time.monotonic() + 20
        while cell(source, "rate_decided") in (0, RATE) and time.monotonic() < limit:
            transmitter.send_many([b"x" * 1000] * 50, timeout=10)
            receiver.receive(timeout=0, limit=1000)
        assert cell(source, "rate_decreases") > 0
        assert (cell(source, "rate_limit") < RATE) == (mode == "enforce")
