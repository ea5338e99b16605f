"""Sends commands to a running engine through the ring in its segment (engine/docs/segment.md, section 8).

Only the owner of the segment's file, and root, can do this. A client takes a slot by compare-and-exchange of its first
word, writes the command, submits it and waits for the answer. The engine reads the ring once in a millisecond (asleep:
once in 50). Every wait ends: a client without an answer withdraws its command, so that it is not executed later. The
slot of a dead client is taken over by the next client.
"""

from __future__ import annotations

import mmap
import os
import stat
import struct
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from pwd import getpwuid
from typing import TYPE_CHECKING, Self
from urllib.parse import quote

from heliograph.engine import catalogue
from heliograph.monitor.directory import SegmentError
from heliograph.monitor.errors import UserError
from heliograph.monitor.header import CLOSED, COMMAND_HEAD_BYTES, HEADER_BYTES, LAYOUT_VERSION, Header, parse_header
from heliograph.monitor.health import judge
from heliograph.monitor.model import Health
from heliograph.monitor.ownership import is_own

if TYPE_CHECKING:
    from heliograph.monitor._atomic import Mapping as Mapping64

__all__ = ["Answer", "CommandRing", "NoAnswer", "command_text"]

TEXT_BYTES = 448

_FREE, _CLAIMED, _SUBMITTED, _RUNNING, _DONE = range(5)
_PHASE_BITS, _PID_BITS = 3, 22
_TICKETS = 1 << (64 - _PHASE_BITS - _PID_BITS)

# Fields of a slot.
_STARTED, _CHECK, _TEXT, _CODE, _ANSWER = 8, 32, 48, 496, 504
_ANSWER_BYTES = 504

_STUCK_NS = 1_000_000_000
"""A slot is free for all when its client has not written its command, or not fetched the answer after its deadline,
for this time."""

_LOOK_SECONDS = (0.0002, 0.005)
"""First and longest pause between two checks for the answer, seconds."""


class NoAnswer(UserError):
    """The engine did not take the command in time; the command was withdrawn and is not executed."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer of an engine to a command."""

    code: int
    """0, or the number of an error of the catalogue."""
    text: str

    @property
    def error(self) -> str | None:
        """Name of the error; None when the command was executed."""
        if self.code == 0:
            return None
        return next((e.name for e in catalogue.errors().values() if e.value == self.code), str(self.code))


def command_text(verb: str, values: Mapping[str, object]) -> str:
    """Encode a command for the ring: ``verb key=value ...``, values quoted with %XX.

    Raises:
        UserError: The command is longer than a slot.
    """
    words = [verb, *(f"{key}={quote(str(value), safe=_PLAIN)}" for key, value in values.items())]
    text = " ".join(words)
    if len(text.encode()) > TEXT_BYTES:
        raise UserError(f"the command is too long: {len(text.encode())} of at most {TEXT_BYTES} bytes")
    return text


_PLAIN = "!\"#$&'()*+,/:;<=>?@[\\]^`{|}"


def _check(ticket: int, text: bytes) -> int:
    """Return the FNV-1a hash of the ticket and the text."""
    value = 0xCBF29CE484222325
    for byte in struct.pack("<Q", ticket) + text:
        value = (value ^ byte) * 0x100000001B3 & 0xFFFF_FFFF_FFFF_FFFF
    return value


def _start_ticks(pid: int) -> int | None:
    """Return the start of a process in ticks since boot; None when it has ended."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
    except OSError:
        return None
    return None if len(fields) < 20 or fields[0] in (b"Z", b"X") else int(fields[19])


@dataclass(frozen=True, slots=True)
class _State:
    """The first word of a slot."""

    word: int

    @classmethod
    def of(cls, ticket: int, pid: int, phase: int) -> _State:
        return cls(ticket % _TICKETS << (_PHASE_BITS + _PID_BITS) | pid % (1 << _PID_BITS) << _PHASE_BITS | phase)

    @property
    def phase(self) -> int:
        return self.word & ((1 << _PHASE_BITS) - 1)

    @property
    def pid(self) -> int:
        return self.word >> _PHASE_BITS & ((1 << _PID_BITS) - 1)

    @property
    def ticket(self) -> int:
        return self.word >> (_PHASE_BITS + _PID_BITS)

    def then(self, phase: int) -> _State:
        return _State.of(self.ticket, self.pid if phase != _FREE else 0, phase)


class CommandRing:
    """The command ring of one running engine. A context manager for one thread at a time."""

    def __init__(self, path: Path, clock: Callable[[], int] = time.time_ns, all_users: bool = False) -> None:
        """Open the ring.

        Args:
            path: The segment's file.
            clock: Wall clock in ns since 1970.
            all_users: Accept a segment of another user (who can forge the answers).

        Raises:
            UserError: The segment belongs to another user, its engine takes no commands, or it cannot be read.
        """
        # Only commands need this import; readers of segments work without it.
        from heliograph.monitor import _atomic

        self._mapping = _atomic.Mapping
        self.path = path
        self._clock = clock
        self._seen: dict[int, tuple[int, int]] = {}
        self._file = _open(path, all_users)
        try:
            self.header = self._read_header()
            self._map = self._map_ring()
        except BaseException:
            os.close(self._file)
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file. Harmless when closed."""
        if self._file >= 0:
            self._map.close()
            os.close(self._file)
            self._file = -1

    def _read_header(self) -> Header:
        data = os.pread(self._file, HEADER_BYTES, 0)
        native = struct.pack("=I", 0x01020304)
        if len(data) < HEADER_BYTES or data[:8] != b"HELIOSEG" or data[8:12] != native:
            raise SegmentError(f"{self.path} is not a stats segment of this machine")
        (version,) = struct.unpack_from("=I", data, 12)
        if version != LAYOUT_VERSION:
            raise SegmentError(
                f"{self.path} has layout version {version}; this Heliograph supports version {LAYOUT_VERSION}"
            )
        try:
            return parse_header(data, "<" if sys.byteorder == "little" else ">", os.fstat(self._file).st_size)
        except SegmentError as error:
            raise SegmentError(f"{self.path} is damaged: {error}") from None

    def _map_ring(self) -> Mapping64:
        header = self.header
        if not header.commands_offset:
            raise UserError(
                f"{header.name} accepts no commands: its version of Heliograph is {header.product or 'older'}"
            )
        start = header.commands_offset - header.commands_offset % mmap.ALLOCATIONGRANULARITY
        self._base = header.commands_offset - start
        size = self._base + COMMAND_HEAD_BYTES + header.command_capacity * header.command_bytes
        try:
            return self._mapping(self._file, start, size)
        except OSError as error:
            raise SegmentError(f"{self.path} cannot be mapped: {error.strerror}") from None

    # Slots

    def _slot(self, number: int) -> int:
        return self._base + COMMAND_HEAD_BYTES + number * self.header.command_bytes

    def _state(self, at: int) -> _State:
        return _State(self._map.load(at))

    def _change(self, at: int, old: _State, new: _State) -> bool:
        return self._map.compare_exchange(at, old.word, new.word)

    def _is_abandoned(self, at: int, state: _State) -> bool:
        """Whether the client of a slot has ended or exceeded its time."""
        if state.phase == _FREE:
            return True
        if state.phase > _DONE:
            return True  # no engine and no client writes this state
        now_ns = self._clock()
        if state.phase == _CLAIMED:
            # Only the first word is certain: the rest may belong to the previous client.
            word, since_ns = self._seen.get(at, (0, 0))
            if word != state.word:
                self._seen[at] = state.word, now_ns
                since_ns = now_ns
            return _start_ticks(state.pid) is None or abs(now_ns - since_ns) > _STUCK_NS
        ticks, _, deadline_ns = struct.unpack("=QQQ", self._map.read(at + _STARTED, 24))
        if state.phase == _DONE and _start_ticks(state.pid) != ticks:
            return True
        return bool(now_ns > deadline_ns + _STUCK_NS)

    def _claim(self) -> tuple[int, _State] | None:
        """Claim a slot; None when each has a live client."""
        for number in range(self.header.command_capacity):
            at = self._slot(number)
            state = self._state(at)
            if self._is_abandoned(at, state):
                mine = _State.of(state.ticket + 1, os.getpid(), _CLAIMED)
                if self._change(at, state, mine):
                    return at, mine
        return None

    def _submit(self, at: int, mine: _State, text: bytes, deadline_ns: int) -> bool:
        """Write a command into our slot and submit it; returns False when the slot was taken from us."""
        ticks = _start_ticks(os.getpid()) or 0
        head = struct.pack(
            "=QQQQII", ticks, self._clock(), deadline_ns, _check(mine.ticket, text), os.getuid(), len(text)
        )
        self._map.write(at + _STARTED, head)
        self._map.write(at + _TEXT, text)
        if not self._change(at, mine, mine.then(_SUBMITTED)):
            return False
        self._map.add(self._base, 1)
        return True

    # Commands

    def give(self, text: str, timeout: float = 2.0) -> Answer:
        """Send a command and wait for the answer.

        Args:
            text: The command, see `command_text`.
            timeout: Seconds for the free slot and the answer together.

        Raises:
            NoAnswer: The engine did not take the command in time, or has ended; it is not executed.
            UserError: The command is too long, the answer was lost, or the segment was truncated.
        """
        try:
            return self._give(text, timeout)
        except OSError:  # of the mapping
            raise SegmentError(
                f"{self.path} was truncated by another program; it is unknown whether the command was executed"
            ) from None

    def _give(self, text: str, timeout: float) -> Answer:
        data = text.encode()
        if len(data) > TEXT_BYTES:
            raise UserError(f"the command is too long: {len(data)} of at most {TEXT_BYTES} bytes")
        end = time.monotonic() + timeout
        while True:
            claimed = self._claim()
            deadline_ns = self._clock() + max(0, int((end - time.monotonic()) * 1e9))
            if claimed and self._submit(*claimed, data, deadline_ns):
                at, mine = claimed
                return self._await(at, mine, end)
            self._expect_life()
            if time.monotonic() >= end:
                raise NoAnswer(
                    f"{self.header.name} has {self.header.command_capacity} other commands waiting; "
                    f"this command found no free slot in {timeout:g} s and was not sent"
                )
            time.sleep(_LOOK_SECONDS[1])

    def _await(self, at: int, mine: _State, end: float) -> Answer:
        pause, longest = _LOOK_SECONDS
        withdrawn = False
        while True:
            state = self._state(at)
            if state == mine.then(_DONE):
                return self._fetch(at, state)
            if state.ticket != mine.ticket or state.pid != mine.pid:
                raise UserError(
                    f"the answer of {self.header.name} was lost: another client took the slot; "
                    "'heliograph events' shows whether the command was executed"
                )
            if not withdrawn and (time.monotonic() >= end or self._is_over()):
                # The engine may have taken it at this moment: then its answer follows at once.
                if self._change(at, mine.then(_SUBMITTED), mine.then(_FREE)):
                    self._expect_life()
                    raise NoAnswer(self._why_no_answer())
                withdrawn = True
                end = time.monotonic() + 1.0
            elif withdrawn and time.monotonic() >= end:
                raise NoAnswer(f"{self.header.name} took the command and stopped during its execution")
            time.sleep(pause)
            pause = min(pause * 2, longest)

    def _fetch(self, at: int, state: _State) -> Answer:
        code, size = struct.unpack("=iI", self._map.read(at + _CODE, 8))
        text = self._map.read(at + _ANSWER, min(size, _ANSWER_BYTES)).decode("utf-8", "replace")
        if not self._change(at, state, state.then(_FREE)):
            raise UserError(f"the answer of {self.header.name} was lost: another client took the slot")
        return Answer(code, text)

    # The engine

    def _is_over(self) -> bool:
        return self._read_header().state == CLOSED

    def _expect_life(self) -> None:
        header = self._read_header()
        if header.state == CLOSED:
            raise NoAnswer(f"{header.name} has shut down; the command was not executed")
        verdict = judge(header, self._clock())
        if verdict.health is Health.DEAD:
            raise NoAnswer(f"{header.name} is dead ({verdict.reason}); 'heliograph clean' removes its files")

    def _why_no_answer(self) -> str:
        header = self._read_header()
        verdict = judge(header, self._clock())
        why = f"{header.name} did not take the command ({verdict.reason})"
        if header.polled:
            why += "; with mode=poll it takes commands only while its program polls or sends"
        return f"{why}; the command was withdrawn and is not executed"


def _open(path: Path, all_users: bool) -> int:
    try:
        file = os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    except PermissionError:
        raise UserError(_not_yours(path)) from None
    except OSError as error:
        raise UserError(f"{path} cannot be opened: {error.strerror}") from None
    found = os.fstat(file)
    if not stat.S_ISREG(found.st_mode):
        os.close(file)
        raise SegmentError(f"{path} is not a regular file")
    if not is_own(found.st_uid) and not all_users:
        os.close(file)
        raise UserError(f"{_not_yours(path)}, or pass --all-users")
    return file


def _user(uid: int) -> str:
    try:
        return getpwuid(uid).pw_name
    except KeyError:
        return f"uid {uid}"


def _not_yours(path: Path) -> str:
    try:
        owner = _user(path.stat().st_uid)
    except OSError:
        return f"{path} is not writable for you ({_user(os.getuid())})"
    return (
        f"{path} belongs to {owner}, and only its owner may command that engine; you are {_user(os.getuid())}: "
        f"run as {owner}, such as 'sudo -u {owner} heliograph ctl ...'"
    )
