"""A store that returns catches up from its peers: kills, and peers with parts, dead, hostile or absent."""

from __future__ import annotations

import contextlib
import random
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeAlias

import pytest

from heliograph.engine import Instance, OptionError, _store
from heliograph.engine.store import catch_up
from heliograph.engine.store.files import segments as files
from heliograph.engine.store.protocol import NUMBER_AHEAD, Answer, Ask, Reading, answer
from heliograph.engine.store.remote import ask, runs_of
from heliograph.engine.store.server import Counts, StoreServer
from heliograph.engine.store.service import StoreService, address_of, listen
from heliograph.monitor.cli import main
from heliograph.monitor.segment import Segment
from tests.ports import free_port
from tests.stores import Kept, read

from .conftest import until
from .test_store_server import TOPIC, Load

Serve: TypeAlias = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def serve(segments: Path) -> Iterator[Serve]:
    """Starts `heliograph store serve` on a port for its peers; returns when it keeps. At the end it is killed."""
    running: list[subprocess.Popen[str]] = []

    def start(folder: Path, endpoint: str, port: int, *arguments: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "heliograph.monitor.cli", "store", "serve", str(folder), endpoint, TOPIC]
        process = subprocess.Popen(
            [*command, "-o", f"name={folder.name}", "--listen", f"127.0.0.1:{port}", *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        running.append(process)
        assert process.stderr
        assert process.stderr.readline().startswith(f"keeping {TOPIC} in {folder}")
        return process

    yield start
    for process in running:
        process.kill()
        process.communicate()


def kill(process: subprocess.Popen[str], port: int) -> None:
    """Kill a store; its service, a process of its own, ends soon after."""
    process.kill()
    process.wait()

    def is_free() -> bool:
        with socket.socket() as one:
            return one.connect_ex(("127.0.0.1", port)) != 0

    assert until(is_free)


def kept(folder: Path) -> list[tuple[int, bytes]]:
    """Number and payload of the messages in the files, by the independent reader."""
    return [(one.number, one.payload) for one in read(folder)]


def has(folder: Path, count: int) -> bool:
    """Whether the files have that many messages and none waits."""
    return sum(one.messages for one in files(folder)) >= count and not list(folder.glob("ahead/*.seg"))


def test_a_store_of_a_quorum_that_was_killed_ends_with_every_message(
    multicast: str, tmp_path: Path, serve: Serve, capsys: pytest.CaptureFixture[str]
) -> None:
    seed = random.SystemRandom().randrange(1 << 30)
    chance = random.Random(seed)
    names = ("one", "two", "three")
    ports = {name: free_port() for name in names}

    def start(name: str, *more: str) -> subprocess.Popen[str]:
        peers = [f"--peer=store://127.0.0.1:{ports[other]}" for other in names if other != name]
        return serve(tmp_path / name, multicast, ports[name], *peers, "--segment-bytes", "200k", *more)

    with Instance(name="source") as source:
        transmitter = source.transmitter(multicast, TOPIC, acks=2, send_window=256, linger=0.0)
        stores = {name: start(name) for name in names}
        load = Load(transmitter, 8_000, pause=0.02, size=100)
        time.sleep(chance.uniform(0.2, 0.5))
        victim = chance.choice(names)
        kill(stores[victim], ports[victim])
        behind = load.sent
        while load.sent < behind + 2_000:
            time.sleep(0.01)
        for _ in range(4):  # in the middle of its catch-up
            stores[victim] = start(victim, "--peer-rate", "200k")
            time.sleep(chance.uniform(0.1, 0.4))
            kill(stores[victim], ports[victim])
            assert main(["store", "verify", str(tmp_path / victim)]) == 0, seed
        stores[victim] = start(victim)
        load.join(60)
        assert load.sent == load.count, seed
        total = load.count

        def are_equal() -> bool:
            """A store that joined after the last message sees its hole with the next one."""
            nonlocal total
            if all(has(tmp_path / name, total) for name in names):
                return True
            transmitter.send((b"%08d" % total).ljust(100), timeout=10)
            total += 1
            return until(lambda: all(has(tmp_path / name, total) for name in names), seconds=1)

        assert until(are_equal, seconds=60), seed
        for process in stores.values():
            process.kill()
            process.wait()
    expected = [(number, (b"%08d" % number).ljust(100)) for number in range(total)]
    for name in names:
        assert kept(tmp_path / name) == expected, (seed, name)
        assert main(["store", "verify", str(tmp_path / name)]) == 0, seed


class Scene:
    """A source that has sent messages before the store joins, and directories of peers with some of them."""

    def __init__(self, folder: Path, endpoint: str, source: Instance, sent: int, **options: object) -> None:
        self.folder, self.endpoint, self.sent = folder, endpoint, 0
        self.transmitter = source.transmitter(endpoint, TOPIC, linger=0.0, **options)  # type: ignore[arg-type]
        gsi, port = self.transmitter.stream.split(":")
        self.gsi, self.port = bytes.fromhex(gsi), int(port)
        self.send(sent)
        self.transmitter.flush(timeout=10)

    def send(self, count: int) -> None:
        self.transmitter.send_many([b"%08d" % number for number in range(self.sent, self.sent + count)])
        self.sent += count

    def peer(self, name: str, *numbers: int) -> Path:
        """A store with these messages."""
        folder = self.folder / name
        folder.mkdir(exist_ok=True)
        messages = [Kept(TOPIC, 0, number, 1, 2, 0, b"%08d" % number) for number in numbers]
        _store.append(folder, self.gsi, self.port, "", messages, 1000, 20_000)
        return folder

    def store(self, *peers: str, name: str = "store") -> StoreServer:
        server = StoreServer(self.folder / name, peers=peers, batch_time=0.002, segment_bytes=20_000, name=name)
        server.keep(self.endpoint, TOPIC)
        server.step(0)
        return server

    def sees(self, server: StoreServer, seconds: float = 20.0, **wanted: int) -> bool:
        """Let the store work until its counts are the wanted ones; a source that is away sends nothing meanwhile."""
        end = time.monotonic() + seconds
        while any(getattr(server.counts(), name) != number for name, number in wanted.items()):
            server.step(0.005)
            if time.monotonic() > end:
                return False
        return True


def numbers(folder: Path) -> list[int]:
    found = kept(folder)
    assert all(payload == b"%08d" % number for number, payload in found)
    return [number for number, _ in found]


@pytest.fixture
def scene(multicast: str, tmp_path: Path, segments: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Scene]:
    monkeypatch.setattr(catch_up, "_FIRST_PAUSE", 0.05)
    monkeypatch.setattr(catch_up, "_LONGEST_PAUSE", 0.2)
    with Instance(name="source") as source:
        yield Scene(tmp_path, multicast, source, 1_000)


@contextlib.contextmanager
def offered(folder: Path, port: int = 0) -> Iterator[str]:
    """Serves a directory; gives the address."""
    listener = listen("127.0.0.1", port)
    service = StoreService(folder, listener)
    thread = threading.Thread(target=service.run)
    thread.start()
    try:
        yield address_of(listener)
    finally:
        service.close()
        thread.join()


def texts(segments: Path) -> list[str]:
    """Texts of the events of the store."""
    [path] = segments.glob("store*.helio")
    with Segment(path) as segment:
        return [one.text for one in segment.events().events]


def test_peers_with_parts_fill_what_they_can_and_the_rest_is_given_up_by_name(scene: Scene, segments: Path) -> None:
    one = scene.peer("one", *range(300), *range(600, 1_000), 1_004)
    two = scene.peer("two", *range(250, 500))
    with offered(one) as first, offered(two) as second, scene.store(first, second) as server:
        scene.send(10)
        assert scene.sees(server, fetched=500, holes=1)
        begun = time.monotonic()
        while time.monotonic() < begun + 0.5:  # the second peer may still get them
            server.step(0.01)
        assert (server.counts().fetched, server.counts().given_up) == (500, 0)
        scene.peer("two", *range(500, 510), 900)  # and gets some; now both are beyond the rest
        assert scene.sees(server, holes=0, fetched=910, given_up=90, kept=10)
        assert until(lambda: server.step(0.01) >= 0 and any("caught up" in one for one in texts(segments)))
        events = texts(segments)
    assert numbers(scene.folder / "store") == [*range(510), *range(600, 1_010)]
    assert not list((scene.folder / "store" / "ahead").glob("*.seg"))
    assert any("messages 0 to 999 are missing" in text for text in events), events
    assert any("no other store has messages 510 to 599" in text for text in events), events


def test_a_topic_begins_where_a_peer_has_it_first_and_that_is_no_loss(scene: Scene, tmp_path: Path) -> None:
    later = scene.peer("later", *range(200, 1_000))
    with (
        offered(later) as address,
        offered(scene.peer("empty")) as nothing,
        scene.store(nothing, address) as server,
    ):
        scene.send(10)
        assert scene.sees(server, kept=10, fetched=800, holes=0, given_up=0, fetch_failures=0)
    assert numbers(tmp_path / "store") == list(range(200, 1_010))


def test_a_store_is_no_peer_of_itself_and_without_peers_the_hole_is_given_up(
    scene: Scene, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    port = free_port()
    with scene.store(f"store://127.0.0.1:{port}") as server, offered(tmp_path / "store", port) as address:
        scene.send(10)
        assert scene.sees(server, kept=10, holes=1)
        assert until(lambda: server.step(0.01) >= 0 and "is this store itself" in server.peer_trouble())
        assert (server.counts().given_up, server.counts().fetched) == (0, 0)
        # Readers get no message before the hole is filled. Peers get what waits.
        reading = Reading(scene.gsi, scene.port, NUMBER_AHEAD, 0, 2**64 - 1, TOPIC)
        assert [one.number for run in runs_of(address, reading) for one in run] == list(range(1_000, 1_010))
    assert not list((tmp_path / "store").glob("*.seg"))
    assert main(["store", "verify", str(tmp_path / "store")]) == 0
    assert "; 10 messages wait for earlier ones" in capsys.readouterr().out
    [path] = (tmp_path / "store" / "ahead").glob("*.seg")
    data = path.read_bytes()
    path.write_bytes(data[:100] + b"x" + data[101:] + data[-300:])
    assert main(["store", "verify", str(tmp_path / "store")]) == 1
    assert "ahead: stream" in capsys.readouterr().out
    path.write_bytes(data)
    with scene.store() as server:
        scene.send(10)
        assert scene.sees(server, kept=10)
    assert numbers(tmp_path / "store") == list(range(1_000, 1_020))


HOSTILE = [
    b"",
    b"HTTP/1.1 200 OK\r\n\r\n",
    struct.pack(">4sBBHI", b"HSAN", 1, 1, 0, 0xFFFFFFFF),  # 4 GiB
    struct.pack(">4sBBHI", b"HSAN", 1, 1, 0, 1 << 28) + b"HBAT",  # and then nothing
    struct.pack(">4sBBHI", b"HSAN", 2, 1, 0, 0),
    struct.pack(">4sBBHI", b"HSAN", 1, 9, 0, 0),
    answer(Answer.DATA, b"HBAT" + b"\xff" * 200),
    answer(Answer.DATA, b""),
    answer(Answer.REFUSED, b"\xff\x1b[2J"),
    answer(Answer.END),  # it has nothing: no confirmation that there is nothing
]


@contextlib.contextmanager
def hostile(answers: Callable[[int], bytes]) -> Iterator[tuple[str, list[int]]]:
    """A peer that gives the n-th connection these bytes and ends it; the address, and the connections so far."""
    listener = socket.create_server(("127.0.0.1", 0))
    listener.settimeout(0.1)
    stopping, served = threading.Event(), [0]

    def serve() -> None:
        while not stopping.is_set():
            with contextlib.suppress(OSError):
                connection, _ = listener.accept()
                with connection:
                    connection.settimeout(1)
                    connection.recv(1 << 16)
                    served[0] += 1
                    connection.sendall(answers(served[0] - 1))

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield f"store://127.0.0.1:{listener.getsockname()[1]}", served
    finally:
        stopping.set()
        thread.join()
        listener.close()


def test_hostile_and_absent_peers_lose_nothing_and_are_tried_again(scene: Scene, tmp_path: Path) -> None:
    whole = scene.peer("whole", *range(1_000))
    port = free_port()
    with (
        hostile(lambda number: HOSTILE[number // 2 % len(HOSTILE)]) as (enemy, served),
        scene.store(enemy, f"store://127.0.0.1:{port}") as server,
    ):
        scene.send(10)
        assert until(lambda: server.step(0.005) >= 0 and served[0] > 2 * len(HOSTILE), seconds=30)
        counts = server.counts()
        assert (counts.holes, counts.fetched, counts.given_up, counts.kept) == (1, 0, 0, 10)
        assert counts.fetch_failures > len(HOSTILE)
        assert f"store://127.0.0.1:{port} cannot be read" in server.peer_trouble()
        with offered(whole, port):
            assert scene.sees(server, holes=0, fetched=1_000)
    assert numbers(tmp_path / "store") == list(range(1_010))


def test_a_peer_that_dies_in_the_middle_is_continued_from_and_what_waits_is_acknowledged(
    scene: Scene, tmp_path: Path
) -> None:
    whole = scene.peer("whole", *range(1_000))
    with offered(whole) as honest:
        reading = Reading(scene.gsi, scene.port, NUMBER_AHEAD, 0, 999, TOPIC).encode()
        data = b"".join(answer(Answer.DATA, one) for one in ask(honest, Ask.READ, reading))
    chance = random.Random(17)
    cuts = sorted(chance.randrange(len(data)) for _ in range(4))
    with (
        # It identifies itself, and then sends ever more before it dies.
        hostile(lambda number: answer(Answer.END) if number % 2 == 0 else data[: cuts[min(number // 2, 3)]]) as (
            peer,
            _,
        ),
        scene.store(peer) as server,
    ):
        scene.send(10)
        assert until(lambda: server.step(0.005) >= 0 and server.counts().fetch_failures >= 4, seconds=30)
        assert [one.number for one in scene.transmitter.acks()] == [1_009]
    before = server.counts().fetched
    assert 0 < before < 1_000
    assert numbers(tmp_path / "store") == list(range(before))
    with offered(whole) as honest, scene.store(honest) as server:  # it waited in the files
        assert scene.sees(server, holes=0, fetched=1_000 - before)
    assert numbers(tmp_path / "store") == list(range(1_010))


def test_two_stores_that_lose_packets_fill_each_other_and_end_equal(
    multicast: str, scene: Scene, tmp_path: Path
) -> None:
    names, ports = ("left", "right"), {"left": free_port(), "right": free_port()}
    peers = {"left": f"store://127.0.0.1:{ports['right']}", "right": f"store://127.0.0.1:{ports['left']}"}
    with contextlib.ExitStack() as parts:
        servers = {}
        for name in names:
            servers[name] = parts.enter_context(StoreServer(tmp_path / name, peers=[peers[name]], batch_time=0.002))
            servers[name].keep(multicast, TOPIC, nak="off", inject_loss=0.05)
            parts.enter_context(offered(tmp_path / name, ports[name]))

        def all_see(condition: Callable[[Counts], bool], seconds: float = 20.0) -> bool:
            def step() -> bool:
                for server in servers.values():
                    server.step(0.002)
                return all(condition(server.counts()) for server in servers.values())

            return until(step, seconds=seconds)

        assert all_see(lambda counts: counts.received >= 0)
        for _ in range(50):
            scene.send(10)
            assert all_see(lambda counts: True)
        for _ in range(100):  # until both have had one at the end
            scene.send(1)
            all_see(lambda counts: True)
        assert all_see(lambda counts: counts.holes == 0 and counts.lost > 0 and counts.fetched > 0)
        assert all(server.counts().given_up < 100 for server in servers.values())
    one, other = numbers(tmp_path / "left"), numbers(tmp_path / "right")
    assert len(one) > 500
    assert one == sorted(set(one))
    assert one[: len(other)] == other[: len(one)]  # the last ones may be lost to one of them


def test_mistakes_about_peers_are_named(tmp_path: Path, multicast: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(OptionError, match="store://HOST:PORT, not 'http://x'"):
        StoreServer(tmp_path / "store", peers=["http://x"])
    with (
        StoreServer(tmp_path / "store", peers=["store://127.0.0.1:9"]) as server,
        pytest.raises(OptionError, match="payload=raw"),
    ):
        server.keep(multicast, TOPIC, payload="raw")
    with pytest.raises(SystemExit):
        main(["store", "serve", str(tmp_path / "store"), multicast, TOPIC, "--peer", "nowhere"])
    assert "not 'nowhere'" in capsys.readouterr().err
