"""Checks the Host header of requests to the monitor's web servers, against DNS rebinding.

A page of another site can make its own host name resolve to 127.0.0.1 and then read the answers of a local server.
Such a request carries that name in its Host header. Therefore a server answers only these names: localhost, the bound
host, this machine's host name unless only the loopback is bound, and the names allowed by option. IP addresses are
always allowed, because rebinding needs a name. A request without the header is allowed; no browser sends one.
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Callable, Collection, Iterable
from typing import TYPE_CHECKING

from heliograph.monitor.text import printable

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

__all__ = ["AllowedHosts", "guarded", "is_loopback"]

_LONGEST = 255


class AllowedHosts:
    """The host names a server answers to."""

    def __init__(
        self, bound: str, allowed: Collection[str] = (), own_name: Callable[[], str] = socket.gethostname
    ) -> None:
        """Collect the names.

        Args:
            bound: Host or address the server listens on.
            allowed: Further names.
            own_name: Returns this machine's host name.
        """
        self._names = {"localhost", _plain(bound), *map(_plain, allowed)}
        if not is_loopback(bound):
            self._names.add(_plain(own_name()))

    def allows(self, header: str) -> bool:
        """Whether to answer a request with this Host header; an empty string means no header."""
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


def is_loopback(bound: str) -> bool:
    """Whether a server bound to this host or address is reached from this machine only."""
    address = _address(_plain(bound))
    return _plain(bound) == "localhost" or (address is not None and address.is_loopback)


def guarded(
    application: WSGIApplication, hosts: AllowedHosts, on_refusal: Callable[[], None] = lambda: None
) -> WSGIApplication:
    """Wrap an application: requests with another Host header get status 403 and a hint.

    Args:
        application: The application to protect.
        hosts: The host names it answers to.
        on_refusal: Called for each refused request.
    """

    def answer(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        header = str(environ.get("HTTP_HOST", ""))
        if hosts.allows(header):
            return application(environ, start_response)
        on_refusal()
        hint = f"The host name {printable(header[:80])} is not allowed; --allowed-host NAME allows one.\n".encode()
        head = [("Content-Type", "text/plain; charset=utf-8"), ("Content-Length", str(len(hint)))]
        start_response("403 Forbidden", head)
        return [hint]

    return answer
