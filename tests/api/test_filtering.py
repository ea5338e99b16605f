"""Nobody gets what is not for him: streams of a group, topics of a stream, groups of a host."""

from __future__ import annotations

import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from heliograph.engine import Instance
from tests.ports import free_port
from tests.segment.decoder import decode_live

from .conftest import collect, until

STREAMS = 100


def values(instance: Instance, scope: str, **labels: str) -> dict[str, int]:
    """The statistics of the only object of a scope."""
    (found,) = decode_live(instance.segment).of(scope, **labels)
    return dict(found.values)


def test_a_hundred_streams_of_a_group_are_told_apart(multicast: str) -> None:
    """Options that differ make a stream each; one topic of its own and one that all have."""
    with Instance(stats="memory") as source, Instance(stats="memory") as sink:
        own = sink.receiver(multicast, "OWN.42", max_streams=STREAMS)
        everybody = sink.receiver(multicast, "ALL", max_streams=STREAMS)
        senders = []
        for number in range(STREAMS):
            different = {"linger": 0.0, "announce_interval": 1.0 + number / 1000}
            senders.append(
                [source.transmitter(multicast, topic, **different) for topic in (f"OWN.{number}", "ALL")]  # type: ignore[arg-type]
            )
        assert len({mine.stream for mine, _ in senders}) == STREAMS
        for turn in range(5):
            for number, (mine, shared) in enumerate(senders):
                mine.send(b"%d.%d" % (number, turn))
                shared.send(b"%d.%d" % (number, turn))
        assert [message.data for message in collect(own, 5)] == [b"42.%d" % turn for turn in range(5)]
        messages = collect(everybody, 5 * STREAMS)
        for number, (_, shared) in enumerate(senders):
            of_stream = [message.data for message in messages if message.stream == shared.stream]
            assert of_stream == [b"%d.%d" % (number, turn) for turn in range(5)]
        assert own.receive(timeout=0) == everybody.receive(timeout=0) == []


def test_packets_of_other_topics_are_dropped_and_counted_exactly(instance: Instance, multicast: str) -> None:
    with Instance(mode="poll") as source:
        wanted = source.transmitter(multicast, "WANTED", linger=0.0)
        other = source.transmitter(multicast, "OTHER", linger=0.0)
        receiver = instance.receiver(multicast, "WANTED")
        for turn in range(100):
            wanted.send(b"%d" % turn)
            other.send_many([b"no"] * (1 + turn % 7))
        assert [m.data for m in collect(receiver, 100)] == [b"%d" % turn for turn in range(100)]
        sent = values(source, "transmitter", topic="OTHER")
        assert until(
            lambda: values(instance, "rx_stream")["messages_filtered"] == sent["messages_sent"], instance, seconds=5.0
        )
        stream = values(instance, "rx_stream")
        assert stream["packets_filtered"] == sent["packets_sent"] == 100
        assert stream["messages_filtered"] == sum(1 + turn % 7 for turn in range(100))
        assert values(instance, "receiver")["messages_delivered"] == 100


def groups_joined() -> set[str]:
    """The groups this host is in, by the kernel's table, which writes addresses as numbers in the order of the host."""
    joined = set()
    for line in Path("/proc/net/igmp").read_text().splitlines():
        words = line.split()
        if line.startswith("\t") and len(words[0]) == 8:
            joined.add(socket.inet_ntoa(int(words[0], 16).to_bytes(4, sys.byteorder)))
    return joined


def test_joining_and_leaving_are_the_kernels(instance: Instance, multicast: str) -> None:
    """The group is in the kernel's table while there is a receiver; after it no datagram is read any more."""
    group = multicast.removeprefix("rmm://").partition(":")[0]
    assert group not in groups_joined()
    with Instance(mode="poll") as source:
        transmitter = source.transmitter(multicast, "T", linger=0.0)
        assert group not in groups_joined()  # who only sends does not join
        with instance.receiver(multicast, "T") as receiver:
            assert group in groups_joined()
            transmitter.send(b"heard")
            assert len(collect(receiver, 1)) == 1
        assert group not in groups_joined()
        elsewhere = f"rmm+unicast://127.0.0.1:{free_port()}"
        with instance.receiver(elsewhere, "T"):  # the engine still reads
            before = values(instance, "instance")["packets_received"]
            for _ in range(50):
                transmitter.send(b"not heard")
                if instance.polled:
                    instance.poll()
            assert values(instance, "instance")["packets_received"] == before


GROUPS = """
import sys, time
from heliograph.engine import Instance
from heliograph.monitor.sampler import Sampler

def kernel(name):
    with open("/proc/net/snmp") as table:
        names, numbers = [line.split() for line in table if line.startswith("Udp:")]
    return int(numbers[names.index(name)])

here, there, wait = sys.argv[1], sys.argv[2], {"heartbeat_max": 300.0, "heartbeat_min": 10.0, "ambient_interval": 4.0}
with Instance(name="sink", mode="poll") as sink, Instance(name="source", mode="poll") as source:
    receiver = sink.receiver(here, "T", gro="off")  # each datagram is read on its own
    mine = source.transmitter(here, "T", linger=0.0, announce_interval=300.0, **wait)
    other = source.transmitter(there, "T", linger=0.0, announce_interval=300.0, **wait)
    for number in range(200):
        mine.send(b"%d" % number)
        for _ in range(3):
            other.send(b"not for you")
        assert [m.data for m in receiver.receive(timeout=5.0)] == [b"%d" % number]
    with Sampler() as sampler:
        state = {item.name: next(item.of("instance")).values for item in sampler.sample().instances}
        streams = {item.labels["stream"]: item.values for _, item in sampler.sample().of("tx_stream")}
    sent = {name: streams[t.stream]["packets_sent"] + streams[t.stream]["heartbeats_sent"]
            for name, t in (("here", mine), ("there", other))}
    sink = state["sink"]
    print(sent["here"], sent["there"], sink["packets_received"], kernel("InDatagrams"), sink["packets_sent"])
"""


def test_packets_of_another_group_never_reach_the_process() -> None:
    """In a network of its own, where the kernel counts nothing else: the same port, another group."""
    if not (shutil.which("unshare") and shutil.which("ip")):
        pytest.skip("needs unshare and ip")
    if subprocess.run(["unshare", "--net", "true"], capture_output=True, check=False).returncode != 0:
        pytest.skip("network namespaces are not permitted")
    endpoints = [f"rmm://239.192.77.{last}:7500?interface=127.0.0.1" for last in (1, 2)]
    program = [sys.executable, "-c", GROUPS, *endpoints]
    run = subprocess.run(
        ["unshare", "--net", "sh", "-c", 'ip link set lo up && exec "$@"', "sh", *program],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert run.returncode == 0, run.stderr
    here, there, received, kernel, feedback = map(int, run.stdout.split())
    assert there >= 600
    assert received == here
    assert kernel == here + feedback  # what the kernel handed to any socket: this and the receiver's questions
