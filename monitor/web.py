"""Who may ask a web server of ours, by the name it was called by.

A page of another site can let its own name point to 127.0.0.1 and then read, as its own, whatever answers there (DNS
rebinding). Such a request carries that name in its header Host. So a name is answered only when it is one of ours:
localhost, the one that was bound, this machine's own name unless only the loopback listens, and those that were
allowed by option. Addresses are always answered, for they cannot be pointed elsewhere, and so is a request without the
header, which no browser sends.
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Callable, Collection, Iterable
from typing import TYPE_CHECKING

from heliograph.monitor.text import printable

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

__all__ = ["AllowedHosts", "guarded"]

_LONGEST = 255


class AllowedHosts:
    """The names a server may be called by."""

    def __init__(
        self, bound: str, allowed: Collection[str] = (), own_name: Callable[[], str] = socket.gethostname
    ) -> None:
        """Collect them.

        Args:
            bound: Host or address the server listens on.
            allowed: Further names.
            own_name: Tells this machine's name.
        """
        self._names = {"localhost", _plain(bound), *map(_plain, allowed)}
        if not _is_loopback(bound):
            self._names.add(_plain(own_name()))

    def allows(self, header: str) -> bool:
        """Whether a request with this header Host may be answered; empty: it has none."""
        if len(header) > _LONGEST:
            return False
        name = _plain(_without_port(header))
        return not name or name in self._names or name.endswith(".localhost") or _address(name) is not None


def _without_port(header: str) -> str:
    if header.startswith("["):
        return header[1:].partition("]")[0]
    name, colon, port = header.rpartition(":")
    return name if colon and port.isdecimal() and ":" not in name else header


def _plain(name: str) -> str:
    return name.strip().strip("[]").rstrip(".").lower()


def _address(name: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(name.partition("%")[0])
    except ValueError:
        return None


def _is_loopback(bound: str) -> bool:
    address = _address(_plain(bound))
    return _plain(bound) == "localhost" or (address is not None and address.is_loopback)


def guarded(
    application: WSGIApplication, hosts: AllowedHosts, on_refusal: Callable[[], None] = lambda: None
) -> WSGIApplication:
    """The application for requests whose header Host is allowed; others get 403 and what to do.

    Args:
        application: What is guarded.
        hosts: The names it may be called by.
        on_refusal: Called for each request refused.
    """

    def answer(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        header = str(environ.get("HTTP_HOST", ""))
        if hosts.allows(header):
            return application(environ, start_response)
        on_refusal()
        told = f"The name {printable(header[:80])} is none of this server's; --allowed-host NAME allows one.\n".encode()
        head = [("Content-Type", "text/plain; charset=utf-8"), ("Content-Length", str(len(told)))]
        start_response("403 Forbidden", head)
        return [told]

    return answer
