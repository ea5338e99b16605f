"""The two examples of the README, as two processes on real multicast sockets."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from heliograph.monitor.sampler import Sampler
from tests.ports import free_port

EXAMPLES = Path(__file__).resolve().parents[2] / "deploy/examples"
MESSAGES = 10_000


@pytest.fixture
def endpoint() -> str:
    return f"rmm://239.192.77.3:{free_port()}?interface=127.0.0.1"


@pytest.fixture
def subscriber(endpoint: str, segments: Path) -> Iterator[subprocess.Popen[str]]:
    """The subscriber, listening."""
    with subprocess.Popen(
        [sys.executable, str(EXAMPLES / "subscriber.py"), endpoint],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            wait_until_listening(segments)
            yield process
        finally:
            process.kill()


def wait_until_listening(segments: Path, seconds: float = 20.0) -> None:
    until = time.monotonic() + seconds
    with Sampler(segments) as sampler:
        while time.monotonic() < until:
            instances = list(sampler.sample(histograms=False).of("instance"))
            if any(item.values["receivers"] for _, item in instances):
                return
            time.sleep(0.02)
    pytest.fail("the subscriber opened no receiver")


def test_every_price_arrives_in_order_and_both_end_cleanly(
    endpoint: str, subscriber: subprocess.Popen[str], segments: Path
) -> None:
    publisher = subprocess.run(
        [sys.executable, str(EXAMPLES / "publisher.py"), endpoint],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert publisher.returncode == 0, publisher.stderr
    assert subscriber.stdout is not None
    lines = [subscriber.stdout.readline().split() for _ in range(MESSAGES)]
    assert [int(words[0]) for words in lines] == list(range(MESSAGES))
    assert lines[0][1:3] == ["EURUSD", "1.080000"]
    assert lines[-1][1:3] == ["EURUSD", "1.089999"]

    subscriber.send_signal(signal.SIGINT)
    subscriber.wait(timeout=20)
    assert [name for name in os.listdir(segments) if name.endswith(".helio")] == []
