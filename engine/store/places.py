"""Where the stores of a subscriber are: as given, as the resolver finds their names, and as sources announce them.

A name with several addresses stands for several stores. Each name is looked up by a thread of its own: when the
subscriber begins, which waits for that a bounded time, and again every half a minute, because a store that moves keeps
its name. Whoever reads a store gets addresses only, so a resolver that is away delays nobody.
Announcements are asked of the receiver, by the thread that uses it.
"""

from __future__ import annotations

import ipaddress
import os
import re
import socket
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias, overload

from heliograph.engine.errors import SystemCallError
from heliograph.engine.options import refusal
from heliograph.engine.store.protocol import PREFIX, host_and_port, remote
from heliograph.engine.store.reader import Where, is_remote, text_of

__all__ = ["ADDRESSES_MAX", "ANNOUNCED", "NAMES_MAX", "Places", "Resolver", "system_resolver"]

ANNOUNCED = "announced"
"""In the place of a store: those that the sources announce."""

ADDRESSES_MAX = 16
"""Addresses of one name that are used."""
NAMES_MAX = 16
"""Names of one subscriber."""
_FIRST_SECONDS = 5.0
_AGAIN_SECONDS = 30.0
_LISTEN_SECONDS = 0.5
"""Time between two questions for the announced stores; while none is known, a tenth of it."""
_LOOK_SECONDS = 0.01
_BARE = re.compile(r"(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\]):\d{1,5}")

Resolver: TypeAlias = Callable[[str], Sequence[str]]
"""The addresses of a name; raises OSError."""


def system_resolver(name: str) -> list[str]:
    """The addresses of a name, as the system finds them: those of IPv4 if there are any, or else those of IPv6.

    Raises:
        OSError: There are none, or the resolver is away.
    """
    found = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)
    families: dict[int, dict[str, None]] = {}
    for family, *_, address in found:
        families.setdefault(family, {})[str(address[0])] = None
    return list(families.get(socket.AF_INET) or families.get(socket.AF_INET6) or {})


class Places(Sequence[Where]):
    """The stores of a subscriber at this moment. The sequence changes when a name gets other addresses."""

    def __init__(
        self,
        stores: Iterable[Where],
        *,
        resolver: Resolver = system_resolver,
        first: float = _FIRST_SECONDS,
        again: float = _AGAIN_SECONDS,
        announced: Callable[[], Sequence[str]] | None = None,
    ) -> None:
        """Begin, and look names up.

        Args:
            stores: Directories, ``store://HOST:PORT``, or ``HOST:PORT`` where no file has that name. HOST is an address
                or a name. ``announced`` stands for the stores that the sources announce.
            resolver: Finds the addresses of a name; called by the threads.
            first: Longest wait for the first result, or announcement, seconds.
            again: Time between two looks, seconds.
            announced: The stores announced now, as ``store://HOST:PORT``; called by `listen`.

        Raises:
            OptionError: An address is malformed, there are more than `NAMES_MAX` names, or ``announced`` is given
                where nobody hears announcements.
            SystemCallError: No store is known: the names cannot be resolved, or not in time.
        """
        self._given = [_normal(store) for store in stores]
        self._announced = announced if ANNOUNCED in self._given else None
        if ANNOUNCED in self._given and not announced:
            raise refusal(f"stores that are {ANNOUNCED} need a receiver; a directory of that name is ./{ANNOUNCED}")
        self._heard = 0.0
        self._names = {store: _name_of(store) for store in self._given if _name_of(store)}
        if len(self._names) > NAMES_MAX:
            raise refusal(f"a subscriber has at most {NAMES_MAX} names of stores, not {len(self._names)}")
        self._resolver = resolver
        self._first, self._again = first, again
        self._lock = threading.Lock()
        self._found: dict[Where, list[str]] = {}
        self._troubles: dict[Where, str] = {}
        self._unknown = set(self._names)
        self._is_news = False
        self._now: tuple[Where, ...] = ()
        self._ends, self._looked = threading.Event(), threading.Event()
        self._renew()
        for store in self._names:
            threading.Thread(target=self._run, args=(store,), name="store-name", daemon=True).start()
        if self._names:
            self._looked.wait(first)
            if not self._now and not self._announced:
                self.close()
                raise SystemCallError(self._said() or self._late(first))

    @property
    def listens(self) -> bool:
        """Stores that sources announce belong to it."""
        return self._announced is not None

    def listen(self) -> None:
        """Ask for the announced stores when it is time. When none are announced, those that were known stay."""
        moment = time.monotonic()
        wait = _LISTEN_SECONDS if ANNOUNCED in self._found else _LISTEN_SECONDS / 10
        if not self._announced or moment - self._heard < wait:
            return
        self._heard = moment
        if found := list(self._announced()):
            with self._lock:
                self._found[ANNOUNCED] = found
                self._renew()

    def await_announced(self, endpoint: str, pause: Callable[[float], None]) -> None:
        """Wait until a store is known, for a subscriber that begins with the messages of stores.

        Args:
            endpoint: Of the sources, for the error.
            pause: Waits some seconds, and calls `listen`.

        Raises:
            SystemCallError: None is known, and no source has announced one in time.
        """
        deadline = time.monotonic() + self._first
        self.listen()
        while self._announced and not self._now:
            if time.monotonic() >= deadline:
                raise SystemCallError(
                    f"no source on {endpoint} has announced a message store within {self._first:g} s: start a source "
                    "and `heliograph store serve --listen`, or name the stores"
                )
            pause(_LOOK_SECONDS)

    def pause(self, seconds: float) -> None:
        """Wait, and look which stores are announced."""
        time.sleep(seconds)
        self.listen()

    def close(self) -> None:
        """Look up no more names; the stores stay as they are. Idempotent."""
        self._ends.set()

    def trouble(self) -> str:
        """Which names could not be resolved at the last look, and why; each result once, then empty."""
        is_news, self._is_news = self._is_news, False
        return self._said() if is_news else ""

    @overload
    def __getitem__(self, at: int) -> Where: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[Where]: ...
    def __getitem__(self, at: int | slice) -> Where | Sequence[Where]:
        return self._now[at]

    def __len__(self) -> int:
        return len(self._now)

    def _run(self, store: Where) -> None:
        _, port = host_and_port(text_of(store))
        while True:
            addresses: Sequence[str] = ()
            trouble = "it has no address"
            try:
                addresses = self._resolver(self._names[store])
            except (OSError, UnicodeError) as error:
                trouble = str(error)
            self._take(store, [remote(one, port) for one in addresses[:ADDRESSES_MAX]], trouble)
            if self._ends.wait(self._again):
                return

    def _take(self, store: Where, addresses: list[str], trouble: str) -> None:
        """The result of a look; without addresses, those that were known stay."""
        with self._lock:
            if addresses:
                self._found[store] = addresses
                self._troubles.pop(store, None)
            else:
                self._troubles[store] = trouble
                self._is_news = True
            self._renew()
            self._unknown.discard(store)
            if not self._unknown:
                self._looked.set()

    def _renew(self) -> None:
        """The stores as they are known now, each once."""
        now: dict[Where, None] = {}
        for store in self._given:
            is_found = store in self._names or store == ANNOUNCED
            now.update(dict.fromkeys(self._found.get(store, []) if is_found else [store]))
        self._now = tuple(now)

    def _said(self) -> str:
        """Why names have no address."""
        with self._lock:
            known = [(self._names[store], why) for store, why in self._troubles.items()]
        return "; ".join(f"the store {name} cannot be resolved: {why}" for name, why in known)

    def _late(self, seconds: float) -> str:
        return f"the store {', '.join(self._names.values())} cannot be resolved within {seconds:g} s"


def _normal(store: Where) -> Where:
    """An address with its prefix; a directory as it is.

    Raises:
        OptionError: The address is malformed.
    """
    text = text_of(store)
    if isinstance(store, str) and _BARE.fullmatch(text) and not os.path.lexists(text):
        text = PREFIX + text
    if not is_remote(text):
        return store
    host_and_port(text)
    return text


def _name_of(store: Where) -> str:
    """The name of the host of an address that has one; else empty."""
    if not is_remote(store):
        return ""
    host, _ = host_and_port(text_of(store))
    try:
        ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return host
    return ""
