"""The HDR log format: lines any reader takes, and a reader that keeps what is valid."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heliograph.monitor.history import hlog
from heliograph.monitor.history.hlog import (
    HlogInterval,
    Malformed,
    head,
    labels_of,
    line_of,
    read_hlog,
    tag_of,
    tags_are_labels,
)
from tests.history.recordings import NOON, SECOND

TEXT = base64.b64encode(b"payload").decode()


def read(tmp_path: Path, content: str | bytes) -> list[HlogInterval | Malformed]:
    path = tmp_path / "some.hlog"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return list(read_hlog(path))


def test_what_is_written_is_read(tmp_path: Path) -> None:
    content = head(NOON) + line_of(1500 * SECOND // 1000, 10 * SECOND, 180_600, "a/b", b"payload")
    content += line_of(-2 * SECOND, SECOND // 4, 0, "", b"x")
    assert "Tag=a/b,1.500,10.000,0.181," + TEXT + "\n" in content
    assert read(tmp_path, content) == [
        HlogInterval(6, NOON + 1500 * SECOND // 1000, 10 * SECOND, "a/b", b"payload"),
        HlogInterval(7, NOON - 2 * SECOND, SECOND // 4, "", b"x"),
    ]


def test_the_head_says_what_the_log_is(tmp_path: Path) -> None:
    lines = head(NOON).splitlines()
    assert lines[0] == "#[Histogram log format version 1.3]"
    assert lines[3] == "#[StartTime: 1763726400.000 (seconds since epoch), 2025-11-21T12:00:00Z]"
    assert lines[-1] == '"StartTimestamp","Interval_Length","Interval_Max","Interval_Compressed_Histogram"'
    path = tmp_path / "ours.hlog"
    path.write_text(head(NOON))
    assert tags_are_labels(path)


@given(st.lists(st.text(max_size=12), min_size=1, max_size=4))
def test_labels_survive_as_a_tag_without_commas_spaces_and_line_breaks(labels: list[str]) -> None:
    tag = tag_of(*labels)
    assert not set(tag) & set(", \t\r\n")
    assert tag.isascii()
    assert labels_of(tag) == tuple(labels)


@pytest.mark.parametrize(
    ("heads", "stamp", "expected_s"),
    [
        ("#[BaseTime: 1000.5 (seconds since epoch)]\n", "2.25", 1002.75),
        ("#[StartTime: 1763726400.0 (seconds since epoch), then]\n", "3.5", 1763726403.5),
        ("#[StartTime: 1763726400.0 (seconds since epoch), then]\n", "1763726401.0", 1763726401.0),
        ("#[StartTime: 5.0]\n#[BaseTime: 1441812279]\n", "1", 1441812280.0),
        ("", "1763726400.25", 1763726400.25),
        ("", "0.5", 0.5),
    ],
)
def test_stamps_are_read_by_the_rules_of_the_java_reader(
    tmp_path: Path, heads: str, stamp: str, expected_s: float
) -> None:
    (found,) = read(tmp_path, f"{heads}{stamp},1.0,0.5,{TEXT}\n")
    assert isinstance(found, HlogInterval)
    assert abs(found.start_ns - expected_s * SECOND) < 1000  # what a float of today holds


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("1.0,2.0,3.0", "3 fields, not 4"),
        (f"1.0,2.0,3.0,{TEXT},more", "5 fields, not 4"),
        (f"soon,2.0,3.0,{TEXT}", "'soon' is not a number of seconds"),
        (f"nan,2.0,3.0,{TEXT}", "not a number"),
        (f"1e99,2.0,3.0,{TEXT}", "out of time"),
        (f"1.0,-2.0,3.0,{TEXT}", "its length is negative"),
        (f"1.0,999999999999,3.0,{TEXT}", "out of time"),
        (f"-5.0,2.0,3.0,{TEXT}", "out of time"),
        ("1.0,2.0,3.0,HIST!!", "not base64"),
        ("1.0,2.0,3.0,HISTA", "not base64"),
        ("Tag=lonely", "nothing after the tag"),
        ("\ufeff", "1 fields"),
    ],
)
def test_a_malformed_line_is_told_and_the_lines_around_it_are_read(tmp_path: Path, line: str, reason: str) -> None:
    good = f"1.0,2.0,3.0,{TEXT}\n"
    before, found, after = read(tmp_path, f"{good}{line}\n{good}")
    assert isinstance(before, HlogInterval)
    assert isinstance(after, HlogInterval)
    assert isinstance(found, Malformed)
    assert found.line == 2
    assert reason in found.reason


def test_bytes_that_are_no_text_and_lines_without_end_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hlog, "_LINE_BYTES", 1000)
    good = f"1.0,2.0,3.0,{TEXT}\n".encode()
    found = read(tmp_path, good + b"\xff\xfe\n" + b"x" * 5500 + b"\n" + good)
    assert [type(one) for one in found] == [HlogInterval, Malformed, Malformed, HlogInterval]
    assert [one.line for one in found] == [1, 2, 3, 4]


def test_a_log_cut_off_within_a_line_gives_all_before(tmp_path: Path) -> None:
    good = f"1.0,2.0,3.0,{TEXT}\n"
    found = read(tmp_path, good + good[:-4])
    assert [type(one) for one in found] == [HlogInterval, Malformed]


@given(st.binary(max_size=300))
def test_any_bytes_are_read_without_a_mishap(content: bytes) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        for one in read(Path(folder), content):
            assert isinstance(one, HlogInterval | Malformed)
