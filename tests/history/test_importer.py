"""Importing logs: into the same schema, once, keeping what is valid; judged by the Java reference."""

from __future__ import annotations

import base64
import gzip
import struct
import zlib
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from heliograph.monitor import _hdr
from heliograph.monitor.errors import UserError
from heliograph.monitor.history.hlog import head, line_of, tag_of
from heliograph.monitor.history.hours import read_history
from heliograph.monitor.history.importer import import_hlog
from heliograph.monitor.history.legacy import modern
from heliograph.monitor.history.merge import merge_spool
from heliograph.monitor.history.rollup import rollup
from heliograph.monitor.history.rollup_spark import OnSpark
from tests.history.java_reference import judged, require_java, tags_of
from tests.history.recordings import NOON, SECOND, SHAPE, counts_of, latencies

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOGS = Path(__file__).resolve().parents[2].parent / "shared/data/hlog"


def payload(values: list[int]) -> bytes:
    return _hdr.encode(counts_of(values), *SHAPE, compress=True)


def plain_line(start_s: float, values: list[int], tag: str = "") -> str:
    return line_of(int(start_s * SECOND), SECOND, max(values), tag, payload(values))


def write(path: Path, *lines: str) -> Path:
    path.write_text(f"#[StartTime: {NOON // SECOND} (seconds since epoch), noon]\n" + "".join(lines))
    return path


def test_tagged_and_plain_lines_become_series_of_their_own(tmp_path: Path) -> None:
    log = write(tmp_path / "app.hlog", plain_line(0, [10, 20]), plain_line(0, [30], "A"), plain_line(1, [40], "A"))
    done = import_hlog(log, tmp_path / "spool")
    assert (done.intervals, done.empty, done.malformed, done.already_there) == (3, 0, (), False)
    table, _ = merge_spool(tmp_path / "spool")
    columns = ("instance", "topic", "metric", "tag", "n", "max")
    assert [tuple(row[name] for name in columns) for row in table.to_pylist()] == [
        ("app", "", "imported_latency", "", 2, 20),
        ("app", "", "imported_latency", "A", 2, 40),
    ]


def test_importing_again_changes_nothing(tmp_path: Path) -> None:
    log = write(tmp_path / "app.hlog", plain_line(0, [10, 20]))
    import_hlog(log, tmp_path / "spool")
    once, _ = merge_spool(tmp_path / "spool")
    copy = tmp_path / "copy.hlog"
    copy.write_bytes(log.read_bytes())
    assert import_hlog(log, tmp_path / "spool").already_there
    assert import_hlog(copy, tmp_path / "spool").already_there
    assert merge_spool(tmp_path / "spool")[0].equals(once)


def test_a_log_of_ours_gets_its_labels_back(tmp_path: Path) -> None:
    tag = tag_of("alpha", "PRICES, A", "0a.1", "receiver_total_latency")
    log = tmp_path / "ours.hlog"
    log.write_text(head(NOON) + plain_line(0, [10], tag))
    import_hlog(log, tmp_path / "spool")
    (row,) = merge_spool(tmp_path / "spool")[0].to_pylist()
    assert (row["instance"], row["topic"], row["stream"], row["metric"], row["tag"]) == (
        "alpha",
        "PRICES, A",
        "0a.1",
        "receiver_total_latency",
        "",
    )


def test_a_malformed_line_is_told_by_number_and_everything_else_is_kept(tmp_path: Path) -> None:
    damaged = base64.b64encode(payload([1])[:-3]).decode()
    log = write(
        tmp_path / "app.hlog",
        plain_line(0, [10]),
        "1.0,1.0,oops\n",
        f"2.0,1.0,0.1,{damaged}\n",
        plain_line(3, [20]),
    )
    done = import_hlog(log, tmp_path / "spool")
    assert done.intervals == 2
    assert [(line.line, line.reason.split(":")[0]) for line in done.malformed] == [
        (3, "it has 3 fields, not 4"),
        (4, "the payload ends before its declared length"),
    ]
    assert merge_spool(tmp_path / "spool")[0]["n"].to_pylist() == [2]


def test_lines_without_values_are_counted_and_not_kept(tmp_path: Path) -> None:
    empty = _hdr.encode(counts_of([]), *SHAPE, compress=True)
    log = write(tmp_path / "app.hlog", line_of(0, SECOND, 0, "", empty), plain_line(1, [5]))
    done = import_hlog(log, tmp_path / "spool")
    assert (done.intervals, done.empty) == (1, 1)


def test_a_log_or_spool_that_cannot_be_used_is_told(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"nothing\.hlog: No such file"):
        import_hlog(tmp_path / "nothing.hlog", tmp_path / "spool")
    (tmp_path / "spool").write_text("in the way")
    with pytest.raises(UserError, match=r"importing .* failed"):
        import_hlog(write(tmp_path / "app.hlog", plain_line(0, [1])), tmp_path / "spool")


# -- older payloads and compressed logs --------------------------------------------------------------------------------


def old_payload(values: list[int], version: int, word_bytes: int, *, compressed: bool) -> bytes:
    """A V0 or V1 payload by the rules of the Java reference (AbstractHistogram.encodeIntoByteBuffer of its time)."""
    counts = counts_of(values)
    used = int(np.flatnonzero(counts).max()) + 1 if values else 0
    words = counts[:used].astype(f">i{word_bytes}").tobytes()
    digits, lowest, highest = SHAPE
    base = {0: 0x1C849308, 1: 0x1C849301}[version] | word_bytes << 4
    if version == 0:
        body = struct.pack(">Iiqqq", base, digits, lowest, highest, len(values)) + words
    else:
        body = struct.pack(">Iiiiqqd", base, len(words), 0, digits, lowest, highest, 1.0) + words
    if not compressed:
        return body
    inner = zlib.compress(body)
    return struct.pack(">Ii", base + 1, len(inner)) + inner


def old_line(version: int, values: list[int], word_bytes: int = 4, *, compressed: bool = True) -> str:
    text = base64.b64encode(old_payload(values, version, word_bytes, compressed=compressed)).decode()
    return f"0.000,1.000,{max(values) / 1e6:.3f},{text}\n"


@pytest.mark.parametrize("compressed", [True, False])
@pytest.mark.parametrize("word_bytes", [2, 4, 8])
@pytest.mark.parametrize("version", [0, 1])
def test_older_payloads_are_imported(tmp_path: Path, version: int, word_bytes: int, compressed: bool) -> None:
    values = latencies(3, 2000)
    log = write(tmp_path / "old.hlog", old_line(version, values, word_bytes, compressed=compressed))
    done = import_hlog(log, tmp_path / "spool")
    assert (done.intervals, done.malformed) == (1, ())
    (row,) = merge_spool(tmp_path / "spool")[0].to_pylist()
    assert _hdr.decode(row["h"])[0] == counts_of(values).tobytes()


@pytest.mark.parametrize("version", [0, 1])
def test_older_payloads_give_what_java_says(tmp_path: Path, version: int) -> None:
    require_java()
    # The reference reads V0 only with words of 8 bytes, whose class it decodes into.
    log = write(tmp_path / "old.hlog", old_line(version, latencies(5, 3000), 8))
    import_hlog(log, tmp_path / "spool")
    (row,) = merge_spool(tmp_path / "spool")[0].to_pylist()
    found = judged(log, "", tmp_path)
    assert (row["n"], row["p50"], row["p99"], row["p99_9"], row["max"]) == (
        found.count,
        found.p50,
        found.p99,
        found.p99_9,
        found.max,
    )


@pytest.mark.parametrize(
    ("version", "encoding", "tag"), [("1.0", 0, ""), ("1.1", 1, ""), ("1.2", 2, ""), ("1.2", 2, "A"), ("1.3", 2, "A")]
)
def test_logs_of_each_version_give_what_java_says(tmp_path: Path, version: str, encoding: int, tag: str) -> None:
    require_java()
    heads = [f"Histogram log format version {version}", f"StartTime: {NOON // SECOND}.000 (seconds since epoch), noon"]
    if version >= "1.2":  # it came with tags
        heads.append(f"BaseTime: {NOON // SECOND}.000 (seconds since epoch)")
    lines = [f"#[{head}]\n" for head in heads]
    lines.append('"StartTimestamp","Interval_Length","Interval_Max","Interval_Compressed_Histogram"\n')
    for second in range(3):
        values = latencies(second, 2000)
        made = payload(values) if encoding == 2 else old_payload(values, encoding, 8, compressed=True)
        start = f"Tag={tag},{second}.250" if tag else f"{second}.250"
        lines.append(f"{start},1.000,{max(values) / 1e6:.3f},{base64.b64encode(made).decode()}\n")
    log = tmp_path / "app.hlog"
    log.write_text("".join(lines))
    done = import_hlog(log, tmp_path / "spool")
    assert (done.intervals, done.malformed) == (3, ())
    (row,) = merge_spool(tmp_path / "spool")[0].to_pylist()
    assert row["tag"] == tag
    found = judged(log, tag, tmp_path)
    assert found.count == 6000
    shown = (row["n"], row["p50"], row["p99"], row["p99_9"], row["max"])
    assert shown == (found.count, found.p50, found.p99, found.p99_9, found.max)


def test_damaged_older_payloads_are_left_out_with_the_reason() -> None:
    values = latencies(3, 50)
    for version in (0, 1):
        bare = old_payload(values, version, 4, compressed=False)
        packed = old_payload(values, version, 4, compressed=True)
        for payload in (bare[:30], bare[:-3], packed[:-1], packed[:20] + b"x" + packed[21:], bare + bytes(4 << 20)):
            if version == 1 and payload is not bare[:30] and len(payload) > len(bare):
                continue  # V1 has its length, what follows is not read
            with pytest.raises(ValueError, match=r"the payload|histogram"):
                modern(payload)
        negative = bytearray(bare)
        negative[-4] = 0x80
        with pytest.raises(ValueError, match="a negative count"):
            modern(bytes(negative))
    bomb = zlib.compress(bytes(80 << 20))
    with pytest.raises(ValueError, match="too large"):
        modern(struct.pack(">Ii", 0x1C849302, len(bomb)) + bomb)


def test_a_compressed_log_is_the_same_log(tmp_path: Path) -> None:
    log = write(tmp_path / "app.hlog", plain_line(0, [10, 20]))
    packed = tmp_path / "app.hlog.gz"
    packed.write_bytes(gzip.compress(log.read_bytes()))
    assert import_hlog(packed, tmp_path / "spool").intervals == 1
    assert merge_spool(tmp_path / "spool")[0]["instance"].to_pylist() == ["app"]
    assert import_hlog(log, tmp_path / "spool").already_there


def test_a_compressed_log_that_is_cut_keeps_its_good_lines(tmp_path: Path) -> None:
    whole = gzip.compress(
        write(tmp_path / "app.hlog", *(plain_line(s, latencies(s, 300)) for s in range(9))).read_bytes()
    )
    packed = tmp_path / "cut.hlog.gz"
    packed.write_bytes(whole[: len(whole) * 2 // 3])
    done = import_hlog(packed, tmp_path / "spool")
    assert 0 < done.intervals < 9
    assert "damaged from here on" in done.malformed[-1].reason


def test_java_reads_our_lines_and_counts_the_same(tmp_path: Path) -> None:
    require_java()
    values = {"A": latencies(1, 3000), "": latencies(2, 500)}
    tag = tag_of("alpha", "PRICES, A", "0a.1", "receiver_total_latency")
    log = tmp_path / "ours.hlog"
    log.write_text(head(NOON) + plain_line(0, values["A"], tag) + plain_line(0, values[""]))
    assert sorted(tags_of(log)) == ["", tag]
    for name, key in ((tag, "A"), ("", "")):
        counts = counts_of(values[key])
        p50, p99, p99_9, highest = _hdr.quantiles(counts, *SHAPE, [0.5, 0.99, 0.999, 1.0])
        found = judged(log, name, tmp_path)
        assert (found.count, found.p50, found.p99, found.p99_9, found.max) == (
            len(values[key]),
            p50,
            p99,
            p99_9,
            highest,
        )


def test_logs_of_other_programs_roll_up_to_what_java_says(spark: SparkSession, tmp_path: Path) -> None:
    logs = sorted(LOGS.glob("*.hlog"))
    if not logs:
        pytest.skip(f"the optional data set is not here: {LOGS}")
    require_java()
    for log in logs:
        assert import_hlog(log, tmp_path / "spool").malformed == ()
    rollup(OnSpark(spark), tmp_path / "spool", tmp_path / "history")
    table, _ = read_history(tmp_path / "history")
    rows = {(row["instance"], row["tag"]): row for row in table.to_pylist()}
    assert set(rows) == {(log.stem, tag) for log in logs for tag in tags_of(log)}
    assert len(rows) == table.num_rows
    for log in logs:
        for tag in tags_of(log):
            row, found = rows[log.stem, tag], judged(log, tag, tmp_path)
            assert (row["n"], row["max"], row["p99_9"]) == (found.count, found.max, found.p99_9)
