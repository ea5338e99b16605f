"""Store server: keeps the messages of topics in the files of a directory."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Literal, Self

from heliograph.engine import _store
from heliograph.engine.options import OptionValue, encode, refusal
from heliograph.engine.store.catch_up import CatchUp
from heliograph.engine.store.found_topics import FoundTopics
from heliograph.engine.store.lags import Lags
from heliograph.engine.store.protocol import host_and_port
from heliograph.engine.store.service import ServiceCounts

__all__ = ["TOPICS_MAX", "Counts", "StoreServer"]

TOPICS_MAX = 1000
"""The most topics of a pattern, unless a caller says otherwise."""
_MOST_TOPICS = 65536

_FSYNC = {"batch": 0, "always": 1, "never": 2}
_LONGEST_SECONDS = 1e9
_TURN_SECONDS = 0.001
"""While it catches up, the longest wait for live messages between two looks for fetched ones."""


@dataclass(frozen=True)
class Counts:
    """Counts of a store server since it started.

    Attributes:
        streams: Streams with a message in the last minute.
        received: Messages taken from the receivers: the sum of the next three.
        kept: Messages taken into the store.
        repeated: Messages that the store had already, as after its restart.
        refused: Messages that the files cannot hold, because they are too large.
        lost: Messages that the receivers lost; the store has a gap there.
        waiting: Messages kept that are not durable yet.
        bytes_kept: Payload bytes of the messages kept.
        bytes_written: Bytes written to files.
        segments_removed: Segments that retention removed.
        holes: Ranges of messages that are missing and are fetched from peers.
        fetched: Missing messages that came from peers.
        given_up: Missing messages that no peer has; the store has a gap there.
        fetch_failures: Attempts to fetch from a peer that failed.
        topics: Topics kept now.
        topics_refused: Announcements of topics that match a pattern and were refused, because there are too many.
        blocked: Why nothing can be written; empty when nothing is wrong.
    """

    streams: int
    received: int
    kept: int
    repeated: int
    refused: int
    lost: int
    waiting: int
    bytes_kept: int
    bytes_written: int
    segments_removed: int
    holes: int
    fetched: int
    given_up: int
    fetch_failures: int
    topics: int
    topics_refused: int
    blocked: str


class StoreServer:
    """Receives topics beside their other receivers, writes the messages to files and acknowledges them when durable.

    A source needs no store to run. With its option ``acks`` it holds messages until that number of receivers, for
    instance two of three stores, have acknowledged them. One thread at a time may use an object. Use it in a ``with``
    block, or call `close`.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        fsync: Literal["batch", "always", "never"] = "batch",
        batch_bytes: int = 65536,
        batch_time: float = 0.01,
        segment_bytes: int = 64 << 20,
        retain_bytes: int = 0,
        retain_time: float = 0.0,
        cut_damage: bool = False,
        peers: Sequence[str] = (),
        peer_rate: float = 0.0,
        name: str | None = None,
        **options: OptionValue,
    ) -> None:
        """Open the store, which is created when there is none.

        Args:
            path: Directory; its parent exists.
            fsync: When messages are durable and acknowledged: after the fsync of their batch, each after an fsync of
                its own, or when they are written (``never``; a power failure can lose them).
            batch_bytes: A batch is written when it has this many bytes, at most 2^27.
            batch_time: A batch is written at this age, seconds.
            segment_bytes: A new segment begins at this size.
            retain_bytes: Retention removes the oldest segments of a stream above this size; 0: no limit.
            retain_time: Retention removes segments whose messages are older, seconds; 0: no limit.
            cut_damage: Cut a damaged end of a stream instead of refusing the stream.
            peers: ``store://HOST:PORT`` of other stores of the same topics. Messages that this store lacks are fetched
                from them (docs/store.md, section 10).
            peer_rate: Limit on the bytes fetched per second; 0: no limit.
            name: Name of the instance.
            options: Other options of instances, see docs/options.md.

        Raises:
            UsageError: Another process writes the store, or it has another version.
            OptionError: A value is out of range.
            SystemCallError: The directory or a file cannot be used.
            ResourceError: Memory or the stats segment could not be allocated.
        """
        if fsync not in _FSYNC:
            raise refusal(f"fsync is one of {', '.join(_FSYNC)}, not {fsync!r}")
        for value, what, least, most in (
            (batch_bytes, "batch_bytes", 1, 1 << 27),
            (batch_time, "batch_time", 0, _LONGEST_SECONDS),
            (segment_bytes, "segment_bytes", 1, 1 << 62),
            (retain_bytes, "retain_bytes", 0, 1 << 62),
            (retain_time, "retain_time", 0, _LONGEST_SECONDS),
            (peer_rate, "peer_rate", 0, 1 << 62),
        ):
            if not least <= value <= most:
                raise refusal(f"{what} is from {least} to {most:,.0f}, not {value}")
        for peer in peers:
            host_and_port(peer)
        with contextlib.suppress(OSError):  # then it cannot be opened either
            Path(path).mkdir(exist_ok=True)
        self._final: Counts | None = None
        self._is_closed = False
        self._keeper = _store.Keeper(
            path,
            encode({"name": name, **options}),
            _FSYNC[fsync],
            batch_bytes,
            int(batch_time * 1e9),
            segment_bytes,
            retain_bytes,
            int(retain_time * 1e9),
            cut_damage,
        )
        self._named: set[str] = set()
        self._topics: frozenset[str] = frozenset()
        self._found_topics: FoundTopics | None = None
        self._found_changes = 0
        self._lags = Lags(path)
        self._path = Path(path)
        self._catch_up: CatchUp | None = None
        if peers:
            self._keeper.use_peers()
            self._catch_up = CatchUp(peers, Path(path), rate=peer_rate)

    def keep(self, endpoint: str, topic: str, **options: OptionValue) -> None:
        """Keep a topic.

        Args:
            endpoint: Address to receive on, as for `Instance.receiver`.
            topic: Name of the topic.
            options: Options of receivers, see docs/options.md. ``ack`` is ``app``.

        Raises:
            EndpointError: The endpoint is malformed, or its address cannot be used.
            OptionError: An option is unknown or its value invalid, or the topic's name is invalid.
            SystemCallError: A system call failed.
        """
        if self._catch_up and options.get("payload") == "raw":
            raise refusal("with payload=raw the numbers of messages have gaps, so a store with peers cannot keep it")
        self._keeper.add(endpoint, topic, encode(options))
        self._named.add(topic)
        self._topics |= {topic}

    def keep_matching(
        self, endpoint: str, pattern: str, *, topics_max: int = TOPICS_MAX, **options: OptionValue
    ) -> None:
        """Keep all topics whose names match a pattern.

        Sources announce a topic before its first message, and all of their topics now and then. A topic is kept from
        the first announcement that comes, and after a restart of the store at once. It is given up when no stream has
        had it for an hour. A topic that `keep` was called for at the endpoint before is left to that.

        Args:
            endpoint: Address to receive on, as for `Instance.receiver`.
            pattern: ``*`` stands for any characters, ``?`` for one byte of UTF-8.
            topics_max: The most topics of the pattern at a time, 1 to 65,536. Announcements come from the network, and
                each topic takes a receive queue; more topics are refused and counted.
            options: Options of receivers, see docs/options.md. ``ack`` is ``app``.

        Raises:
            EndpointError: The endpoint is malformed, or its address cannot be used.
            OptionError: An option is unknown or its value invalid.
            SystemCallError: A system call failed.
        """
        if not 1 <= topics_max <= _MOST_TOPICS:
            raise refusal(f"topics_max is from 1 to {_MOST_TOPICS:,}, not {topics_max}")
        if self._found_topics is None:
            self._found_topics = FoundTopics(self._path)
        self._keeper.add_pattern(endpoint, pattern, encode(options), topics_max)
        for topic in self._found_topics.matching(endpoint, pattern)[:topics_max]:
            self._keeper.expect(topic)

    def step(self, timeout: float = 0.1) -> int:
        """Keep what has arrived; wait for the first message at most `timeout` seconds.

        To be called again and again. While the disk refuses writes, the messages wait in the receivers; `counts` says
        why.

        Returns:
            The number of messages.

        Raises:
            UsageError: A stream in the store is damaged, or an fsync failed: close the store and open it again.
        """
        self._adopt()
        self._lags.tend(self._keeper, self._topics)
        if self._catch_up is None:
            return self._keeper.step(int(timeout * 1e9))
        end = time.monotonic() + timeout
        while True:
            is_behind = self._catch_up.tend(self._keeper)
            self._keeper.show_failures(self._catch_up.failures)
            left = max(0.0, end - time.monotonic())
            taken = self._keeper.step(int(min(left, _TURN_SECONDS if is_behind else left) * 1e9))
            if taken or left <= 0:
                return taken

    def _adopt(self) -> None:
        """Keep topics that patterns have found, and note them before the first of their messages is acknowledged."""
        if self._found_topics is None or (changes := self._keeper.adopt()) == self._found_changes:
            return
        rows = self._keeper.found_topics()
        self._topics = frozenset(self._named).union(topic for _, topic in rows)
        with contextlib.suppress(OSError):  # the disk refuses messages too; the next step tries again
            self._found_topics.replace(rows)
            self._found_changes = changes

    @property
    def topics(self) -> frozenset[str]:
        """Topics that are kept, by name or because they match a pattern."""
        return self._topics

    def peer_trouble(self) -> str:
        """Why peers cannot be read; empty while nothing is wrong, or there are none."""
        return self._catch_up.trouble() if self._catch_up else ""

    def counts(self) -> Counts:
        """Counts since it started; after `close`, the final ones."""
        return self._final or Counts(*self._keeper.look())

    def show_service(self, counts: ServiceCounts, restarts: int) -> None:
        """Show the counts of the store's service as statistics of the store."""
        self._keeper.show_service(
            counts.readers, counts.requests, counts.refused, counts.aborted, counts.bytes_sent, restarts
        )

    def close(self) -> None:
        """Keep what is in the receive queues, write and acknowledge everything, and stop. Idempotent.

        Raises:
            SystemCallError: The last batches could not be written. Sources with ``acks`` have no acknowledgement of
                them.
        """
        if self._catch_up:
            self._catch_up.close()
        if not self._is_closed:
            self._is_closed = True
            self._adopt()
        last = self._keeper.close()
        if last:
            self._final = Counts(*last)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
