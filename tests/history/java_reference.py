"""The Java reference of HdrHistogram (Debian: libhdrhistogram-java) as the judge of logs."""

from __future__ import annotations

import csv
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

JAR = Path("/usr/share/java/hdrhistogram.jar")


@dataclass(frozen=True, slots=True)
class Judged:
    """What the log processor says of the lines of one tag."""

    count: int
    p50: int
    p99: int
    p99_9: int
    max: int


def require_java() -> None:
    """Skip the test where the reference is not installed."""
    if shutil.which("java") is None or not JAR.exists():
        pytest.skip("the Java reference is not installed (libhdrhistogram-java and a Java runtime)")


def _processor(*arguments: str) -> str:
    command = ["java", "-cp", str(JAR), "org.HdrHistogram.HistogramLogProcessor", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout


def tags_of(log: Path) -> list[str]:
    """Tags of a log; empty for lines without one."""
    lines = _processor("-i", str(log), "-listtags").splitlines()[1:]
    return ["" if line.startswith("[NO TAG") else line for line in lines if line]


def judged(log: Path, tag: str, folder: Path) -> Judged:
    """Totals of the lines of one tag, in the log's own unit."""
    out = folder / "judged.csv"
    chosen = ["-tag", tag] if tag else []
    _processor("-csv", "-i", str(log), "-o", str(out), "-outputValueUnitRatio", "1", *chosen)
    lines = [line for line in out.read_text().splitlines() if not line.startswith("#")]
    last = list(csv.DictReader(lines))[-1]
    values = (float(last[f"Total_{name}"]) for name in ("Count", "50%", "99%", "99.9%", "Max"))
    return Judged(*(int(value) for value in values))


def distributed(log: Path, ratio: int) -> list[str]:
    """The percentile distribution of all lines without a tag, without the comments before it."""
    lines = _processor("-i", str(log), "-outputValueUnitRatio", str(ratio)).splitlines()
    return lines[next(number for number, line in enumerate(lines) if not line.startswith("#")) :]
