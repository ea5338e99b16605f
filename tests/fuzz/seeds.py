"""Seeds for the fuzz targets: valid input of every kind, made from the golden packets and the tests' own words.

python tests/fuzz/seeds.py FOLDER        writes FOLDER/<target>/<name>
"""

from __future__ import annotations

import base64
import struct
import sys
from collections.abc import Iterator
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]

ENDPOINTS = [
    "rmm://239.192.1.1:7500?interface=127.0.0.1&ttl=0&mtu=9000&profile=wan",
    "rmm://[ff15::1]:7500?interface=::1",
    "rmm+unicast://127.0.0.1:7500,10.1.2.3:7501?heartbeat_min=0.001",
    "rum://127.0.0.1:7500?mtu=65535",
    "shm://prices.fx-1?ring_packets=64",
    "inproc://a?send_window=16&linger=0",
    "rmm://239.192.1.1:7500?interface=%31%32%37.0.0.1",
]


def golden_packets() -> Iterator[tuple[str, bytes]]:
    """The packets of golden/pgm.txt: kind, name, hex in words, and +N for N zero bytes."""
    for line in (TESTS / "golden/pgm.txt").read_text().splitlines():
        if not line or line.startswith("#"):
            continue
        _, name, *words = line.split()
        zeros = sum(int(word[1:]) for word in words if word.startswith("+"))
        yield name, bytes.fromhex("".join(w for w in words if not w.startswith("+"))) + bytes(zeros)


def histogram() -> bytes:
    """A compressed payload of the reference implementation."""
    from hdrh.histogram import HdrHistogram

    recorded = HdrHistogram(1, 60_000_000_000, 3)
    for value in (1, 2000, 2001, 1_000_000, 59_000_000_000):
        recorded.record_value(value)
    return base64.b64decode(recorded.encode())


def seeds() -> Iterator[tuple[str, str, bytes]]:
    """Target, name and input of each seed."""
    packets = list(golden_packets())
    for name, packet in packets:
        yield "fuzz_pgm", name, struct.pack(">H", len(packet)) + packet
    yield "fuzz_pgm", "all", b"".join(struct.pack(">H", len(packet)) + packet for _, packet in packets)
    for number, endpoint in enumerate(ENDPOINTS):
        yield "fuzz_options", f"endpoint-{number}", endpoint.encode()
    yield "fuzz_hdr", "compressed", histogram()


def main() -> None:
    """Write them."""
    folder = Path(sys.argv[1])
    for target, name, data in seeds():
        (folder / target).mkdir(parents=True, exist_ok=True)
        (folder / target / name).write_bytes(data)


if __name__ == "__main__":
    main()
