"""A receiving process that is stopped by a signal, on real sockets: its source says so, and says when it is over."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from pathlib import Path

import pytest

from heliograph.engine import Instance, Transmitter
from heliograph.monitor.segment import Segment

from .conftest import Script, until

TOPIC = "PRICES"
WINDOW = 4_500
NONE, AHEAD, PAST = 1, 2, 3
"""Values of `forecast_state`."""
RECEIVE = """
import sys
from heliograph.engine import Instance
with Instance(name="desk") as desk, desk.receiver(sys.argv[1], "PRICES", socket_buffer=131072) as receiver:
    print("ready", flush=True)
    received = lost = 0
    while received + lost < int(sys.argv[2]):
        received += len(receiver.receive(timeout=0.1))
        lost += sum(loss.count for loss in receiver.losses())
    print(received, lost, flush=True)
"""
TOTAL = 10_000


class Feed(threading.Thread):
    """Sends a packet each millisecond."""

    def __init__(self, transmitter: Transmitter) -> None:
        super().__init__()
        self.transmitter = transmitter
        self.start()

    def run(self) -> None:
        for _ in range(TOTAL):
            self.transmitter.send(b"x" * 1_200)
            time.sleep(0.001)


@pytest.mark.skipif(sys.platform != "linux", reason="needs SIGSTOP of another process")
def test_a_stopped_receiver_is_forecast_then_past_and_then_well_again(multicast: str, script: Script) -> None:
    desk = script(RECEIVE, multicast, str(TOTAL))
    assert desk.stdout
    assert desk.stdout.readline() == "ready\n"
    with Instance(name="feed") as source:
        assert isinstance(source.segment, Path)
        segment = Segment(source.segment)

        def seen() -> dict[str, int]:
            """The desk as the source sees it."""
            found = [o for o in segment.objects(histograms=False) if o.scope == "tx_receiver"]
            return {name: int(value) for name, value in found[0].values.items()} if found else {}

        def is_in(*states: int) -> bool:
            return seen().get("forecast_state") in states

        transmitter = source.transmitter(multicast, TOPIC, send_window=WINDOW, linger=1.0)
        feed = Feed(transmitter)
        assert until(lambda: is_in(NONE))
        assert seen()["lost_certain"] == 0

        stopped_ns = time.time_ns()
        os.kill(desk.pid, signal.SIGSTOP)
        passed: list[int] = []

        def goes(to: int) -> bool:
            passed.append(seen()["forecast_state"])
            return passed[-1] == to

        assert until(lambda: goes(AHEAD))
        assert seen()["forecast"] > 0
        assert seen()["lost_certain"] == 0
        assert until(lambda: goes(PAST))
        doubted = next(at for at, state in enumerate(passed) if state != NONE)
        assert NONE not in passed[doubted:], "no all-clear before the loss"
        assert until(lambda: seen()["lost_certain"] > 500)
        (view,) = transmitter.receivers()
        assert (view.outlook, view.forecast) == ("past", None), "one judge for every output"
        assert view.behaviour in ("stalled", "stopped")
        now = seen()
        assert stopped_ns - 2_000_000_000 < now["state_since"] <= time.time_ns()
        assert now["forecast"] == 0

        os.kill(desk.pid, signal.SIGCONT)
        assert until(lambda: is_in(NONE), seconds=30)
        feed.join()
        out, errors = desk.communicate(timeout=60)
        segment.close()
    received, lost = map(int, out.split())
    assert received + lost == TOTAL, errors
    assert lost > 0  # not all of it is certain at once: a receiver that is back may still get repairs
