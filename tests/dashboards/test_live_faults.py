"""Walks from Fleet to the cause of a fault that a real engine has: the walks of `test_live_walks.py`, not on paper.

Each test starts engines, makes the fault, and follows the links of the pages that the server makes of their segments,
until the walk ends at its sentence. Deadlines are long, because other tests use the processor too.
"""

from __future__ import annotations

import json
import os
import signal
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest

from heliograph.dashboards.live.app import create
from heliograph.dashboards.live.store import Store
from heliograph.engine import Instance, Receiver
from heliograph.monitor.sampler import Sampler
from tests.dashboards.browsing import click_to, click_to_fleet, live, seen, until
from tests.dashboards.test_live_browser import TRACES, follow
from tests.dashboards.walking import Walk, arrived
from tests.deploy.live_actor import send
from tests.ports import free_port

ROOT = Path(__file__).parents[2]
QUIET: Mapping[str, Any] = {"idle": "block", "flight_interval": 0.1}
DEADLINE = 60.0
"""Seconds until a walk must lead to its sentence."""


class Scene:
    """Engines of this process and of others, and the store of the live page over their segments."""

    def __init__(self, folder: Path, work: Path, interval: float = 0.25) -> None:
        self.endpoint = f"rmm://239.192.7.9:{free_port()}?interface=127.0.0.1"
        self.work = work
        self._stack = ExitStack()
        self._done = threading.Event()
        self._threads: list[threading.Thread] = []
        self._sampler = self._stack.enter_context(Sampler(folder))
        self.store = Store(self._sample, interval=interval, place=str(folder))

    def _sample(self) -> Any:
        return self._sampler.sample(histograms=self.store.histograms)

    def instance(self, name: str) -> Instance:
        return self._stack.enter_context(Instance(name=name, **QUIET))

    def feed(self, messages: int, size: int = 200, **options: Any) -> Instance:
        """An instance `feed` that sends some messages a second."""
        instance = self.instance("feed")
        transmitter = instance.transmitter(self.endpoint, "PRICES", linger=0.0, **options)
        self._run(lambda: send(transmitter, {"rate": messages, "size": size}, self._done))
        return instance

    def receiver(self, name: str, take: int = 64, pause: float = 0.0, **options: Any) -> None:
        """An instance that takes some messages, and rests after them."""
        receiver = self.instance(name).receiver(self.endpoint, "PRICES", **options)
        self._run(lambda: self._take(receiver, take, pause))

    def _take(self, receiver: Receiver, take: int, pause: float) -> None:
        while not self._done.is_set():
            receiver.receive(timeout=0.1, limit=take)
            self._done.wait(pause)

    def _run(self, what: Callable[[], None]) -> None:
        self._threads.append(threading.Thread(target=what))
        self._threads[-1].start()

    def actor(self, name: str, role: str, environment: Mapping[str, str] | None = None, **more: Any) -> int:
        """An instance in a process of its own, which ends with the scene; returns its process id."""
        wanted = {
            "name": name,
            "role": role,
            "endpoint": self.endpoint,
            "topics": ["PRICES"],
            "instance": QUIET,
            **more,
        }
        command = [sys.executable, str(ROOT / "tests/deploy/live_actor.py"), json.dumps(wanted)]
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={**os.environ, **(environment or {})}
        )
        self._stack.callback(process.communicate)
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        return process.pid

    def until(self, ready: Callable[[], bool], what: str) -> None:
        """Take samples until something is so."""
        end = time.monotonic() + DEADLINE
        while not ready():
            assert time.monotonic() < end, f"{what} did not happen within {DEADLINE:g} s"
            time.sleep(self.store.view.interval)
            self.store.take()

    def runs(self) -> None:
        """Sample until each receiver has had messages, so that the fault comes to a fleet that runs."""
        self.until(lambda: any(row.delivered for row in self.store.view.rows), "the first delivery")
        for _ in range(2):
            time.sleep(self.store.view.interval)
            self.store.take()

    def leads(self, wanted: Walk) -> None:
        """Take samples until a walk leads to its end; its own failure after the deadline."""
        end = time.monotonic() + DEADLINE
        while True:
            time.sleep(self.store.view.interval)
            self.store.take()
            try:
                return arrived(self.store, time.time_ns, wanted)
            except AssertionError:
                if time.monotonic() > end:
                    raise

    def close(self) -> None:
        self._done.set()
        for thread in self._threads:
            thread.join()
        self._stack.close()


@pytest.fixture
def scene(segments: Path, tmp_path: Path) -> Iterator[Scene]:
    with closing(Scene(segments, tmp_path)) as found:
        yield found


SLOW = Walk(
    "slow is falling behind on PRICES: ",
    ("slow",),
    "/receiver",
    ("slow is falling behind on PRICES: ", "% full"),
    "rx-queue",
)


def slow_consumer(scene: Scene) -> None:
    scene.receiver("quick")
    scene.receiver("slow", take=4, pause=0.1, receive_queue=65536)
    scene.feed(1000)


def test_a_slow_consumer_is_found(scene: Scene) -> None:
    slow_consumer(scene)
    scene.leads(SLOW)


def test_a_lossy_link_is_found(scene: Scene) -> None:
    scene.receiver("sound")
    scene.receiver("lossy", inject_loss=0.1)
    scene.feed(400)
    cause = ("lossy is lossy on PRICES: loses", "Most missing packets: the network lost them", "of all repairs")
    scene.leads(Walk("lossy is lossy on PRICES: loses", ("lossy",), "/receiver", cause, "rx-losses"))


def test_a_nak_storm_is_found(scene: Scene) -> None:
    for number in range(3):
        scene.receiver(f"deaf-{number}", inject_loss=0.9)
    scene.feed(100, storm_time=0.2)
    storm = "NAK storm on the stream of feed"
    cause = (storm, "of all repairs", "Most missing packets: the network lost them")
    scene.leads(Walk(f"{storm}: ", (storm, "deaf-1"), "/receiver", cause, "rx-losses"))


def test_a_process_that_stood_still_is_found(scene: Scene) -> None:
    pid = scene.actor("reader", "receiver")
    scene.feed(100)
    scene.runs()
    os.kill(pid, signal.SIGSTOP)
    time.sleep(1.5)
    os.kill(pid, signal.SIGCONT)
    cause = ("none of its threads could run; the other instance of the host ran", "its process was stopped")
    scene.leads(Walk("reader stood still for 1.", ("reader",), "/receiver", cause, "rx-hosts"))


def test_a_clock_that_was_set_is_found(scene: Scene) -> None:
    library, offset = scene.work / "step_clock.so", scene.work / "offset"
    source = ROOT / "tests/faults/step_clock.c"
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", library, source], check=True)
    offset.write_bytes(bytes(8))
    environment = {"LD_PRELOAD": str(library), "HELIOGRAPH_STEP_FILE": str(offset)}
    scene.receiver("reader")
    scene.actor("feed", "feed", environment, rate=100)
    scene.runs()
    with offset.open("r+b", buffering=0) as file:
        file.write(struct.pack("<q", 500_000_000))  # less than what makes its heartbeat look old
    cause = ("The wall clock of feed was set 500 ms forward at", "latencies across the step are off by as much")
    scene.leads(Walk(cause[0], ("The wall clock of feed",), "/topic", cause, "tp-hosts"))


def test_a_sender_that_stalls_at_its_rate_is_found(scene: Scene) -> None:
    scene.receiver("reader")
    scene.feed(240, 1000, rate=200_000)
    cause = ("Data of feed waits", "of the time for the rate of the stream", "Rate in force: 195.3 KiB/s")
    scene.leads(Walk("Data of feed waits", ("Data of feed",), "/congestion", cause, "cc-axis"))


def test_a_full_submit_queue_is_found(scene: Scene) -> None:
    scene.receiver("reader")
    scene.feed(400, 1000, rate=200_000, submit_queue=65536, overflow="refuse")
    subject = "The submit queue of PRICES at feed"
    cause = (f"{subject} is", "feed refused", "its data waits", "of the time for the rate of the stream")
    scene.leads(Walk(f"{subject} is", (subject,), "/topic", cause, "tp-queue"))


def test_a_level_of_detail_that_was_left_on_is_found(scene: Scene) -> None:
    scene.receiver("reader")
    scene.feed(100).set_level(3, seconds=7200.0, topic="PRICES")
    cause = ("Detail was left on: level 3 of topic=PRICES at feed, which ends in", "End now, below, ends it.")
    scene.leads(Walk("Detail was left on: level 3 of topic=PRICES at feed", ("Detail was left on",), "/detail", cause))


def test_a_browser_finds_a_slow_consumer_by_mouse_and_by_keyboard(segments: Path, tmp_path: Path, driver: Any) -> None:
    with closing(Scene(segments, tmp_path, interval=1.0)) as scene:
        slow_consumer(scene)
        scene.leads(SLOW)
        scene.store.start()
        with live(create(scene.store).server, scene.store) as url:
            driver.get(url)
            link = "#verdict h1 a[href='/receiver?instance=slow']"
            click_to(driver, link, lambda: driver.current_url == f"{url}receiver?instance=slow", "the receiver")
            arrives(driver, url)
            click_to_fleet(driver, url)
            until(lambda: "slow is" in seen(driver, "verdict"), "the first page")
            assert follow(driver, link) == f"{url}receiver?instance=slow"
            arrives(driver, url)
            assert [entry for entry in driver.get_log("browser") if entry["level"] == "SEVERE"] == []


def arrives(driver: Any, url: str) -> None:
    """Wait for the page of the slow consumer, with its sentence and its chart."""
    until(lambda: driver.current_url == f"{url}receiver?instance=slow", "the page of the receiver")
    until(lambda: "slow is" in seen(driver, "rx-verdict") and "% full" in seen(driver, "rx-verdict"), "its sentence")
    until(lambda: driver.execute_script(TRACES, "rx-queue") >= 1, "its chart")
