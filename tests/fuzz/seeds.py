"""Seeds for the fuzz targets: valid input of every kind, made from the golden packets and the tests' own words.

python tests/fuzz/seeds.py FOLDER        writes FOLDER/<target>/<name>
"""

from __future__ import annotations

import base64
import random
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


COMMANDS = [
    "ping",
    "level level=3 for=60",
    "set-rate rate=10000000 topic=PRICES.*",
    "set-policy policy=dynamic stream=0a1b2c3d4e5f:30001",
    "suspend receiver=slow-1 for=30.5 why=10%20%25%20%C3%BCber",
    "expel receiver=10.1.2.3:41000",
    "cutoff off=yes",
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


# engine/docs/ring.md: where the words of a ring are, and the slots of the ring that fuzz_ring makes.
RING_WORDS = {
    "magic": 0, "version": 8, "bytes": 16, "slots": 24, "readers": 32, "feedback": 40, "writer": 64, "port": 80,
    "state": 88, "claimed": 128, "present": 192, "asleep": 200, "said-bell": 208, "changes": 216, "sleepers": 224,
    "writer-sleeps": 256, "header": 320, "claim": 512, "bell": 528, "position": 576, "said": 640, "heard": 704,
}  # fmt: skip
RING_SLOTS, RING_STRIDE = 20480 + 64 * 32 * 512, 384
RING_VALUES = [
    0,
    1,
    64,
    65 << 17 | 200,
    1 << 17 | 201,
    1 << 17 | 1 << 16 | 184,
    (1 << 32) - 1,
    (1 << 63) - 1,
    (1 << 64) - 1,
]


def ring_change(offset: int, value: int, anywhere: bool = False) -> bytes:
    """One change of fuzz_ring: odd offsets lead to the header."""
    return struct.pack("<IQ", offset << 1 | (not anywhere), value)


def ring_changes() -> Iterator[tuple[str, bytes]]:
    """A ring left as it is, each word of its header changed before the reader comes and while it reads, and slots."""
    nothing = ring_change(120, 0)  # reserved
    yield "as-it-is", nothing * 8
    for name, offset in RING_WORDS.items():
        for number, value in enumerate(RING_VALUES):
            yield f"{name}-{number}", ring_change(offset, value) + nothing
            yield f"{name}-{number}-later", nothing * 2 + ring_change(offset, value) + nothing
    for number, value in enumerate(RING_VALUES):
        slots = [ring_change(RING_SLOTS + slot * RING_STRIDE, value, anywhere=True) for slot in range(40)]
        yield f"slots-{number}", b"".join(slots) + nothing * 40
        yield f"slots-{number}-later", nothing * 40 + b"".join(slots)


def frame(kind: int, body: bytes = b"") -> bytes:
    """A frame of a TCP connection."""
    return struct.pack(">BBH", kind, 0, len(body)) + body


def portions(data: bytes, size: int) -> bytes:
    """Bytes as fuzz_tcp takes them: cut, each piece behind its length."""
    pieces = [data[at : at + size] for at in range(0, len(data), size)]
    return b"".join(bytes([len(piece)]) + piece for piece in pieces)


def connections(packets: list[tuple[str, bytes]]) -> Iterator[tuple[str, bytes]]:
    """What comes over a connection of either role: hello, packets, signs of life, a pair; in portions."""
    stream = b"".join(frame(0x82, packet) for _, packet in packets if len(packet) <= 600) + frame(0x03)
    stream += frame(0x04, bytes(4)) + frame(0x85)
    for role in (1, 2):
        hello = frame(0x81, struct.pack(">4sBBHIIQ", b"HRUM", 1, role, 1, 600, 1000, 9))
        for size in (255, 7, 1):
            for first in range(4):
                yield f"role-{role}-by-{size}-{first}", bytes([first]) + portions(hello + stream, size)
                yield f"greeted-{role}-by-{size}-{first}", bytes([first]) + portions(stream, size)


def commands() -> Iterator[tuple[str, bytes]]:
    """Commands as they are written, and in slots of a ring."""
    slots = b""
    for number, text in enumerate(COMMANDS):
        data = text.encode()
        yield f"words-{number}", data
        check = 0xCBF29CE484222325
        for byte in struct.pack("<Q", number) + data:
            check = (check ^ byte) * 0x100000001B3 % (1 << 64)
        state = number << 25 | 4711 << 3 | 2
        slots += struct.pack("<QQQQQII", state, 1, number, 1 << 62, check, 0, len(data)) + data.ljust(976, b"\0")
    yield "slots", slots


PAIR_ACTIONS = {"send": range(3), "pass": (3, 4), "move": (5, 6, 7), "time": (8, 9), "subscribe": (10,), "ack": (11,),
                "room": (12,), "forge": (13, 29), "act": (14, 30), "life": (15,)}  # fmt: skip
PAIR_STORIES = {
    "calm": "send send pass time pass ack",
    "lossy": "send send move move pass time pass move pass time ack",
    "busy": "send send send time pass subscribe send pass room pass time room pass",
    "forged": "send pass forge forge time pass move forge pass time",
    "treated": "send pass time pass ack act time pass send pass",
    "lives": "send move pass time pass send pass life send pass time pass",
}


def programs() -> Iterator[tuple[str, bytes]]:
    """Programs of fuzz_pair: some of each kind of story, the same ones every time."""
    chance = random.Random(11)
    for story, words in PAIR_STORIES.items():
        for number in range(12):
            program = bytearray(chance.randbytes(4))
            for word in words.split() * chance.randint(2, 8):
                how = chance.randrange(20, 27) if word == "time" else chance.randrange(256)
                program += bytes([chance.choice(PAIR_ACTIONS[word]) | chance.randrange(16) << 4, how])
                if word in ("move", "forge"):
                    program += chance.randbytes(5 if word == "move" else 24)
            yield f"{story}-{number}", bytes(program)


def batches(packets: list[tuple[str, bytes]]) -> Iterator[tuple[str, bytes]]:
    """Packets of fuzz_delivery: what golden data packets carry, and batches of the topics it subscribes to."""
    bodies = [packet[24:600] for _, packet in packets if len(packet) > 24]
    for first in (0, 5):
        for topic in (b"a", b"b"):
            messages = b"".join(struct.pack(">H", 5) + b"hello" for _ in range(4))
            identity = 0xCBF29CE484222325
            for byte in topic:
                identity = (identity ^ byte) * 0x100000001B3 % (1 << 64)
            head = struct.pack(">BBBBHHQQQII", 0x48, 1, 1, 0, 40, 4, identity, first, 8000, 0, 0)
            bodies.append(head + messages)
    for what in (0, 1, 2, 4, 8, 0x48):
        option = struct.pack("<III", 1 << 24, 0, 500) if what & 1 else b""
        yield f"as-{what}", bytes([0]) + b"".join(struct.pack(">BH", what, len(b)) + option + b for b in bodies)


def seeds() -> Iterator[tuple[str, str, bytes]]:
    """Target, name and input of each seed."""
    packets = list(golden_packets())
    for name, packet in packets:
        yield "fuzz_pgm", name, struct.pack(">H", len(packet)) + packet
    yield "fuzz_pgm", "all", b"".join(struct.pack(">H", len(packet)) + packet for _, packet in packets)
    for number, endpoint in enumerate(ENDPOINTS):
        yield "fuzz_options", f"endpoint-{number}", endpoint.encode()
    for name, command in commands():
        yield "fuzz_control", name, command
    yield "fuzz_hdr", "compressed", histogram()
    for name, changes in ring_changes():
        yield "fuzz_ring", name, changes
    for name, program in programs():
        yield "fuzz_pair", name, program
    for name, batch in batches(packets):
        yield "fuzz_delivery", name, batch
    for name, bytes_in in connections(packets):
        yield "fuzz_tcp", name, bytes_in


def main() -> None:
    """Write them."""
    folder = Path(sys.argv[1])
    for target, name, data in seeds():
        (folder / target).mkdir(parents=True, exist_ok=True)
        (folder / target / name).write_bytes(data)


if __name__ == "__main__":
    main()
