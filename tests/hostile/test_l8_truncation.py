"""L8: a mapped file that somebody truncates is an error that is told, and nobody dies of SIGBUS."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from heliograph.monitor.control import CommandRing
from heliograph.monitor.directory import SegmentError
from heliograph.monitor.model import Health
from heliograph.monitor.sampler import Sampler
from tests.hostile.users import ROOT_ONLY, give_away, run
from tests.segments import write_segment


@pytest.fixture(autouse=True)
def rings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of rings of the test's own."""
    folder = tmp_path / "rings"
    monkeypatch.setenv("HELIOGRAPH_RING_DIR", str(folder))
    return folder


COMMON = """
import os, sys, time
from pathlib import Path
from heliograph.engine import Instance
from heliograph.monitor.segment import Segment
def events(instance):
    with Segment(instance.segment) as segment:
        return [(event.name, event.text) for event in segment.events().events]
def wait(instance, name, step=lambda: None):
    for _ in range(500):
        step()
        found = [text for told, text in events(instance) if told == name]
        if found:
            return found
        time.sleep(0.01)
    sys.exit(f"no event {name}: {events(instance)}")
def cut(path, size):
    assert path.stat().st_size > size, path
    os.truncate(path, size)
"""

SEGMENT = (
    COMMON
    + """
size, mode = int(sys.argv[1]), sys.argv[2]
endpoint = "rmm+unicast://127.0.0.7:45322"
with Instance(name="feed", mode=mode, flight_bytes=int(sys.argv[3])) as instance:
    with instance.receiver(endpoint, "T") as receiver, instance.transmitter(endpoint, "T") as transmitter:
        transmitter.send(b"before")
        for _ in range(100):
            if receiver.receive(timeout=0.1):
                break
        cut(instance.segment, size)
        for number in range(300):
            transmitter.send(b"%d" % number)
        got = 0
        for _ in range(200):
            got += len(receiver.receive(timeout=0.05, limit=100))
            if got == 300:
                break
        assert got == 300, got
        more = [instance.transmitter(endpoint, f"T{n}") for n in range(20)]
        for one in more:
            one.send(b"x")
        time.sleep(0.3) if mode == "thread" else [instance.poll() for _ in range(100)]
print("closed")
"""
)


@pytest.mark.parametrize(
    ("size", "mode"), [(0, "thread"), (150_000, "thread"), (700_000, "thread"), (0, "poll"), (4096, "poll")]
)
def test_l8_an_instance_outlives_its_segment(size: int, mode: str) -> None:
    done = run(SEGMENT, size, mode, 0 if size == 0 else 1 << 20)
    assert (done.returncode, done.stdout) == (0, "closed\n"), done.stderr


def test_l8_a_monitor_names_a_segment_that_was_cut(segments: Path) -> None:
    path = write_segment(segments / "feed.1.helio", name="feed", pid=os.getpid()).path
    with Sampler(segments) as sampler:
        assert sampler.sample().instances[0].health is not Health.DAMAGED
        os.truncate(path, 4096)
        (item,) = sampler.sample().instances
        assert item.health is Health.DAMAGED
        assert "damaged" in item.reason


CTL = """
import os, sys
from heliograph.engine import Instance
from heliograph.monitor.control import CommandRing
from heliograph.monitor.errors import UserError
instance = Instance(name="feed", mode="poll", flight_bytes=0)  # touches nothing until it is polled
with CommandRing(instance.segment) as ring:
    os.truncate(instance.segment, int(sys.argv[1]))
    try:
        print(ring.give("ping", timeout=0.5))
    except UserError as error:
        print("told:", error, flush=True)
"""


@pytest.mark.parametrize("size", [0, 4096])
def test_l8_ctl_tells_of_a_segment_that_is_cut(size: int) -> None:
    done = run(CTL, size)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("told: "), done.stdout
    assert "truncated" in done.stdout or "damaged" in done.stdout, done.stdout


@ROOT_ONLY
def test_l8_ctl_maps_no_segment_of_another_user(segments: Path) -> None:
    from heliograph.monitor.errors import UserError

    path = give_away(write_segment(segments / "feed.1.helio", name="feed").path)
    with pytest.raises(UserError, match="only its owner may command"):
        CommandRing(path)


RING_WRITER = (
    COMMON
    + """
from heliograph.engine import Error
with Instance(name="writer", mode="thread") as instance, instance.transmitter("shm://l8.ring", "T") as transmitter:
    transmitter.send(b"before")
    transmitter.flush()
    (ring,) = Path(os.environ["HELIOGRAPH_RING_DIR"]).glob("*.ring")
    cut(ring, int(sys.argv[1]))
    def send():
        for _ in range(10):
            transmitter.send(b"after")
    print(wait(instance, "file_truncated", send))
    assert not ring.exists()
print("closed")
"""
)


@pytest.mark.parametrize("size", [0, 4096, 300_000])
def test_l8_a_writer_outlives_its_ring_and_tells(size: int) -> None:
    done = run(RING_WRITER, size)
    assert done.returncode == 0, done.stderr
    assert "the ring was truncated by another program" in done.stdout
    assert done.stdout.endswith("closed\n")


RING_READER = (
    COMMON
    + """
with Instance(name="reader") as instance, instance.receiver("shm://l8.ring", "T") as receiver:
    print("up", flush=True)
    assert receiver.receive(timeout=20)
    print("got", flush=True)
    (ring,) = Path(os.environ["HELIOGRAPH_RING_DIR"]).glob("*.ring")
    cut(ring, 0)
    print(wait(instance, "file_truncated"))
print("closed")
"""
)


RING_FILLER = """
import sys
from heliograph.engine import Instance
with Instance(name="filler") as instance, instance.transmitter("shm://l8.ring", "T") as transmitter:
    transmitter.send(b"x")
    transmitter.flush()
    sys.stdin.read()
"""


def test_l8_a_reader_outlives_the_ring_it_reads_and_tells() -> None:
    reader = subprocess.Popen([sys.executable, "-c", RING_READER], stdout=subprocess.PIPE, text=True)
    assert reader.stdout is not None
    with reader:
        assert reader.stdout.readline() == "up\n"
        writer = subprocess.Popen([sys.executable, "-c", RING_FILLER], stdin=subprocess.PIPE, text=True)
        with writer:
            assert reader.stdout.readline() == "got\n"
            out = reader.stdout.read()
        assert (reader.wait(), writer.wait()) == (0, 0)
    assert "has a ring that was truncated" in out


GENERATION = (
    COMMON
    + """
folder = Path(os.environ["HELIOGRAPH_RING_DIR"])
with Instance(name="reader") as instance, instance.receiver("shm://l8.ring", "T") as receiver:
    time.sleep(0.05)
    cut(folder / "generation", 0)
    print(wait(instance, "file_truncated"))
    with Instance(name="writer") as other, other.transmitter("shm://l8.ring", "T") as transmitter:
        for _ in range(100):
            transmitter.send(b"still found")
            if receiver.receive(timeout=0.1):
                break
        else:
            sys.exit("nothing came")
print("closed")
"""
)


def test_l8_rings_are_found_without_their_counter() -> None:
    done = run(GENERATION)
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("closed\n")


LOG = (
    COMMON
    + """
with Instance(name="feed", decision_log=sys.argv[1]) as instance:
    endpoint, how = "rmm+unicast://127.0.0.7:45323", {"rate_policy": "dynamic", "rate": 1_000_000}
    with instance.receiver(endpoint, "T") as receiver, instance.transmitter(endpoint, "T", **how) as transmitter:
        (log,) = Path(sys.argv[1]).iterdir()
        cut(log, int(sys.argv[2]))
        print(wait(instance, "file_truncated", lambda: transmitter.send(b"x")))
    path = log
print(path.stat().st_size, "closed")
"""
)


@pytest.mark.parametrize("size", [0, 4096])
def test_l8_a_sender_outlives_its_decision_log(tmp_path: Path, size: int) -> None:
    logs = tmp_path / "logs"
    logs.mkdir()
    done = run(LOG, logs, size)
    assert done.returncode == 0, done.stderr
    assert "truncated by another program; its records are lost" in done.stdout
    assert done.stdout.endswith(f"{size} closed\n")


FLIGHT = (
    COMMON
    + """
with Instance(name="feed") as instance:
    ring = instance.segment.with_suffix(".flight")
    cut(ring, int(sys.argv[1]))
    print(wait(instance, "flight_failed"))
    instance.freeze_flight("in vain")
    time.sleep(0.1)
    print(len([1 for name, _ in events(instance) if name == "flight_failed"]))
print("closed")
"""
)


@pytest.mark.parametrize("size", [0, 4096])
def test_l8_an_instance_outlives_its_flight_ring(size: int) -> None:
    done = run(FLIGHT, size)
    assert done.returncode == 0, done.stderr
    assert "was truncated by another program: recording has ended" in done.stdout
    assert done.stdout.endswith("2\nclosed\n"), done.stdout


FOREIGN = """
import faulthandler, mmap, os, sys
from pathlib import Path
from heliograph.engine import Instance
path = Path(sys.argv[1])
path.write_bytes(bytes(8192))
with Instance(name="feed"), path.open("r+b") as file:
    memory = mmap.mmap(file.fileno(), 8192)
    os.truncate(path, 0)
    print("now", flush=True)
    memory[5000]
"""


def test_l8_a_fault_elsewhere_is_what_it_always_was(tmp_path: Path) -> None:
    done = run(FOREIGN, tmp_path / "own")
    assert (done.returncode, done.stdout) == (-signal.SIGBUS, "now\n")


# ---- the lock ----

TWIN = """
import os, sys, time
from heliograph.engine import Error, Instance
won = 0
end = time.monotonic() + 1.5
while time.monotonic() < end:
    try:
        with Instance(name="twin", mode="poll", flight_bytes=0) as instance:
            found = os.stat(instance.segment)
            with open("/proc/self/maps") as file:
                inode = next(int(line.split()[4]) for line in file if "twin" in line)
            assert found.st_ino == inode, "its segment was exchanged"
            won += 1
    except Error as error:
        assert "belongs to a running engine" in str(error), error
print(won, os.getpid())
"""


@ROOT_ONLY
def test_l8_twins_of_two_pid_namespaces_never_take_each_others_segment() -> None:
    command = ["unshare", "--pid", "--fork", "--mount-proc", sys.executable, "-c", TWIN]
    twins = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(2)]
    for twin in twins:
        out, error = twin.communicate(timeout=60)
        assert twin.returncode == 0, error
        won, pid = map(int, out.split())
        assert won
        assert pid == 1


def test_l8_a_mapping_checks_its_bounds(tmp_path: Path) -> None:
    from heliograph.monitor._atomic import Mapping

    path = tmp_path / "file"
    path.write_bytes(bytes(4096))
    with path.open("r+b") as file:
        mapping = Mapping(file.fileno(), 0, 4096)
    mapping.write(8, b"\1" + bytes(7))
    assert (mapping.load(8), mapping.add(8, 1), mapping.read(8, 2)) == (1, 1, b"\2\0")
    assert mapping.compare_exchange(8, 2, 9)
    assert not mapping.compare_exchange(8, 2, 9)
    for bad in (-8, 4, 4096, 1 << 62):
        with pytest.raises(ValueError, match="there are no"):
            mapping.load(bad)
    with pytest.raises(ValueError, match="there are no"):
        mapping.read(4090, 7)
    with pytest.raises(ValueError, match="there are no"):
        mapping.write(4090, bytes(7))
    os.truncate(path, 0)
    with pytest.raises(OSError, match="Input/output error"):
        mapping.read(0, 1)
    mapping.close()
    mapping.close()
    with pytest.raises(ValueError, match="closed"):
        mapping.load(8)


def test_l8_a_short_ring_of_commands_is_refused(segments: Path) -> None:
    path = segments / "feed.1.helio"
    write_segment(path, name="feed")
    os.truncate(path, 300)
    with pytest.raises(SegmentError):
        CommandRing(path)
