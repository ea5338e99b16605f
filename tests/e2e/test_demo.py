"""The demo from start to Ctrl-C: what it prints, what it leaves, and that it leaves nothing else."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[2]
RECEIVERS = ("alpha", "bravo", "slow", "lossy")
WATCH_SECONDS = 12.0


@dataclass(frozen=True, slots=True)
class Run:
    """One finished demo."""

    code: int
    text: str
    out: Path
    pid: int
    top: str
    """What `heliograph top` showed beside it."""
    segments: Path


def top_beside(segments: str) -> str:
    return subprocess.run(
        [sys.executable, "-m", "heliograph.monitor.cli", "top", "--once", "--interval", "2", "--segments", segments],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    ).stdout


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A demo ended with Ctrl-C after a while."""
    out = tmp_path_factory.mktemp("demo") / "out"
    environment = {key: value for key, value in os.environ.items() if not key.startswith("DEMO_")}
    process = subprocess.Popen(
        [sys.executable, str(TOP / "deploy/demo/demo.py")],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**environment, "DEMO_FOLDER": str(out)},
    )
    assert process.stdout is not None
    lines = []
    try:
        for line in process.stdout:
            lines.append(line)
            if found := re.search(r"heliograph top --segments (\S+)", line):
                break
        else:
            pytest.fail("the demo did not start:\n" + "".join(lines))
        time.sleep(WATCH_SECONDS)
        top = top_beside(found[1])
        process.send_signal(signal.SIGINT)
        lines += process.stdout.readlines()
        code = process.wait(timeout=240)
    finally:
        process.kill()
    return Run(code, "".join(lines), out, process.pid, top, Path(found[1]))


def test_it_ends_well(demo: Run) -> None:
    assert demo.code == 0, demo.text


@pytest.mark.parametrize("name", RECEIVERS)
def test_the_books_of_every_receiver_balance(demo: Run, name: str) -> None:
    rows = [line.split() for line in demo.text.splitlines() if line.split()[:1] == [name]]
    assert rows, demo.text
    for row in rows:
        assert row[-2:] == ["0", "0"], f"in flight and residual of {name}: {row}"


def test_the_lossy_receiver_recovered_packets(demo: Run) -> None:
    row = next(line.split() for line in demo.text.splitlines() if line.split()[:1] == ["lossy"])
    assert int(row[3].replace(",", "")) > 0


def test_top_names_the_slow_and_the_lossy_receiver_first(demo: Run) -> None:
    order = [name for line in demo.top.splitlines() for name in line.split() if name in RECEIVERS]
    worst = list(dict.fromkeys(order))[:2]
    assert set(worst) == {"slow", "lossy"}, demo.top


def test_it_leaves_what_it_promised(demo: Run) -> None:
    for name in ("metrics.prom", "latency.hlog", "report.html"):
        assert (demo.out / name).stat().st_size > 1000, name
    assert list((demo.out / "spool").rglob("*.parquet"))
    assert list((demo.out / "history").rglob("*.parquet"))


def test_the_report_needs_nothing_from_elsewhere(demo: Run) -> None:
    page = (demo.out / "report.html").read_text(encoding="utf-8")
    assert not re.search(r"""(?:src|href)\s*=\s*["']https?://""", page)


def test_promtool_accepts_the_metrics(demo: Run) -> None:
    if shutil.which("promtool") is None:
        pytest.skip("no promtool here")
    done = subprocess.run(
        ["promtool", "check", "metrics"],
        stdin=(demo.out / "metrics.prom").open("rb"),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_the_picture_of_the_live_page_is_a_picture(demo: Run) -> None:
    if shutil.which("chromium") is None:
        pytest.skip("no chromium here")
    picture = (demo.out / "live.png").read_bytes()
    assert picture.startswith(b"\x89PNG")
    assert len(picture) > 20_000


def test_tshark_reads_the_capture_as_sound_pgm(demo: Run) -> None:
    if shutil.which("tshark") is None or shutil.which("tcpdump") is None:
        pytest.skip("no tshark or tcpdump here")
    if os.geteuid() != 0:
        pytest.skip("capturing needs root")
    told = re.search(r"-d (udp\.port==\d+,pgm)", demo.text)
    assert told is not None, demo.text
    fields = ["-T", "fields", "-e", "pgm.hdr.type", "-e", "_ws.malformed", "-e", "pgm.hdr.cksum.status"]
    lines = subprocess.run(
        ["tshark", "-n", "-r", str(demo.out / "capture.pcap"), "-d", told[1], "-Y", "pgm", *fields],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    rows = [line.split("\t") for line in lines]
    assert {int(row[0], 0) for row in rows} >= {0x00, 0x04, 0x05, 0x08, 0x0A}
    assert [row for row in rows if row[1]] == []
    assert {row[2].split(",")[-1] for row in rows} == {"1"}  # 1: good


def processes_of(segments: Path) -> list[str]:
    """Command lines of the processes that were given this segment folder."""
    mark = f"HELIOGRAPH_SEGMENT_DIR={segments}".encode()
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with contextlib.suppress(OSError):
                if mark in (folder / "environ").read_bytes().split(b"\0"):
                    found.append((folder / "cmdline").read_bytes().replace(b"\0", b" ").decode())
    return found


def test_nothing_is_left_behind(demo: Run) -> None:
    assert not demo.segments.exists()
    assert processes_of(demo.segments) == []
    if shutil.which("ip"):
        listed = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True, check=False).stdout
        assert f"helio-demo-{demo.pid}" not in listed
