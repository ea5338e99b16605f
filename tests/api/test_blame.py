"""Blame is split: a paused host shows in the host's hiccups, a lossy network does not."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from heliograph.engine import Instance, OptionError
from heliograph.monitor.blame import Blame, Verdict, blame, share_above
from heliograph.monitor.model import Health, Histogram, Snapshot
from heliograph.monitor.sampler import Sampler
from tests.ports import free_port

MS = 1_000_000
RECEIVE = """
import sys
from heliograph.engine import Instance
with Instance(name="receiving") as instance, instance.receiver(sys.argv[1], "T") as receiver:
    print("ready", flush=True)
    while not any(bytes(message.data) == b"end" for message in receiver.receive(timeout=1.0)):
        pass
"""


@contextmanager
def receiving(query: str) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """A receiver in a process of its own; gives what to send to."""
    port = free_port()
    place = f"rmm+unicast://127.0.0.1:{port}"
    child = subprocess.Popen([sys.executable, "-c", RECEIVE, place + query], stdout=subprocess.PIPE, text=True)
    try:
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        yield place, child
    finally:
        child.send_signal(signal.SIGCONT)
        child.kill()
        child.wait()


def histogram(snapshot: Snapshot, scope: str, name: str) -> Histogram:
    (found,) = (item for owner, item in snapshot.of(scope) if (owner.name, owner.health) == ("receiving", Health.LIVE))
    return found.histograms[name]


def observed(query: str, pauses: int) -> tuple[Verdict, Histogram]:
    """What is said of two seconds in which the receiver's process was stopped some times; and its hiccups."""
    with receiving(query) as (place, child), Instance(name="sending") as sender, Sampler() as sampler:
        transmitter = sender.transmitter(place, "T")
        for _ in range(100):
            transmitter.send(b"x")
            time.sleep(0.001)
        before = sampler.sample()
        begin = time.monotonic()
        stops = [0.4 + 0.5 * number for number in range(pauses)]
        while (now := time.monotonic() - begin) < 2.0:
            for _ in range(3):
                transmitter.send(b"x")
            if stops and now > stops[0]:
                stops.pop(0)
                child.send_signal(signal.SIGSTOP)
            elif pauses and (now - 0.4) % 0.5 > 0.25:
                child.send_signal(signal.SIGCONT)
            time.sleep(0.001)
        child.send_signal(signal.SIGCONT)
        time.sleep(0.3)
        after = sampler.sample()
        latency = histogram(after, "receiver", "total_latency").minus(histogram(before, "receiver", "total_latency"))
        hiccups = histogram(after, "instance", "host_hiccup").minus(histogram(before, "instance", "host_hiccup"))
        recovered = sum(
            item.values["messages_recovered"] for owner, item in after.of("receiver") if owner.health is Health.LIVE
        )
        return blame(latency, [hiccups], recovered), hiccups


def test_a_paused_host_shows_in_its_hiccups_and_is_to_blame() -> None:
    verdict, hiccups = observed("", pauses=2)
    assert verdict.blame is Blame.HOST, verdict
    assert share_above(hiccups, 100 * MS) > 0.05


def test_a_lossy_network_is_to_blame_and_the_hosts_hiccups_do_not_rise() -> None:
    # Asked for after 64 newer packets, repairs are late by tens of ms: a busy machine hiccups too, but not for so long.
    for _ in range(3):
        verdict, hiccups = observed("?inject_loss=0.02&reorder_packets=64&reorder_time=1", pauses=0)
        if verdict.blame is Blame.NETWORK:
            break
    assert verdict.blame is Blame.NETWORK, verdict
    assert verdict.tail_ns > 10 * MS
    assert share_above(hiccups, verdict.tail_ns // 2) < 0.0005


def test_without_an_interval_nobody_watches_the_host() -> None:
    with Instance(name="receiving", hiccup_interval=0) as instance, Sampler() as sampler:
        assert instance.segment is not None
        time.sleep(0.05)
        assert histogram(sampler.sample(), "instance", "host_hiccup").count == 0


def test_a_negative_interval_is_refused_by_name_and_range() -> None:
    with pytest.raises(OptionError, match=r"hiccup_interval.*-1"):
        Instance(hiccup_interval=-1)


def test_a_long_duty_cycle_is_counted_and_told() -> None:
    with Instance(name="receiving") as instance, Sampler() as sampler:
        endpoint = "inproc://long-cycle"
        receiver = instance.receiver(endpoint, "T", on_messages=lambda messages: time.sleep(0.12))
        transmitter = instance.transmitter(endpoint, "T")
        sampler.sample()
        deadline = time.monotonic() + 10
        told: list[str] = []
        while not told and time.monotonic() < deadline:
            transmitter.send(b"x")
            time.sleep(0.01)
            told += [event.text for event in sampler.sample().events if event.name == "cycle_overrun"]
        assert "slow listener" in told[0]
        ((_, cells),) = sampler.sample().of("instance")
        assert cells.values["cycle_overruns"] >= 1
        assert cells.values["cycle_time_max"] >= 50 * MS
        assert cells.values["cycles"] >= cells.values["cycle_overruns"]
        receiver.close()


def test_a_polled_engine_has_no_cycles_of_its_own_to_tell_of() -> None:
    with Instance(name="receiving", mode="poll") as instance, Sampler() as sampler:
        instance.poll()
        ((_, cells),) = sampler.sample().of("instance")
        assert "cycles" not in cells.values
