"""Two network namespaces and a virtual cable between them, with loss where packets arrive.

    near 198.18.78.1  ===== cable =====  198.18.78.2 far

Heliograph is at the near end, in this process; the other program at the far end, in one of its own. A source and a
receiver of PGM programs that share an address and a port would take each other's requests, so one host will not do.
Packets are dropped by nftables on the ingress hook: a drop on the way out would be told to the sender, which would
send again. The address range is 198.18.0.0/15, set apart for tests of network equipment and never routed.
"""

from __future__ import annotations

import contextlib
import ctypes
import itertools
import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import pytest

__all__ = ["ADDRESSES", "Cable", "End", "lay"]

End = Literal["near", "far"]
ADDRESSES: dict[End, str] = {"near": "198.18.78.1", "far": "198.18.78.2"}
_CLONE_NEWNET = 0x40000000
_libc = ctypes.CDLL(None, use_errno=True)
_numbers = itertools.count()


def _run(*command: str, text: str | None = None) -> str:
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"`{' '.join(command)}` said: {done.stderr.strip() or done.returncode}"
    return done.stdout


def _set_namespace(descriptor: int) -> None:
    if _libc.setns(descriptor, _CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), "setns")


@dataclass(frozen=True, slots=True)
class Cable:
    """The two ends by the names of their namespaces."""

    namespaces: dict[End, str]

    def at(self, end: End) -> tuple[str, ...]:
        """What a command must begin with to run at this end."""
        return ("ip", "netns", "exec", self.namespaces[end])

    @contextlib.contextmanager
    def enter(self, end: End) -> Iterator[None]:
        """This thread, and threads it starts, are at the end; sockets opened meanwhile stay there."""
        with (
            open("/proc/thread-self/ns/net", "rb") as here,
            open(f"/run/netns/{self.namespaces[end]}", "rb") as there,
        ):
            _set_namespace(there.fileno())
            try:
                yield
            finally:
                _set_namespace(here.fileno())

    def lose(self, end: End, share: float) -> None:
        """From now on a random share (0 to 1) of the UDP datagrams that arrive at the end is lost; 0: none."""
        chance = "" if share == 1 else f"numgen random mod 1000 < {round(share * 1000)}"
        rules = (
            "table netdev loss\n"
            "delete table netdev loss\n"
            "table netdev loss {\n"
            "  chain ingress {\n"
            f'    type filter hook ingress device "{end}" priority 0; policy accept;\n'
            f"    meta l4proto udp {chance} counter drop\n"
            "  }\n"
            "}\n"
        )
        _run(*self.at(end), "nft", "-f", "-", text=rules)

    def lost(self, end: End) -> int:
        """Datagrams dropped there since the last `lose`."""
        words = _run(*self.at(end), "nft", "list", "table", "netdev", "loss").split()
        return int(words[words.index("packets") + 1])


@contextlib.contextmanager
def lay() -> Iterator[Cable]:
    """A cable; gone again, with all that was in it, when the context ends.

    Skips the test where the system does not let us: without root, `ip` or `nft`.
    """
    if os.geteuid() != 0:
        pytest.skip("a network namespace needs root")
    if missing := [tool for tool in ("ip", "nft") if shutil.which(tool) is None]:
        pytest.skip(f"{' and '.join(missing)} is not installed")
    number = f"{os.getpid()}-{next(_numbers)}"
    cable = Cable({"near": f"helio-near-{number}", "far": f"helio-far-{number}"})
    ends: tuple[End, ...] = ("near", "far")
    try:
        for end in ends:
            made = subprocess.run(
                ("ip", "netns", "add", cable.namespaces[end]), capture_output=True, text=True, check=False
            )
            if made.returncode != 0:
                pytest.skip(f"a network namespace is not permitted: {made.stderr.strip()}")
        near, far = (cable.namespaces[end] for end in ends)
        _run("ip", "link", "add", "near", "netns", near, "type", "veth", "peer", "name", "far", "netns", far)
        for end in ends:
            _run(*cable.at(end), "ip", "address", "add", f"{ADDRESSES[end]}/30", "dev", end)
            _run(*cable.at(end), "ip", "link", "set", "lo", "up")
            _run(*cable.at(end), "ip", "link", "set", end, "up")
        yield cable
    finally:
        for end in ends:
            subprocess.run(("ip", "netns", "delete", cable.namespaces[end]), capture_output=True, check=False)
