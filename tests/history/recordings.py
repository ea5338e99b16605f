"""Recordings on paper: histograms of known values, snapshots that hold them, spools made of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow.parquet as pq
import pytest

from heliograph.monitor import _hdr
from heliograph.monitor.history import files
from heliograph.monitor.history.files import write_spool
from heliograph.monitor.history.schema import LABELS, ORIGIN, LatencyInterval
from heliograph.monitor.latency import cell_of, layout_of
from heliograph.monitor.model import Health, Histogram, InstanceState, ObjectState, Snapshot

SECOND = 1_000_000_000
NOON = 1_763_726_400 * SECOND
"""2025-11-21 12:00:00 UTC."""
SHAPE = (3, 1, 60_000_000_000)

Shape = tuple[int, int, int]


def counts_of(values: Iterable[int], shape: Shape = SHAPE) -> npt.NDArray[np.uint64]:
    """Counts of values, one by one, by the definition of the layout in Python."""
    counts = np.zeros(layout_of(*shape).cells, dtype=np.uint64)
    for value in values:
        counts[cell_of(int(value), *shape)] += np.uint64(1)
    return counts


def histogram_of(values: Iterable[int], shape: Shape = SHAPE, *, above: int = 0, negative: int = 0) -> Histogram:
    """Histogram of values."""
    kept = [int(value) for value in values]
    digits, lowest, highest = shape
    return Histogram(counts_of(kept, shape), lowest, highest, digits, above, negative, sum(kept))


def latencies(seed: int, count: int, median: float = 20_000.0) -> list[int]:
    """Skewed values, ns."""
    drawn = np.random.default_rng(seed).lognormal(np.log(median), 0.8, count)
    return [int(value) for value in np.clip(drawn, 1, SHAPE[2])]


def receiver(
    histograms: Mapping[str, Histogram],
    *,
    instance: str = "alpha",
    topic: str = "PRICES.A",
    created_ns: int = NOON,
    generation: int = 1,
) -> ObjectState:
    """A receiver with histograms by statistic."""
    return ObjectState(
        scope="receiver",
        labels={"instance": instance, "topic": topic, "stream": "0a1b.30001"},
        info={},
        values={},
        histograms=histograms,
        created_ns=created_ns,
        generation=generation,
    )


def instance(*objects: ObjectState, name: str = "alpha", incarnation: int = 7) -> InstanceState:
    """A healthy instance."""
    return InstanceState(name, Health.LIVE, "", 1, incarnation, NOON, NOON, f"/{name}", objects)


def snapshot(at_s: float, *instances: InstanceState) -> Snapshot:
    """A snapshot that many seconds after noon."""
    return Snapshot(NOON + int(at_s * SECOND), instances)


def interval(
    values: Iterable[int],
    *,
    at_s: float = 0.0,
    seq: int = 0,
    source: str = "s0",
    shape: Shape = SHAPE,
    **labels: str,
) -> LatencyInterval:
    """A row of the spool that holds values."""
    counts = counts_of(values, shape)
    n, low, high, total = _hdr.summary(counts, *shape)
    named = dict.fromkeys((*LABELS, *ORIGIN), "")
    named |= {"instance": "alpha", "topic": "PRICES.A", "metric": "receiver_total_latency", "incarnation": "0" * 16}
    return LatencyInterval(
        ts_ns=NOON + int(at_s * SECOND),
        len_ms=10_000,
        **(named | labels),
        digits=shape[0],
        lowest=shape[1],
        highest=shape[2],
        n=n,
        min=low,
        max=high,
        sum=int(total),
        dropped=0,
        clock_error_ns=0,
        source=source,
        seq=seq,
        h=_hdr.encode(counts, *shape),
    )


def sample_spool(folder: Path, *, files: int = 3, hours: int = 2, per_file: int = 8) -> list[LatencyInterval]:
    """A spool of two topics over some hours, in several files; returns all its rows."""
    rows = []
    for number in range(files):
        batch = []
        for index in range(per_file):
            seq = number * per_file + index
            batch.append(
                interval(
                    latencies(seq, 200),
                    at_s=hours * 3600 * seq / (files * per_file),
                    seq=seq,
                    topic=("PRICES.A", "PRICES.B")[seq % 2],
                )
            )
        write_spool(folder, batch, "s0", number)
        rows += batch
    return rows


def damaged_at_its_end(folder: Path, rows: list[LatencyInterval], monkeypatch: pytest.MonkeyPatch) -> Path:
    """Write a file that is read four rows at a time, with a flipped bit in the last histograms; returns its path."""
    monkeypatch.setattr(files, "_BATCH_ROWS", 4)
    monkeypatch.setitem(files._WRITER, "row_group_size", 4)
    (path,) = write_spool(folder, rows, "s0", 0)
    metadata = pq.read_metadata(path)
    column = metadata.row_group(metadata.num_row_groups - 1).column(metadata.schema.names.index("h"))
    content = bytearray(path.read_bytes())
    content[column.data_page_offset + column.total_compressed_size - 1] ^= 0x10
    path.write_bytes(content)
    return path
