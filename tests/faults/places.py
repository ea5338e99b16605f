"""Places that are not as one would like: a disk that is full, and clocks that are stepped or stand elsewhere.

The disk is a small tmpfs in a mount namespace of its own (root). The wall clock has no namespace: it is stepped
within the processes under test, by a library in front of theirs. The monotonic clock has one: there its origin is
another.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import random
import shutil
import struct
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.faults.cases import Case, History, Publisher
from tests.faults.house import TOP, House, until

__all__ = ["REMARKS", "rows"]

REMARKS = [
    "disk full: a tmpfs of 8 MB that holds segments, spool and HDR log is filled to its last byte and freed again",
    "clock: the wall clock is stepped by up to an hour either way in the processes under test (a library before "
    "theirs, since it has none); monotonic clock: engines live in time namespaces whose clock is 100,000 s ahead",
]
_SMALL_BYTES = 8 << 20
_CYCLES_MAX = 20
_HOUR_NS = 3_600_000_000_000
_MS_NOSUID = 2
_MS_REC_PRIVATE = 0x44000

Fields = dict[str, Any]


def _blank(component: str, fault: str, case: type[Case]) -> Fields:
    lost = 0 if case.accounts_for else None
    fields: Fields = {"component": component, "fault": fault, "runs": 0, "recovered": 0, "longest": 0.0, "lost": lost}
    return {**fields, "residual": 0, "notes": []}


def _settle(case: Case, fields: Fields, complaint: Callable[[], str]) -> None:
    """After a fault: all that must hold."""
    fields["runs"] += 1
    took = until(case.is_well)
    if took is None:
        fields["notes"].append(f"not well again: {case.house.last_words(case.victim)}")
    else:
        fields["recovered"] += 1
        fields["longest"] = max(fields["longest"], took)
        fields["notes"] += [said] if (said := complaint()) else []
    if case.accounts_for:
        fields["lost"] = max(fields["lost"], case.lost())
    fields["residual"] = max(fields["residual"], case.residual())


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


def full_disk(folder: Path, cycles: int, seed: int) -> list[Fields]:
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
        fields = _blank(component, "disk full", kind)
        with House(folder / f"house-{number}") as house:
            inside = small / f"house-{number}"
            inside.mkdir()
            if kind is Publisher:
                house.segments = inside
            else:
                (inside / "spool").mkdir()
                (house.folder / "spool").symlink_to(inside / "spool")
                (house.folder / "latency.hlog").symlink_to(inside / "latency.hlog")
            case = kind(house)
            for _ in range(cycles):
                _fill(small / "filler")
                if kind is Publisher:
                    fields["notes"] += [note for note in (_no_new_engine(house),) if note]
                time.sleep(chance.uniform(0.1, 1.0))
                case.mark()
                (small / "filler").unlink()
                _settle(case, fields, case.complaint)
            case.close()
        shutil.rmtree(inside, ignore_errors=True)
        found.append(fields)
    return found


def _in_mount_namespace(folder: Path, cycles: int, seed: int) -> list[Fields]:
    words = ["unshare", "--mount", sys.executable, "-m", "tests.faults.places", str(folder), str(cycles), str(seed)]
    done = subprocess.run(words, cwd=TOP, capture_output=True, text=True, timeout=60 + 60 * cycles, check=False)
    if done.returncode != 0:
        raise OSError(done.stderr.strip().splitlines()[-1] if done.stderr.strip() else f"status {done.returncode}")
    made: list[Fields] = json.loads(done.stdout.splitlines()[-1])
    return made


# ---- clocks ----


def stepped_clock(folder: Path, cycles: int, seed: int) -> list[Fields]:
    """Step the wall clock of everybody in the house."""
    chance = random.Random(f"{seed} clock")
    library, offset = folder / "step_clock.so", folder / "offset"
    source = TOP / "tests/faults/step_clock.c"
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", library, source], check=True, capture_output=True)
    found = []
    cases: dict[str, type[Case]] = {"engines": Publisher, "history (spool, HDR log)": History}
    for number, (component, kind) in enumerate(cases.items()):
        fields = _blank(component, "wall clock stepped", kind)
        offset.write_bytes(bytes(8))
        with House(folder / f"clock-{number}") as house:
            house.environment = {"LD_PRELOAD": str(library), "HELIOGRAPH_STEP_FILE": str(offset)}
            case = kind(house)
            for _ in range(cycles):
                case.mark()
                with offset.open("r+b", buffering=0) as file:
                    file.write(struct.pack("<q", chance.randint(-_HOUR_NS, _HOUR_NS)))
                time.sleep(chance.uniform(0.0, 0.3))
                _settle(case, fields, str)  # who looks from outside has another clock: heartbeats look old or early
            case.close()
        found.append(fields)
    return found


class _Elsewhere(Publisher):
    """A subscriber in a time namespace."""

    def begin(self) -> None:
        self.house.prefix = [
            "unshare",
            "--time",
            "--monotonic",
            "100000",
            "--boottime",
            "100000",
            "--fork",
            "--kill-child",
        ]
        super().begin()


def other_origin(folder: Path, cycles: int, seed: int) -> list[Fields]:
    """Everybody of a house lives in time namespaces of their own; the publisher is killed."""
    chance = random.Random(f"{seed} origin")
    fields = _blank("engines", "other monotonic clock", _Elsewhere)
    with House(folder / "origin") as house:
        case = _Elsewhere(house)
        for _ in range(cycles):
            time.sleep(chance.uniform(0.0, 0.2))
            case.mark()
            _settle(case, fields, case.complaint)
        case.close()
    return [fields]


def rows(folder: Path, cycles: int, seed: int, only: str) -> tuple[list[Fields], list[str]]:
    """The fields of the rows, and what was skipped and why."""
    cycles = min(cycles, _CYCLES_MAX)
    parts: dict[str, Callable[[Path, int, int], list[Fields]]] = {
        "disk full": _in_mount_namespace,
        "wall clock stepped": stepped_clock,
        "other monotonic clock": other_origin,
    }
    found: list[Fields] = []
    skipped = []
    for name, part in parts.items():
        if only not in name:
            continue
        place = folder / name.replace(" ", "-")
        place.mkdir()
        try:
            found += part(place, cycles, seed)
            print(f"  {name}: done", flush=True)
        except (OSError, subprocess.SubprocessError) as error:
            skipped.append(f"{name}: {error}")
    return found, skipped


if __name__ == "__main__":
    print(json.dumps(full_disk(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))))
