"""Files that somebody else wrote: every piece of a spool, a history or a log may be cut, garbled or made up."""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from heliograph.monitor.errors import UserError
from heliograph.monitor.history.files import Broken, parquet_files, read_unit, scan
from heliograph.monitor.history.hlog import HlogInterval, Malformed, read_hlog
from heliograph.monitor.history.hours import read_history
from heliograph.monitor.history.importer import import_hlog
from heliograph.monitor.history.merge import merge_spool
from tests.fuzz.python_mutation import mangled
from tests.fuzz.python_targets import TARGETS

TOP = Path(__file__).resolve().parents[2]
SEED = 11


def _good_log() -> bytes:
    return TARGETS["fuzz_py_hlog"].seeds()[0]


@pytest.fixture
def spool(tmp_path: Path) -> Path:
    """A spool of three intervals."""
    log = tmp_path / "good.hlog"
    log.write_bytes(_good_log())
    assert import_hlog(log, tmp_path / "spool").intervals == 3
    return tmp_path / "spool"


def _hostile(whole: bytes) -> Iterator[tuple[str, bytes]]:
    """What becomes of a Parquet file: cut anywhere, garbled, with a footer that lies, something else altogether."""
    chance = random.Random(SEED)
    yield "nothing", b""
    yield "zeros", bytes(len(whole))
    yield "noise", chance.randbytes(len(whole))
    yield "magic alone", b"PAR1PAR1"
    yield "a footer longer than the file", whole[:-8] + (1 << 31).to_bytes(4, "little") + b"PAR1"
    yield "a footer of noise", whole[:-8] + chance.randbytes(4) + b"PAR1"
    for part in range(1, 8):
        yield f"cut at {part}/8", whole[: len(whole) * part // 8]
    for number in range(40):
        yield f"garbled {number}", mangled(chance, whole, whole)


def test_a_hostile_parquet_file_is_named_and_all_others_are_read(spool: Path) -> None:
    (good,) = parquet_files(spool)
    whole = good.read_bytes()
    bad = good.with_name("hostile-000001.parquet")
    for what, data in _hostile(whole):
        bad.write_bytes(data)
        found = scan(spool)
        tables = [table for unit in found.units for _, table in read_unit(unit.paths) if not isinstance(table, Broken)]
        assert sum(table.num_rows for table in tables) >= 3, what
        assert str(good) not in [one.path for one in found.broken], what
        merged, _ = merge_spool(spool)
        assert merged.num_rows >= 3, what


def test_a_hostile_history_is_named_or_read(spool: Path) -> None:
    history = spool.parent / "history"
    (history / "date=2026-11-21").mkdir(parents=True)
    whole = parquet_files(spool)[0].read_bytes()
    for what, data in _hostile(whole):
        (history / "date=2026-11-21" / "bad.parquet").write_bytes(data)
        table, broken = read_history(history)
        assert table.num_rows == 3 or broken, what


def test_a_hostile_log_costs_its_bad_lines_and_no_other(tmp_path: Path) -> None:
    chance = random.Random(SEED)
    good = _good_log()
    for number in range(60):
        log = tmp_path / "hostile.hlog"
        log.write_bytes(mangled(chance, good, good) + b"\n" + good)
        kinds = [type(found) for found in read_hlog(log)]
        assert set(kinds) <= {HlogInterval, Malformed}, number
        assert import_hlog(log, tmp_path / f"spool-{number}").intervals >= 3, number


def test_a_log_that_cannot_be_read_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="importing"):
        import_hlog(tmp_path / "nowhere.hlog", tmp_path / "spool")
    with pytest.raises(UserError, match="importing"):
        import_hlog(tmp_path, tmp_path / "spool")


@pytest.mark.parametrize("target", sorted(TARGETS))
def test_every_decoder_stands_a_second_of_hostile_input(target: str, tmp_path: Path) -> None:
    words = [sys.executable, "-m", "tests.fuzz.python_fuzz", target, "--seconds", "1", "--seed", str(SEED)]
    places = ["--corpus", str(tmp_path / "corpus"), "--found", str(tmp_path / "found")]
    done = subprocess.run([*words, *places], cwd=TOP, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert list((tmp_path / "found").iterdir()) == []


def test_a_recording_of_holes_costs_its_reader_little(tmp_path: Path) -> None:
    """A sparse file may claim chunks of gigabytes that take no room on the disk."""
    path = tmp_path / "holes.1.flight"
    made = bytearray(TARGETS["fuzz_py_flight"].seeds()[0])
    chunks_at = int.from_bytes(made[80:88], "little")
    size = (1 << 32) - 4096
    chunk = (size - chunks_at) // 2 // 8 * 8
    made[16:24] = (chunks_at + 2 * chunk).to_bytes(8, "little")
    made[88:96] = chunk.to_bytes(8, "little")
    made[96:100] = (2).to_bytes(4, "little")
    head = made[: chunks_at + 64]
    head[chunks_at : chunks_at + 16] = (1).to_bytes(8, "little") + (chunk - 64).to_bytes(8, "little")
    with path.open("wb") as file:
        file.write(head)
        file.truncate(chunks_at + 2 * chunk)
    code = (
        "import resource, sys; from pathlib import Path; from heliograph.monitor.flight.reader import read\n"
        "resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))\n"
        "from heliograph.monitor.flight.format import FlightError\n"
        "try: read(Path(sys.argv[1]))\n"
        "except FlightError as error: print(error)\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
    )
    limits = [sys.executable, "-c", code, str(path)]
    done = subprocess.run(limits, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr[-500:]
