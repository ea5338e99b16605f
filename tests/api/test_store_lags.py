"""The statistics of durable subscriptions: lag while the store runs, after a restart, and what is not shown."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from heliograph.engine import Instance, OptionError
from heliograph.engine import _store as store_files
from heliograph.engine.store.lags import SHOWN_MAX, Lags
from heliograph.engine.store.server import StoreServer
from heliograph.engine.store.subscriptions import Subscription, forget
from heliograph.monitor.segment import Segment

from .conftest import until

if TYPE_CHECKING:
    from heliograph.engine._store import SubscriptionRow

TOPIC = "ORDERS"
STREAM = "a1b2c3d4e5f6:9"
GSI = bytes.fromhex("a1b2c3d4e5f6")


class OnPaper:
    """A keeper that knows some newest messages, and remembers what it shows."""

    def __init__(self, **ends: int) -> None:
        self.ends = ends
        self.rows: list[SubscriptionRow] = []

    def end(self, gsi: bytes, port: int, topic: str, /) -> int:
        return self.ends.get(topic, 0) if (gsi, port) == (GSI, 9) else 0

    def show_subscriptions(self, rows: Sequence[SubscriptionRow], /) -> None:
        self.rows = list(rows)

    def lags(self) -> dict[str, int]:
        """Messages that wait, by subscription."""
        return {name: end - number for name, _, _, _, number, end, _ in self.rows}


@pytest.fixture
def shown(tmp_path: Path) -> Callable[..., dict[str, int]]:
    """The lags that a keeper shows after some looks."""
    moments: Iterator[float] = iter(range(0, 10_000, 10))
    lags = Lags(tmp_path, clock=lambda: next(moments))

    def look(keeper: OnPaper, *topics: str) -> dict[str, int]:
        lags.tend(keeper, topics or (TOPIC,))
        return keeper.lags()

    return look


def save(folder: Path, name: str, number: int, *, topic: str = TOPIC, stream: str = STREAM) -> None:
    Subscription(name, topic, [folder]).save({stream: number})


def test_the_lag_is_what_the_store_has_after_the_saved_position(
    tmp_path: Path, shown: Callable[..., dict[str, int]]
) -> None:
    keeper = OnPaper(ORDERS=1000)
    assert shown(keeper) == {}
    save(tmp_path, "desk-1", 400)
    save(tmp_path, "desk-2", 1000)
    assert shown(keeper) == {"desk-1": 600, "desk-2": 0}
    save(tmp_path, "desk-1", 900)
    keeper.ends["ORDERS"] = 1100
    assert shown(keeper) == {"desk-1": 200, "desk-2": 100}
    forget(tmp_path, "desk-2")
    keeper.ends.clear()  # the stream is silent: its end stays known
    assert shown(keeper) == {"desk-1": 200}


def test_the_end_of_a_stream_that_is_not_open_is_read_from_the_files(
    tmp_path: Path, shown: Callable[..., dict[str, int]]
) -> None:
    store_files.append(tmp_path, GSI, 9, "", [(TOPIC, 0, n, 1, n + 1, 0, b"x") for n in range(50)], 200, 900)
    save(tmp_path, "desk-1", 20)
    keeper = OnPaper()
    assert until(lambda: shown(keeper) == {"desk-1": 30}, seconds=60)


def test_what_others_may_have_saved_is_not_shown(tmp_path: Path, shown: Callable[..., dict[str, int]]) -> None:
    keeper = OnPaper(ORDERS=1000, OTHER=1000)
    save(tmp_path, "of-no-topic", 1, topic="OTHER")
    save(tmp_path, "of-no-stream", 1, stream="000000000000:1")
    save(tmp_path, "right", 1)
    folder = tmp_path / "subscriptions"
    (folder / "damaged.json").write_text("{")
    (folder / "no name!.json").write_text("{}")
    one = json.loads((folder / "right.json").read_text())
    for name, stream in (("port", "a1b2c3d4e5f6:99999"), ("text", "x")):
        (folder / f"{name}.json").write_text(json.dumps({**one, "name": name, "positions": {stream: 1}}))
    for _ in range(3):
        assert shown(keeper) == {"right": 999}
    assert shown(keeper, TOPIC, "OTHER") == {"right": 999, "of-no-topic": 999}


def test_of_too_many_subscriptions_those_furthest_behind_are_shown(
    tmp_path: Path, shown: Callable[..., dict[str, int]]
) -> None:
    save(tmp_path, "first", 0)
    folder = tmp_path / "subscriptions"
    one = json.loads((folder / "first.json").read_text())
    for number in range(1, SHOWN_MAX + 10):
        new = {**one, "name": f"desk-{number}", "positions": {STREAM: number}}
        (folder / f"desk-{number}.json").write_text(json.dumps(new))
    found = shown(OnPaper(ORDERS=1000))
    assert sorted(found.values()) == list(range(1000 - SHOWN_MAX + 1, 1001))


def test_a_store_shows_its_subscriptions_until_they_are_deleted(multicast: str, tmp_path: Path, segments: Path) -> None:
    folder = tmp_path / "store"
    with StoreServer(folder, name="kept", batch_time=0.001) as server, Instance(name="source") as source:
        server.keep(multicast, TOPIC)
        transmitter = source.transmitter(multicast, TOPIC, acks=1, linger=0.0)
        transmitter.send_many([b"x"] * 100)
        save(folder, "desk-1", 40, stream=transmitter.stream)
        [path] = segments.glob("kept*.helio")

        def found() -> dict[str, tuple[int, int]]:
            server.step(0.05)
            with Segment(path) as segment:
                return {
                    one.labels["subscription"]: (one.values["next_message"], one.values["messages_waiting"])
                    for one in segment.objects(histograms=False)
                    if one.scope == "store_subscription" and one.live
                }

        assert until(lambda: found() == {"desk-1": (40, 60)}, seconds=60)
        forget(folder, "desk-1")
        assert until(lambda: found() == {}, seconds=60)


def test_a_keeper_refuses_rows_that_it_cannot_show(tmp_path: Path, segments: Path) -> None:
    keeper = store_files.Keeper(tmp_path, "name=kept", 0, 1 << 16, 10_000_000, 1 << 26, 0, 0, False)
    row: SubscriptionRow = ("desk-1", TOPIC, GSI, 9, 1, 2, 3)
    with pytest.raises(OptionError, match=f"at most {SHOWN_MAX} positions"):
        keeper.show_subscriptions([row] * (SHOWN_MAX + 1))
    for long in (("x" * 65, *row[1:]), (row[0], "x" * 256, *row[2:])):
        with pytest.raises(OptionError, match="too long"):
            keeper.show_subscriptions([long])
    with pytest.raises(ValueError, match="a GSI has 6 bytes"):
        keeper.show_subscriptions([(*row[:2], b"12345", *row[3:])])
    with pytest.raises(TypeError):
        keeper.show_subscriptions(["no row"])  # type: ignore[list-item]
    assert keeper.end(GSI, 9, TOPIC) == 0
    keeper.close()
