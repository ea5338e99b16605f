"""Names of stores: several addresses, names that move, resolvers that are away, receivers that begin with a name."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

import pytest

from heliograph.engine import Instance, OptionError, Receiver, SystemCallError
from heliograph.engine import _store as store_files
from heliograph.engine.store import following
from heliograph.engine.store.places import ADDRESSES_MAX, NAMES_MAX, Places
from heliograph.engine.store.service import StoreService, listen
from tests.ports import free_port

from .conftest import until

TOPIC = "ORDERS"
GSI = bytes.fromhex("a1b2c3d4e5f6")


class Names:
    """A resolver on paper."""

    def __init__(self, **known: Sequence[str]) -> None:
        self.known = {name.replace("_", "-") + ".example": list(found) for name, found in known.items()}
        self.asked: list[str] = []
        self.is_away = False

    def __call__(self, name: str) -> list[str]:
        self.asked.append(name)
        if self.is_away or name not in self.known:
            raise socket.gaierror(-2, "Name or service not known")
        return self.known[name]


@pytest.fixture
def at() -> Iterator[Callable[..., Places]]:
    """Makes places that look up again after 10 ms; all are closed at the end."""
    made: list[Places] = []

    def make(names: Callable[[str], Sequence[str]], *stores: str, first: float = 30.0) -> Places:
        made.append(Places(stores, resolver=names, first=first, again=0.01))
        return made[-1]

    yield make
    for one in made:
        one.close()


def test_a_name_with_several_addresses_is_several_stores(at: Callable[..., Places], tmp_path: Path) -> None:
    names = Names(store=["10.0.0.5", "10.0.0.6"], six=["2001:db8::1"])
    found = at(names, str(tmp_path), "store://store.example:7800", "store://10.0.0.6:7800", "six.example:7801")
    assert list(found) == [
        *(str(tmp_path), "store://10.0.0.5:7800", "store://10.0.0.6:7800", "store://[2001:db8::1]:7801")
    ]


def test_places_without_a_name_ask_no_resolver(at: Callable[..., Places], tmp_path: Path) -> None:
    names = Names()
    found = at(names, str(tmp_path), "10.0.0.5:7800", "store://[::1]:7800")
    assert list(found) == [str(tmp_path), "store://10.0.0.5:7800", "store://[::1]:7800"]
    assert names.asked == []


def test_a_directory_with_the_name_of_an_address_is_a_directory(
    at: Callable[..., Places], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("store-a:7800").mkdir()
    assert list(at(Names(), "store-a:7800")) == ["store-a:7800"]


def test_a_store_that_moves_is_found_again_and_keeps_its_address_while_the_resolver_is_away(
    at: Callable[..., Places],
) -> None:
    names = Names(store=["10.0.0.5"])
    found = at(names, "store://store.example:7800")
    names.known["store.example"] = ["10.0.0.9"]
    assert until(lambda: list(found) == ["store://10.0.0.9:7800"], seconds=60)
    names.is_away = True
    assert until(lambda: "store.example cannot be resolved" in found.trouble(), seconds=60)
    assert list(found) == ["store://10.0.0.9:7800"]


def test_names_that_cannot_be_resolved_are_named_in_the_error(at: Callable[..., Places]) -> None:
    with pytest.raises(SystemCallError, match=r"the store no\.example cannot be resolved: .*not known"):
        at(Names(), "store://no.example:7800")
    release = threading.Event()
    try:
        with pytest.raises(SystemCallError, match=r"the store slow\.example cannot be resolved within 0\.05 s"):
            at(lambda _: [str(release.wait(60))], "store://slow.example:7800", first=0.05)
    finally:
        release.set()
    found = at(Names(), "store://no.example:7800", "store://10.0.0.5:7800")  # the other one is enough
    assert list(found) == ["store://10.0.0.5:7800"]
    assert until(lambda: "no.example" in found.trouble(), seconds=60)


def test_a_slow_name_does_not_delay_the_others(at: Callable[..., Places]) -> None:
    release = threading.Event()

    def resolver(name: str) -> list[str]:
        if name == "slow.example":
            release.wait(60)
            return ["10.0.0.6"]
        return ["10.0.0.5"]

    try:
        found = at(resolver, "slow.example:7800", "quick.example:7800", first=1.0)
        assert list(found) == ["store://10.0.0.5:7800"]
    finally:
        release.set()
    assert until(lambda: list(found) == ["store://10.0.0.6:7800", "store://10.0.0.5:7800"], seconds=60)


def test_answers_of_a_resolver_are_bounded_and_so_are_names(at: Callable[..., Places]) -> None:
    found = at(Names(store=[f"10.0.0.{i}" for i in range(200)]), "store.example:7800")
    assert len(found) == ADDRESSES_MAX
    with pytest.raises(SystemCallError, match="it has no address"):
        at(Names(store=[]), "store.example:7800")
    with pytest.raises(OptionError, match=f"at most {NAMES_MAX} names"):
        at(Names(), *(f"store-{i}.example:7800" for i in range(NAMES_MAX + 1)))
    for wrong in ("store://store.example", "store://store.example:99999", "store.example:0"):
        with pytest.raises(OptionError, match="the address of a store is"):
            at(Names(store=["10.0.0.5"]), wrong)


@pytest.fixture
def offer() -> Iterator[Callable[[Path, str, int, Sequence[int]], None]]:
    """Serves messages at an address until the end."""
    running: list[tuple[StoreService, threading.Thread]] = []

    def start(folder: Path, host: str, port: int, numbers: Sequence[int]) -> None:
        folder.mkdir()
        store_files.append(folder, GSI, 9, "", [(TOPIC, 0, n, 1, n + 1, 0, b"x") for n in numbers], 200, 900)
        service = StoreService(folder, listen(host, port))
        thread = threading.Thread(target=service.run)
        thread.start()
        running.append((service, thread))

    yield start
    for service, thread in running:
        service.close()
        thread.join(60)


def test_a_receiver_takes_messages_from_the_stores_behind_a_name(
    multicast: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    offer: Callable[[Path, str, int, Sequence[int]], None],
) -> None:
    names = Names(store=["127.0.0.1", "127.0.0.2"])
    monkeypatch.setattr(following, "Places", partial(Places, resolver=names))
    port = free_port()
    offer(tmp_path / "one", "127.0.0.1", port, [0, 1, 2, 5])
    offer(tmp_path / "two", "127.0.0.2", port, [2, 3, 4, 5])
    taken: list[int] = []

    def has_all(receiver: Receiver) -> bool:
        taken.extend(one.number for one in receiver.receive(timeout=0.1))
        return len(taken) >= 6

    with Instance() as desk, desk.receiver(multicast, TOPIC, join="store", stores=f"store.example:{port}") as receiver:
        assert until(lambda: has_all(receiver), seconds=60)
    assert taken == [0, 1, 2, 3, 4, 5]
    with Instance() as desk, pytest.raises(SystemCallError, match=r"the store other\.example cannot be resolved"):
        desk.receiver(multicast, TOPIC, recover="store", stores="store://other.example:7800")
