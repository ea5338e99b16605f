"""Prometheus' protobuf format, which alone carries native histograms.

An answer is a sequence of `MetricFamily`, each after its length as a varint. The messages (io.prometheus.client,
metrics.proto of prometheus/client_model), with the number of each field that is written:

    MetricFamily  name 1, help 2, type 3 (COUNTER 0, GAUGE 1, HISTOGRAM 4), metric 4
    Metric        label 1, gauge 2, counter 3, histogram 7
    LabelPair     name 1, value 2
    Gauge         value 1 (double)
    Counter       value 1 (double), exemplar 2, created_timestamp 3
    Exemplar      label 1, value 2 (double), timestamp 3
    Histogram     sample_count 1 (uint64), sample_sum 2 (double), bucket 3, schema 5 (sint32),
                  zero_threshold 6 (double), zero_count 7 (uint64), positive_span 12,
                  positive_delta 13 (sint64, packed), created_timestamp 15
    Bucket        cumulative_count 1 (uint64), upper_bound 2 (double)
    BucketSpan    offset 1 (sint32), length 2 (uint32)
    Timestamp     seconds 1 (int64), nanos 2 (int32)

A histogram has its classic buckets too; Prometheus keeps them if `scrape_classic_histograms` is set.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from functools import lru_cache

from heliograph.exporters.native import ZERO_THRESHOLD, Native, native
from heliograph.exporters.tables import Exemplar, Table

__all__ = ["CONTENT_TYPE", "encode", "is_wanted"]

CONTENT_TYPE = "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited"

_TYPES = {"counter": 0, "gauge": 1, "histogram": 4}
_VALUE_FIELDS = {"gauge": 2, "counter": 3}
_VARINT, _DOUBLE, _BYTES = 0, 1, 2
_DOUBLE_FORM = struct.Struct("<d")


def is_wanted(accept: str) -> bool:
    """Whether an Accept header prefers this format to the text formats."""
    ours = others = 0.0
    for entry in accept.split(","):
        kind, *pairs = (part.strip() for part in entry.split(";"))
        options = {name.strip(): value.strip() for name, _, value in (pair.partition("=") for pair in pairs)}
        try:
            quality = float(options.get("q", "1"))
        except ValueError:
            continue
        if kind in ("text/plain", "application/openmetrics-text"):
            others = max(others, quality)
        elif (kind, options.get("proto"), options.get("encoding")) == (
            "application/vnd.google.protobuf",
            "io.prometheus.client.MetricFamily",
            "delimited",
        ):
            ours = max(ours, quality)
    return ours > 0 and ours >= others


def encode(families: Iterable[Table], schema: int) -> bytes:
    """Return the families in the delimited format; histograms with native buckets of a schema."""
    answer: list[bytes] = []
    for family in families:
        form = family.form
        metrics = _histograms(family, schema) if form.kind == "histogram" else _numbers(family)
        head = _text(1, form.name) + _text(2, form.help) + _number(3, _TYPES[form.kind])
        found = b"".join([head, *(_message(4, metric) for metric in metrics)])
        answer += (_varint(len(found)), found)
    return b"".join(answer)


def _numbers(family: Table) -> Iterator[bytes]:
    field, divisor = _VALUE_FIELDS[family.form.kind], family.form.divisor
    for column in family.columns:
        pairs = column.labels.pairs(column.extra)
        began = family.created_ns or [0] * len(pairs)
        for place, (labels, value, time_ns) in enumerate(zip(pairs, column.values, began, strict=True)):
            if value is not None:
                exemplar = _exemplar(column.exemplars.get(place))
                yield _labels(labels) + _message(field, _double(1, value / divisor) + exemplar + _began(3, time_ns))


def _exemplar(found: Exemplar | None) -> bytes:
    if found is None:
        return b""
    labels = _labels(tuple(found.labels.items()))
    return _message(2, labels + _double(2, found.value) + _began(3, round(float(found.timestamp or 0) * 1e9)))


def _histograms(family: Table, schema: int) -> Iterator[bytes]:
    buckets = [column for column in family.columns if column.extra is not None]
    bounds = [_double(2, float(column.extra[1])) for column in buckets if column.extra]
    counts, sums = (column.values for column in family.columns if column.extra is None)
    classics = zip(*(column.values for column in buckets), strict=True)
    pairs = buckets[0].labels.pairs()
    rows = zip(pairs, classics, counts, sums, family.histograms, family.created_ns, strict=True)
    for labels, classic, count, total, whole, time_ns in rows:
        parts = [_number(1, int(count or 0)), _double(2, (total or 0) / family.form.divisor)]
        parts += (_message(3, _number(1, int(n or 0)) + bound) for n, bound in zip(classic, bounds, strict=True))
        parts += _native(native(whole, schema), schema)
        yield _labels(labels) + _message(7, b"".join([*parts, _began(15, time_ns)]))


def _native(found: Native, schema: int) -> Iterator[bytes]:
    yield _number(5, _zigzag(schema)) + _double(6, ZERO_THRESHOLD) + _number(7, found.zero_count)
    for offset, length in found.spans:
        yield _message(12, _number(1, _zigzag(offset)) + _number(2, length))
    if found.deltas.size:
        zigzag = (found.deltas << 1) ^ (found.deltas >> 63)
        yield _message(13, b"".join(map(_varint, zigzag.tolist())))


@lru_cache(maxsize=1 << 12)  # every statistic of an object began with the object
def _began(field: int, time_ns: int) -> bytes:
    return _message(field, _number(1, time_ns // 10**9) + _number(2, time_ns % 10**9)) if time_ns > 0 else b""


@lru_cache(maxsize=1 << 15)  # every family of an object repeats its labels
def _labels(pairs: tuple[tuple[str, str], ...]) -> bytes:
    return b"".join(_message(1, _text(1, name) + _text(2, value)) for name, value in pairs)


def _zigzag(value: int) -> int:
    return value << 1 if value >= 0 else (-value << 1) - 1


def _long_varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


_SHORT = [_long_varint(value) for value in range(1 << 12)]


def _varint(value: int) -> bytes:
    return _SHORT[value] if value < len(_SHORT) else _long_varint(value)


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3 | _VARINT) + _varint(value)


def _double(field: int, value: float) -> bytes:
    return _varint(field << 3 | _DOUBLE) + _DOUBLE_FORM.pack(value)


def _message(field: int, content: bytes) -> bytes:
    return _varint(field << 3 | _BYTES) + _varint(len(content)) + content


def _text(field: int, value: str) -> bytes:
    return _message(field, value.encode())
