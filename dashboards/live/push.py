"""How updates reach a browser: a stream that the server writes to, and single answers for those without a stream.

GET /live/stream is a stream of server-sent events (WHATWG HTML, 9.2). It has one message after each sample, and at
least one a second, so that a browser knows from silence that something is wrong. GET /live/view answers with one such
message. Both change nothing, and pass the same checks as the pages.

The newest view wins: a message is made when the connection has taken the message before. Meanwhile views are skipped,
and the next message has the difference to the newest. A connection holds one message at most. One that has not taken a
message within `_BEHIND_SECONDS` loses its stream.

Each stream occupies a thread, so their number is bounded, in all and for each browser: a browser opens at most six
connections to a server, and a stream is one of them. A refused browser requests single messages instead, and shows it.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from flask import Flask, Response, request

from heliograph.dashboards.live.pages.address import fields
from heliograph.dashboards.live.store import Store
from heliograph.dashboards.live.updates import Updates, Values

__all__ = ["MOST_STREAMS", "UNSENT", "Streams", "serve"]

MOST_STREAMS = 32
_MOST_OF_A_BROWSER = 4
_LONGEST_NAME = 40
_LONGEST_SECONDS = 600.0
"""A stream ends after this time; its browser opens another one, and its session is checked again."""
_BEHIND_SECONDS = 10.0
_SILENCE_SECONDS = 1.0
"""Longest time between two messages, for samples that come more often."""
_DRAWING_BITS = 52

UNSENT = "heliograph.unsent"
"""Key of the WSGI environment: a function that returns the number of bytes that a connection has not taken yet."""
_GONE = "waitress.client_disconnected"


class Streams:
    """Counts the open streams; safe to use from many threads."""

    def __init__(self, most: int = MOST_STREAMS, most_of_a_browser: int = _MOST_OF_A_BROWSER) -> None:
        """Start without streams."""
        self._most = most
        self._most_of_a_browser = most_of_a_browser
        self._lock = threading.Lock()
        self._open: Counter[str] = Counter()

    @property
    def count(self) -> int:
        """Return the number of open streams."""
        with self._lock:
            return self._open.total()

    def enter(self, browser: str) -> str:
        """Open a stream of a browser; return why not, or nothing.

        Args:
            browser: The name that the browser gave itself.
        """
        with self._lock:
            if self._open.total() >= self._most:
                return f"all {self._most} streams of the server are in use"
            if self._open[browser] >= self._most_of_a_browser:
                return f"this browser has {self._most_of_a_browser} streams"
            self._open[browser] += 1
            return ""

    def leave(self, browser: str) -> None:
        """Close a stream of a browser."""
        with self._lock:
            self._open[browser] -= 1
            if self._open[browser] <= 0:
                del self._open[browser]


@dataclass(frozen=True, slots=True)
class _Asked:
    """The request of a browser."""

    path: str
    values: Values
    shown: int | None
    """Number of the drawing that it holds."""
    browser: str


def _asked(given: Mapping[str, str]) -> _Asked:
    shown = given.get("shown", "")
    is_number = shown.isascii() and shown.isdecimal() and len(shown) <= len(str(1 << _DRAWING_BITS))
    return _Asked(
        given.get("path", "/"),
        fields(given.get("search", ""))[0],
        int(shown) if is_number else None,
        given.get("browser", "")[:_LONGEST_NAME],
    )


def messages(
    store: Store, updates: Updates, asked: _Asked, unsent: Callable[[], int], is_gone: Callable[[], bool]
) -> Iterator[str]:
    """Yield the messages of one stream until it ends.

    Args:
        store: The data.
        updates: Makes the messages.
        asked: What the browser asks for.
        unsent: Returns the number of bytes that its connection has not taken yet.
        is_gone: Whether the browser has disconnected.
    """
    began = taken = time.monotonic()
    sequence, shown = -1, asked.shown
    while not is_gone() and not store.is_closed:
        view = store.wait(sequence, _SILENCE_SECONDS)
        sequence, now = view.sequence, time.monotonic()
        if not unsent():
            taken = now
            message = updates.message(asked.path, asked.values, shown)
            shown = message.drawing
            yield f"data: {message.text}\n\n"
        if now - taken > _BEHIND_SECONDS or now - began > _LONGEST_SECONDS:
            return


def serve(server: Flask, store: Store, updates: Updates, streams: Streams | None = None) -> None:
    """Add both addresses to a server.

    Args:
        server: The server of the pages.
        store: The data.
        updates: Makes the messages.
        streams: Counts the streams; None: a new count.
    """
    count = streams or Streams()

    @server.get("/live/view")
    def view() -> Response:
        asked = _asked(request.args)
        store.look()
        text = updates.message(asked.path, asked.values, asked.shown).text
        return Response(text, mimetype="application/json", headers={"Cache-Control": "no-store"})

    @server.get("/live/stream")
    def stream() -> Response:
        if request.method != "GET":  # Flask drops the body of HEAD, and with it the end of the stream
            return Response("Only GET.\n", 405, {"Allow": "GET"}, mimetype="text/plain")
        if request.headers.get("Sec-Fetch-Site", "same-origin") not in ("same-origin", "none"):
            return Response("A page of another site cannot read this, only occupy it.\n", 403, mimetype="text/plain")
        asked = _asked(request.args)
        if refusal := count.enter(asked.browser):
            return Response(f"{refusal}\n", 503, {"Retry-After": "5"}, mimetype="text/plain")
        found = request.environ
        unsent, is_gone = found.get(UNSENT, lambda: 0), found.get(_GONE, lambda: False)
        answer = Response(messages(store, updates, asked, unsent, is_gone), mimetype="text/event-stream")
        answer.call_on_close(lambda: count.leave(asked.browser))
        # A proxy that collects the answer would hold the messages back.
        answer.headers.update({"Cache-Control": "no-store", "X-Accel-Buffering": "no"})
        return answer
