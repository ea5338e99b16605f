"""An Alertmanager for tests, which gives any answer: good, wrong, half, or slow."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

__all__ = ["SILENCE", "FakeAlertmanager", "answer", "manager"]

SILENCE: dict[str, Any] = {
    "id": "0b5a",
    "status": {"state": "active"},
    "matchers": [
        {"name": "alertname", "value": "HeliographReceiverIsolated", "isRegex": False, "isEqual": True},
        {"name": "node", "value": "feed|other", "isRegex": True},
    ],
    "startsAt": "2026-11-24T02:00:00.000Z",
    "endsAt": "2126-11-24T02:00:00.123456789Z",
    "createdBy": "ada",
    "comment": "the switch is replaced",
}


def answer(body: object, status: str = "200 OK", length: int | None = None) -> bytes:
    """An answer of HTTP; `length` is the promised one."""
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    size = len(content) if length is None else length
    return f"HTTP/1.1 {status}\r\nContent-Length: {size}\r\nContent-Type: application/json\r\n\r\n".encode() + content


@dataclass
class FakeAlertmanager:
    """Gives `answer` to every connection."""

    url: str
    answer: bytes
    drips: bool = False
    """Whether the answer comes byte by byte, without an end."""
    heard: list[bytes] = field(default_factory=list)
    """The first lines of what it was sent."""


@contextlib.contextmanager
def manager(first: bytes) -> Iterator[FakeAlertmanager]:
    """An Alertmanager that listens."""
    stopping = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(0.05)
        fake = FakeAlertmanager(f"http://127.0.0.1:{listening.getsockname()[1]}", first)

        def give(peer: socket.socket) -> None:
            with peer, contextlib.suppress(OSError):
                peer.settimeout(2.0)
                fake.heard.append(peer.recv(4096).partition(b"\r\n")[0])
                if not fake.drips:
                    peer.sendall(fake.answer)
                    return
                for byte in fake.answer * 1000:
                    if stopping.wait(0.02):
                        return
                    peer.sendall(bytes([byte]))

        def serve() -> None:
            givers = []
            while not stopping.is_set():
                with contextlib.suppress(TimeoutError):
                    giver = threading.Thread(target=give, args=(listening.accept()[0],))
                    giver.start()
                    givers.append(giver)
            for giver in givers:
                giver.join()

        serving = threading.Thread(target=serve)
        serving.start()
        try:
            yield fake
        finally:
            stopping.set()
            serving.join()
