"""Subscribers of several stores on other hosts, and durable subscriptions whose positions the stores keep."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from heliograph.engine import Error, Instance, Loss, OptionError, UsageError, _store
from heliograph.engine.store.follower import StoreFollower
from heliograph.engine.store.protocol import Ask
from heliograph.engine.store.service import StoreService, address_of, listen
from heliograph.engine.store.subscriptions import Subscription, answer_to, forget, move, subscriptions
from heliograph.monitor.cli import main
from tests.stores import Kept

from .test_store_follower import STREAM, TOPIC, Receiver, follow, kept

GSI = bytes(range(1, 7))
ROUNDS = 25
AWAY = "store://127.0.0.1:9"
"""Nobody listens there."""


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """Serves a directory; gives the address."""
    listener = listen("127.0.0.1", 0)
    service = StoreService(folder, listener)
    thread = threading.Thread(target=service.run)
    thread.start()
    try:
        yield address_of(listener)
    finally:
        service.close()
        thread.join()


def store_of(folder: Path, numbers: list[int]) -> Path:
    folder.mkdir()
    messages = [Kept(TOPIC, 0, n, n + 1, n + 1, 0, b"%d" % n) for n in numbers]
    _store.append(folder, GSI, 9, "", messages, 200, 900)
    return folder


def test_each_message_comes_from_a_store_that_has_it(tmp_path: Path) -> None:
    """Three stores with random holes, by address and by directory: what any has arrives, what none has is lost."""
    seed = random.SystemRandom().randrange(1 << 30)
    chance = random.Random(seed)
    for number in range(ROUNDS):
        last = chance.randrange(5, 60)
        held = [sorted(chance.sample(range(last), chance.randrange(1, last))) for _ in range(3)]
        with ExitStack() as parts:
            folders = [store_of(tmp_path / f"{number}-{i}", numbers) for i, numbers in enumerate(held)]
            stores = [parts.enter_context(served(one)) if chance.random() < 0.5 else one for one in folders]
            live = list(range(last, last + 5))
            numbers, follower = follow(
                stores,  # type: ignore[arg-type]
                Receiver(tmp_path, [(0, live)]),
                positions={STREAM: 0},
                wait=0.05,
            )
            somewhere = sorted(set().union(*held))
            assert numbers == [*somewhere, *live], (seed, number)
            lost = {n for loss in follower.losses() for n in range(loss.first, loss.last + 1)}
            assert lost == set(range(last)) - set(somewhere), (seed, number)


def test_a_store_that_is_away_matters_only_for_what_it_alone_may_have(tmp_path: Path) -> None:
    whole = store_of(tmp_path / "whole", list(range(20)))
    holes = store_of(tmp_path / "holes", [n for n in range(20) if n not in (5, 6)])
    for stores in ([AWAY, whole], [whole, AWAY], [holes, AWAY, whole]):
        numbers, follower = follow(stores, Receiver(tmp_path, [(0, [20, 21])]), positions={STREAM: 0})  # type: ignore[arg-type]
        assert (numbers, follower.losses()) == (list(range(22)), [])
    follower = StoreFollower([holes, AWAY], Receiver(tmp_path, []), positions={STREAM: 0}, wait=0.05)  # type: ignore[arg-type]
    with pytest.raises(Error, match=r"127\.0\.0\.1:9 cannot be read"):
        list(iter(lambda: follower.receive(timeout=0.01), []))
    assert follower.losses() == []
    with pytest.raises(Error, match=r"127\.0\.0\.1:9 cannot be read"):
        StoreFollower(AWAY, Receiver(tmp_path, []))  # type: ignore[arg-type]


def test_a_gap_waits_for_a_store_that_comes_back(tmp_path: Path) -> None:
    folder = store_of(tmp_path / "store", list(range(20)))
    listener = listen("127.0.0.1", 0)
    address = address_of(listener)
    port = listener.getsockname()[1]
    service = StoreService(folder, listener)
    thread = threading.Thread(target=service.run)
    thread.start()
    receiver = Receiver(tmp_path, [(0, [20, 30])])
    follower = StoreFollower(address, receiver, positions={STREAM: 15}, wait=20.0)  # type: ignore[arg-type]
    assert [one.number for one in follower.receive(0.01)] == [15, 16, 17, 18, 19]
    service.close()
    thread.join()
    later = [Kept(TOPIC, 0, n, n + 1, n + 1, 0, b"%d" % n) for n in range(20, 31)]
    _store.append(folder, GSI, 9, "", later, 200, 900)

    def come_back() -> None:
        again = StoreService(folder, listen("127.0.0.1", port))
        threading.Timer(3.0, again.close).start()
        again.run()

    timer = threading.Timer(0.5, come_back)
    timer.start()
    numbers = []
    while taken := follower.receive(0.01):
        numbers += [one.number for one in taken]
    assert (numbers, follower.losses()) == (list(range(20, 31)), [])
    timer.join()


def test_what_is_not_repaired_comes_from_a_store_on_another_host(multicast: str, tmp_path: Path) -> None:
    """A receiver without NAKs loses a fifth of the packets; the source repairs none of them for it."""
    folder = tmp_path / "store"
    with kept(folder, multicast), Instance(name="source") as source, Instance(name="desk") as desk:
        transmitter = source.transmitter(multicast, TOPIC, acks=1, linger=0.0)
        total = 20_000
        with (
            served(folder) as address,
            desk.receiver(multicast, TOPIC, nak="off", inject_loss=0.2) as receiver,
        ):
            follower = StoreFollower(address, receiver)

            def publish() -> None:
                for first in range(0, total, 20):
                    transmitter.send_many([b"%d" % n for n in range(first, first + 20)], timeout=30)
                    time.sleep(0.001)

            thread = threading.Thread(target=publish)
            thread.start()
            numbers: list[int] = []
            from_store = 0
            while len(numbers) < total:
                taken = follower.receive(timeout=10, limit=1000)
                assert taken
                numbers += [one.number for one in taken]
                from_store += sum(hasattr(one, "position") for one in taken)
            thread.join()
            assert numbers == list(range(total))
            assert from_store > 100
            assert follower.losses() == []


def subscribe(endpoint: str, stores: list[str], *arguments: str) -> list[str]:
    command = ["sub", endpoint, TOPIC, "--subscription", "desk-1", "--timeout", "20", *arguments]
    for store in stores:
        command += ["--store", store]
    return command


def test_a_durable_subscription_goes_on_from_any_host(
    multicast: str, tmp_path: Path, segments: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "store"
    with kept(folder, multicast), Instance(name="source") as source:
        transmitter = source.transmitter(multicast, TOPIC, acks=1, linger=0.0)

        def publish(first: int, last: int) -> None:
            transmitter.send_many([b"%d" % number for number in range(first, last)], timeout=30)
            transmitter.wait_acked(1, timeout=30)

        publish(0, 100)
        with served(folder) as address:
            assert main(subscribe(multicast, [address], "--count", "60")) == 0
            assert capfd.readouterr().out.split() == [str(number) for number in range(60)]
            publish(100, 20_000)  # nobody subscribes
            thread = threading.Timer(1.0, publish, (20_000, 20_500))
            thread.start()
            assert main(subscribe(multicast, [address], "--count", "20440")) == 0
            assert capfd.readouterr().out.split() == [str(number) for number in range(60, 20_500)]
            thread.join()
            [found] = subscriptions(address)
    assert (found.name, found.topic, found.positions) == ("desk-1", TOPIC, {transmitter.stream: 20_500})
    assert subscriptions(folder) == [found]


def test_a_subscriber_that_is_killed_repeats_at_most_one_list(multicast: str, tmp_path: Path, segments: Path) -> None:
    seed = random.SystemRandom().randrange(1 << 30)
    chance = random.Random(seed)
    folder = tmp_path / "store"
    total = 6_000
    with kept(folder, multicast), Instance(name="source") as source, served(folder) as address:
        transmitter = source.transmitter(multicast, TOPIC, acks=1, linger=0.0)

        def publish() -> None:
            for first in range(0, total, 20):
                transmitter.send_many([b"%d" % number for number in range(first, first + 20)], timeout=30)
                time.sleep(0.01)

        thread = threading.Thread(target=publish)
        thread.start()
        due = 0
        command = [sys.executable, "-m", "heliograph.monitor.cli", *subscribe(multicast, [address, AWAY])]
        command[command.index("--timeout") + 1] = "2"
        for run in range(5):
            with (tmp_path / "out").open("w+b") as out, subprocess.Popen(command, stdout=out) as process:
                if run < 4:
                    time.sleep(chance.uniform(0.3, 1.5))
                    process.kill()
                assert process.wait() in (0, -9)
                out.seek(0)
                numbers = [int(line) for line in out.read().splitlines(keepends=True) if line.endswith(b"\n")]
            if numbers:
                assert max(0, due - 256) <= numbers[0] <= due, seed
                assert numbers == list(range(numbers[0], numbers[-1] + 1)), seed
                due = numbers[-1] + 1
        thread.join()
    assert due == total, seed


def test_the_subscriber_that_came_last_has_the_subscription(tmp_path: Path) -> None:
    one, two = store_of(tmp_path / "one", [0]), store_of(tmp_path / "two", [0])
    with served(one) as first, served(two) as second:
        before = Subscription("desk", TOPIC, [first, second, AWAY])
        before.save({STREAM: 5})
        before.save({STREAM: 7})
        after = Subscription("desk", TOPIC, [second, first])
        assert after.positions == {STREAM: 7}
        with pytest.raises(UsageError, match="taken over the subscription desk"):
            before.save({STREAM: 9})
        after.save({STREAM: 8})
        assert [found.positions for found in subscriptions(first) + subscriptions(second)] == [{STREAM: 8}] * 2
        # A store that was away has an older revision, which does not count.
        forget(one, "desk")
        assert Subscription("desk", TOPIC, [first, second]).positions == {STREAM: 8}
        moved = move(first, "desk", {STREAM: 3})
        assert moved.positions == {STREAM: 3}
        with pytest.raises(UsageError, match="moved"):
            after.save({STREAM: 9})
    with pytest.raises(Error, match="cannot be read"):
        Subscription("desk", TOPIC, [AWAY])


def test_many_take_over_at_once_and_one_has_it(tmp_path: Path) -> None:
    store = store_of(tmp_path / "store", [0])
    opened: list[Subscription] = []
    failed: list[BaseException] = []

    def take() -> None:
        try:
            opened.append(Subscription("desk", TOPIC, [store]))
        except UsageError as error:
            failed.append(error)

    threads = [threading.Thread(target=take) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    saved = 0
    for one in opened:
        try:
            one.save({STREAM: 1})
            saved += 1
        except UsageError:
            pass
    assert saved == 1
    assert len(opened) + len(failed) == 8


def test_the_command_lists_moves_and_deletes(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    store = store_of(tmp_path / "store", list(range(50)))
    Subscription("desk-1", TOPIC, [store]).save({STREAM: 20})
    Subscription("desk-2", "OTHER", [store])

    def said(*arguments: str, code: int = 0) -> str:
        assert main(["store", "subscriptions", address, *arguments]) == code
        found = capfd.readouterr()
        return found.out if code == 0 else found.err

    with served(store) as address:
        lines = said().splitlines()
        assert lines[0].split() == ["NAME", "SAVED", "STREAM", "NEXT", "WAITING", "TOPIC"]
        name, age, *rest = lines[1].split()
        assert (name, rest) == ("desk-1", ["s", "ago", STREAM, "20", "30", TOPIC])
        assert 0 <= int(age) < 100
        assert lines[2].split()[-4:] == ["-", "-", "-", "OTHER"]
        said("--move", "desk-1", f"{STREAM}=45")
        [one, _] = json.loads(said("--json"))["subscriptions"]
        assert (one["positions"], one["messages_waiting"]) == ({STREAM: 45}, {STREAM: 5})
        said("--delete", "desk-2")
        assert "desk-2" not in said()
        for words, arguments in (
            ("has no subscription 'none'; it has desk-1", ("--delete", "none")),
            ("has no subscription 'none'", ("--move", "none", f"{STREAM}=1")),
            ("a position is GSI:PORT=NUMBER", ("--move", "desk-1", "x")),
            ("not a subscription: the positions", ("--move", "desk-1", "x=1")),
        ):
            assert words in said(*arguments, code=2)


def test_mistakes_and_damage_are_named(multicast: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    store = store_of(tmp_path / "store", [0])
    Subscription("desk", TOPIC, [store])
    for name in ("", ".hidden", "a/b", "x" * 65, "ä", "a\n"):
        with pytest.raises(OptionError, match="the name of a subscription"):
            Subscription(name, TOPIC, [store])
    with pytest.raises(OptionError, match="has the topic ORDERS, not OTHER"):
        Subscription("desk", "OTHER", [store])
    assert main(["sub", multicast, TOPIC, "--subscription", "desk"]) == 2
    assert "--subscription needs --store" in capfd.readouterr().err
    folder = store / "subscriptions"
    assert sorted(path.name for path in folder.iterdir()) == [".lock", "desk.json"]
    whole = json.loads((folder / "desk.json").read_text())
    changes: list[dict[str, Any]] = [
        {"revision": -1},
        {"revision": True},
        {"positions": {STREAM: 1 << 64}},
        {"positions": {"x": 1}},
        {"positions": []},
        {"topic": ""},
        {"more": 1},
    ]
    for change in changes:
        (folder / "desk.json").write_text(json.dumps({**whole, **change}))
        with pytest.raises(OptionError, match="the file of the subscription desk is damaged: not a subscription"):
            subscriptions(store)
    (folder / "desk.json").write_text("{")
    with pytest.raises(OptionError, match="the file of the subscription desk is damaged"):
        Subscription("desk", TOPIC, [store])


def test_a_store_keeps_a_limited_number_of_subscriptions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("heliograph.engine.store.subscriptions._SUBSCRIPTIONS_MAX", 3)
    store = store_of(tmp_path / "store", [0])
    for number in range(3):
        Subscription(f"desk-{number}", TOPIC, [store])
    with pytest.raises(OptionError, match="keeps 3 subscriptions; delete one"):
        Subscription("desk-3", TOPIC, [store])
    Subscription("desk-2", TOPIC, [store]).save({})
    assert answer_to(store, Ask.SUBSCRIBE, {"name": "desk-3"}) is None


def test_a_store_that_writes_between_two_looks_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The store lacks a message at the first look, and has a later one at the second: it was written meanwhile."""
    folder = store_of(tmp_path / "store", [0, 1])
    look = StoreFollower._are_beyond

    def write_first(self: StoreFollower, stream: str, last: int) -> bool:
        later = [Kept(TOPIC, 0, n, n + 1, n + 1, 0, b"%d" % n) for n in (2, 3, 4)]
        if last == 2:
            _store.append(folder, GSI, 9, "", later, 200, 900)
        return look(self, stream, last)

    monkeypatch.setattr(StoreFollower, "_are_beyond", write_first)
    numbers, follower = follow(folder, Receiver(tmp_path, [(0, [3, 4])]), positions={STREAM: 0})
    assert (numbers, follower.losses()) == ([0, 1, 2, 3, 4], [])


def test_a_second_store_that_is_slower_is_waited_for(tmp_path: Path) -> None:
    """The first store has a hole; the second writes those messages a moment later."""
    first, second = store_of(tmp_path / "first", [0, 1, 4, 5]), store_of(tmp_path / "second", [0, 1])
    later = [Kept(TOPIC, 0, n, n + 1, n + 1, 0, b"%d" % n) for n in (2, 3, 4)]
    timer = threading.Timer(0.3, _store.append, (second, GSI, 9, "", later, 200, 900))
    timer.start()
    numbers, follower = follow([first, second], Receiver(tmp_path, []), positions={STREAM: 0})  # type: ignore[arg-type]
    timer.join()
    assert (numbers, follower.losses()) == ([0, 1, 2, 3, 4, 5], [])


def test_a_loss_is_said_only_when_every_store_has_passed_it(tmp_path: Path) -> None:
    ahead = store_of(tmp_path / "ahead", [0, 1, 4, 5])
    behind = store_of(tmp_path / "behind", [0, 1])
    numbers, follower = follow([ahead, behind], Receiver(tmp_path, [(0, [6])]), positions={STREAM: 0}, wait=0.05)  # type: ignore[arg-type]
    assert (numbers, follower.losses()) == ([0, 1, 4, 5, 6], [Loss(2, 2, STREAM)])
