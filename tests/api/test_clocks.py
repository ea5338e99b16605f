"""Between hosts receivers find out how far their clock is from their source's; on one host there is one clock."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from heliograph.engine import Instance
from heliograph.monitor import fleet
from heliograph.monitor.clocks import Clocks, ClockSource, Trust, clocks_of
from heliograph.monitor.sampler import Sampler
from tests.ports import free_port

from .conftest import collect, until

SOURCE = """
import sys, time
from heliograph.engine import Instance
with Instance(name="source") as source, source.transmitter(sys.argv[1], "T", linger=0.0) as transmitter:
    while True:
        transmitter.send(b"x")
        time.sleep(0.02)
"""
SINK = """
import sys
from heliograph.engine import Instance
with Instance(name="sink", level=2) as sink, sink.receiver(sys.argv[1], "T") as receiver:
    while True:
        receiver.receive(timeout=1.0)
"""


def clocks(sampler: Sampler, scope: str) -> list[Clocks]:
    return [clocks_of(item) for _, item in sampler.sample(histograms=False).of(scope) if item.live]


@pytest.mark.parametrize(
    "endpoint", ["rmm+unicast://127.0.0.1:{port}", "rum://127.0.0.1:{port}", "shm://clocks-{port}", "inproc://clocks"]
)
def test_on_one_host_both_ends_know_that_there_is_one_clock(endpoint: str, segments: Path) -> None:
    name = endpoint.format(port=free_port())
    with (
        Instance(name="one", level=2) as instance,
        Sampler(segments) as sampler,
        instance.receiver(name, "T") as receiver,
        instance.transmitter(name, "T", linger=0.0) as transmitter,
    ):
        transmitter.send_many([b"x"] * 20)
        assert len(collect(receiver, 20)) == 20
        assert until(lambda: clocks(sampler, "rx_stream") == [Clocks(ClockSource.HOST, 0, 0)])
        assert until(lambda: [row.trust for row in fleet.receivers(None, sampler.sample())] == [Trust.SAME_CLOCK])
        if endpoint.startswith(("rmm", "rum")):
            assert until(lambda: clocks(sampler, "tx_receiver") == [Clocks(ClockSource.HOST, 0, 0)])


@pytest.fixture
def two_hosts() -> Iterator[tuple[str, str]]:
    """Two network namespaces with a cable between them, 10.9.0.1 and 10.9.0.2."""
    if shutil.which("ip") is None:
        pytest.skip("needs ip (iproute2)")
    number = uuid.uuid4().hex[:8]
    near, far = f"helio-near-{number}", f"helio-far-{number}"
    made = subprocess.run(["ip", "netns", "add", near], capture_output=True, check=False)
    if made.returncode != 0:
        pytest.skip("network namespaces are not permitted")
    try:
        for command in (
            f"netns add {far}",
            f"link add near netns {near} type veth peer name far netns {far}",
            f"-n {near} address add 10.9.0.1/30 dev near",
            f"-n {far} address add 10.9.0.2/30 dev far",
            f"-n {near} link set near up",
            f"-n {far} link set far up",
        ):
            subprocess.run(["ip", *command.split()], check=True)
        yield near, far
    finally:
        for namespace in (near, far):
            subprocess.run(["ip", "netns", "delete", namespace], capture_output=True, check=False)


def test_hosts_with_addresses_of_their_own_measure_and_the_truth_is_within_the_bound(
    two_hosts: tuple[str, str], segments: Path
) -> None:
    near, far = two_hosts
    endpoint = f"rmm+unicast://10.9.0.2:{free_port()}"
    programs = []
    try:
        for namespace, script in ((far, SINK), (near, SOURCE)):
            command = ["ip", "netns", "exec", namespace, sys.executable, "-c", script, endpoint]
            programs.append(subprocess.Popen(command, env=os.environ | {"HELIOGRAPH_SEGMENT_DIR": str(segments)}))
        with Sampler(segments) as sampler:

            def measured(scope: str) -> bool:
                return [item.source for item in clocks(sampler, scope)] == [ClockSource.EXCHANGE]

            assert until(lambda: measured("rx_stream") and measured("tx_receiver"), seconds=20)
            snapshot = sampler.sample()
            (row,) = fleet.receivers(None, snapshot)
            (source,) = (clocks_of(item) for _, item in snapshot.of("tx_receiver"))
    finally:
        for program in programs:
            program.terminate()
            program.wait()
    # Both namespaces are of one kernel: the clocks are the same, and the exchange does not know it.
    for found in (row.clocks, source):
        assert abs(found.offset_ns) <= found.bound_ns
        assert 0 < found.bound_ns < 1_000_000_000
    assert row.trust in (Trust.TRUSTED, Trust.FLAGGED)
    assert row.latency[0] is not None
    low, high = row.latency[0].range_ns or (0.0, 0.0)
    assert 0 <= low <= high
