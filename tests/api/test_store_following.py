"""Receivers with the options recover=store, join=store and durable: what live lacks comes from stores, in order."""

from __future__ import annotations

import random
import re
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from heliograph.engine import ClosedError, Error, Instance, Loss, Message, OptionError, Receiver, UsageError, _store
from heliograph.engine.catalogue import identities
from heliograph.engine.store.follower import Begin, StoreFollower
from heliograph.engine.store.following import FollowingReceiver
from heliograph.engine.store.subscriptions import subscriptions
from heliograph.monitor.model import Snapshot
from heliograph.monitor.sampler import Sampler
from tests.ports import free_port
from tests.stores import Kept
from tests.wire.decoder import decode_packet

from .conftest import Script, until
from .test_reconciliation import Tap
from .test_store_follower import kept

TOPIC = "ORDERS"
GSI, STREAM = bytes(range(1, 7)), "010203040506:9"
EXAMPLE = Path(__file__).resolve().parents[2] / "deploy/examples/durable.py"
WORLDS, SEAMS = 50, 20
JOINS = 50
QUIET: dict[str, Any] = {"heartbeat_max": 0.05, "ambient_interval": 0.05}


class Paper:
    """A receiver on paper: lists of live numbers, each with the losses that are reported after it."""

    topic = TOPIC

    def __init__(self, script: list[tuple[list[int], list[Loss]]]) -> None:
        self.script = script
        self.lost: list[Loss] = []

    def receive(self, timeout: float | None = None, limit: int = 256) -> list[Any]:
        if not self.script:
            return []
        numbers, self.lost = self.script.pop(0)
        return [OnPaper(number) for number in numbers]

    def losses(self) -> list[Loss]:
        lost, self.lost = self.lost, []
        return lost


class OnPaper:
    """A live message on paper."""

    stream = STREAM

    def __init__(self, number: int) -> None:
        self.number = number


def runs_of(numbers: list[int]) -> Iterator[tuple[int, int]]:
    """First and last of numbers that follow each other."""
    first = 0
    for at in range(1, len(numbers) + 1):
        if at == len(numbers) or numbers[at] != numbers[at - 1] + 1:
            yield numbers[first], numbers[at - 1]
            first = at


def script_of(chance: random.Random, begin: int, last: int) -> tuple[list[tuple[list[int], list[Loss]]], set[int]]:
    """Lists of live messages from `begin` to `last`, some lost and reported, as an engine gives them; what is lost."""
    script, lost, at = [], set(), begin
    while at <= last:
        end = min(last + 1, at + chance.randrange(1, 12))
        live = [number for number in range(at, end) if chance.random() < 0.7]
        gone = [number for number in range(at, end) if number not in live]
        lost |= set(gone)
        losses = [Loss(first, until - first + 1, STREAM) for first, until in runs_of(gone)]
        script.append((live, losses if chance.random() < 0.9 else []))
        at = end
    script.append(([last + 1], []))
    return script, lost


def beginning(script: list[tuple[list[int], list[Loss]]]) -> int:
    """The first message that a receiver was to get: the first live one, or a loss reported before it."""
    reported: list[int] = []
    for live, losses in script:
        reported += [loss.first for loss in losses]
        if live:
            return min([live[0], *reported])
        if reported:
            return reported[0]
    raise AssertionError("a script ends with a live message")


def test_a_thousand_random_seams_give_each_message_once_or_as_a_loss(tmp_path: Path) -> None:
    """Two stores with parts of a stream, a receiver that loses some: what one has comes in order, the rest is lost."""
    seed = random.SystemRandom().randrange(1 << 30)
    chance = random.Random(seed)
    for world in range(WORLDS):
        total = chance.randrange(20, 80)
        held = [sorted(n for n in range(total) if chance.random() < share) for share in (0.9, chance.random())]
        folders = []
        for i, numbers in enumerate(held):
            folders.append(tmp_path / f"{world}-{i}")
            folders[-1].mkdir()
            rows = [Kept(TOPIC, 0, n, n + 1, n + 1, 0, b"%d" % n) for n in numbers]
            (folders[-1] / "store.lock").write_text("heliograph store 1\n")
            if rows:
                _store.append(folders[-1], GSI, 9, "", rows, 200, 900)
        for seam in range(SEAMS):
            begin = chance.randrange(total)
            script, lost = script_of(chance, begin, total)
            joins = chance.random() < 0.5
            expected = beginning(script)
            paper = Paper(script)
            follower = StoreFollower(
                folders,
                paper,
                positions={STREAM: chance.randrange(begin + 1)} if joins else None,
                begin=Begin("live"),
                wait=0.0,
                fails=False,
            )
            start = follower.positions().get(STREAM)
            numbers: list[int] = []
            while (taken := follower.receive(timeout=0.0, limit=chance.choice([1, 7, 256]))) or paper.script:
                numbers += [one.number for one in taken]
            where = (seed, world, seam)
            missing = {n for loss in follower.losses() for n in range(loss.first, loss.last + 1)}
            first = min([*numbers, *missing]) if start is None else start
            assert start is not None or first == expected, where
            assert numbers == sorted(set(numbers)), where
            assert sorted([*numbers, *missing]) == list(range(first, total + 2)), where
            has = set(held[0]) | set(held[1])
            assert not missing & has, where
            assert joins or missing <= lost, where


class Wire(Tap):
    """A tap that can also be silent."""

    def swallow(self) -> int:
        """Pass nothing on of what came; returns how many data packets came."""
        count = 0
        with suppress(BlockingIOError):
            while True:
                count += decode_packet(self.socket.recv(65536)).kind == "ODATA"
        return count


@contextmanager
def place(tmp_path: Path, mode: str = "thread", **options: Any) -> Iterator[Place]:
    """A source in mode poll with a store and, behind a tap, a desk."""
    tap = Wire()
    port = free_port()
    folder = tmp_path / "store"
    with (
        kept(folder, f"rmm+unicast://127.0.0.1:{port}"),
        Instance(name="source") as source,
        Instance(name="desk", mode=mode) as desk,  # type: ignore[arg-type]
    ):
        endpoint = f"rmm+unicast://127.0.0.1:{port},127.0.0.1:{tap.port}"
        transmitter = source.transmitter(endpoint, TOPIC, acks=1, linger=0.0, **QUIET, **options)
        yield Place(tap, desk, folder, transmitter)
    tap.socket.close()


class Place:
    """What is between a source and a receiver: packets pass, or are lost."""

    def __init__(self, tap: Wire, desk: Instance, folder: Path, transmitter: Any) -> None:
        self.tap, self.desk, self.folder, self.transmitter = tap, desk, folder, transmitter
        self.sent = 0

    def receiver(self, **options: Any) -> Receiver:
        endpoint = f"rmm+unicast://127.0.0.2:{self.tap.port}"
        return self.desk.receiver(endpoint, TOPIC, **{"stores": self.folder, "gro": "off", **options})

    def publish(self, count: int, *, lose: bool = False, cut: bool = False) -> None:
        """Send messages of a packet each; the store gets all.

        To the desk they are lost, or it is cut off and gets no heartbeats either.
        """

        def step() -> int:
            return self.tap.swallow() if cut else self.tap.pass_on(lose=lose)

        for _ in range(count):
            self.transmitter.send(b"%d" % self.sent)
            self.sent += 1
            while step() == 0:
                time.sleep(0)
        self.transmitter.wait_acked(1, timeout=60)
        step()

    def take(self, receiver: Receiver, count: int) -> list[Message]:
        """The next messages, while what is no data passes."""
        taken: list[Message] = []
        end = time.monotonic() + 30
        while len(taken) < count and time.monotonic() < end:
            self.tap.pass_on(lose=False)
            taken += receiver.receive(timeout=0.02, limit=count - len(taken))
        return taken


def account(snapshot: Snapshot, scope: str = "follower") -> dict[str, int]:
    (values,) = (item.values for owner, item in snapshot.of(scope) if owner.name == "desk")
    for one in identities():
        if one.scope == "follower" and scope == "follower":
            left, right = (
                sum(term.sign * (values[term.cell] if term.cell else term.number) for term in terms)
                for terms in (one.left, one.right)
            )
            assert left == right, one.help
    return dict(values)


@pytest.mark.parametrize("mode", ["thread", "poll"])
def test_an_outage_longer_than_the_history_is_recovered_from_the_store(
    mode: str, tmp_path: Path, segments: Path
) -> None:
    """History of 100 packets, outage of 1,000: the source repairs nothing, and nothing is lost."""
    with place(tmp_path, mode, send_window=100, history_time=0.2) as here, Sampler(segments) as sampler:
        with here.receiver(recover="store") as receiver:
            assert type(receiver) is FollowingReceiver
            here.publish(10)
            before = here.take(receiver, 10)
            here.publish(1000, cut=True)
            time.sleep(0.3)  # the history has none of them
            here.tap.swallow()
            here.publish(50)
            after = here.take(receiver, 1050)
            assert receiver.losses() == []
            receiver.receive(timeout=0.0)
            snapshot = sampler.sample()
        assert [one.data for one in before + after] == [b"%d" % number for number in range(1060)]
        assert [one.number for one in after] == list(range(10, 1060))
        assert all(one.recovered for one in after[:1000])
        assert {one.stream for one in after} == {here.transmitter.stream}
        values = account(snapshot)
        # A packet without messages that is missing too may hold up those behind it; then the store has them first.
        stored = values["messages_stored_loss"]
        assert 1000 <= stored <= 1050
        assert (values["messages_covered"], values["messages_live"]) == (1060, 1060 - stored)
        assert (values["messages_lost"], values["next_message"]) == (0, 1060)
        (stream,) = (item.values for owner, item in snapshot.of("tx_stream") if owner.name == "source")
        assert stream["repair_packets"] == 0
        told = [event for event in snapshot.events if event.name == "store_recovered"]
        assert sum(event.arguments["messages"] for event in told) == stored


def test_the_last_messages_of_a_silent_stream_come_from_the_store(tmp_path: Path, segments: Path) -> None:
    with place(tmp_path) as here, here.receiver(recover="store", nak="off") as receiver:
        here.publish(5)
        here.publish(7, lose=True)  # a heartbeat shows that they are missing
        assert [one.number for one in here.take(receiver, 12)] == list(range(12))
        assert receiver.losses() == []


def test_a_slow_receiver_diverts_to_the_store_and_comes_back(tmp_path: Path, segments: Path) -> None:
    with (
        place(tmp_path) as here,
        here.receiver(recover="store", overflow="drop_newest", queue_messages=100) as receiver,
        Sampler(segments) as sampler,
    ):
        here.publish(1000)
        assert until(lambda: account(sampler.sample(), "receiver")["messages_delivered"] == 1000)
        here.publish(1)  # behind the gap
        assert [one.number for one in here.take(receiver, 1001)] == list(range(1001))
        here.publish(20)
        assert not any(one.recovered for one in here.take(receiver, 20))
        assert receiver.losses() == []
        receiver.receive(timeout=0.0)
        assert account(sampler.sample())["messages_stored_loss"] >= 900


def test_messages_that_no_store_gives_in_time_are_lost_and_reported(tmp_path: Path, segments: Path) -> None:
    away = f"store://127.0.0.1:{free_port()}"
    options = {"recover": "store", "stores": away, "store_wait": 0.3, "nak": "off"}
    with place(tmp_path) as here, here.receiver(**options) as receiver, Sampler(segments) as sampler:
        for _ in range(3):
            here.publish(2)
            here.publish(3, lose=True)
        here.publish(1)
        begin = time.monotonic()
        numbers = [one.number for one in here.take(receiver, 7)]
        assert 0.3 <= time.monotonic() - begin < 10
        assert numbers == [0, 1, 5, 6, 10, 11, 15]
        stream = here.transmitter.stream
        assert receiver.losses() == [Loss(first, 3, stream) for first in (2, 7, 12)]
        assert receiver.losses() == []
        receiver.receive(timeout=0.0)
        snapshot = sampler.sample()
        values = account(snapshot)
        assert (values["messages_lost"], values["messages_live"], values["messages_covered"]) == (9, 7, 16)
        assert values["store_failures"] > 0
        events = [event for event in snapshot.events if event.name == "store_lacks_messages"]
        assert sum(event.arguments["messages"] for event in events) == 9
        assert any(away in event.text for event in snapshot.events if event.name == "store_unreadable")


def test_late_joiners_under_continuous_publishing(multicast: str, tmp_path: Path) -> None:
    """Fifty seams on real sockets, half of them with losses that only the store has."""
    folder = tmp_path / "store"
    ends = threading.Event()
    chance = random.Random(7)
    with kept(folder, multicast), Instance(name="source") as source, Instance(name="desk") as desk:
        transmitter = source.transmitter(multicast, TOPIC, acks=1, linger=0.0)
        sent = 0

        def publish() -> None:
            nonlocal sent
            while not ends.wait(0.002):
                transmitter.send_many([b"x"] * 10, timeout=10)
                sent += 10

        thread = threading.Thread(target=publish)
        thread.start()
        try:
            assert until(lambda: sent >= 100)
            transmitter.wait_acked(1, timeout=10)
            for seam in range(JOINS):
                options: dict[str, Any] = {"inject_loss": 0.2, "nak": "off"} if seam % 2 else {}
                begin = chance.choice([None, chance.randrange(100)])
                options |= {} if begin is None else {"join_from": str(begin)}
                with desk.receiver(multicast, TOPIC, join="store", stores=[folder], **options) as receiver:
                    due = begin or 0
                    end = sent + 100
                    while due < end:
                        taken = receiver.receive(timeout=10, limit=1000)
                        assert [one.number for one in taken] == list(range(due, due + len(taken))), seam
                        assert taken, seam
                        due += len(taken)
                    assert receiver.losses() == [], seam
        finally:
            ends.set()
            thread.join()


def test_joining_from_a_time_begins_with_what_the_store_received_then(tmp_path: Path, segments: Path) -> None:
    with place(tmp_path) as here:
        here.publish(20)
        since = time.time()
        here.publish(20)
        with here.receiver(
            join="store", join_from=time.strftime("%FT%T", time.localtime(since)) + f".{int(since % 1 * 1e6):06}"
        ) as receiver:
            assert [one.number for one in here.take(receiver, 20)] == list(range(20, 40))
            here.publish(3)
            assert [one.number for one in here.take(receiver, 3)] == [40, 41, 42]


def test_a_durable_receiver_gets_exactly_what_it_missed_and_then_live(
    multicast: str, tmp_path: Path, segments: Path
) -> None:
    folder = tmp_path / "store"
    options: dict[str, Any] = {"durable": "desk-1", "stores": [folder]}
    with kept(folder, multicast), Instance(name="source") as source:
        transmitter = source.transmitter(multicast, TOPIC, acks=1, linger=0.0)

        def publish(first: int, last: int) -> None:
            transmitter.send_many([b"%d" % number for number in range(first, last)], timeout=60)
            transmitter.wait_acked(1, timeout=60)

        def take(receiver: Receiver, first: int, last: int) -> None:
            due = first
            while due < last:
                taken = receiver.receive_bytes(timeout=20, limit=min(4096, last - due))
                assert taken == [b"%d" % number for number in range(due, due + len(taken))]
                assert taken
                due += len(taken)

        publish(0, 50)
        with Instance(name="desk") as desk, desk.receiver(multicast, TOPIC, **options) as receiver:
            take(receiver, 0, 30)
        publish(50, 100_000)
        with Instance(name="elsewhere") as desk, desk.receiver(multicast, TOPIC, **options) as receiver:
            take(receiver, 30, 100_000)
            publish(100_000, 100_100)
            take(receiver, 100_000, 100_100)
    (saved,) = subscriptions(folder)
    assert (saved.name, saved.positions) == ("desk-1", {transmitter.stream: 100_100})


def test_the_example_continues_where_it_was_stopped(
    multicast: str, tmp_path: Path, segments: Path, script: Script
) -> None:
    folder = tmp_path / "store"
    with kept(folder, multicast), Instance(name="source") as source:
        transmitter = source.transmitter(multicast, TOPIC, acks=1, linger=0.0)

        def run(first: int, last: int) -> None:
            transmitter.send_many([b"%d" % number for number in range(first, last)])
            transmitter.wait_acked(1, timeout=30)
            process = script(EXAMPLE.read_text(encoding="utf-8"), multicast, str(folder))
            assert process.stdout
            lines = [process.stdout.readline() for _ in range(first, last)]
            assert lines == [f"{number} {number} \n" for number in range(first, last)]
            assert until(lambda: subscriptions(folder)[0].positions == {transmitter.stream: last}, seconds=30)
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=30)

        run(0, 300)
        run(300, 600)


def test_a_durable_receiver_that_fails_repeats_what_it_was_not_done_with(tmp_path: Path, segments: Path) -> None:
    options = {"durable": "desk-1"}
    with place(tmp_path) as here:
        here.publish(20)

        def fail() -> None:
            with here.receiver(**options) as receiver:
                assert len(receiver.receive(timeout=10, limit=8)) == 8
                assert [one.number for one in receiver.receive(timeout=10, limit=4)] == [8, 9, 10, 11]
                raise KeyError("the application fails")

        with pytest.raises(KeyError):
            fail()
        with here.receiver(**options) as receiver:
            assert next(receiver).number == 8  # those before were done when the next were asked for
            assert next(receiver).number == 9
        with here.receiver(ack="app", **options) as receiver:
            taken = receiver.receive(timeout=10, limit=10)
            assert [one.number for one in taken] == list(range(10, 20))
            receiver.acknowledge(taken[4])
        with here.receiver(**options) as receiver:
            assert receiver.receive(timeout=10)[0].number == 15


def test_a_durable_subscription_belongs_to_who_opened_it_last(tmp_path: Path, segments: Path) -> None:
    with place(tmp_path) as here, here.receiver(durable="desk-1") as first:
        here.publish(600)
        assert len(first.receive(timeout=10, limit=300)) == 300
        with here.receiver(durable="desk-1") as second:
            with pytest.raises(UsageError, match="another subscriber has taken over the subscription desk-1"):
                first.receive(timeout=0)
            with pytest.raises(UsageError, match="taken over"):
                first.close()
            assert first.closed
            first.close()
            assert [one.number for one in here.take(second, 600)] == list(range(600))


def test_each_way_to_receive_gives_the_same(tmp_path: Path, segments: Path) -> None:
    with place(tmp_path) as here, here.receiver(join="store") as receiver:
        here.publish(12)
        assert next(iter(receiver)).data == b"0"
        one = receiver.receive_one(timeout=10)
        assert one is not None
        assert (one.number, one.topic) == (1, TOPIC)
        assert receiver.receive_bytes(timeout=10, limit=2) == [b"2", b"3"]
        buffer = bytearray(2)
        assert (receiver.receive_into(buffer, timeout=10), bytes(buffer[:1])) == (1, b"4")
        assert [one.number for one in here.take(receiver, 6)] == [5, 6, 7, 8, 9, 10]
        with pytest.raises(ValueError, match="has 2 bytes and the buffer 1"):
            receiver.receive_into(bytearray(1), timeout=10)
        with pytest.raises(BufferError, match="writable"):
            receiver.receive_into(b"xx", timeout=10)
        with pytest.raises(UsageError, match="no views and batches"):
            receiver.receive_batch()
        with pytest.raises(ValueError, match="limit must be 1 to 65536"):
            receiver.receive(limit=0)
        with pytest.raises(ValueError, match="timeout must be at least 0"):
            receiver.receive(timeout=-1)
        assert receiver.receive(timeout=0.0)[0].number == 11
        assert receiver.receive_one(timeout=0.0) is None
        receiver.close()
        with pytest.raises(ClosedError):
            receiver.receive()
        with pytest.raises(ClosedError):
            iter(receiver)


def test_a_receiver_that_waits_ends_when_another_thread_closes_it(tmp_path: Path, segments: Path) -> None:
    with place(tmp_path) as here:
        receiver = here.receiver(join="store")
        here.publish(3)
        timer = threading.Timer(0.3, receiver.close)
        timer.start()
        assert [one.number for one in receiver] == [0, 1, 2]
        timer.join()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"recover": "store"}, "option recover=store needs stores"),
        ({"durable": "desk-1"}, "option durable needs stores"),
        ({"stores": "x"}, "option stores needs recover=store, join=store or durable"),
        ({"join_from": "5"}, "option join_from needs recover=store, join=store or durable"),
        ({"recover": "store", "stores": "x", "join_from": "5"}, "option join_from needs join=store or durable"),
        ({"join": "store", "stores": "x", "join_from": "soon"}, "option join_from: 'soon' is neither a number nor"),
        ({"join": "store", "stores": "x", "recover": "source"}, "option join=store cannot be used with recover=source"),
        ({"recover": "store", "stores": "x", "payload": "raw"}, "recover=store cannot be used with payload=raw"),
        ({"recover": "store", "stores": "x", "order": "arrival"}, "recover=store cannot be used with order=arrival"),
        (
            {"recover": "store", "stores": "x", "overflow": "conflate", "key_bytes": 1},
            "cannot be used with overflow=conflate",
        ),
        ({"recover": "store", "stores": "store://nowhere"}, "store://nowhere"),
        ({"recover": "store", "stores": ["a,b"]}, "the name 'a,b' has a comma"),
        ({"recover": "store", "stores": "EMPTY"}, "is not a store"),
        ({"join": "store", "stores": "EMPTY"}, "is not a store"),
        ({"durable": "a/b", "stores": "STORE"}, "the name of a subscription is"),
        ({"recover": "store", "stores": "x", "on_messages": print}, "without callbacks"),
    ],
)
def test_mistakes_are_named(options: dict[str, Any], words: str, multicast: str, tmp_path: Path) -> None:
    (tmp_path / "store").mkdir()
    (tmp_path / "store" / "store.lock").write_text("heliograph store 1\n")
    places = {"EMPTY": str(tmp_path), "STORE": str(tmp_path / "store"), "x": str(tmp_path / "store")}
    if str(options.get("stores")) in places:
        options = {**options, "stores": places[options["stores"]]}
    with Instance() as instance, pytest.raises(Error, match=re.escape(words)) as found:
        instance.receiver(multicast, TOPIC, **options)
    assert isinstance(found.value, OptionError) or "is not a store" in words
