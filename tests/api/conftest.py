"""What the tests of the Python interface share: instances in both modes, and endpoints of their own on the loopback."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

import pytest

from heliograph.engine import Instance, Message, Receiver
from tests.ports import free_port

_numbers = itertools.count()

Script = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def multicast() -> str:
    """An endpoint of a group and port nobody else uses."""
    number = os.getpid() * 64 + next(_numbers)
    return f"rmm://239.192.{number // 250 % 250}.{number % 250 + 1}:{free_port()}?interface=127.0.0.1"


@pytest.fixture
def unicast() -> str:
    """An endpoint of a port nobody else uses."""
    return f"rmm+unicast://127.0.0.1:{free_port()}"


@pytest.fixture(params=["multicast", "unicast"])
def endpoint(request: pytest.FixtureRequest) -> str:
    """Each kind of endpoint in turn."""
    text: str = request.getfixturevalue(request.param)
    return text


@pytest.fixture(params=["thread", "poll"])
def instance(request: pytest.FixtureRequest) -> Iterator[Instance]:
    """An instance in each mode in turn."""
    with Instance(mode=request.param) as instance:
        yield instance


@pytest.fixture
def threaded() -> Iterator[Instance]:
    """An instance that runs by itself."""
    with Instance(mode="thread") as instance:
        yield instance


@pytest.fixture
def polled() -> Iterator[Instance]:
    """An instance the test runs."""
    with Instance(mode="poll") as instance:
        yield instance


@pytest.fixture
def script() -> Iterator[Script]:
    """Starts a Python program given as text; what still runs at the end is killed."""
    running: list[subprocess.Popen[str]] = []

    def start(text: str, *arguments: str, options: tuple[str, ...] = ()) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, *options, "-c", text, *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        running.append(process)
        return process

    yield start
    for process in running:
        process.kill()
        process.communicate()


def collect(receiver: Receiver, count: int, seconds: float = 10.0) -> list[Message]:
    """The next `count` messages; fewer when they do not come in time."""
    messages: list[Message] = []
    end = time.monotonic() + seconds
    while len(messages) < count and time.monotonic() < end:
        messages += receiver.receive(timeout=0.2, limit=count - len(messages))
    return messages


def until(condition: Callable[[], object], instance: Instance | None = None, seconds: float = 10.0) -> bool:
    """Wait for something to become true, working `instance` meanwhile when it is polled."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        if instance is not None and instance.polled:
            if instance.poll() == 0:
                instance.wait(0.01)
        else:
            time.sleep(0.001)
    return True
