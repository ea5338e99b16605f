"""Stores that sources announce: receivers, `sub` and `store find` use them; late receivers hear of idle topics."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TypeAlias

import pytest

from heliograph.engine import Instance, OptionError, Receiver, SystemCallError, _store
from heliograph.engine.store import following
from heliograph.engine.store.follower import Begin, StoreFollower
from heliograph.engine.store.places import ANNOUNCED, Places
from heliograph.monitor.cli import main
from heliograph.monitor.sampler import Sampler
from tests.ports import free_port

from .conftest import until
from .test_gauges import cell, cells
from .test_store_following import GSI, Paper

TOPIC = "ORDERS"
Serve: TypeAlias = Callable[..., "tuple[subprocess.Popen[str], str]"]


@pytest.fixture
def serve(segments: Path) -> Iterator[Serve]:
    """Starts `heliograph store serve --listen`; returns it and the address of its service when it keeps."""
    running: list[subprocess.Popen[str]] = []

    def start(folder: Path, endpoint: str, listen: str = "127.0.0.1:0") -> tuple[subprocess.Popen[str], str]:
        command = [sys.executable, "-m", "heliograph.monitor.cli", "store", "serve", str(folder), endpoint, TOPIC]
        process = subprocess.Popen(
            [*command, "-o", f"name={folder.name}", "--batch-time", "0.005s", "--listen", listen],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        running.append(process)
        assert process.stderr
        found = re.search(r"served on (store://\S+)", process.stderr.readline())
        assert found
        return process, found[1]

    yield start
    for process in running:
        process.kill()
        process.communicate()


def taken(receiver: Receiver, count: int) -> list[int]:
    """Numbers of the messages until there are `count`, or ten seconds are over."""
    numbers: list[int] = []
    end = time.monotonic() + 10
    while len(numbers) < count and time.monotonic() < end:
        numbers += [message.number for message in receiver.receive(timeout=0.1)]
    return numbers


def announced(receiver: Receiver, *stores: str) -> bool:
    return until(lambda: sorted(receiver.stores()) == sorted(stores), seconds=20)


@pytest.mark.parametrize("mode", ["thread", "poll"])
def test_a_late_receiver_takes_what_came_before_from_a_store_that_its_source_announces(
    multicast: str, tmp_path: Path, serve: Serve, mode: str
) -> None:
    with Instance(name="source") as source, Instance(name="late", mode=mode) as late, Sampler() as sampler:
        transmitter = source.transmitter(multicast, TOPIC, acks=1, send_window=64, linger=0.0)
        _, service = serve(tmp_path / "store", multicast)
        for number in range(1_000):  # far more than the history has
            transmitter.send(b"%d" % number)
        assert until(lambda: cells(sampler, "tx_stream", "source")["stores_announced"] == 1)
        with late.receiver(multicast, TOPIC, join="store", stores=ANNOUNCED) as receiver:
            assert taken(receiver, 1_000) == list(range(1_000))
            transmitter.send(b"live")
            assert taken(receiver, 1) == [1_000]
            assert receiver.stores() == [service]
            assert cells(sampler, "rx_stream", "late")["stores_known"] == 1


def test_the_address_of_a_store_that_listens_everywhere_is_that_of_its_acknowledgements(
    multicast: str, tmp_path: Path, serve: Serve
) -> None:
    with Instance(name="source") as source, Instance(name="watcher") as watcher:
        transmitter = source.transmitter(multicast, TOPIC, linger=0.0)
        transmitter.send(b"x")
        receiver = watcher.receiver(multicast, TOPIC)
        _, first = serve(tmp_path / "first", multicast)
        process, second = serve(tmp_path / "second", multicast, "0.0.0.0:0")
        port = second.rpartition(":")[2]
        here = re.search(r"interface=([\d.]+)", multicast)
        assert here
        assert announced(receiver, first, f"store://{here[1]}:{port}")
        process.terminate()
        process.communicate(timeout=30)
        assert announced(receiver, first)


def test_announcements_are_followed_and_what_is_known_stays_when_they_end() -> None:
    known: list[str] = []
    found = Places([ANNOUNCED], announced=lambda: known)
    assert list(found) == []
    assert found.listens
    known.append("store://10.0.0.5:7800")
    assert until(lambda: found.listen() or list(found) == ["store://10.0.0.5:7800"])
    known[:] = ["store://10.0.0.6:7800", "store://10.0.0.7:7800"]
    assert until(lambda: found.listen() or len(found) == 2)
    known.clear()
    time.sleep(2 * 0.5)
    found.listen()
    assert list(found) == ["store://10.0.0.6:7800", "store://10.0.0.7:7800"]


def test_a_gap_waits_until_a_store_is_known(tmp_path: Path) -> None:
    """Without any store the follower does not conclude that no store will have the messages."""
    known: list[str] = []
    waited: list[float] = []

    def pause(seconds: float) -> None:
        waited.append(seconds)
        if len(waited) == 3:
            _store.append(tmp_path, GSI, 9, "", [(TOPIC, 0, n, 1, n + 1, 0, b"x") for n in range(10)], 5, 900)
            known.append(str(tmp_path))

    follower = StoreFollower(known, Paper([([0, 1], []), ([5], [])]), begin=Begin("live"), fails=False, pause=pause)
    numbers = [one.number for _ in range(6) for one in follower.receive(timeout=0.01)]
    assert numbers == [0, 1, 2, 3, 4, 5]
    assert follower.losses() == []


def test_sub_and_find_use_announced_stores(
    multicast: str, tmp_path: Path, serve: Serve, capsys: pytest.CaptureFixture[str]
) -> None:
    with Instance(name="source") as source:
        transmitter = source.transmitter(multicast, TOPIC, acks=1, linger=0.0)
        _, service = serve(tmp_path / "store", multicast)
        for number in range(100):
            transmitter.send(b"%d" % number)
        transmitter.wait_stable(timeout=10)
        assert main(["store", "find", multicast, TOPIC, "--wait", "2s"]) == 0
        assert capsys.readouterr().out == f"{service}\n"
        assert main(["store", "find", multicast, TOPIC, "--wait", "2s", "--json"]) == 0
        assert json.loads(capsys.readouterr().out) == {"stores": [service]}
        assert main(["sub", multicast, TOPIC, "--store", ANNOUNCED, "--count", "100"]) == 0
        assert len(capsys.readouterr().out.splitlines()) == 100
    assert main(["store", "find", "shm://nobody", TOPIC, "--wait", "0.2s"]) == 1
    assert "no source on shm://nobody announced a store within 0.2 s" in capsys.readouterr().err


def test_who_begins_with_stores_is_refused_when_none_is_announced(
    multicast: str, segments: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(following, "Places", partial(Places, first=0.3))
    with Instance(name="desk") as instance:
        for options in ({"join": "store"}, {"durable": "desk-1"}):
            with pytest.raises(
                SystemCallError, match=r"no source on rmm://.* has announced a message store within 0\.3"
            ):
                instance.receiver(multicast, TOPIC, stores=ANNOUNCED, **options)
        instance.receiver(multicast, TOPIC, recover="store", stores=ANNOUNCED).close()  # a loss may come later


def test_mistakes_are_named(segments: Path, tmp_path: Path) -> None:
    with pytest.raises(OptionError, match=r"stores that are announced need a receiver"):
        Places([ANNOUNCED])
    with Instance(name="store") as instance:
        for service, text in (
            ("10.0.0.5", "option service is the IP address and port"),
            ("somewhere:7800", "not 'somewhere:7800'"),
            ("239.192.0.1:7800", "not '239.192.0.1:7800'"),
        ):
            with pytest.raises(OptionError, match=text):
                instance.receiver("shm://store", TOPIC, ack="store", service=service)
        with pytest.raises(OptionError, match="option service needs ack=store"):
            instance.receiver("shm://store", TOPIC, ack="app", service="10.0.0.5:7800")


@pytest.mark.parametrize("scheme", ["rmm+unicast", "rum", "shm"])
def test_a_receiver_that_joins_a_silent_stream_hears_of_its_topics(segments: Path, scheme: str) -> None:
    """Without the announcement it counts as a receiver without a source until the first message."""
    endpoint = f"{scheme}://127.0.0.1:{free_port()}" if scheme != "shm" else "shm://silent"
    with Instance(name="source") as source, Instance(name="late") as late, Sampler() as sampler:
        transmitter = source.transmitter(endpoint, TOPIC)
        time.sleep(1.5)  # the announcement of the topic has gone to nobody
        unmatched = cell(sampler, "instance", "late", "receivers_unmatched")
        receivers = [late.receiver(endpoint, topic) for topic in (TOPIC, "NOBODY")]
        assert until(lambda: unmatched() == 1)
        time.sleep(0.5)
        assert unmatched() == 1  # the topic that nobody sends
        transmitter.close()
        del receivers
