"""Run commands one after the other and show how far each is; the first that fails ends the run.

    python3 stages.py 'C tests=sh ctest.sh build/release' 'Python tests=sh pytest.sh'

Lines that only report progress (of ninja, make, ctest, fuzz.sh and pytest) become one updating line on a terminal, and
elsewhere a line every 10 % or minute; all others are shown. Ctrl-C ends the command and every process of its group.
"""

from __future__ import annotations

import contextlib
import os
import re
import selectors
import shlex
import signal
import subprocess
import sys
import time
from typing import NoReturn

COUNT = re.compile(rb"^(?:fuzz: )?\[(\d+)/(\d+)\]|^ *(\d+)/(\d+) Test +#|^ *(?:[\w./]+ +)?[.sx]* *\[ *(\d+)%\]\s*")
QUIET = re.compile(rb"^ +Start +\d+: |^ninja: no work to do|^\s*$")
PATIENCE = 20.0  # seconds that an interrupted command has to end


def progress(line: bytes) -> float | None:
    """The part that is done, 0 to 1, if the line reports it."""
    found = COUNT.match(line)
    if found is None:
        return None
    done, total = [int(group) for group in (*found.groups(), b"100") if group][:2]
    return done / max(total, 1)


def clock(seconds: float) -> str:
    """Minutes and seconds."""
    return f"{int(seconds) // 60}:{int(seconds) % 60:02}"


class Stage:
    """One command and what its user sees of it."""

    def __init__(self, title: str) -> None:
        self.title = title
        self.terminal = sys.stdout.isatty()
        self.start = self.reported = time.monotonic()
        self.part = self.reported_part = 0.0
        print(f"{title} ...", flush=True)

    def seconds(self) -> float:
        return time.monotonic() - self.start

    def show(self) -> None:
        text = f"{self.title} ... {self.part:4.0%} {clock(self.seconds())}"
        now = time.monotonic()
        if self.terminal:
            print(f"\r\033[K{text}", end="", flush=True)
        elif self.part >= self.reported_part + 0.1 or now >= self.reported + 60:
            self.reported, self.reported_part = now, self.part
            print(text, flush=True)

    def line(self, line: bytes) -> None:
        part = progress(line)
        if part is not None:
            if part < self.part:  # the command began to count something else
                self.reported_part = 0.0
            self.part = part
        if b"***" in line or (part is None and not QUIET.match(line)):
            if self.terminal:
                print("\r\033[K", end="")
            print(line.decode(errors="replace").rstrip("\n"), flush=True)

    def run(self, command: list[str]) -> int:
        """Run the command to its end; its exit status."""
        with subprocess.Popen(
            command,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        ) as process:
            try:
                self.follow(process)
                return process.wait()
            except BaseException:
                end(process)
                raise

    def follow(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdout is not None
        rest = b""
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ)
            while True:
                if selector.select(1.0):
                    chunk = os.read(process.stdout.fileno(), 1 << 16)
                    *lines, rest = (rest + chunk).split(b"\n")
                    for line in lines if chunk else [rest]:
                        self.line(line)
                    if not chunk:
                        break
                self.show()
        if self.terminal:
            print("\r\033[K", end="")


def end(process: subprocess.Popen[bytes]) -> None:
    """Interrupt the group of the process; after a while end what is left of it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with contextlib.suppress(subprocess.TimeoutExpired, ProcessLookupError):
        os.killpg(process.pid, signal.SIGINT)
        process.wait(PATIENCE)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def interrupted(_number: int, _frame: object) -> NoReturn:
    raise KeyboardInterrupt


def main() -> int:
    for end_signal in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
        signal.signal(end_signal, interrupted)
    stages = [argument.split("=", 1) for argument in sys.argv[1:]]
    ends: list[str] = []
    status = 0
    for number, (name, command) in enumerate(stages, 1):
        stage = Stage(f"[{number}/{len(stages)}] {name}")
        try:
            status = stage.run(shlex.split(command))
        except KeyboardInterrupt:
            status = 130
        result = "interrupted" if status == 130 else f"failed with status {status}" if status else "passed"
        ends.append(f"{stage.title}: {result} in {clock(stage.seconds())}")
        print(ends[-1], flush=True)
        if status:
            break
    if len(stages) > 1:
        print("\n".join(["", *ends, *(f"{name}: not run" for name, _ in stages[len(ends) :])]), flush=True)
    return status


if __name__ == "__main__":
    sys.exit(main())
