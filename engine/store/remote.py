"""Reads from the service of a store on another host, and keeps positions there."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

from heliograph.engine import _store
from heliograph.engine.errors import Error, SystemCallError
from heliograph.engine.store.protocol import (
    NUMBER_AHEAD,
    Answer,
    Ask,
    BadBytesError,
    Reading,
    host_and_port,
    request,
    take_answer,
)

__all__ = ["ask", "ask_json", "runs_of"]

_CONNECT_SECONDS = 5.0
_ANSWER_SECONDS = 60.0
_AT_ONCE = 1024
_NUMBER = 2


Connected: TypeAlias = Callable[[socket.socket], None]


def _nobody(connection: socket.socket) -> None:
    pass


def ask(address: str, kind: Ask, body: bytes = b"", connected: Connected = _nobody) -> Iterator[bytes]:
    """Send a request to a service; the bodies of its answers. The connection ends with the iterator.

    Args:
        address: ``store://HOST:PORT``.
        kind: Kind of the request.
        body: Its body.
        connected: Called with the connection, so that another thread can shut it down.

    Raises:
        OptionError: The address is malformed.
        SystemCallError: The service cannot be reached, or the connection failed.
        Error: The service refused the request, or its answer is not one.
    """
    host, port = host_and_port(address)
    try:
        with socket.create_connection((host, port), timeout=_CONNECT_SECONDS) as connection:
            connected(connection)
            connection.sendall(request(kind, body))
            while True:
                found, data = take_answer(connection, _ANSWER_SECONDS)
                if found is Answer.END:
                    return
                if found is Answer.REFUSED:
                    raise Error(f"the store {address} refuses: {data.decode(errors='replace')[:400]!a}")
                yield data
    except BadBytesError as error:
        raise Error(f"the answer of {address} is not one of a store: {error}") from error
    except OSError as error:
        raise SystemCallError(f"the store {address} cannot be read: {error}") from error


def ask_json(address: str, kind: Ask, body: object) -> Any:
    """Send a request with a JSON body; its one answer, from JSON. Exceptions as in `ask`."""
    answers = list(ask(address, kind, json.dumps(body).encode()))
    try:
        return json.loads(b"".join(answers))
    except ValueError as error:
        raise Error(f"the answer of {address} is not one of a store: {error}") from error


def runs_of(address: str, reading: Reading, connected: Connected = _nobody) -> Iterator[list[_store.StoredMessage]]:
    """The messages in lists; the numbers of a list follow each other. Arguments and exceptions as in `ask`."""
    by = _NUMBER if reading.by == NUMBER_AHEAD else reading.by
    decoder = _store.Decoder(reading.gsi, reading.port, by, reading.first, reading.last, reading.topic)
    for batch in ask(address, Ask.READ, reading.encode(), connected):
        try:
            decoder.begin(batch)
            while run := decoder.next(_AT_ONCE, True):
                yield run
        except ValueError as error:
            raise Error(f"the answer of {address} is not one of a store: {error}") from error
