"""Free ports of the loopback that no other test of the run is given.

A port that the kernel names for a probe socket is free only until the next program asks for one; tests that run side
by side have met there. The ports here lie below the kernel's own range (`ip_local_port_range`), each process of a
parallel run counts through a block of its own, and a port is tried for UDP and TCP before it is given.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import random
import socket

__all__ = ["free_port"]

LOWEST, HIGHEST = 20_000, 32_000
BLOCK = 3_000
"""Ports of one process of a parallel run; four run side by side before blocks are shared."""


def _block() -> int:
    """The first port of this process: `gw1` has the second block."""
    worker = os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")
    return LOWEST + int(worker) * BLOCK % (HIGHEST - LOWEST)


_numbers = itertools.count(random.SystemRandom().randrange(BLOCK))


def _is_free(port: int) -> bool:
    for kind in (socket.SOCK_DGRAM, socket.SOCK_STREAM):
        with socket.socket(socket.AF_INET, kind) as probe:
            try:
                probe.bind(("0.0.0.0", port))
            except OSError:
                return False
    with contextlib.suppress(OSError), socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as probe:
        probe.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        try:
            probe.bind(("::", port))
        except OSError:
            return False
    return True


def free_port() -> int:
    """A port that is free for UDP and TCP on every local address.

    Raises:
        RuntimeError: All ports of the block are taken.
    """
    first = _block()
    for _ in range(BLOCK):
        port = first + next(_numbers) % BLOCK
        if _is_free(port):
            return port
    raise RuntimeError(f"no port from {first} to {first + BLOCK - 1} is free")
