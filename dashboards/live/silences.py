"""The silences of an Alertmanager, read over its API; nothing is ever written to it.

Its answer is untrusted: size, time, number and every field are limited. After a failure the silences read before stay,
with the failure and the time since when.
"""

from __future__ import annotations

import http.client
import json
import re
import socket
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit

from heliograph.monitor.errors import UserError

__all__ = ["Alertmanager", "Matcher", "Silence", "Silences", "silenced"]

_PATH = "/api/v2/silences"
_SECONDS = 5.0
_MOST_BYTES = 1 << 20
_MOST_SILENCES = 500
_MOST_MATCHERS = 50
_MOST_LETTERS = 500
_PLAIN = re.compile(r"[\w :/@-]*(?:(?:\.\*|\.\+|\\?\.|\|)[\w :/@-]*){0,16}", re.ASCII)
"""Patterns whose search takes little time: texts with ``|``, ``.``, ``.*`` and ``.+``."""
_MOST_WILD = 3
_LONGEST_SEARCHED = 200
_LATEST = 250_000_000_000.0
"""A time that every zone can show, seconds since 1970."""


@dataclass(frozen=True, slots=True)
class Matcher:
    """A condition on one label."""

    name: str
    value: str
    is_regex: bool = False
    is_equal: bool = True

    def __str__(self) -> str:
        sign = {(True, True): "=~", (True, False): "!~", (False, True): "=", (False, False): "!="}
        return f'{self.name}{sign[self.is_regex, self.is_equal]}"{self.value}"'

    def accepts(self, labels: Mapping[str, str]) -> bool | None:
        """Whether labels fulfil it; None: the label, or the meaning of the pattern, is not known here."""
        found = labels.get(self.name)
        if found is None:
            return None
        if not self.is_regex:
            return (found == self.value) is self.is_equal
        wild = self.value.count("*") + self.value.count("+")
        if not _PLAIN.fullmatch(self.value) or wild > _MOST_WILD or len(found) > _LONGEST_SEARCHED:
            return None
        return (re.fullmatch(self.value, found, re.DOTALL) is not None) is self.is_equal


@dataclass(frozen=True, slots=True)
class Silence:
    """One silence that is active or will be."""

    matchers: Sequence[Matcher]
    begin_ns: int
    end_ns: int
    author: str
    comment: str
    is_active: bool

    def covers(self, labels: Mapping[str, str]) -> bool | None:
        """Whether it silences an alert with these labels; None: labels that decide it are not known here."""
        found = [matcher.accepts(labels) for matcher in self.matchers]
        return False if False in found else None if None in found else True


@dataclass(frozen=True, slots=True)
class Silences:
    """The newest answer of the Alertmanager."""

    address: str
    found: Sequence[Silence] = ()
    time_ns: int = 0
    """Time of the newest good answer, wall clock in ns; 0: none yet."""
    trouble: str = ""
    """Why the newest reading failed; empty when it succeeded."""
    since_ns: int = 0
    """Time of the first failure since the last good answer."""
    omitted: int = 0
    """Silences of the answer that were left out: unreadable ones, and those above the limit."""


def silenced(silences: Silences | None, labels: Mapping[str, str]) -> list[tuple[Silence, bool]]:
    """Return the active silences of an alert, and whether each covers it for certain."""
    found = []
    for one in silences.found if silences is not None else ():
        if one.is_active and (covers := one.covers(labels)) is not False:
            found.append((one, covers is True))
    return found


class Alertmanager:
    """Reads the silences on a thread of its own while a page needs them, at most once per `every` seconds."""

    def __init__(
        self,
        url: str,
        every: float = 15.0,
        seconds: float = _SECONDS,
        clock: Callable[[], int] = time.time_ns,
    ) -> None:
        """Create the reader; it reads nothing yet.

        Args:
            url: Address, such as http://127.0.0.1:9093; a path is put before the path of the API.
            every: Least seconds between two readings.
            seconds: Most seconds of one reading.
            clock: Wall clock in ns since 1970.

        Raises:
            UserError: The address is not one of HTTP.
        """
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError as error:
            raise UserError(f"--alertmanager {url!r}: {error}") from error
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
            raise UserError(f"--alertmanager {url!r} is not http://HOST:PORT, for example http://127.0.0.1:9093")
        if parts.username or parts.password:
            raise UserError("--alertmanager takes no user and no password; the page would need to hold them")
        self._connection = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        self._host, self._port, self._path = parts.hostname, port, parts.path.rstrip("/") + _PATH
        self._every, self._seconds, self._clock = every, seconds, clock
        self._silences = Silences(url)
        self._wanted = threading.Event()
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    @property
    def silences(self) -> Silences:
        """Return the newest answer."""
        return self._silences  # one reference, replaced as a whole

    def need(self) -> None:
        """Read the silences if the last reading is old enough; returns at once."""
        self._wanted.set()

    def read(self) -> Silences:
        """Read the silences now."""
        now, before = self._clock(), self._silences
        try:
            found, omitted = _parsed(self._answer())
        except _Failed as failed:
            since = before.since_ns if before.trouble else now
            self._silences = replace(before, trouble=str(failed), since_ns=since)
        else:
            self._silences = Silences(before.address, found, now, omitted=omitted)
        return self._silences

    def _answer(self) -> bytes:
        connection = self._connection(self._host, self._port, timeout=self._seconds)
        late = threading.Event()
        ending = threading.Timer(self._seconds, _end, (connection, late))  # the timeout is for one part of an answer
        ending.daemon = True
        ending.start()
        try:
            connection.request("GET", self._path, headers={"Accept": "application/json", "Connection": "close"})
            answer = connection.getresponse()
            if answer.status != http.HTTPStatus.OK:
                needs = "; heliograph live has no login for it" if answer.status in (401, 403) else ""
                raise _Failed(f"it answers {answer.status} {answer.reason[:60]}{needs}")
            body = answer.read(_MOST_BYTES + 1)
            if late.is_set():
                raise _Failed(f"no whole answer within {self._seconds:g} s")
            if len(body) > _MOST_BYTES:
                raise _Failed(f"its answer is larger than {_MOST_BYTES >> 20} MiB")
            if answer.length:
                raise _Failed("its answer ended in the middle")
            return body
        except http.client.IncompleteRead:
            raise _Failed("its answer ended in the middle") from None
        except (OSError, http.client.HTTPException, ValueError) as error:
            if late.is_set() or isinstance(error, TimeoutError):
                raise _Failed(f"no whole answer within {self._seconds:g} s") from None
            if isinstance(error, OSError):
                raise _Failed(f"no connection: {error.strerror or error}") from None
            raise _Failed(f"its answer is not one of HTTP: {type(error).__name__}") from None
        finally:
            ending.cancel()
            connection.close()

    def start(self) -> None:
        """Begin to wait for pages that need the silences."""
        self._thread = threading.Thread(target=self._run, name="heliograph-live-alertmanager", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop; returns when the thread has ended."""
        self._stopping.set()
        self._wanted.set()
        if self._thread is not None:
            self._thread.join(timeout=2 * self._seconds + 1.0)

    def _run(self) -> None:
        while not self._stopping.is_set():
            self._wanted.wait()
            self._wanted.clear()
            if not self._stopping.is_set():
                self.read()
                self._stopping.wait(self._every)


class _Failed(Exception):
    """A reading failed; the text says why."""


def _end(connection: http.client.HTTPConnection, late: threading.Event) -> None:
    late.set()
    if connection.sock is not None:
        try:
            connection.sock.shutdown(socket.SHUT_RDWR)
        except OSError:
            return  # it has ended by itself


def _parsed(body: bytes) -> tuple[list[Silence], int]:
    """Return the silences of an answer that have not expired, and the number left out."""
    try:
        given = json.loads(body)
    except (ValueError, RecursionError):
        raise _Failed("its answer is not JSON") from None
    if not isinstance(given, list):
        raise _Failed("its answer is not a list of silences")
    found, wrong = [], 0
    for one in given:
        try:
            if one["status"]["state"] != "expired":
                found.append(_silence(one))
        except (KeyError, TypeError, ValueError, OverflowError):
            wrong += 1
    found.sort(key=lambda one: (not one.is_active, one.end_ns))
    return found[:_MOST_SILENCES], wrong + len(found[_MOST_SILENCES:])


def _silence(given: Mapping[str, Any]) -> Silence:
    matchers = [
        Matcher(_text(one["name"]), _text(one["value"]), bool(one["isRegex"]), bool(one.get("isEqual", True)))
        for one in given["matchers"]
    ]
    if not 0 < len(matchers) <= _MOST_MATCHERS:
        raise ValueError("number of matchers")
    return Silence(
        matchers,
        _moment(given["startsAt"]),
        _moment(given["endsAt"]),
        _text(given.get("createdBy") or "")[:_MOST_LETTERS],
        _text(given.get("comment") or "")[:_MOST_LETTERS],
        given["status"]["state"] == "active",
    )


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(value)
    return value


def _moment(text: str) -> int:
    return round(min(max(datetime.fromisoformat(text).timestamp(), 0.0), _LATEST) * 1e9)
