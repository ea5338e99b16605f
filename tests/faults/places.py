"""Places that are not as one would like: a disk that is full, and clocks that are stepped or stand elsewhere.

The disk is a small tmpfs in a mount namespace of its own (root). The wall clock has no namespace: it is stepped
within the processes under test, by a library in front of theirs. The monotonic clock has one: there its origin is
another.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import math
import os
import random
import shutil
import signal
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict
from functools import partial
from pathlib import Path
from types import FrameType

from tests.faults.cases import Case, History, Publisher
from tests.faults.house import TOP, House, Stopped
from tests.faults.row import Row, Skipped

__all__ = ["PARTS", "REMARKS"]

REMARKS = [
    "disk full: a tmpfs of 8 MB that holds segments, spool and HDR log is filled to its last byte and freed again",
    "wall clock stepped: by up to an hour either way, in the processes under test, by a library loaded into them (no "
    "namespace has a wall clock of its own)",
    "other monotonic clock: each engine lives in a time namespace whose clock is 100,000 s ahead",
]
_SMALL_BYTES = 8 << 20
_CYCLES_MAX = 200
_HOUR_NS = 3_600_000_000_000
_MS_NOSUID = 2
_MS_REC_PRIVATE = 0x44000


def _blank(component: str, fault: str, case: type[Case]) -> Row:
    return Row(component, fault, lost=0 if case.accounts_for else None, residual=0)


def _settle(case: Case, row: Row, complaint: Callable[[], str]) -> None:
    """After a fault: all that must hold."""
    row.runs += 1
    took = case.house.until(case.is_well)
    if took is None:
        row.notes.append(f"not well again: {case.house.last_words(case.victim)}")
    else:
        row.recovered += 1
        row.longest = max(row.longest, took)
        row.notes += [said] if (said := complaint()) else []
    if case.accounts_for:
        row.lost = max(row.lost or 0, case.lost())
    row.residual = max(row.residual or 0, case.residual())


# ---- a full disk; run within the mount namespace ----


def _fill(path: Path) -> None:
    with path.open("ab", buffering=0) as file, contextlib.suppress(OSError):
        for size in (1 << 16, 1 << 12, 1):
            with contextlib.suppress(OSError):
                while file.write(bytes(size)):
                    pass


def _no_new_engine(house: House) -> str:
    """An engine that has no room for its segment says so or starts without; it must not die of a signal."""
    words = [sys.executable, "-m", "tests.faults.visitor"]
    environment = {**os.environ, "HELIOGRAPH_SEGMENT_DIR": str(house.segments)}
    done = subprocess.run(words, cwd=TOP, env=environment, capture_output=True, text=True, timeout=60, check=False)
    if done.returncode < 0:
        return f"an engine that starts on a full disk dies of signal {-done.returncode}"
    if done.returncode and "No space" not in done.stderr:
        return f"an engine that starts on a full disk says: {done.stderr.strip()[-200:]}"
    return ""


def full_disk(folder: Path, cycles: int, seed: int, stop: threading.Event, end: float) -> list[Row]:
    """Fill the disk and free it again, so many times, under engines and under the recorder of the history."""
    chance = random.Random(f"{seed} disk")
    small = folder / "small"
    small.mkdir()
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mount(None, b"/", None, _MS_REC_PRIVATE, None) or libc.mount(
        b"tmpfs", str(small).encode(), b"tmpfs", _MS_NOSUID, f"size={_SMALL_BYTES}".encode()
    ):
        raise OSError(ctypes.get_errno(), "a tmpfs cannot be mounted")
    found = []
    cases: dict[str, type[Case]] = {"engines (segments)": Publisher, "history (spool, HDR log)": History}
    for number, (component, kind) in enumerate(cases.items()):
        row = _blank(component, "disk full", kind)
        with House(folder / f"house-{number}", stop) as house:
            inside = small / f"house-{number}"
            inside.mkdir()
            if kind is Publisher:
                house.segments = inside
            else:
                (inside / "spool").mkdir()
                (house.folder / "spool").symlink_to(inside / "spool")
                (house.folder / "latency.hlog").symlink_to(inside / "latency.hlog")
            case = kind(house)
            for _ in _cycles(cycles, end, number, len(cases)):
                _fill(small / "filler")
                if kind is Publisher:
                    row.notes += [note for note in (_no_new_engine(house),) if note]
                house.sleep(chance.uniform(0.1, 1.0))
                case.mark()
                (small / "filler").unlink()
                _settle(case, row, case.complaint)
            row.notes += case.at_rest()
            case.close()
        shutil.rmtree(inside, ignore_errors=True)
        found.append(row)
    return found


def _cycles(cycles: int, end: float, part: int, parts: int) -> Iterator[int]:
    """Numbers, until this part of the time is over; one in any case."""
    last = time.monotonic() + (end - time.monotonic()) / (parts - part)
    for number in range(cycles):
        if number and time.monotonic() > last:
            return
        yield number


def _disk(folder: Path, cycles: int, seed: int, stop: threading.Event, end: float) -> list[Row]:
    words = ["setpriv", "--pdeathsig", "KILL", "unshare", "--mount", sys.executable, "-m", "tests.faults.places"]
    process = subprocess.Popen(
        [*words, str(folder), str(cycles), str(seed), str(end)],
        cwd=TOP, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    try:
        while True:
            try:
                said, wrong = process.communicate(timeout=0.2)
                break
            except subprocess.TimeoutExpired:
                if stop.is_set():
                    raise Stopped from None
    finally:
        process.terminate()
        try:
            process.communicate(timeout=20.0)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
    if process.returncode != 0:
        raise OSError(wrong.strip().splitlines()[-1] if wrong.strip() else f"status {process.returncode}")
    return [Row(**fields) for fields in json.loads(said.splitlines()[-1])]


# ---- clocks ----


def stepped_clock(folder: Path, cycles: int, seed: int, stop: threading.Event, end: float) -> list[Row]:
    """Step the wall clock of everybody in the house."""
    chance = random.Random(f"{seed} clock")
    library, offset = folder / "step_clock.so", folder / "offset"
    source = TOP / "tests/faults/step_clock.c"
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", library, source], check=True, capture_output=True)
    found = []
    cases: dict[str, type[Case]] = {"engines": Publisher, "history (spool, HDR log)": History}
    for number, (component, kind) in enumerate(cases.items()):
        row = _blank(component, "wall clock stepped", kind)
        offset.write_bytes(bytes(8))
        with House(folder / f"clock-{number}", stop) as house:
            house.environment = {"LD_PRELOAD": str(library), "HELIOGRAPH_STEP_FILE": str(offset)}
            case = kind(house)
            for _ in _cycles(cycles, end, number, len(cases)):
                case.mark()
                with offset.open("r+b", buffering=0) as file:
                    file.write(struct.pack("<q", chance.randint(-_HOUR_NS, _HOUR_NS)))
                house.sleep(chance.uniform(0.0, 0.3))
                _settle(case, row, str)  # who looks from outside has another clock: heartbeats look old or early
            row.notes += case.at_rest()
            case.close()
        found.append(row)
    return found


class _Elsewhere(Publisher):
    """Engines in time namespaces."""

    def begin(self) -> None:
        self.house.prefix = ["unshare", "--time", "--monotonic", "100000", "--boottime", "100000"]
        self.house.prefix += ["--fork", "--kill-child"]
        super().begin()


def other_origin(folder: Path, cycles: int, seed: int, stop: threading.Event, end: float) -> list[Row]:
    """Everybody of a house lives in a time namespace of its own; the publisher is killed and started again."""
    probe = subprocess.run(
        ["unshare", "--time", "--monotonic", "1", "true"], capture_output=True, text=True, check=False
    )
    if probe.returncode:
        raise OSError(probe.stderr.strip())
    chance = random.Random(f"{seed} origin")
    row = _blank("engine, publisher", "kill, other monotonic clock", _Elsewhere)
    with House(folder / "origin", stop) as house:
        case = _Elsewhere(house)
        for _ in _cycles(cycles, end, 0, 1):
            house.sleep(chance.uniform(0.0, 0.2))
            house.end(case.victim, signal.SIGKILL)
            case.mark()
            case.start()
            _settle(case, row, case.complaint)
        case.close()
    return [row]


def _part(
    name: str, what: _What, folder: Path, cycles: int, seed: int, stop: threading.Event, *, seconds: float = math.inf
) -> list[Row]:
    folder.mkdir()
    try:
        rows = what(folder, min(cycles, _CYCLES_MAX), seed, stop, time.monotonic() + seconds)
    except (OSError, subprocess.SubprocessError) as error:
        raise Skipped(f"{name}: {error}") from error
    print(f"  {name}: done", flush=True)
    return rows


_What = Callable[[Path, int, int, threading.Event, float], list[Row]]
_WHATS: dict[str, _What] = {
    "disk full": _disk,
    "wall clock stepped": stepped_clock,
    "other monotonic clock": other_origin,
}
PARTS = {name: partial(_part, name, what) for name, what in _WHATS.items()}
"""By name; each takes a folder, the faults, the seed, the event that stops it, and the seconds it may take."""


def _interrupted(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, _interrupted)
    made = full_disk(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), threading.Event(), float(sys.argv[4]))
    print(json.dumps([asdict(row) for row in made]))
