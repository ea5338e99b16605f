"""Histograms of floating-point values in logs: every form, in whole nanoseconds, judged by the Java reference."""

from __future__ import annotations

import base64
import gzip
import struct
import zlib
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from heliograph.monitor import _hdr
from heliograph.monitor.history.doubles import is_double, whole_ns
from heliograph.monitor.history.importer import import_hlog
from heliograph.monitor.history.merge import merge_spool
from heliograph.monitor.latency import filled_bounds
from heliograph.monitor.model import Histogram
from tests.history.java_reference import judged, require_java
from tests.history.recordings import counts_of, latencies
from tests.history.test_commands import run
from tests.history.test_importer import plain_line, write

SHAPE = (2, 1, 32_767)
"""The array of Java's DoubleHistogram(2) after some values."""

OF_JAVA = (
    "DHISTwAAAAIAAAAAAAAAQByEkxQAAADFeJwlUDEOwjAMdM9OS1RVCFVVFyrBVDHwADYWRh7DC2BgZ+DBcJckkX12zvYl+/d3NGtWM7yMxupqqn"
    "v+roeK8HGcsOCMGyaM3IYM4Eg/M2/YMt5h2HToGC2MeqKMhDkIEtAF45Z1QRSAB2lkDXBWGAlsKF+PTBLwmMhICFptLdcJV4lgzBrgRQ5VGEbO"
    "QgorhcylopcT1bhQjZetRVFTxufQBVW0q6jSJgFZTmRDH4n5vryGD4ut+mR9wh0rHrjgD1p3C04="
)
"""DoubleHistogram(2) with 200 skewed values and 0.0: its ratio is 8, its array is shifted."""


def of_doubles(
    cells: list[int], ratio: float, version: int = 2, *, compressed: bool = False, shift: int = 640, digits: int = 2
) -> bytes:
    """A payload with one value in each of the cells, by the rules of DoubleHistogram.encodeIntoByteBuffer."""
    counts = np.zeros(_hdr.cells(*SHAPE), dtype=np.uint64)
    counts[cells] = 1
    if version == 2:
        cookie = 0x1C849313
        content = _hdr.encode(counts, *SHAPE)[40:]
    else:
        cookie = 0x1C849381
        content = counts[: max(cells) + 1].astype(">i8").tobytes()
    inner = struct.pack(">Iiiiqqd", cookie, len(content), shift, *SHAPE, ratio) + content
    if compressed:
        packed = zlib.compress(inner)
        inner = struct.pack(">Ii", cookie + 1, len(packed)) + packed
    return struct.pack(">Iiq", 0x0C72124F if compressed else 0x0C72124E, digits, 64) + inner


def read(payload: bytes, unit_ns: int = 1) -> Histogram:
    counts, digits, lowest, highest = _hdr.decode(whole_ns(payload, unit_ns))
    return Histogram(np.frombuffer(counts, dtype=np.uint64), lowest, highest, digits)


def double_line(payload: bytes, start_s: int = 0) -> str:
    return f"{start_s}.000,1.000,0.001,{base64.b64encode(payload).decode()}\n"


def test_a_payload_of_java_has_the_values_that_java_reads() -> None:
    payload = base64.b64decode(OF_JAVA)
    assert is_double(payload)
    found = read(payload)
    layout = found.digits, found.lowest, found.highest
    assert layout == (2, 1, 3_600_000_000_000)
    assert int(found.counts.sum()) == 201
    assert found.counts[0] == 1
    # Java: p50 19064.0, p99 149496.0, max 239608.0, at a ratio of 8: the last whole multiple within the cell.
    assert _hdr.quantiles(found.counts, *layout, [0.5, 0.99, 1.0]) == [19_064 + 7, 149_496 + 7, 239_608 + 7]


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("compressed", [True, False])
@pytest.mark.parametrize("ratio", [0.0078125, 0.5, 1.0, 8.0, 8388608.0])
def test_every_form_keeps_each_cell_to_the_nanosecond(version: int, compressed: bool, ratio: float) -> None:
    cells = [0, 10, 200, 299, 700]
    source = Histogram(counts_of([], SHAPE), SHAPE[1], SHAPE[2], SHAPE[0])
    source.counts[cells] = 1
    lower, upper, _ = filled_bounds(source)
    found = read(of_doubles(cells, ratio, version, compressed=compressed))
    ends = [max(int(low * ratio), int(-(-((int(high) + 1) * Fraction(ratio)) // 1)) - 1)
            if low else 0 for low, high in zip(lower.tolist(), upper.tolist(), strict=True)]  # fmt: skip
    places, counts = filled_bounds(found)[1:]
    assert [int(place) for place, count in zip(places, counts, strict=True) for _ in range(int(count))] == ends


def test_values_in_other_units_move_by_at_most_a_cell() -> None:
    cells = [10, 200, 299]
    inexact = read(of_doubles(cells, 0.5), 1_000)
    exact = [5.5, 100.5, 172.0]  # upper ends of the cells, in the unit
    for place, value in zip(filled_bounds(inexact)[1].tolist(), exact, strict=True):
        assert value * 1_000 - 1 <= place <= value * 1_000 * (1 + 2 / 128)


def test_logs_of_floating_point_values_are_imported(tmp_path: Path) -> None:
    lines = [double_line(of_doubles([10, 200], 0.5)), double_line(base64.b64decode(OF_JAVA), 1), plain_line(2, [7])]
    log = write(tmp_path / "d.hlog", *lines)
    packed = tmp_path / "packed.hlog.gz"
    packed.write_bytes(gzip.compress(log.read_bytes()))
    assert import_hlog(packed, tmp_path / "spool", instance="d").intervals == 3
    assert import_hlog(log, tmp_path / "spool", instance="d").already_there
    table = merge_spool(tmp_path / "spool", None)[0]
    assert sorted(zip(table["digits"].to_pylist(), table["n"].to_pylist(), strict=True)) == [(2, 203), (3, 1)]

    assert run("import", log, "--spool", tmp_path / "us", "--double-unit", "us") == 0
    scaled = {row["digits"]: row["max"] for row in merge_spool(tmp_path / "us", None)[0].to_pylist()}
    assert scaled[3] == 7, "integers are ns"
    assert 239_608_000 <= scaled[2] <= 239_616_000 * (1 + 2 / 128)


def test_a_log_of_doubles_gives_what_the_java_processor_says(tmp_path: Path) -> None:
    require_java()
    drawn = sorted({int(cell) for cell in np.clip(np.array(latencies(3, 60)) // 40, 1, 900)})
    log = write(tmp_path / "d.hlog", double_line(of_doubles(drawn, 1.0, compressed=True)))
    import_hlog(log, tmp_path / "spool")
    (row,) = merge_spool(tmp_path / "spool", None)[0].to_pylist()
    found = judged(log, "", tmp_path)
    assert (row["n"], row["p50"], row["p99"], row["max"]) == (found.count, found.p50, found.p99, found.max)


def test_damaged_payloads_are_refused_with_the_reason() -> None:
    bare, packed = of_doubles([10, 200], 0.5), of_doubles([10, 200], 0.5, compressed=True)
    for payload, reason in (
        (bare[:10], "ends within its header"),
        (bare[:40], "ends within its header"),
        (bare[:-1], "ends before its declared length"),
        (packed[:-1], "bytes after its head"),
        (packed[:16] + (0x1C849302).to_bytes(4, "big") + packed[20:], "another version"),
        (of_doubles([10], 0.5, digits=3), "3 digits, the histogram within 2"),
        (of_doubles([10], float("nan")), "the ratio nan"),
        (of_doubles([10], 0.0), "the ratio 0.0"),
        (of_doubles([700], 2.0**60), "more than 63 bits"),
    ):
        with pytest.raises(ValueError, match=reason):
            whole_ns(payload)
