"""A module in a child process: the calls that its lane makes.

The child may be slow, crash, hang or exit. Input without an answer counts as dropped. A child that does not answer in
time is killed, and restarted after a pause that grows, up to a number of times. A new child first gets all existing
topics. All waits are on the lane's thread and do not delay the monitor.
"""

from __future__ import annotations

import json
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

from heliograph.monitor.errors import UserError
from heliograph.monitor.modules.lane import Ledger, NotTaken, Portion
from heliograph.monitor.modules.protocol import Topic, TopicChange
from heliograph.monitor.modules.wire import NUMBERS, moments_to, record
from heliograph.monitor.packing import Encoder

__all__ = ["ProcessSink"]

_SLICE_SECONDS = 0.1
_START_SECONDS = 30.0
"""Shortest time for a child to start and to open the module."""
_HOUR_SECONDS = 3600.0
_LINE_BYTES = 1 << 20


class _Ended(Exception):
    """The child has ended, with the given reason."""


class _Child:
    """A running child and our end of the connection. One thread at a time."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._rest = b""
        ours, theirs = socket.socketpair()
        with theirs:
            command = [sys.executable, "-P", "-m", "heliograph.monitor.modules.child", str(theirs.fileno())]
            try:
                self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, pass_fds=(theirs.fileno(),))
            except BaseException:
                ours.close()
                raise
        ours.setblocking(False)
        self._line = ours
        self.encoder = Encoder(compress=False)
        """Encoder of the snapshots for this child."""

    @property
    def pid(self) -> int:
        return self._process.pid

    def exchange(self, data: bytes, left: Callable[[], float], closing: bool = False) -> dict[str, Any]:
        """Send records that end in a request for an answer, and wait for the answer.

        Args:
            data: The records.
            left: Returns the seconds that remain.
            closing: The child exits after its answer.

        Raises:
            _Ended: It ended, or did not answer in time and was killed.
        """
        unsent = memoryview(data)
        watcher = select.poll()
        while (remaining := left()) > 0:
            watcher.register(self._line, select.POLLIN | (select.POLLOUT if unsent else 0))
            if not watcher.poll(1000 * min(remaining, _SLICE_SECONDS)):
                continue
            try:
                if unsent:
                    unsent = unsent[self._line.send(unsent) :]
            except BlockingIOError:
                pass
            except OSError:
                unsent = memoryview(b"")  # it has ended; its last lines may still be readable
            answer = self._received()
            if answer is not None:
                if unsent:
                    raise self._nonsense()
                if closing:
                    self._reap(left)
                return answer
        self.kill()
        raise _Ended("did not answer in time and was killed")

    def _received(self) -> dict[str, Any] | None:
        """Return the answer, when it has arrived."""
        try:
            chunk = self._line.recv(1 << 16)
        except BlockingIOError:
            return None
        except OSError:
            chunk = b""
        if not chunk:
            raise _Ended(self._end())
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        answer = None
        try:
            for line in lines:
                said = json.loads(line)
                if "say" in said:
                    self._say(str(said["say"]))
                else:
                    answer = _checked(said["answer"])
        except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
            raise self._nonsense() from None
        if len(self._rest) > _LINE_BYTES:
            raise self._nonsense()
        return answer

    def _nonsense(self) -> _Ended:
        """Kill a child that breaks the protocol: a module may write to foreign file descriptors."""
        self.kill()
        return _Ended("sent an invalid answer and was killed")

    def _end(self) -> str:
        """Return how it ended; a live child with a closed connection is killed."""
        try:
            code = self._process.wait(1.0)
        except subprocess.TimeoutExpired:
            self.kill()
            return "closed its connection and was killed"
        self._line.close()
        if code < 0:
            try:
                return f"was killed by {signal.Signals(-code).name}"
            except ValueError:
                return f"was killed by signal {-code}"
        return f"ended with exit code {code}" if code else "ended unexpectedly"

    def _reap(self, left: Callable[[], float]) -> None:
        try:
            self._process.wait(max(0.1, left()))
        except subprocess.TimeoutExpired:
            self.kill()
        self._line.close()

    def kill(self) -> None:
        """Kill it."""
        self._process.kill()
        self._process.wait()
        self._line.close()


def _checked(answer: Any) -> dict[str, Any]:
    """Check the form of an answer; raises an error of type or value otherwise."""
    if "refused" in answer:
        return {"refused": str(answer["refused"])}
    failures = [(str(doing), str(text), max(1, int(times))) for doing, text, times in answer["failures"]]
    lost = answer["counts"].get("lost", 0)
    return {"failures": failures, "counts": {"lost": max(0, int(lost))} if lost else {}}


class ProcessSink:
    """Runs a module in a child process."""

    def __init__(
        self,
        what: Mapping[str, str],
        *,
        answer: float = 10.0,
        pause: float = 0.5,
        longest_pause: float = 60.0,
        restarts: int = 10,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """Prepare the sink; `open` starts the child.

        Args:
            what: `native`, the path of a shared object, with `options`; or `python`, a request as `finding.load` takes.
            answer: Longest time for one portion in seconds.
            pause: Seconds before the first restart; doubled at each further one.
            longest_pause: Largest pause in seconds.
            restarts: Largest number of restarts within an hour; then the module is stopped.
            monotonic: Clock in seconds.
        """
        self._what = dict(what)
        self._answer = answer
        self._pause = pause
        self._longest_pause = longest_pause
        self._limit = restarts
        self._monotonic = monotonic
        self._stopping = threading.Event()
        self._latest: float | None = None
        self._child: _Child | None = None
        self._restarted: deque[float] = deque()
        self._given_up = False
        self._topics: dict[tuple[object, ...], Topic] = {}
        """Live topics, in the order of creation."""
        self._opening: list[dict[str, Any]] = []
        self._ledger: Ledger | None = None

    @property
    def pid(self) -> int:
        """The child's process id; 0: no child."""
        return self._child.pid if self._child is not None else 0

    def open(self) -> None:
        """Start the child for the first time, so that a fault of the module is known at once.

        Raises:
            UserError: The module cannot be loaded, or rejects its options.
        """
        try:
            self._opening.append(self._begin())
        except _Ended as error:
            raise UserError(f"its process {error} while the module was opened") from None

    def start(self, ledger: Ledger) -> None:
        """Count the failures of the module during its opening."""
        self._ledger = ledger
        for answer in self._opening:
            self._settle(answer, ledger)

    def take(self, portion: Portion, ledger: Ledger) -> None:
        """Pass a portion to the child; start another child first where there is none.

        Raises:
            NotTaken: There is no child, or it ended during this portion.
        """
        try:
            self._give(portion, ledger)
        finally:
            self._remember(portion)

    def stop(self, within: float) -> None:
        """From now on, no wait is longer than this."""
        self._latest = self._monotonic() + within
        self._stopping.set()

    def close(self, ledger: Ledger) -> None:
        """Let the child close the module and exit."""
        if self._child is None:
            return
        try:
            self._settle(self._child.exchange(record(b"Z"), self._left(), closing=True), ledger)
        except _Ended as error:
            ledger.count(crashes=1)
            ledger.failed(f"its process {error}", "in close")
        self._child = None

    def _give(self, portion: Portion, ledger: Ledger) -> None:
        child = self._running(ledger)
        parts = []
        if portion.snapshot is not None:
            try:
                frame = child.encoder.frame(portion.snapshot)
            except UserError as error:
                ledger.failed(str(error))
                raise NotTaken from None
            parts.append(record(b"S", NUMBERS.pack(portion.number, portion.dropped), frame))
        if portion.moments:
            parts.append(record(b"M", moments_to(portion.moments)))
        try:
            answer = child.exchange(b"".join((*parts, record(b"A"))), self._left())
        except _Ended as error:
            self._lost(str(error), ledger)
            raise NotTaken from None
        self._settle(answer, ledger)

    def _running(self, ledger: Ledger) -> _Child:
        """Return the child; it is restarted, after a pause, when it has ended."""
        while self._child is None:
            self._await_turn(ledger)
            ledger.count(restarts=1)
            try:
                self._settle(self._begin(), ledger)
            except (UserError, OSError) as error:
                ledger.failed(str(error))
            except _Ended as error:
                self._lost(str(error), ledger)
        return self._child

    def _await_turn(self, ledger: Ledger) -> None:
        """Wait until another child may be started.

        Raises:
            NotTaken: No restart is allowed, or the lane ends.
        """
        now = self._monotonic()
        while self._restarted and now - self._restarted[0] > _HOUR_SECONDS:
            self._restarted.popleft()
        if len(self._restarted) >= self._limit and not self._given_up:
            self._given_up = True
            ledger.say(f"is stopped: it was restarted {self._limit} times within an hour")
        pause = min(self._longest_pause, self._pause * 2.0 ** len(self._restarted))
        if self._given_up or self._stopping.wait(pause):
            raise NotTaken
        self._restarted.append(self._monotonic())

    def _begin(self) -> dict[str, Any]:
        """Start a child, open the module in it, and pass the existing topics; returns its answer."""
        child = _Child(self._say)
        try:
            first = record(b"P", json.dumps({**self._what, "path": sys.path}).encode())
            answer = child.exchange(first, self._left(_START_SECONDS))
            if "refused" in answer:
                raise UserError(answer["refused"])
            if self._topics:
                known = [TopicChange(topic, created=True) for topic in self._topics.values()]
                again = child.exchange(record(b"M", moments_to(known)) + record(b"A"), self._left())
                answer["failures"] += again["failures"]
        except BaseException:
            child.kill()
            raise
        self._child = child
        return answer

    def _left(self, seconds: float = 0.0) -> Callable[[], float]:
        """Return a function that gives the remaining time for one answer, at least `seconds`."""
        until = self._monotonic() + max(self._answer, seconds)

        def left() -> float:
            latest = until if self._latest is None else min(until, self._latest)
            return latest - self._monotonic()

        return left

    def _lost(self, why: str, ledger: Ledger) -> None:
        """Count an unexpected end of the child."""
        self._child = None
        ledger.count(crashes=1)
        ledger.failed(f"its process {why}")

    def _settle(self, answer: Mapping[str, Any], ledger: Ledger) -> None:
        """Add an answer to the account."""
        for doing, text, times in answer.get("failures", ()):
            ledger.failed(text, doing, times)
        if answer.get("counts"):
            ledger.count(**answer["counts"])

    def _remember(self, portion: Portion) -> None:
        """Keep the existing topics for the next child."""
        for moment in portion.moments:
            if isinstance(moment, TopicChange):
                topic = moment.topic
                key = (topic.incarnation, topic.direction, topic.topic, topic.stream)
                if moment.created:
                    self._topics[key] = topic
                else:
                    self._topics.pop(key, None)

    def _say(self, text: str) -> None:
        if self._ledger is not None:
            self._ledger.say(text)
        else:
            print(f"module {text}", file=sys.stderr, flush=True)
