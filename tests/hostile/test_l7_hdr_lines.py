"""L7: a line of an HDR log costs what its bytes do, whatever number of cells its histogram claims."""

from __future__ import annotations

import base64
import random
import resource
import struct
import subprocess
import sys
import zlib
from pathlib import Path

import numpy as np
import pytest

from heliograph.monitor import _hdr
from heliograph.monitor.history.importer import import_hlog
from heliograph.monitor.history.merge import merge_spool

HOURS_78 = 2**48 - 1
"""Highest of the largest histogram with 5 digits that is read at all: 4 M cells."""


def word(value: int) -> bytes:
    """ZigZag LEB128, the ninth byte with 8 bits."""
    left = (value << 1) ^ (value >> 63)
    out = bytearray()
    for _ in range(8):
        if left < 128:
            break
        out.append(left & 127 | 128)
        left >>= 7
    out.append(left & 255)
    return bytes(out)


def payload(words: bytes, digits: int = 5, highest: int = HOURS_78, packed: bool = True) -> bytes:
    """A V2 payload."""
    body = struct.pack(">IIIIqqd", 0x1C849313, len(words), 0, digits, 1, highest, 1.0) + words
    if not packed:
        return body
    small = zlib.compress(body, 9)
    return struct.pack(">II", 0x1C849314, len(small)) + small


def line(data: bytes) -> str:
    return f"0.000,1.000,0.001,{base64.b64encode(data).decode()}\n"


HEAD = "#[Histogram log format version 1.3]\n#[BaseTime: 1763726400.000 (seconds since epoch)]\n"


def test_l7_a_short_line_that_claims_millions_of_cells_is_imported_in_little_memory(tmp_path: Path) -> None:
    """In a process of its own, whose memory is limited to less than two such arrays more than it has."""
    log = tmp_path / "claims.hlog"
    claims = line(payload(word(-1000) + word(7)))
    assert len(claims) < 130
    log.write_text(HEAD + claims * 300)
    code = (
        "import resource, sys\n"
        "from pathlib import Path\n"
        "from heliograph.monitor.history.importer import import_hlog\n"
        "used = int(open('/proc/self/statm').read().split()[0]) * 4096\n"
        "resource.setrlimit(resource.RLIMIT_AS, (used + (24 << 20), used + (24 << 20)))\n"
        "from heliograph.monitor import _hdr\n"
        "found = [_hdr.rewrite(data) if hasattr(_hdr, 'rewrite') else _hdr.decode(data)"
        " for data in [bytes.fromhex(sys.argv[1])] * 3]\n"
        "print(len(found))\n"
    )
    data = payload(word(-1000) + word(7))
    done = subprocess.run([sys.executable, "-c", code, data.hex()], capture_output=True, text=True, check=False)
    assert done.stdout == "3\n", done.stderr
    before = resource.getrusage(resource.RUSAGE_SELF)
    imported = import_hlog(log, tmp_path / "spool")
    after = resource.getrusage(resource.RUSAGE_SELF)
    assert (imported.intervals, imported.refused) == (300, 0)
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 3.0


def test_l7_a_line_packed_more_tightly_than_any_histogram_needs_is_named_and_the_others_are_read(
    tmp_path: Path,
) -> None:
    log = tmp_path / "bomb.hlog"
    bomb = payload(word(1) * 4_000_000)
    assert len(bomb) < 8000
    log.write_text(
        HEAD + line(payload(word(3))) + line(bomb) + line(payload(word(0) * 3_000_000)) + line(payload(word(5)))
    )
    done = import_hlog(log, tmp_path / "spool")
    assert done.intervals == 2
    assert done.refused == 2
    assert [item.line for item in done.malformed] == [4, 5]
    assert all("packed more tightly than any histogram needs" in item.reason for item in done.malformed)


def test_l7_lines_that_are_refused_are_counted_and_only_the_first_are_kept(tmp_path: Path) -> None:
    log = tmp_path / "refused.hlog"
    log.write_text(HEAD + "x\n" * 5000 + line(payload(word(5))))
    done = import_hlog(log, tmp_path / "spool")
    assert (done.intervals, len(done.malformed)) == (1, 1000)
    assert done.refused == 5000


def test_l7_what_is_imported_is_what_was_counted(tmp_path: Path) -> None:
    log = tmp_path / "sums.hlog"
    log.write_text(HEAD + line(payload(word(-1000) + word(7) + word(-3) + word(2))) * 4)
    import_hlog(log, tmp_path / "spool")
    merged, problems = merge_spool(tmp_path / "spool", period=None)
    assert not problems
    row = merged.to_pylist()[0]
    assert (row["n"], row["min"], row["max"], row["digits"], row["highest"]) == (36, 1000, 1004, 5, HOURS_78)


@pytest.mark.parametrize(
    "shape", [(3, 1, 60_000_000_000), (2, 20_000, 3_600_000_000_000), (5, 1, 10_000_000), (1, 1, 2)]
)
@pytest.mark.parametrize("packed", [False, True])
def test_l7_a_payload_rewritten_is_the_payload_encoded(shape: tuple[int, int, int], packed: bool) -> None:
    cells = _hdr.cells(*shape)
    dice = random.Random(cells)
    for filled in (0, 1, 5, 300):
        counts = np.zeros(cells, np.uint64)
        for _ in range(filled):
            counts[dice.randrange(cells)] = dice.choice((1, 3, 2**40, 200))
        if filled == 300:
            counts[-1] = 1
        whole = _hdr.encode(counts, *shape)
        found = _hdr.rewrite(_hdr.encode(counts, *shape, compress=packed))
        assert found[:4] == (whole, *shape)
        assert found[4:7] == _hdr.summary(counts, *shape)[:3]
        assert found[7] == pytest.approx(_hdr.summary(counts, *shape)[3])


def test_l7_hostile_payloads_are_refused_as_they_are_decoded() -> None:
    sound = payload(word(-10) + word(4) + word(1), digits=3, highest=60_000_000_000)
    plain = payload(word(4) * 20, digits=3, highest=10**9, packed=False)
    dice = random.Random(3)
    for _ in range(3000):
        mutant = bytearray(dice.choice((sound, plain)))
        for _ in range(dice.randint(1, 3)):
            mutant[dice.randrange(len(mutant))] = dice.randrange(256)
        if dice.random() < 0.2:
            del mutant[dice.randrange(len(mutant)) :]
        found: list[object] = []
        for read in (_hdr.decode, _hdr.rewrite):
            try:
                found.append(read(bytes(mutant))[1:4])
            except _hdr.Refused:
                found.append(None)
        assert found[0] == found[1]
