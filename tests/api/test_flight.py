"""The flight recorder of a running instance, end to end: it records what happened, and keeps it when it must."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from heliograph.dashboards.live.recordings import Shelf
from heliograph.engine import Instance, OptionError, UsageError
from heliograph.monitor.cli import main
from heliograph.monitor.flight.curves import curves
from heliograph.monitor.flight.detect import unusual
from heliograph.monitor.flight.deviations import findings
from heliograph.monitor.flight.format import State
from heliograph.monitor.flight.reader import Recording, read
from heliograph.monitor.segment import Segment
from tests.api.conftest import Script, until

BURST_SECONDS = 0.02
ON_TIME_SECONDS = 0.08


def kept(folder: Path) -> list[Path]:
    """The recordings that were kept, oldest first."""
    found = [path for path in folder.glob("*.flight") if path.name.count(".") == 3]
    return sorted(found, key=lambda path: path.stat().st_mtime_ns)


def events_of(instance: Instance) -> Iterator[str]:
    assert instance.segment is not None
    with Segment(instance.segment) as segment:
        yield from (event.name for event in segment.events().events)


# ---- a burst ----


def play_burst(endpoint: str, seed: int) -> tuple[int, int]:
    """An instance that sends steadily to itself over a lossy network, with 1,600 messages within 20 ms.

    Returns when these began and ended, ns since 1970: longer on a busy machine.
    """
    at = 0.15 + 0.3 * random.Random(seed).random()
    with Instance(name=f"burst{seed}") as instance:
        receiver = instance.receiver(endpoint, "A", inject_loss=0.2, nak_deadline=30)
        transmitter = instance.transmitter(endpoint, "A", linger=0.05)
        start = time.monotonic()
        began = ended = 0
        while (now := time.monotonic() - start) < 0.65 or not ended:
            if not began and now >= at:
                began = time.time_ns()
                for _ in range(40):
                    transmitter.send_many([bytes(200)] * 40)
                    time.sleep(BURST_SECONDS / 40)
                ended = time.time_ns()
            transmitter.send(bytes(200))
            time.sleep(0.002)
            receiver.receive(timeout=0)
        instance.freeze_flight("a burst")
    return began, ended


def around(recording: Recording, key: str, start: float, end: float) -> tuple[float, float]:
    """The most of a curve within a stretch, and its usual outside."""
    times = recording.times
    values = np.nan_to_num(next(curve.values for curve in curves(recording) if curve.spec.key == key))
    inside = (times >= start) & (times <= end)
    return float(values[inside].max()), float(np.median(values[~inside]))


@pytest.mark.parametrize("seed", range(4))
def test_a_burst_of_20_ms_is_found_with_load_queue_naks_and_repairs_around_it(
    multicast: str, segments: Path, seed: int
) -> None:
    for _ in range(4):  # of a machine that is so busy that it stands still a better moment is awaited
        began, ended = play_burst(multicast, seed)
        recording = read(kept(segments)[-1])
        start, end = ((moment - recording.wall_ns[0]) / 1e9 for moment in (began, ended))
        slack = 0.01 + float(np.diff(recording.times).max())
        is_on_time = slack < ON_TIME_SECONDS and end - start < ON_TIME_SECONDS
        if is_on_time:
            break
    assert recording.header.why == "a burst"
    assert not recording.damage
    burst = unusual(recording)
    assert burst is not None
    assert burst.is_notable
    if is_on_time:
        assert burst.start - slack <= start
        assert end <= burst.end + slack
        assert burst.end - burst.start <= (end - start) + 2 * slack
    found = findings(recording, curves(recording))
    assert found is not None
    begins = {item.curve.spec.key: float(recording.times[item.first]) for item in found.deviations}
    assert {"messages_sent", "messages_received", "bytes_sent"} <= set(begins)
    assert begins["messages_sent"] <= end + slack
    assert float(recording.times[found.last]) >= start - slack
    for key in ("messages_sent", "messages_received", "receive_queue", "naks_sent", "naks_received", "repairs_sent"):
        most, usual = around(recording, key, burst.start - slack, burst.end + slack)
        assert most > 2 * usual, key


# ---- keeping ----


def test_an_event_freezes_the_recording(multicast: str, segments: Path) -> None:
    """Nothing is asked for again, so what is lost stays lost, which is an error."""
    with Instance(name="lossy", flight_interval=0.002) as instance:
        receiver = instance.receiver(multicast, "A", inject_loss=0.5, nak="off")
        transmitter = instance.transmitter(multicast, "A", linger=0.05)
        until(lambda: (transmitter.send(b"x"), receiver.receive(timeout=0.001), loses(instance))[-1])
    (path,) = kept(segments)
    recording = read(path)
    assert recording.header.state is State.FROZEN
    assert recording.header.why.startswith(("packets_lost: ", "messages_lost: "))
    trigger = recording.trigger
    assert trigger is not None
    assert trigger.event == recording.header.trigger_event
    told = next(event for _, event in recording.events if event.number == trigger.event)
    assert told.name in ("packets_lost", "messages_lost")
    assert told.time_ns == trigger.time_ns == recording.header.trigger_ns


def loses(instance: Instance) -> bool:
    return "packets_lost" in events_of(instance)


def test_the_event_names_the_file_and_the_file_says_why(threaded: Instance, segments: Path) -> None:
    threaded.freeze_flight("order 4711 \N{EURO SIGN}")
    assert until(lambda: "flight_frozen" in events_of(threaded), threaded)
    (path,) = kept(segments)
    assert threaded.segment is not None
    with Segment(threaded.segment) as segment:
        told = next(event for event in segment.events().events if event.name == "flight_frozen")
        (item,) = (item for item in segment.objects(False) if item.scope == "instance")
    assert path.name in told.text
    assert "order 4711 \N{EURO SIGN}" in told.text
    assert told.arguments["number"] == 1
    assert item.values["flight_freezes"] == 1
    assert item.values["flight_ticks"] > 0
    assert item.values["flight_errors"] == 0
    assert item.values["flight_interval"] >= 10_000_000
    assert 0 < item.values["flight_bytes"] < 4 << 20
    recording = read(path)
    assert recording.header.why == "order 4711 \N{EURO SIGN}"
    trigger = recording.trigger
    assert trigger is not None
    assert recording.wall_ns[-1] - trigger.time_ns >= 1_900_000_000  # what came after is in it
    assert sum(gap.ticks for gap in recording.gaps) <= item.values["flight_ticks_late"]


def test_the_ring_is_read_while_it_is_recorded(threaded: Instance, capsys: pytest.CaptureFixture[str]) -> None:
    assert threaded.segment is not None
    ring = threaded.segment.with_suffix(".flight")
    assert until(lambda: len(read_or_wait(ring)) >= 20)
    assert main(["flight", threaded.name]) == 0
    assert "the ring, current state" in capsys.readouterr().out
    item = Shelf([ring.parent]).get(ring.name)  # of the live page
    assert item.is_ring
    assert len(item.study.recording.numbers) >= 20
    threaded.close()
    assert not ring.exists()


def read_or_wait(path: Path) -> list[int]:
    return read(path).numbers if path.exists() and path.stat().st_size > 4096 else []


def test_a_polled_instance_has_a_recorder_too(polled: Instance, segments: Path) -> None:
    polled.freeze_flight()
    polled.close()
    assert read(kept(segments)[0]).header.why == "by hand"


def test_ctl_freezes(threaded: Instance, segments: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ctl", "freeze", "--why", "orders were late"]) == 0
    assert "flight recording" in capsys.readouterr().out
    threaded.close()
    assert read(kept(segments)[0]).header.why == "orders were late"


@pytest.mark.parametrize("options", [{"flight_bytes": 0}, {"stats": "memory"}, {"flight_keep": 0}])
def test_where_nothing_is_kept_asking_for_it_is_refused(options: dict[str, int | str]) -> None:
    with Instance(**options) as instance, pytest.raises(UsageError, match="flight"):  # type: ignore[arg-type]
        instance.freeze_flight()


@pytest.mark.parametrize(
    ("name", "value"),
    [("flight_bytes", 1000), ("flight_bytes", -1), ("flight_interval", 0), ("flight_freeze", "x"), ("flight_keep", -1)],
)
def test_a_bad_option_is_refused(name: str, value: int | str) -> None:
    with pytest.raises(OptionError, match=name):
        Instance(**{name: value})  # type: ignore[arg-type]


# ---- crashes ----

CRASH = """
import os, sys
from heliograph.engine import Instance
from heliograph.monitor.flight.reader import read
instance = Instance(name="doomed")
ring = instance.segment.with_suffix(".flight")
while True:
    try:
        if len(read(ring).numbers) > 10:
            break
    except Exception:
        pass
print(ring, flush=True)
os.kill(os.getpid(), 9)
"""


def test_a_crash_leaves_its_last_seconds_until_they_are_cleaned_away(
    script: Script, capsys: pytest.CaptureFixture[str]
) -> None:
    process = script(CRASH)
    assert process.stdout is not None
    ring = Path(process.stdout.readline().strip())
    assert process.wait(timeout=20) == -9
    recording = read(ring)
    assert len(recording.numbers) > 10
    assert [event.name for _, event in recording.events] == ["instance_started"]
    assert main(["flight", str(ring)]) == 0
    assert main(["clean"]) == 0
    assert not ring.exists()
    assert not os.listdir(ring.parent)


def test_a_folder_without_room_costs_the_recorder_and_nothing_else(
    segments: Path,
) -> None:
    """Its path is taken by a folder, which it cannot replace."""
    ring = segments / f"blocked.{os.getpid()}.flight"
    ring.mkdir()
    with Instance(name="blocked") as instance:
        assert until(lambda: "flight_failed" in events_of(instance))
        with pytest.raises(UsageError, match="no flight recorder"):
            instance.freeze_flight()
    ring.rmdir()
