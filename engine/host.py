"""Installed parts and features of this host, for `heliograph info` and for fault reports."""

from __future__ import annotations

import os
import platform
import shutil
import socket
from collections.abc import Callable
from pathlib import Path

from heliograph.engine import _core, catalogue

__all__ = ["facts", "multicast_works", "segment_folder"]

Fact = str | int | float | bool

_UDP_SEGMENT, _UDP_GRO = 103, 104
_GROUP = "239.192.255.254"


def facts() -> dict[str, dict[str, Fact]]:
    """All facts by group and name. Takes up to half a second if multicast does not work."""
    return {"installed": _installed(), "host": _host(), "option defaults": _defaults()}


def segment_folder() -> Path:
    """Default folder of the stats segments."""
    named = os.environ.get("HELIOGRAPH_SEGMENT_DIR")
    shared = Path("/dev/shm/heliograph")
    if named or not shared.is_dir():
        return Path(named or shared)
    found = shared.stat()
    is_safe = found.st_uid in (0, os.geteuid()) and (not found.st_mode & 0o022 or found.st_mode & 0o1000)
    return shared if is_safe else Path(f"{shared}-{os.geteuid()}")


def multicast_works(interface: str = "127.0.0.1", timeout: float = 0.5) -> bool:
    """Whether a datagram sent to a multicast group on an interface is received there.

    Args:
        interface: IPv4 address of the interface.
        timeout: Longest time to wait for the datagram, seconds.
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
        "build": _core.build(),
        "python": platform.python_version(),
        "segment folder": str(segment_folder()),
    }


def _host() -> dict[str, Fact]:
    return {
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "processors": len(os.sched_getaffinity(0)),
        "clock": _clock(),
        "UDP send offload (GSO)": _offload(_UDP_SEGMENT),
        "UDP receive offload (GRO)": _offload(_UDP_GRO),
        "multicast on loopback": multicast_works(),
        "largest receive buffer": _kernel("net/core/rmem_max", int),
        "largest send buffer": _kernel("net/core/wmem_max", int),
        "segment folder writable": _writable(segment_folder()),
        "segment folder free bytes": shutil.disk_usage(_existing(segment_folder())).free,
    }


def _kernel(name: str, convert: Callable[[str], Fact]) -> Fact:
    try:
        return convert(Path("/proc/sys", name).read_text(encoding="ascii"))
    except (OSError, ValueError):
        return "unknown"


def _clock() -> str:
    """The engine's clock source; the same decision as in engine/core/io/clock_source.c."""
    try:
        source = Path("/sys/devices/system/clocksource/clocksource0/current_clocksource").read_text().strip()
    except OSError:
        source = "unknown"
    if source == "tsc" and platform.machine() == "x86_64":
        return "tsc, read by the engine itself"
    return f"{source}, read through the kernel (clock_gettime)"


def _offload(option: int) -> bool:
    """Whether the kernel supports a UDP offload (sending: Linux 4.18, receiving: 5.0)."""
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            probe.getsockopt(socket.IPPROTO_UDP, option)
    except OSError:
        return False
    return True


def _existing(folder: Path) -> Path:
    """The folder, or its nearest existing parent."""
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    return folder


def _writable(folder: Path) -> bool:
    """Whether files can be created in a folder, or the folder itself if it is missing."""
    return os.access(_existing(folder), os.W_OK | os.X_OK)


def _defaults() -> dict[str, Fact]:
    return {
        option.name: "none" if option.default == "" else f"{option.default} {option.unit}".strip()
        for option in catalogue.options().values()
    }
