"""The store server: real processes that are killed, a quorum of stores, limits, mistakes, and what it shows."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from heliograph.engine import Instance, OptionError, Transmitter, UsageError
from heliograph.engine.store.server import StoreServer
from heliograph.monitor.segment import Segment
from tests.stores import read

from .conftest import until

TOPIC = "ORDERS"
Serve: TypeAlias = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def serve(segments: Path) -> Iterator[Serve]:
    """Starts `heliograph store serve`; returns when it keeps. What still runs at the end is killed."""
    running: list[subprocess.Popen[str]] = []

    def start(folder: Path, endpoint: str, *arguments: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "heliograph.monitor.cli", "store", "serve", str(folder), endpoint, TOPIC]
        process = subprocess.Popen(
            [*command, "-o", f"name={folder.name}", "--batch-time", "0.005s", *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        running.append(process)
        assert process.stderr
        assert process.stderr.readline() == f"keeping {TOPIC} in {folder}\n"
        return process

    yield start
    for process in running:
        process.kill()
        process.communicate()


def stop(process: subprocess.Popen[str]) -> tuple[str, str]:
    """Output and errors of a server that was told to stop."""
    process.terminate()
    out, errors = process.communicate(timeout=30)
    assert process.returncode == 0, errors
    return out, errors


def numbers(folder: Path) -> list[int]:
    return [one.number for one in read(folder)]


class Load(threading.Thread):
    """Sends numbered messages; `send` waits while acknowledgements are missing."""

    def __init__(self, transmitter: Transmitter, count: int, pause: float = 0.0, size: int = 8) -> None:
        super().__init__()
        self.transmitter, self.count, self.pause, self.size, self.sent = transmitter, count, pause, size, 0
        self.start()

    def run(self) -> None:
        for number in range(self.count):
            self.transmitter.send((b"%08d" % number).ljust(self.size), timeout=60)
            self.sent = number + 1
            if number % 50 == 0:
                time.sleep(self.pause)


def test_a_killed_store_has_each_message_once_when_it_returns(multicast: str, tmp_path: Path, serve: Serve) -> None:
    seed = random.SystemRandom().randrange(1 << 30)
    chance = random.Random(seed)
    folder = tmp_path / "store"
    with Instance(name="source") as source:
        transmitter = source.transmitter(multicast, TOPIC, acks=1, send_window=256, linger=0.0)
        process = serve(folder, multicast)
        load = Load(transmitter, 12_000, pause=0.02)
        for _ in range(4):
            time.sleep(chance.uniform(0.05, 0.6))
            process.kill()
            process.wait()
            process = serve(folder, multicast)
        load.join(120)
        assert load.sent == load.count, seed
        transmitter.wait_acked(1, timeout=30)
        process.kill()  # nothing is acknowledged that is not in the files
        process.wait()
    assert numbers(folder) == list(range(load.count)), seed


def test_two_of_three_stores_have_what_is_acknowledged_when_one_dies(
    multicast: str, tmp_path: Path, serve: Serve
) -> None:
    seed = random.SystemRandom().randrange(1 << 30)
    chance = random.Random(seed)
    folders = [tmp_path / name for name in ("one", "two", "three")]
    with Instance(name="source") as source:
        transmitter = source.transmitter(multicast, TOPIC, acks=2, send_window=256, linger=0.0)
        stores = [serve(folder, multicast) for folder in folders]
        load = Load(transmitter, 6_000, pause=0.005)
        time.sleep(chance.uniform(0.05, 0.5))
        victim = chance.randrange(3)
        stores[victim].kill()
        load.join(60)
        assert load.sent == load.count, seed
        transmitter.wait_acked(2, timeout=30)
        for process in stores:
            process.kill()
            process.wait()
    for folder in folders:
        kept = numbers(folder)
        assert kept == sorted(set(kept)), seed
        assert folder == folders[victim] or kept == list(range(load.count)), seed


def test_a_store_at_its_limit_stops_the_source_until_it_can_write(multicast: str, tmp_path: Path, serve: Serve) -> None:
    resource = pytest.importorskip("resource")
    folder = tmp_path / "store"
    with Instance(name="source") as source:
        transmitter = source.transmitter(multicast, TOPIC, acks=1, send_window=64, submit_queue=65536, linger=0.0)
        process = serve(folder, multicast)
        resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (100_000, resource.RLIM_INFINITY))
        load = Load(transmitter, 1_000, size=1_000)
        assert process.stderr
        assert "File too large" in process.stderr.readline()
        stuck = load.sent
        assert stuck < load.count
        resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        load.join(60)
        assert load.sent == load.count
        transmitter.wait_acked(1, timeout=30)
        _, errors = stop(process)
    assert "the store writes again" in errors
    assert "1,000 messages kept" in errors
    assert numbers(folder) == list(range(load.count))


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_store_goes_on_while_the_disk_of_its_log_is_full(multicast: str, tmp_path: Path, segments: Path) -> None:
    folder = tmp_path / "store"
    command = [sys.executable, "-m", "heliograph.monitor.cli", "store", "serve", str(folder), multicast, TOPIC]
    with Path("/dev/full").open("w") as log, subprocess.Popen(command, stderr=log) as process:
        with Instance(name="source") as source:
            transmitter = source.transmitter(multicast, TOPIC, acks=1, linger=0.0)
            Load(transmitter, 100).join(60)
            transmitter.wait_acked(1, timeout=60)
        assert process.poll() is None
        process.kill()
    assert numbers(folder) == list(range(100))


def test_the_totals_and_the_statistics_agree(multicast: str, tmp_path: Path, segments: Path, serve: Serve) -> None:
    folder = tmp_path / "kept"
    process = serve(folder, multicast, "--json")
    with Instance(name="source") as source, source.transmitter(multicast, TOPIC, acks=1, linger=0.0) as transmitter:
        transmitter.send_many([b"x" * 64] * 5_000)
        transmitter.wait_acked(1, timeout=30)
        [path] = segments.glob("kept*.helio")

        def objects() -> dict[str, dict[str, object]]:
            with Segment(path) as segment:
                return {o.scope: dict(o.values) for o in segment.objects(histograms=False)}

        assert until(lambda: objects().get("store_stream", {}).get("messages_kept") == 5_000)
        shown = objects()
        assert shown["store_stream"]["durable_position"] == 5_000
        assert shown["store"]["streams"] == 1
        assert shown["store"]["segments"] == 1
        assert int(str(shown["store"]["writes"])) < 1_000  # in batches
        size = sum(path.stat().st_size for path in folder.glob("*.seg"))
        assert shown["store"]["segment_bytes"] == size
    out, _ = stop(process)
    totals = json.loads(out)
    assert (totals["kept"], totals["received"], totals["waiting"], totals["blocked"]) == (5_000, 5_000, 0, "")
    assert totals["bytes_kept"] == 5_000 * 64


def test_a_store_without_acknowledgements_costs_the_source_nothing_to_wait_for(multicast: str, tmp_path: Path) -> None:
    with StoreServer(tmp_path / "store", fsync="never") as server, Instance(name="source") as source:
        server.keep(multicast, TOPIC)
        server.keep(multicast, "OTHER")
        one, other = (source.transmitter(multicast, topic, linger=0.0) for topic in (TOPIC, "OTHER"))
        one.send_many([b"a"] * 100)
        other.send_many([b"b"] * 50)
        end = time.monotonic() + 20
        while server.counts().kept < 150 and time.monotonic() < end:
            server.step(0.05)
    counts = server.counts()
    assert (counts.kept, counts.waiting, counts.lost) == (150, 0, 0)
    kept = read(tmp_path / "store")
    assert [one.payload for one in kept if one.topic == TOPIC] == [b"a"] * 100
    assert [one.number for one in kept if one.topic == "OTHER"] == list(range(50))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"fsync": "sometimes"}, "fsync is one of batch, always, never, not 'sometimes'"),
        ({"batch_bytes": 0}, "batch_bytes is from 1 to 134,217,728, not 0"),
        ({"batch_time": -1.0}, "batch_time is from 0 to 1,000,000,000, not -1.0"),
        ({"batch_time": float("nan")}, "batch_time is from 0 to 1,000,000,000, not nan"),
        ({"segment_bytes": -1}, "segment_bytes is from 1 to .*, not -1"),
        ({"retain_bytes": -1}, "retain_bytes is from 0 to .*, not -1"),
        ({"retain_time": float("inf")}, "retain_time is from 0 to 1,000,000,000, not inf"),
    ],
)
def test_a_value_out_of_range_is_refused_before_anything_is_made(
    tmp_path: Path, options: dict[str, Any], words: str
) -> None:
    with pytest.raises(OptionError, match=words):
        StoreServer(tmp_path / "store", **options)
    assert not (tmp_path / "store").exists()


def test_mistakes_are_named(tmp_path: Path, multicast: str, capfd: pytest.CaptureFixture[str]) -> None:
    from heliograph.monitor.cli import main

    with StoreServer(tmp_path / "a", name="first") as server:
        with pytest.raises(UsageError, match="another process writes the store"):
            StoreServer(tmp_path / "a", name="second")
        with pytest.raises(UsageError, match="no topics"):
            server.step(0)
    with pytest.raises(ValueError, match="closed"):
        server.step(0)
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "store.lock").write_text("heliograph store 2\n")
    with pytest.raises(UsageError, match="not a store of version 1"):
        StoreServer(tmp_path / "b")
    assert main(["store", "serve", str(tmp_path / "c"), "nowhere://x", TOPIC]) == 2
    assert "nowhere" in capfd.readouterr().err
    assert main(["store", "serve", str(tmp_path / "none" / "c"), multicast, TOPIC]) == 2
    assert f"cannot open the store {tmp_path / 'none' / 'c'}: No such file" in capfd.readouterr().err
    for wrong in (["--retain-time", "7"], ["--batch-bytes", "many"]):
        with pytest.raises(SystemExit):
            main(["store", "serve", str(tmp_path / "d"), multicast, TOPIC, *wrong])
        assert wrong[1] in capfd.readouterr().err


def test_ctrl_c_ends_it_as_sigterm_does(multicast: str, tmp_path: Path, segments: Path, serve: Serve) -> None:
    process = serve(tmp_path / "store", multicast)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=30)
    assert process.returncode == 0
    assert errors == "0 messages kept, 19 bytes written\n"
    assert not list(segments.glob("*.helio"))
