"""Publishing and collecting over real links: what is collected is what is there, and the applications do not notice."""

from __future__ import annotations

import itertools
import json
import os
import pty
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from heliograph.engine import Instance, Receiver, Transmitter
from heliograph.monitor.collector import Collector, Publisher
from heliograph.monitor.collector.link import EngineInlet, EngineOutlet
from heliograph.monitor.fleet import balance, receiver_names
from heliograph.monitor.model import Health, InstanceState, Snapshot
from heliograph.monitor.sampler import Sampler
from tests.monitor.sameness import assert_same, same
from tests.ports import free_port

_numbers = itertools.count()
COMMAND = (sys.executable, "-m", "heliograph.monitor.cli")


def _multicast() -> str:
    number = os.getpid() * 16 + next(_numbers)
    port = free_port()
    return f"rmm://239.193.{number // 250 % 250}.{number % 250 + 1}:{port}?interface=127.0.0.1"


@pytest.fixture
def rings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HELIOGRAPH_RING_DIR", str(tmp_path / "rings"))


@pytest.fixture(params=["rmm", "rum", "shm"])
def url(request: pytest.FixtureRequest, rings: None) -> str:
    """An endpoint of each kind that snapshots may take."""
    if request.param == "rmm":
        return _multicast()
    if request.param == "rum":
        return f"rum://127.0.0.1:{free_port()}"
    return f"shm://collect.{os.getpid()}.{next(_numbers)}"


class Application:
    """A feed and a reader, each an instance, with a folder each as if they were two hosts."""

    def __init__(self, stack: ExitStack, here: Path, there: Path) -> None:
        endpoint = _multicast()
        self.folders = {"here": here, "there": there}
        there.mkdir(exist_ok=True)
        feed = stack.enter_context(Instance(name="feed", segment_dir=str(here)))
        reader = stack.enter_context(Instance(name="reader", segment_dir=str(there)))
        self.receiver: Receiver = reader.receiver(endpoint, "PRICES")
        self.transmitter: Transmitter = feed.transmitter(endpoint, "PRICES", linger=0.0)
        self.sent = 0

    def exchange(self, count: int = 200) -> None:
        """Send messages and take them all."""
        for _ in range(count):
            self.transmitter.send(b"%d" % self.sent)
            self.sent += 1
        taken = 0
        end = time.monotonic() + 10
        while taken < count and time.monotonic() < end:
            taken += len(self.receiver.receive(timeout=0.1))
        assert taken == count


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def _until(condition: Callable[[], object], seconds: float = 8.0) -> bool:
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


def _sampled(folders: dict[str, Path]) -> tuple[InstanceState, ...]:
    found: list[InstanceState] = []
    for folder in folders.values():
        with Sampler(folder) as sampler:
            found += sampler.sample().instances
    return tuple(sorted(found, key=lambda item: item.name))


def test_the_fleet_collected_over_a_link_is_the_fleet_sampled(
    url: str, stack: ExitStack, segments: Path, tmp_path: Path
) -> None:
    application = Application(stack, segments, tmp_path / "there")
    collector = stack.enter_context(Collector(EngineInlet([url])))
    publishers = []
    for number, (host, folder) in enumerate(application.folders.items(), 1):
        outlet = stack.enter_context(EngineOutlet([url], 0, linger=0.0))
        sampler = stack.enter_context(Sampler(folder))
        publishers.append(
            Publisher(sampler, outlet, origin=number, place=str(folder), host=host, interval=0.1, keyframe=0.2)
        )
    application.exchange()

    def both() -> bool:
        for publisher in publishers:
            publisher.publish()
        return {item.name for item in collector.sample().instances} == {"feed", "reader"}

    assert _until(both)
    application.exchange()

    def settled() -> bool:
        """Whether nothing has moved between two readings of the segments with a collection in between."""
        before = _sampled(application.folders)
        for publisher in publishers:
            assert publisher.publish()
        time.sleep(0.05)
        fleet = collector.sample()
        after = _sampled(application.folders)
        if not same(_still(before), _still(after)):
            return False
        assert {item.name for item in fleet.instances} == {"feed", "reader"}
        assert_same(_still(after), _still(fleet.instances))
        (book,) = balance(fleet)
        assert (book.transmitter, book.residual, book.in_flight) == ("feed", 0, 0)
        assert book.delivered + book.before_join == application.sent
        assert set(receiver_names(fleet).values()) <= {"reader"}
        return True

    assert _until(settled)
    assert collector.account.stats.lost == collector.account.stats.refused == 0


def _still(instances: tuple[InstanceState, ...]) -> Snapshot:
    """What of instances does not move while nothing is sent: the receiver's and the transmitter's objects, whole."""
    return Snapshot(
        0,
        tuple(
            replace(
                item,
                heartbeat_ns=0,
                reason="",
                objects=tuple(part for part in item.objects if part.scope in ("transmitter", "receiver")),
            )
            for item in instances
        ),
    )


def test_publishing_is_not_news_to_publish(stack: ExitStack, segments: Path) -> None:
    url = _multicast()
    collector = stack.enter_context(Collector(EngineInlet([url])))
    outlet = stack.enter_context(EngineOutlet([url], 0, linger=0.0))
    with Sampler(segments) as sampler:
        publisher = Publisher(sampler, outlet, origin=1, place="", interval=0.1)

        def heard() -> bool:
            publisher.publish()
            assert collector.sample().instances == ()
            return bool(collector.account.hosts)

        assert _until(heard)
    assert list(segments.glob("*.helio")) == []


def test_a_collector_that_is_stopped_does_not_show_in_the_applications_books(
    stack: ExitStack, segments: Path, tmp_path: Path
) -> None:
    url = f"rum://127.0.0.1:{free_port()}"
    application = Application(stack, segments, tmp_path / "there")
    collecting = subprocess.Popen([*COMMAND, "collect", "--from", url, "--json"], stdout=subprocess.PIPE, text=True)
    stack.callback(lambda: (collecting.kill(), collecting.wait(), collecting.stdout and collecting.stdout.close()))
    publishing = subprocess.Popen([*COMMAND, "publish", "--to", url, "--interval", "0.02"], stderr=subprocess.DEVNULL)
    stack.callback(lambda: (publishing.kill(), publishing.wait()))
    assert collecting.stdout is not None
    assert any(json.loads(line)["instances"] for line in itertools.islice(collecting.stdout, 8))
    collecting.send_signal(signal.SIGSTOP)
    application.exchange(2000)
    collecting.kill()
    application.exchange(2000)
    publishing.send_signal(signal.SIGSTOP)
    application.exchange(2000)

    def balanced() -> bool:
        fleet = Snapshot(0, _sampled(application.folders))
        (book,) = balance(fleet)
        return (book.delivered + book.before_join, book.lost, book.residual) == (6000, 0, 0)

    assert _until(balanced)
    assert {item.name for item in _sampled(application.folders)} == {"feed", "reader"}


@pytest.mark.parametrize(("term", "clears"), [("dumb", False), ("xterm", True)])
def test_collect_clears_only_a_terminal_that_can(term: str, clears: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", term)
    leader, follower = pty.openpty()
    command = [*COMMAND, "collect", "--from", f"rum://127.0.0.1:{free_port()}", "--count", "1"]
    subprocess.run(command, stdout=follower, check=True, timeout=30)
    shown = os.read(leader, 65536)
    os.close(leader)
    os.close(follower)
    assert b"heliograph  " in shown
    assert (b"\x1b" in shown) == clears


def test_the_commands_publish_relay_and_collect_and_end_cleanly(stack: ExitStack, segments: Path) -> None:
    below, above = _multicast(), f"rum://127.0.0.1:{free_port()}"
    feed = stack.enter_context(Instance(name="feed"))
    feed.transmitter(_multicast(), "T", linger=0.0).send(b"x")

    def start(*arguments: str) -> subprocess.Popen[str]:
        process = subprocess.Popen([*COMMAND, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        stack.callback(lambda: (process.kill(), process.communicate()))
        return process

    head = start("collect", "--from", above, "--json", "--interval", "0.2")
    relay = start("collect", "--from", below, "--to", above, "--json", "--interval", "0.2")
    publisher = start("publish", "--to", below, "--host", "one", "--interval", "0.1", "--json")
    assert head.stdout is not None
    lines = (json.loads(line) for line in itertools.islice(head.stdout, 45))
    first = next(lines)
    assert "no report received on rum://" in first["absence"]
    (host,) = next(line["hosts"] for line in lines if line["instances"] == 1)
    assert (host["host"], host["relays"], host["up"], host["lost"]) == ("one", 1, True, 0)
    seen = subprocess.run(
        [*COMMAND, "stats", "--collect", below, "--json"], capture_output=True, text=True, check=True, timeout=10
    )
    (shown,) = json.loads(seen.stdout)["instances"]
    assert (shown["name"], shown["health"]) == ("feed", Health.LIVE)
    for command in (["ctl", "level", "--list", "--collect", below], ["ctl", "--collect", below, "level", "--list"]):
        seen = subprocess.run([*COMMAND, *command, "--json"], capture_output=True, text=True, check=True, timeout=20)
        assert [row["instance"] for row in json.loads(seen.stdout)["levels"]] == ["feed"]
    command = ["ctl", "receivers", "--collect", below]
    seen = subprocess.run([*COMMAND, *command], capture_output=True, text=True, check=True, timeout=20)
    assert "no report received" not in seen.stderr
    for process in (publisher, relay, head):
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=8)
        assert process.returncode == 0
        assert "Traceback" not in errors
        assert json.loads(output.splitlines()[-1])
    assert [path.name for path in segments.glob("*.helio")] == [f"feed.{os.getpid()}.helio"]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["top", "--once", "--segments", "/tmp", "--collect", "rum://127.0.0.1:1"], "give only one of them"),
        (["ctl", "ping", "--collect", "rum://127.0.0.1:1"], "run 'heliograph ctl ping' on the host of the instance"),
        (["ctl", "--collect", "rum://127.0.0.1:1", "set-rate", "1M"], "--collect only reads"),
        (["ctl", "level", "3", "--for", "1s", "--collect", "rum://127.0.0.1:1"], "--collect only reads"),
        (["flight", "--list", "--collect", "rum://127.0.0.1:1"], "run 'heliograph flight' on that host"),
        (["flight", "feed", "--collect", "rum://127.0.0.1:1"], "copy the recording here"),
        (["collect", "--from", "nonsense"], "nonsense"),
        (["publish", "--to", "nonsense"], "nonsense"),
        (["publish", "--to", "rum://127.0.0.1:1", "-o", "no_such=1"], "is not an engine option"),
        (["publish", "--to", "rum://127.0.0.1:1", "--segments", "/no/such"], "directory not found"),
        (["publish", "--to", "rum://127.0.0.1:1", "--interval", "0.001"], "from 0.01 to 3600"),
        (["publish", "--to", "rum://127.0.0.1:1", "--rate", "77"], "at least 10000 bytes"),
    ],
)
def test_a_mistake_is_told_in_a_sentence(arguments: list[str], told: str) -> None:
    done = subprocess.run([*COMMAND, *arguments], capture_output=True, text=True, timeout=10)
    assert done.returncode == 2
    assert told in done.stderr
    assert "Traceback" not in done.stderr
