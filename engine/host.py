"""What is installed and what this host offers, for `heliograph info` and for reports of trouble."""

from __future__ import annotations

import os
import platform
import socket
from collections.abc import Callable
from pathlib import Path

from heliograph.engine import _core, catalogue

__all__ = ["facts", "multicast_works", "segment_folder"]

Fact = str | int | float | bool

_GROUP = "239.192.255.254"


def facts() -> dict[str, dict[str, Fact]]:
    """Everything there is to tell, by group and name. Takes up to half a second when multicast does not work."""
    return {"installed": _installed(), "host": _host(), "option defaults": _defaults()}


def segment_folder() -> Path:
    """Where instances keep their stats segments unless told otherwise."""
    return Path(os.environ.get("HELIOGRAPH_SEGMENT_DIR") or "/dev/shm/heliograph")


def multicast_works(interface: str = "127.0.0.1", timeout: float = 0.5) -> bool:
    """Whether a datagram sent to a group on an interface comes back.

    Args:
        interface: IPv4 address of the interface.
        timeout: seconds to wait for the datagram.
    """
    here = socket.inet_aton(interface)
    try:
        with (
            socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as receiver,
            socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender,
        ):
            receiver.bind((_GROUP, 0))
            receiver.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, socket.inet_aton(_GROUP) + here)
            receiver.settimeout(timeout)
            sender.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, here)
            sender.sendto(b"heliograph", receiver.getsockname())
            return receiver.recv(64) == b"heliograph"
    except OSError:
        return False


def _installed() -> dict[str, Fact]:
    return {
        "version": _core.version(),
        "library": _core.library(),
        "python": platform.python_version(),
        "segment folder": str(segment_folder()),
    }


def _host() -> dict[str, Fact]:
    return {
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "processors": len(os.sched_getaffinity(0)),
        "multicast on loopback": multicast_works(),
        "largest receive buffer": _kernel("net/core/rmem_max", int),
        "largest send buffer": _kernel("net/core/wmem_max", int),
        "segment folder writable": _writable(segment_folder()),
    }


def _kernel(name: str, convert: Callable[[str], Fact]) -> Fact:
    try:
        return convert(Path("/proc/sys", name).read_text(encoding="ascii"))
    except (OSError, ValueError):
        return "unknown"


def _writable(folder: Path) -> bool:
    """Whether a file can be made in a folder, or the folder itself when it is missing."""
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    return os.access(folder, os.W_OK | os.X_OK)


def _defaults() -> dict[str, Fact]:
    return {
        option.name: "none" if option.default == "" else f"{option.default} {option.unit}".strip()
        for option in catalogue.options().values()
    }
