"""The other programs: small C programs around libpgm and libzmq, compiled here, spoken to through pipes."""

from __future__ import annotations

import shutil
import struct
import subprocess
import threading
import time
from pathlib import Path
from typing import Literal, Self

import pytest

from tests.interop.cable import ADDRESSES, Cable

__all__ = ["GROUP", "PORT", "Peer", "compile_peer"]

GROUP, PORT = "239.192.78.1", 7500
FOLDER = Path(__file__).parent
LIBRARIES = {
    "openpgm_peer": ("pgm/pgm.h", ("-isystem/usr/include/pgm-5.3",), "-lpgm", "libpgm-dev"),
    "zmq_peer": ("zmq.h", (), "-lzmq", "libzmq3-dev"),
}
_READY, _LOST = 0x7FFFFFFE, 0x7FFFFFFF
_HEAD = struct.Struct("=II")


def compile_peer(name: str, folder: Path) -> Path:
    """Compile one of the programs beside this file into a folder; skips the test where its library is missing."""
    header, flags, library, package = LIBRARIES[name]
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler")
    probe = subprocess.run(
        [compiler, *flags, "-E", "-x", "c", "-", "-o", "/dev/null"],
        input=f"#include <{header}>\n",
        text=True,
        capture_output=True,
        check=False,
    )
    if probe.returncode != 0:
        pytest.skip(f"{package} is not installed")
    program = folder / name
    command = [compiler, "-std=c11", "-O1", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", *flags]
    subprocess.run([*command, str(FOLDER / f"{name}.c"), library, "-o", str(program)], check=True)
    return program


class Peer:
    """One such program at the far end of a cable."""

    def __init__(self, cable: Cable, program: Path, role: Literal["send", "recv"]) -> None:
        self.messages: list[tuple[int, bytes]] = []
        """Received: the data-source port of the stream (libzmq does not tell: 0) and the message."""
        self.resets = 0
        """Times the program said that packets could not be had."""
        self._process = subprocess.Popen(
            [*cable.at("far"), str(program), role, ADDRESSES["far"], GROUP, str(PORT)],
            stdin=subprocess.PIPE if role == "send" else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
        )
        assert self._process.stdout is not None
        assert self._process.stdout.read(_HEAD.size) == _HEAD.pack(_READY, 0), f"{program.name} did not start"
        self._reader = threading.Thread(target=self._read, daemon=True)
        if role == "recv":
            self._reader.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()
        if self._reader.is_alive():
            self._reader.join()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()

    def _read(self) -> None:
        pipe = self._process.stdout
        assert pipe is not None
        while len(head := pipe.read(_HEAD.size)) == _HEAD.size:
            length, tag = _HEAD.unpack(head)
            if length == _LOST:
                self.resets += 1
            else:
                self.messages.append((tag, pipe.read(length)))

    def send(self, messages: list[bytes]) -> None:
        """Hand it messages to send."""
        assert self._process.stdin is not None
        for message in messages:
            self._process.stdin.write(_HEAD.pack(len(message), 0) + message)
        self._process.stdin.flush()

    def close(self, seconds: float = 10.0) -> None:
        """Let it end as its users do: a source says so to its receivers. It must end well."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        assert self._process.wait(seconds) == 0

    def wait_for(self, count: int, seconds: float) -> list[bytes]:
        """What it has received as soon as that many messages are there, or when time is up or it has died."""
        end = time.monotonic() + seconds
        while len(self.messages) < count and time.monotonic() < end and self._process.poll() is None:
            time.sleep(0.005)
        return [message for _, message in self.messages]

    @property
    def is_running(self) -> bool:
        return self._process.poll() is None
