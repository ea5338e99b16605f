"""The C codec: the bytes of the Python package, the percentiles of the monitor, and a refusal for all else."""

from __future__ import annotations

import base64
import random
import struct
import zlib

import numpy as np
import pytest
from hdrh.histogram import HdrHistogram
from hypothesis import given, settings
from hypothesis import strategies as st

from heliograph.monitor import _hdr
from heliograph.monitor.latency import layout_of, percentiles
from heliograph.monitor.model import Histogram
from tests.history.recordings import SHAPE, Shape, counts_of, latencies

SHAPES = [(3, 1, 60_000_000_000), (2, 1, 60_000_000_000), (1, 1, 2), (2, 20_000, 3_600_000_000_000), (5, 1, 10_000_000)]
QUANTILES = [0.0, 0.5, 0.9, 0.99, 0.999, 0.9999, 0.99999, 1.0]


def reference_payload(values: list[int], shape: Shape) -> bytes:
    """Compressed payload by the `hdrhistogram` package."""
    digits, lowest, highest = shape
    histogram = HdrHistogram(lowest, highest, digits)
    for value in values:
        assert histogram.record_value(value)
    return base64.b64decode(histogram.encode())


def word(value: int) -> bytes:
    """ZigZag LEB128, by the definition."""
    bits = (value << 1) ^ (value >> 63) if value >= 0 else ((-value) << 1) - 1
    out = b""
    for _ in range(8):
        if bits < 0x80:
            break
        out += bytes([bits & 0x7F | 0x80])
        bits >>= 7
    return out + bytes([bits & 0xFF])


def body(words: bytes, shape: Shape = SHAPE, *, length: int | None = None, cookie: int = 0x1C849313) -> bytes:
    """A body made by hand."""
    digits, lowest, highest = shape
    length = len(words) if length is None else length
    return struct.pack(">IIiiqqd", cookie, length, 0, digits, lowest, highest, 1.0) + words


def wrapped(inner: bytes) -> bytes:
    deflated = zlib.compress(inner)
    return struct.pack(">II", 0x1C849314, len(deflated)) + deflated


@pytest.mark.parametrize("count", [1, 50, 20_000])
@pytest.mark.parametrize("digits", [2, 3])
def test_the_payload_is_byte_identical_to_the_packages(digits: int, count: int) -> None:
    shape = (digits, 1, 60_000_000_000)
    values = latencies(count, count)
    counts = counts_of(values, shape)
    reference = reference_payload(values, shape)
    assert _hdr.encode(counts, *shape, compress=True) == reference
    assert _hdr.encode(counts, *shape) == zlib.decompress(reference[8:])


@pytest.mark.parametrize("shape", SHAPES)
def test_what_was_encoded_is_decoded_in_both_forms(shape: Shape) -> None:
    rng = np.random.default_rng(1)
    cells = layout_of(*shape).cells
    assert _hdr.cells(*shape) == cells
    counts = np.where(rng.random(cells) < 0.1, rng.integers(0, 2**40, cells), 0).astype(np.uint64)
    for compress in (False, True):
        decoded, *found = _hdr.decode(_hdr.encode(counts, *shape, compress=compress))
        assert tuple(found) == shape
        assert (np.frombuffer(decoded, dtype=np.uint64) == counts).all()


def test_an_empty_histogram_survives() -> None:
    empty = np.zeros(_hdr.cells(*SHAPE), dtype=np.uint64)
    counts, *_ = _hdr.decode(_hdr.encode(empty, *SHAPE, compress=True))
    assert not np.frombuffer(counts, dtype=np.uint64).any()
    assert _hdr.summary(empty, *SHAPE) == (0, 0, 0, 0.0)
    assert _hdr.quantiles(empty, *SHAPE, [0.5, 1.0]) == [0, 0]


def test_counts_of_63_bits_survive_and_larger_ones_are_refused() -> None:
    counts = np.zeros(_hdr.cells(*SHAPE), dtype=np.uint64)
    counts[17] = 2**63 - 1
    assert np.frombuffer(_hdr.decode(_hdr.encode(counts, *SHAPE))[0], dtype=np.uint64)[17] == 2**63 - 1
    counts[17] = 2**63
    with pytest.raises(OverflowError):
        _hdr.encode(counts, *SHAPE)


@given(values=st.lists(st.integers(0, SHAPE[2]), min_size=1, max_size=60))
@settings(max_examples=60, deadline=None)
def test_quantiles_agree_with_the_monitors_and_with_the_ranks(values: list[int]) -> None:
    counts = counts_of(values)
    found = _hdr.quantiles(counts, *SHAPE, QUANTILES)
    assert found == percentiles(Histogram(counts, SHAPE[1], SHAPE[2], SHAPE[0]), QUANTILES)
    n, low, high, _ = _hdr.summary(counts, *SHAPE)
    assert (n, high) == (len(values), found[-1])
    assert low <= min(values) <= max(values) <= high


@pytest.mark.parametrize("total", [1000, 10**6, 10**9, 10**12, 10**15])
def test_rank_of_a_round_product_is_not_raised_by_float_dust(total: int) -> None:
    counts = np.zeros(_hdr.cells(*SHAPE), dtype=np.uint64)
    counts[10] = total * 999 // 1000
    counts[20] = total - int(counts[10])
    assert _hdr.quantiles(counts, *SHAPE, [0.999]) == [10]
    counts[10] -= np.uint64(1)
    counts[20] += np.uint64(1)
    assert _hdr.quantiles(counts, *SHAPE, [0.999]) == [20]


@pytest.mark.parametrize(
    ("payload", "reason"),
    [
        (b"", "ends before"),
        (b"\x1c\x84\x93", "ends before"),
        (b"\x1c\x84\x93\x13" + bytes(20), "ends before"),
        (b"not a payload at all", "is not an HdrHistogram"),
        (body(b"", cookie=0x1C849301), "is not an HdrHistogram"),
        (body(word(1), length=2), "ends before"),
        (body(word(1), length=0), "goes on after"),
        (body(b"\xff"), "damaged word"),
        (body(word(-(27_648)) + word(1)), "more cells"),
        (body(word(-(2**63))), "more cells"),
        (body(word(2**63 - 1) + word(1)), "63 bits"),
        (body(word(1), (0, 1, 100)), "impossible"),
        (body(word(1), (6, 1, 100)), "impossible"),
        (body(word(1), (3, 0, 100)), "impossible"),
        (body(word(1), (3, 100, 100)), "impossible"),
        (body(word(1), (3, 1, -1)), "impossible"),
        (body(word(1), (5, 1, 2**62)), "4194304 cells"),
        (body(word(1))[:8] + b"\0\0\0\1" + body(word(1))[12:], "normalizing offset"),
        (wrapped(body(word(1)))[:-1], "ends before"),
        (wrapped(body(word(1))) + b"x", "goes on after"),
        (wrapped(body(word(1), length=3)), "ends before"),
        (wrapped(body(word(1) + word(1), length=1)), "goes on after"),
        (wrapped(b"short"), "ends before"),
        (struct.pack(">II", 0x1C849314, 4) + b"zzzz", "cannot be inflated"),
    ],
)
def test_a_payload_that_cannot_be_is_refused_with_its_reason(payload: bytes, reason: str) -> None:
    with pytest.raises(_hdr.Refused, match=reason):
        _hdr.decode(payload)


def test_a_payload_that_inflates_without_end_is_refused_at_the_end_of_its_layout() -> None:
    bomb = wrapped(body(bytes(200_000_000), length=200_000_000))
    assert len(bomb) < 250_000
    with pytest.raises(_hdr.Refused, match="more cells"):
        _hdr.decode(bomb)


def test_a_flipped_bit_of_a_compressed_payload_is_refused_whenever_zlib_can_tell() -> None:
    # Its checksum (Adler-32) misses about one flipped bit in a thousand of so small a payload. That is why the spool
    # keeps bodies without zlib under the page checksums of Parquet (CRC-32), which miss none.
    payload = bytearray(_hdr.encode(counts_of(latencies(3, 2000)), *SHAPE, compress=True))
    refused = 0
    for bit in range(64, 8 * len(payload)):
        payload[bit // 8] ^= 1 << bit % 8
        try:
            inner = zlib.decompress(payload[8:])
        except zlib.error:
            refused += 1
            with pytest.raises(_hdr.Refused):
                _hdr.decode(payload)
        else:
            assert decoded_or_refused(bytes(payload)) == decoded_or_refused(inner)
        payload[bit // 8] ^= 1 << bit % 8
    assert refused > 0.99 * (8 * len(payload) - 64)


def decoded_or_refused(payload: bytes) -> object:
    try:
        return _hdr.decode(payload)
    except _hdr.Refused:
        return None


def test_mutated_bodies_are_decoded_or_refused_and_what_is_decoded_can_be_encoded() -> None:
    original = _hdr.encode(counts_of(latencies(4, 3000)), *SHAPE)
    rng = random.Random(20_251_121)
    refused = 0
    for _ in range(4000):
        mutant = bytearray(original)
        for _ in range(rng.randint(1, 4)):
            mutant[rng.randrange(len(mutant))] = rng.randrange(256)
        if rng.random() < 0.2:
            del mutant[rng.randrange(len(mutant)) :]
        payload = wrapped(bytes(mutant)) if rng.random() < 0.3 else bytes(mutant)
        try:
            counts, *shape = _hdr.decode(payload)
        except _hdr.Refused:
            refused += 1
        else:
            again = _hdr.decode(_hdr.encode(counts, *shape))
            assert again[0] == counts
    assert 0 < refused < 4000


@given(payload=st.binary(max_size=200))
@settings(max_examples=200, deadline=None)
def test_any_bytes_are_refused_or_decoded(payload: bytes) -> None:
    for candidate in (payload, b"\x1c\x84\x93\x13" + payload, b"\x1c\x84\x93\x14" + payload):
        decoded_or_refused(candidate)
