"""The HTTP server of the pages: waitress, with limits for clients that are slow, silent or many.

- A request must arrive within `_REQUEST_SECONDS`, however slowly its bytes come.
- A client that takes no byte of its answer for `_STALLED_SECONDS` is disconnected. waitress alone waits for it forever.
- Above `_MOST_CONNECTIONS`, a new connection closes the one that has been idle longest. So connections that only exist
  cannot keep readers out.
- Each stream of updates occupies a thread (`push.py`). There are `_THREADS` more for everything else.
"""

from __future__ import annotations

import contextlib
import errno
import socket
import time
from typing import TYPE_CHECKING, Any

from waitress.channel import HTTPChannel
from waitress.server import create_server
from waitress.task import WSGITask

from heliograph.dashboards.live.push import MOST_STREAMS, UNSENT
from heliograph.monitor.errors import UserError

if TYPE_CHECKING:
    from waitress.server import BaseWSGIServer

__all__ = ["listen"]

_THREADS = 6
_MOST_CONNECTIONS = 96
_IDLE_SECONDS = 20
_REQUEST_SECONDS = 5.0
_STALLED_SECONDS = 15.0
_HEAD_BYTES = 32 << 10
_BODY_BYTES = 12 << 20
"""A flight recording of 8 MiB as base64."""
_SEND_BUFFER = 64 << 10
"""The kernel doubles it. A larger one would hold minutes of updates for a client that does not read."""


class _Task(WSGITask):  # type: ignore[misc]  # waitress has no types
    """A request whose application knows what its connection has not taken yet."""

    def get_environment(self) -> dict[str, Any]:
        """Return the WSGI environment."""
        found: dict[str, Any] = super().get_environment()
        channel = self.channel
        found[UNSENT] = lambda: channel.total_outbufs_len
        return found


class _Channel(HTTPChannel):  # type: ignore[misc]
    """A connection with limits."""

    task_class = _Task
    _began: float | None = None

    def __init__(self, server: Any, sock: socket.socket, *rest: Any, **named: Any) -> None:
        """Take a new connection, in place of an idle one where there are too many."""
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_BUFFER)
        super().__init__(server, sock, *rest, **named)
        others = [one for one in server.active_channels.values() if one is not self and not one.will_close]
        if len(others) >= _MOST_CONNECTIONS:
            idle = [one for one in others if not one.requests]
            if idle:
                min(idle, key=lambda one: one.last_activity).will_close = True
            else:
                self.will_close = True

    def received(self, data: bytes) -> bool:
        """Process received data."""
        taken = bool(super().received(data))
        now = time.monotonic()
        if self.request is None:
            self._began = None
        elif self._began is None:
            self._began = now
        elif now - self._began > _REQUEST_SECONDS:
            self.will_close = True
        return taken

    def _flush_some(self, do_close: bool = True) -> bool:
        """Send what the connection takes, and forget it; waitress keeps up to 16 MB that a stream has sent."""
        sent = bool(super()._flush_some(do_close))
        if sent and not self.total_outbufs_len:
            self.outbufs[-1].prune()
        return sent

    def writable(self) -> bool:
        """Whether there is something to send; called at least once a second."""
        if self.total_outbufs_len and time.time() - self.last_activity > _STALLED_SECONDS:
            with contextlib.suppress(OSError):
                self.socket.shutdown(socket.SHUT_RDWR)  # the next write fails, and waitress closes the connection
        return bool(super().writable())


def listen(application: object, host: str, port: int) -> BaseWSGIServer:
    """Return a server that listens; its `run` serves until SIGTERM or Ctrl-C.

    Args:
        application: The WSGI application.
        host: Address to listen on.
        port: Its port; 0: any free one.

    Raises:
        UserError: The address cannot be used.
    """
    try:
        server = create_server(
            application,
            host=host,
            port=port,
            threads=_THREADS + MOST_STREAMS,
            ident=None,
            connection_limit=2 * _MOST_CONNECTIONS,
            channel_timeout=_IDLE_SECONDS,
            channel_request_lookahead=1,  # also notices during a stream that its reader has left
            cleanup_interval=5,
            max_request_header_size=_HEAD_BYTES,
            max_request_body_size=_BODY_BYTES,
        )
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise UserError(
                f"port {port} on {host} is in use; stop the program that uses it, or choose another port: "
                f"--listen {host}:{port + 1}"
            ) from None
        raise UserError(f"cannot listen on {host}:{port}: {error.strerror or error}") from None
    server.channel_class = _Channel
    return server
