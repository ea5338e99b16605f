"""M5: what other users of the host put into the segment folder costs a monitor nothing and takes nobody's name."""

from __future__ import annotations

import os
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from heliograph.engine import Instance, ResourceError, catalogue
from heliograph.exporters.items import nodes
from heliograph.monitor.cli import main
from heliograph.monitor.errors import UserError
from heliograph.monitor.model import Health
from heliograph.monitor.ownership import segment_folder
from heliograph.monitor.sampler import Sampler
from tests.flights import FlightObject, FlightWriter
from tests.hostile.users import NOBODY, ROOT_ONLY, give_away, run
from tests.segments import SegmentEvent, SegmentObject, Written, write_segment

HOUR_NS = 3_600_000_000_000


def segment(folder: Path, name: str, pid: int = 4711, **more: object) -> Written:
    """A segment of a live instance."""
    objects = [SegmentObject("instance", {"instance": name}, values={"messages_received": 5})]
    events = [SegmentEvent("instance_started", "came up", slot=0)]
    return write_segment(folder / f"{name}.{pid}.helio", name=name, objects=objects, events=events, **more)  # type: ignore[arg-type]


@ROOT_ONLY
def test_m5_files_of_others_are_left_out_and_counted_once(segments: Path) -> None:
    segment(segments, "alpha")
    give_away(segment(segments, "evil").path)
    told: list[str] = []
    with Sampler(segments, tell=told.append) as sampler:
        for _ in range(3):
            assert [item.name for item in sampler.sample().instances] == ["alpha"]
        assert sampler.foreign == 1
    assert told == ["files of other users that are not shown: 1 (--all-users shows them)"]


@ROOT_ONLY
def test_m5_shown_files_of_others_carry_their_user_everywhere(segments: Path) -> None:
    segment(segments, "alpha")
    give_away(segment(segments, "evil").path)
    with Sampler(segments, all_users=True) as sampler:
        snapshot = sampler.sample()
    mine, theirs = snapshot.instances
    assert (mine.name, theirs.name) == ("alpha", f"evil@uid{NOBODY}")
    assert [item.labels["instance"] for item in theirs.objects] == [theirs.name]
    told = {event.instance for event in snapshot.events}, {event.labels["instance"] for event in snapshot.events}
    assert told == ({"alpha", theirs.name}, {"alpha", theirs.name})


@ROOT_ONLY
def test_m5_nobody_takes_the_name_of_a_running_instance(segments: Path) -> None:
    """The other one is older and runs too: of two of one's own the older keeps the name."""
    mine = segment(segments, "feed")
    started_ns = int.from_bytes(mine.path.read_bytes()[48:56], "little")
    give_away(segment(segments, "feed", pid=os.getpid(), started_ns=started_ns - HOUR_NS).path)
    with Sampler(segments) as sampler:
        assert {node.name: node.state.path for node in nodes(sampler.sample())} == {"feed": str(mine.path)}
    with Sampler(segments, all_users=True) as sampler:
        found = {node.name: node.state.path for node in nodes(sampler.sample())}
    assert found.pop("feed") == str(mine.path)
    assert list(found) == [f"feed@uid{NOBODY}"]


@ROOT_ONLY
def test_m5_an_unreadable_file_of_another_user_takes_no_name_either(segments: Path) -> None:
    path = segments / "feed.1.helio"
    path.write_bytes(b"nothing")
    give_away(path)
    with Sampler(segments, all_users=True) as sampler:
        (item,) = sampler.sample().instances
    assert (item.name, item.health) == (f"feed@uid{NOBODY}", Health.DAMAGED)


def sparse(folder: Path) -> Path:
    """A file of some 150 KB that claims histograms of half a GB: many objects share one record and its blocks."""
    many = 120
    histograms = {"total_latency": {1000: 1}}
    labels = {"instance": "big", "topic": "T", "stream": "0a0b0c0d0e0f.1"}
    item = SegmentObject("receiver", labels, values={"next_message": 1}, histograms=histograms)
    written = write_segment(folder / "whole", name="big", objects=[item], object_capacity=128)
    whole = written.path.read_bytes()
    record = written.records[0]
    cells = len(whole[record : written.histograms[0, "total_latency"]]) // 8 - 1
    block = written.histograms[0, "total_latency"]
    path = folder / "big.4711.helio"
    with path.open("wb") as file:
        file.truncate(1 << 30)
        entry = whole[written.objects : written.objects + 512]
        words = [block if cell.statistic.kind == "histogram" else 1 for cell in catalogue.scopes()["receiver"].cells]
        assert cells >= len(words)
        for offset, data in (
            (0, whole[: written.objects]),
            (written.objects, entry * many),
            (record, struct.pack(f"<Q{len(words)}Q", 0, *words)),
            (block, whole[block : block + 64]),
            (16, struct.pack("<Q", 1 << 30)),
            (104, struct.pack("<Q", many)),
        ):
            file.seek(offset)
            file.write(data)
    written.path.unlink()
    assert path.stat().st_blocks * 512 < 400_000
    return path


READER = """
import resource, sys
from pathlib import Path
from heliograph.monitor.sampler import Sampler
import numpy
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
with Sampler(Path(sys.argv[1])) as sampler:
    (item,) = sampler.sample().instances
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024, item.health, item.reason)
"""


def test_m5_a_sparse_file_costs_its_reader_no_more_than_it_has(segments: Path) -> None:
    sparse(segments)
    done = run(READER, segments)
    assert done.returncode == 0, done.stderr
    megabytes, health, _ = done.stdout.split(" ", 2)
    assert int(megabytes) < 32, done.stdout
    assert health == "damaged"


@pytest.mark.parametrize(
    ("place", "data"),
    [
        (104, struct.pack("<Q", 60_000)),  # objects used ...
        (120, struct.pack("<I", 1 << 16)),  # event capacity
        (80, struct.pack("<Q", (1 << 20) + 8)),  # directory bytes
    ],
)
def test_m5_tables_larger_than_the_file_are_refused(segments: Path, place: int, data: bytes) -> None:
    written = segment(segments, "alpha")
    with written.path.open("r+b") as file:
        file.truncate(1 << 30)
    written.poke(16, struct.pack("<Q", 1 << 30))
    if place == 104:
        written.poke(96, struct.pack("<I", 60_000))
    written.poke(place, data)
    with Sampler(segments) as sampler:
        (item,) = sampler.sample().instances
    assert item.health is Health.DAMAGED
    assert "more than it has" in item.reason or "directory" in item.reason


def test_m5_a_directory_of_cells_in_one_place_is_refused(segments: Path) -> None:
    """Each object of such a scope would cost a dictionary of a thousand values, and have a record of 16 bytes."""
    lines = "scope\tmade_up\t99\t16\t\t\tx\n" + "".join(
        f"stat\tmade_up\tc{n}\t8\tcounter\t\t0\tc\t\t\tx\n" for n in range(999)
    )
    segment(segments, "alpha", extra_directory=lines)
    with Sampler(segments) as sampler:
        (item,) = sampler.sample().instances
    assert item.health is Health.DAMAGED
    assert "at one offset" in item.reason


CROWD = """
import os, resource, sys
from pathlib import Path
resource.setrlimit(resource.RLIMIT_NOFILE, (80, 80))
from heliograph.monitor.sampler import Sampler
told = []
with Sampler(Path(sys.argv[1]), all_users=True, tell=told.append) as sampler:
    for _ in range(2):
        snapshot = sampler.sample()
        os.close(os.open("/dev/null", os.O_RDONLY))
    print([item.health.value for item in snapshot.instances if item.name == "mine"], len(snapshot.instances), told)
"""


@ROOT_ONLY
def test_m5_a_crowd_of_files_leaves_descriptors_and_ones_own_instance(segments: Path) -> None:
    for number in range(120):
        give_away(segment(segments, f"aa{number}", pid=os.getpid()).path)
    os.utime(segment(segments, "mine", pid=os.getpid()).path, (1, 1))  # the oldest
    done = run(CROWD, segments)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(("['live'] 20 ", "['stale'] 20 ")), done.stdout  # on a busy machine it is old
    assert "segments that are not read: 101" in done.stdout


@ROOT_ONLY
def test_m5_a_removed_file_of_another_user_is_not_kept_open(segments: Path) -> None:
    with Sampler(segments, all_users=True) as sampler:
        for number in range(5):
            path = give_away(segment(segments, f"gone{number}", pid=os.getpid()).path)
            sampler.sample()
            path.unlink()
        sampler.sample()
        assert len(os.listdir("/proc/self/fd")) < 40
        assert not sampler._watches


# ---- the folder ----


@ROOT_ONLY
def test_m5_a_folder_of_another_user_is_refused(segments: Path, capsys: pytest.CaptureFixture[str]) -> None:
    segment(segments, "alpha")
    give_away(segments)
    with pytest.raises(ResourceError, match="not safe to use: it belongs to another user"):
        Instance(name="feed")
    for command in (["stats"], ["top", "--once"], ["clean"], ["flight", "--list"], ["ctl", "ping"]):
        assert main([*command, "--segments", str(segments)]) == 2, command
        assert "belongs to another user (uid 65534)" in capsys.readouterr().err, command
    assert main(["stats", "--segments", str(segments), "--all-users"]) == 0


def test_m5_a_folder_anybody_may_change_is_refused_unless_it_is_sticky(segments: Path) -> None:
    segments.chmod(0o777)
    with pytest.raises(ResourceError, match="not sticky"):
        Instance(name="feed")
    with Sampler(segments) as sampler, pytest.raises(UserError, match="not sticky"):
        sampler.sample()
    segments.chmod(0o1777)
    with Instance(name="feed"), Sampler(segments) as sampler:
        assert [item.name for item in sampler.sample().instances] == ["feed"]


SQUATTED = """
mount -t tmpfs none /dev/shm && mkdir -m 1777 /dev/shm/heliograph && chown 65534 /dev/shm/heliograph || exit 77
exec "$0" -c '
from heliograph.engine import Instance, host
from heliograph.monitor.ownership import segment_folder
with Instance(name="feed") as instance:
    print(instance.segment.parent, segment_folder(), host.segment_folder())
'
"""


@ROOT_ONLY
def test_m5_who_finds_the_shared_folder_taken_has_one_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HELIOGRAPH_SEGMENT_DIR")
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", SQUATTED, sys.executable], capture_output=True, text=True, timeout=60, check=False
    )
    if done.returncode == 77:
        pytest.skip("needs root that may mount: not permitted here")
    assert done.stdout.split() == ["/dev/shm/heliograph-0"] * 3, done.stderr


def test_m5_a_folder_that_is_named_is_the_one() -> None:
    assert segment_folder(Path("/x")) == Path("/x")


# ---- what is not a segment ----


@ROOT_ONLY
def test_m5_clean_leaves_the_files_of_others(segments: Path, capsys: pytest.CaptureFixture[str]) -> None:
    gone = 2**22 - 3
    mine = segment(segments, "mine", pid=gone)
    theirs = segment(segments, "theirs", pid=gone)
    for written in (mine, theirs):
        written.poke(32, struct.pack("<Q", gone))
    give_away(theirs.path)
    assert main(["clean", "--segments", str(segments)]) == 0
    assert (mine.path.exists(), theirs.path.exists()) == (False, True)
    assert "theirs" not in capsys.readouterr().out
    assert main(["clean", "--segments", str(segments), "--all-users"]) == 0
    assert not theirs.path.exists()


@ROOT_ONLY
def test_m5_flight_recordings_of_others_are_left_out(segments: Path, capsys: pytest.CaptureFixture[str]) -> None:
    flight = FlightWriter(name="feed")
    flight.tick(new={0: FlightObject("instance", {"instance": "feed"}, {"messages_sent": 5})})
    path = segments / "feed.4711.flight"
    flight.write(path)
    give_away(path)
    assert main(["flight", "--list", "--segments", str(segments)]) == 0
    assert "no recordings" in capsys.readouterr().out
    for which in ("feed", str(path)):
        assert main(["flight", which, "--segments", str(segments)]) == 2
    assert f"another user (uid {NOBODY})" in capsys.readouterr().err
    assert main(["flight", "feed", "--segments", str(segments), "--all-users"]) == 0


FLIGHT_READER = """
import resource, sys
from pathlib import Path
from heliograph.monitor.flight.reader import read
from heliograph.monitor.errors import UserError
import numpy
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    read(Path(sys.argv[1]))
except UserError as error:
    print(error, file=sys.stderr)
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""


def test_m5_a_sparse_flight_recording_costs_its_reader_no_more_than_it_has(segments: Path) -> None:
    flight = FlightWriter(name="feed")
    flight.tick(new={0: FlightObject("instance", {"instance": "feed"}, {"messages_sent": 5})})
    path = segments / "feed.4711.flight"
    flight.write(path)
    chunk = 256 << 20
    (chunks_at,) = struct.unpack_from("<Q", path.read_bytes(), 80)
    with path.open("r+b") as file:
        file.truncate(chunks_at)
        file.truncate(chunks_at + chunk)
        for offset, data in (
            (16, struct.pack("<Q", chunks_at + chunk)),
            (88, struct.pack("<QI", chunk, 1)),
            (chunks_at, struct.pack("<QQ", 1, chunk - 64)),
        ):
            file.seek(offset)
            file.write(data)
    done = run(FLIGHT_READER, path)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < 32, done.stdout
    assert "more than the file has" in done.stderr


# ---- the exporter ----


@ROOT_ONLY
def test_m5_prometheus_sees_ones_own_under_its_name(segments: Path, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    segment(segments, "feed")
    give_away(segment(segments, "feed", pid=os.getpid(), product="evil").path)
    for options, names in (([], {b"feed"}), (["--all-users"], {b"feed", b"feed@uid65534"})):
        assert main(["export", "prometheus", "--once", "--interval", "0.1", "--segments", str(segments), *options]) == 0
        text = capsysbinary.readouterr().out
        up = [line for line in text.splitlines() if line.startswith(b"heliograph_node_up{")]
        assert {line.split(b'"')[1] for line in up} == names, text[:400]
