"""Runs the benchmark programs: one JSON line each, a time limit, and nothing left running whatever happens."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.bench.pairing import Failure, Figures

__all__ = ["PROBE_SECONDS", "Runner"]

PROBE_SECONDS = 0.05
_GRACE_SECONDS = 25.0
"""What a program may take beyond its measuring time: start, warm-up, end."""
_FIRST_PORT, _PORTS, _PORTS_OF_A_RUN = 20000, 10000, 8
"""Below those the kernel gives out by itself."""


class Runner:
    """Runs programs, each with ports of its own and a folder of stats segments that goes when the runner does.

    Args:
        programs: folder of the built C programs.
        seconds: how long each run measures, its warm-up included.
    """

    def __init__(self, programs: Path, seconds: float) -> None:
        self.programs = programs
        self.seconds = seconds
        self._port = os.getpid() * _PORTS_OF_A_RUN % _PORTS
        memory = Path("/dev/shm")
        self._segments = tempfile.mkdtemp(prefix="heliograph-bench-", dir=memory if memory.is_dir() else None)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        shutil.rmtree(self._segments, ignore_errors=True)

    @property
    def segments(self) -> Path:
        """Folder of the stats segments of its programs."""
        return Path(self._segments)

    def line(self, command: tuple[str, ...], size: int, seconds: float) -> list[str]:
        """The full command line of a command.

        Raises:
            Failure: its program was not built.
        """
        program, *arguments = command
        if program.endswith(".py"):
            start = [sys.executable, program]
        else:
            path = self.programs / program
            if not path.exists():
                built = "no libzmq was here when it was built" if program == "zmq" else "it was not built"
                raise Failure(f"there is no {program} in {self.programs}: {built}")
            start = [str(path)]
        self._port = (self._port + _PORTS_OF_A_RUN) % _PORTS
        port = _FIRST_PORT + self._port
        return [*start, *arguments, "--size", str(size), "--seconds", f"{seconds:g}", "--port", str(port)]

    def measure(self, command: tuple[str, ...], size: int, seconds: float | None = None) -> Figures:
        """Run a program once.

        Raises:
            Failure: it was not built, failed, took too long or printed no figures.
        """
        seconds = self.seconds if seconds is None else seconds
        line = self.line(command, size, seconds)
        name = Path(command[0]).name
        process = subprocess.Popen(
            line,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            env={**os.environ, "HELIOGRAPH_SEGMENT_DIR": self._segments},
        )
        try:
            out, err = process.communicate(timeout=1.2 * seconds + _GRACE_SECONDS)
        except subprocess.TimeoutExpired:
            raise Failure(f"{name} did not end in time") from None
        finally:
            self._end(process)
        if process.returncode != 0:
            raise Failure(_first_line(err) or f"{name} ended with status {process.returncode} and said nothing")
        try:
            figures: Figures = json.loads(out.splitlines()[-1])  # libpgm warns before it
        except (ValueError, IndexError):
            raise Failure(f"{name} printed no JSON but: {_first_line(out)!r}") from None
        return figures

    def probe(self) -> float:
        """Half a round trip of a cache line between the two cores, in ns.

        Raises:
            Failure: it could not be run.
        """
        return float(self.measure(("probe", "line"), 64, PROBE_SECONDS)["p50_ns"])

    @staticmethod
    def _end(process: subprocess.Popen[str]) -> None:
        """Whoever is left of the program's processes goes."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        for stream in (process.stdout, process.stderr):
            if stream is not None:
                stream.close()


def _first_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip() and not line.startswith("Warn:")]
    return lines[0] if lines else ""
