"""The HDR log exporter: whole lines only, every value once, readable by the Java reference."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from heliograph.exporters.hdrlog import HdrLogExporter
from heliograph.monitor import _hdr
from heliograph.monitor.errors import UserError
from heliograph.monitor.history.hlog import HlogInterval, read_hlog, tag_of
from heliograph.monitor.history.importer import import_hlog
from heliograph.monitor.history.merge import merge_spool
from heliograph.monitor.model import InstanceState, Snapshot
from tests.history.java_reference import judged, require_java, tags_of
from tests.history.recordings import (
    NOON,
    SECOND,
    SHAPE,
    counts_of,
    histogram_of,
    instance,
    latencies,
    receiver,
    snapshot,
)

VALUES = {"PRICES.A": latencies(1, 3000), "PRICES, B": latencies(2, 900, 400_000.0)}
TAGS = {topic: tag_of("alpha", topic, "0a1b.30001", "receiver_total_latency") for topic in VALUES}


def reading(share: float) -> InstanceState:
    return instance(
        *(
            receiver({"total_latency": histogram_of(values[: int(share * len(values))])}, topic=topic)
            for topic, values in VALUES.items()
        )
    )


def record(log: Path, seconds: int = 30) -> None:
    exporter = HdrLogExporter(log)
    for second in range(seconds + 1):
        exporter.publish(snapshot(second, reading(second / seconds)))
    exporter.close()


def intervals(log: Path) -> list[HlogInterval]:
    found = list(read_hlog(log))
    assert all(isinstance(one, HlogInterval) for one in found), found
    return [one for one in found if isinstance(one, HlogInterval)]


def test_lines_are_intervals_of_one_series_each(tmp_path: Path) -> None:
    record(tmp_path / "latency.hlog")
    found = intervals(tmp_path / "latency.hlog")
    assert len(found) == 6
    assert {one.tag for one in found} == set(TAGS.values())
    assert {one.length_ns for one in found} == {10 * SECOND}
    assert sorted({one.start_ns for one in found}) == [NOON, NOON + 10 * SECOND, NOON + 20 * SECOND]


def test_java_counts_the_same_values(tmp_path: Path) -> None:
    require_java()
    log = tmp_path / "latency.hlog"
    record(log)
    assert sorted(tags_of(log)) == sorted(TAGS.values())
    for topic, values in VALUES.items():
        found = judged(log, TAGS[topic], tmp_path)
        p50, p99, p99_9, highest = _hdr.quantiles(counts_of(values), *SHAPE, [0.5, 0.99, 0.999, 1.0])
        assert (found.count, found.p50, found.p99, found.p99_9, found.max) == (len(values), p50, p99, p99_9, highest)


def test_importing_the_log_gives_what_was_recorded(tmp_path: Path) -> None:
    record(tmp_path / "latency.hlog")
    import_hlog(tmp_path / "latency.hlog", tmp_path / "spool")
    table, _ = merge_spool(tmp_path / "spool", None)
    found = {row["topic"]: row["h"] for row in table.to_pylist()}
    assert found == {topic: _hdr.encode(counts_of(values), *SHAPE) for topic, values in VALUES.items()}


def test_a_log_is_continued_even_after_half_a_line(tmp_path: Path) -> None:
    log = tmp_path / "latency.hlog"
    record(log)
    once = [one.start_ns for one in intervals(log)]
    log.write_bytes(log.read_bytes()[:-30])
    record(log)
    found = [one for one in read_hlog(log) if isinstance(one, HlogInterval)]
    assert len(found) in (2 * len(once) - 1, 2 * len(once))  # half a line may still look like one
    assert [one.start_ns for one in found[-len(once) :]] == once


def test_a_line_that_was_not_written_whole_is_taken_back_and_written_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "latency.hlog"
    exporter = HdrLogExporter(log)
    exporter.publish(snapshot(0, reading(0)))
    before = log.read_bytes()
    original = os.write
    calls = iter([100])

    def nearly_full(handle: int, data: bytes) -> int:
        if (size := next(calls, None)) is None:
            raise OSError(errno.ENOSPC, "No space left on device")
        return original(handle, data[:size])

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", nearly_full)
        with pytest.raises(UserError, match="cannot be written: No space left on device"):
            exporter.publish(snapshot(10, reading(0.5)))
    assert log.read_bytes() == before
    exporter.publish(snapshot(20, reading(1)))
    exporter.close()
    counts = sum(int(_hdr.summary(*_hdr.decode(one.payload))[0]) for one in intervals(log))
    assert counts == sum(map(len, VALUES.values()))


def test_a_log_that_cannot_be_written_is_told_at_once(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="cannot be written: Is a directory"):
        HdrLogExporter(tmp_path)


def test_what_is_lost_at_the_end_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    exporter = HdrLogExporter(tmp_path / "latency.hlog")
    exporter.publish(snapshot(0, reading(0)))
    exporter.publish(snapshot(1, reading(0.5)))

    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", full)
        with pytest.raises(UserError, match=r"No space left.*; 2 lines are lost"):
            exporter.close()
    assert exporter.lines_dropped == 2
    exporter.close()


def test_a_snapshot_without_instances_adds_nothing_but_the_head(tmp_path: Path) -> None:
    exporter = HdrLogExporter(tmp_path / "latency.hlog")
    exporter.publish(Snapshot(NOON, ()))
    exporter.close()
    assert intervals(tmp_path / "latency.hlog") == []
    assert (tmp_path / "latency.hlog").read_text().startswith("#[Histogram log format version 1.3]")
