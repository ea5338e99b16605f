"""A file or frame of another version is refused with one sentence that names its version and ours."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from heliograph.monitor.flight.reader import read
from heliograph.monitor.lab import replay
from heliograph.monitor.model import Snapshot
from heliograph.monitor.packing import Decoder, Encoder
from heliograph.monitor.segment import Segment
from tests.flights import FlightWriter, small_directory
from tests.segments import write_segment


def _segment(path: Path, version: int) -> None:
    Segment(write_segment(path, name="a", version=version).path)


def _decision_log(path: Path, version: int) -> None:
    path.write_bytes(b"HELIODEC" + struct.pack("=II", 0x01020304, version) + bytes(4096))
    replay.read(path)


def _recording(path: Path, version: int) -> None:
    path.write_bytes(FlightWriter(directory=small_directory()).data(version=version))
    read(path)


def _frame(path: Path, version: int) -> None:
    frame = Encoder().frame(Snapshot(1, ()))
    Decoder().feed(frame[:4] + bytes((version,)) + frame[5:])


@pytest.mark.parametrize("version", [0, 2])
@pytest.mark.parametrize("open_it", [_segment, _decision_log, _recording, _frame])
def test_another_version_is_refused_naming_both(
    tmp_path: Path, open_it: Callable[[Path, int], None], version: int
) -> None:
    with pytest.raises(Exception, match=rf"^[^;\n]* version {version}; this Heliograph reads version 1$"):
        open_it(tmp_path / "a.1.helio", version)
