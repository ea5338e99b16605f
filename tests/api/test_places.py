"""Where packets died, on real sockets: both ends count, and the monitor says which place it was."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from heliograph.engine import Instance, Receiver
from heliograph.monitor.localise import Location, locate
from heliograph.monitor.reconciliation import accounts
from heliograph.monitor.sampler import Sampler

from .conftest import until

TOPIC = "PRICES.FX"
BODY = b"." * 1200
"""One message fills a packet."""


def verdict() -> Location:
    """What the monitor says of the only stream being received; the books balance."""
    with Sampler() as sampler:
        snapshot = sampler.sample(histograms=False)
    assert [row for row in accounts(snapshot) if row.residual] == []
    (row,) = locate(None, snapshot)
    return row


def drained(receiver: Receiver, total: int) -> Callable[[], bool]:
    """Whether all messages came, taking those that are there."""
    count = 0

    def done() -> bool:
        nonlocal count
        count += len(receiver.receive(timeout=0.0, limit=1000))
        return count == total

    return done


def run(
    endpoint: str, total: int, between: int, rounds: int = 1, sent: dict[str, Any] | None = None, **receiving: Any
) -> Location:
    """Send while the receiver's engine or application stands still, let it catch up, and ask the monitor.

    Args:
        endpoint: Where to.
        total: Messages, each a packet.
        between: How often the receiver's engine, but not its application, runs while they are sent; 0: not at all.
        rounds: Portions the messages are sent in.
        sent: Options of the transmitter.
        receiving: Options of the receiver.
    """
    with Instance(name="source", mode="poll") as source, Instance(name="sink", mode="poll") as sink:
        receiver = sink.receiver(endpoint, TOPIC, nak_deadline=30.0, nak_retries=10000, **receiving)
        transmitter = source.transmitter(endpoint, TOPIC, linger=0.0, **(sent or {}))
        for _ in range(20):
            source.poll()
            sink.poll()
        done = drained(receiver, total)
        for portion in range(rounds):
            for number in range(total // rounds):
                transmitter.send(BODY)
                source.poll()
                if between and number % between == 0:
                    sink.poll()
            if portion < rounds - 1:
                sink.poll()

        def all_came() -> bool:
            source.poll()
            sink.poll()
            return done()

        assert until(all_came, seconds=30.0)
        for _ in range(3):  # the last packets may be acknowledged, and gauges set
            source.poll()
            sink.poll()
        return verdict()


def test_what_the_kernel_dropped_died_at_the_socket(unicast: str) -> None:
    """The engine does not run while more comes than its socket's buffer holds."""
    row = run(unicast, 3000, between=0, socket_buffer=65536, gro="off", sent={"send_window": 8192})
    assert row.verdict.place == "socket"
    assert row.verdict.confidence > 0.9
    assert row.lost > 1000


def test_what_found_no_room_as_the_application_was_behind_died_at_the_queue(unicast: str) -> None:
    row = run(
        unicast,
        2000,
        between=1,
        receive_queue=65536,
        receive_window=64,
        sent={"send_window": 8192},
    )
    assert row.verdict.place == "queue"
    assert row.verdict.confidence > 0.9
    assert row.lost > 1000


def test_what_was_thrown_away_on_the_way_died_in_the_network(unicast: str) -> None:
    row = run(unicast, 3000, between=1, inject_loss=0.05)
    assert row.verdict.place == "network"
    assert row.lost > 50


REFUSING = """
import json, sys
sys.path.insert(0, sys.argv[1])
import tests.api.test_places as places
row = places.run("rmm+unicast://127.0.0.1:17431", 3000, between=1)
print(json.dumps([row.verdict.place, row.lost, row.verdict.confidence]))
"""

RULES = """
table inet refuse {
  chain out {
    type filter hook output priority 0;
    udp dport 17431 meta length 1000-1500 numgen random mod 20 == 0 drop
  }
}
"""


def test_what_the_senders_host_refused_died_at_the_sender(segments: Path) -> None:
    """In a network namespace of its own a rule drops packets on their way out: sendmsg says EPERM."""
    if os.geteuid() != 0:
        pytest.skip("a network namespace needs root")
    if missing := [tool for tool in ("unshare", "ip", "nft") if shutil.which(tool) is None]:
        pytest.skip(f"{' and '.join(missing)} is not installed")
    script = 'ip link set lo up && nft -f - && exec "$0" -c "$1" "$2"'
    done = subprocess.run(
        ("unshare", "--net", "sh", "-c", script, sys.executable, REFUSING, str(Path(__file__).parents[2])),
        input=RULES,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    if "Operation not permitted" in done.stderr and "unshare" in done.stderr:
        pytest.skip("a network namespace is not permitted")
    assert done.returncode == 0, done.stderr
    place, lost, confidence = json.loads(done.stdout)
    assert place == "sender"
    assert lost > 50
    assert confidence > 0.9
