"""Packets of the engine for the tests of the wire: a C program lets source and receiver talk and prints it all."""

from __future__ import annotations

import shutil
import struct
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.wire.decoder import ones_sum

__all__ = ["Capture", "record", "write_pcap"]

ROOT = Path(__file__).resolve().parents[2]
ROOMS = ("base", "stats", "wire", "window", "receivers", "repair", "policy", "send", "receive")
SOURCE, RECEIVER, GROUP = ("10.0.0.1", 40001), ("10.0.0.100", 50000), ("239.192.7.7", 7500)


@dataclass(frozen=True, slots=True)
class Capture:
    """One run: the packets in order, and what the application sent."""

    packets: tuple[tuple[str, bytes], ...]
    """Way ("down" to the group, "up" to the source) and bytes."""
    sent: tuple[tuple[str, int, int], ...]
    """Topic, number and length of each message."""
    made: tuple[tuple[str, bytes], ...]
    """Way and bytes of packets outside the run: every type, family of addresses and set of options."""


def record(folder: Path) -> Capture:
    """Compile the program from the engine's sources and run it."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler")
    core = ROOT / "engine" / "core"
    sources = [path for room in ROOMS for path in sorted((core / room).glob("*.c")) if path.stem != "hdr_codec"]
    program = folder / "dump_packets"
    command = [compiler, "-std=c11", "-O0", "-D_GNU_SOURCE", f"-I{core}", f"-I{ROOT / 'engine' / 'include'}"]
    command += [
        str(ROOT / "tests" / "engine" / "dump_packets.c"),
        *map(str, sorted((core / "io").glob("sim*.c"))),
        *map(str, sources),
    ]
    subprocess.run([*command, "-lm", "-o", str(program)], check=True)
    lines = subprocess.run([program], check=True, capture_output=True, text=True).stdout.splitlines()
    words = [line.split(" ") for line in lines]
    return Capture(
        tuple((way, bytes.fromhex(data)) for way, data in (w for w in words if w[0] in ("down", "up"))),
        tuple((" ".join(w[1:-2]), int(w[-2]), int(w[-1])) for w in words if w[0] == "sent"),
        tuple((way, bytes.fromhex(data)) for _, way, data in (w for w in words if w[0] == "made")),
    )


def _udp_packet(way: str, payload: bytes) -> bytes:
    source, target = (SOURCE, GROUP) if way == "down" else (RECEIVER, SOURCE)
    addresses = b"".join(bytes(map(int, ip.split("."))) for ip in (source[0], target[0]))
    udp = struct.pack(">HHHH", source[1], target[1], 8 + len(payload), 0) + payload
    head = struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(udp), 0, 0, 1, 17, 0) + addresses
    return head[:10] + struct.pack(">H", ones_sum(head) ^ 0xFFFF) + head[12:] + udp


def write_pcap(path: Path, packets: tuple[tuple[str, bytes], ...]) -> None:
    """Write packets as a pcap file of raw IPv4, one microsecond apart."""
    with path.open("wb") as file:
        file.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 101))
        for i, (way, payload) in enumerate(packets):
            packet = _udp_packet(way, payload)
            file.write(struct.pack("<IIII", 1, i, len(packet), len(packet)) + packet)
