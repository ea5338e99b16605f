"""How far the segments of a store are exported, so that the next run need not read them again.

The ledger saves time only: the files of the archive decide which messages it has. With a lost ledger the next run reads
all segments and writes nothing twice.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from heliograph.engine.store.files import Segment
from heliograph.engine.store.whole_file import write_json

__all__ = ["Ledger", "Mark"]

_SELECTIONS_MAX = 16


@dataclass
class Mark:
    """A segment.

    Attributes:
        first_ns: Least receive time of its messages, ns since 1970.
        position: Of its first message.
        exported: Messages, from the first, that were read and of which the selected ones are in the archive.
        seen: Messages that it had when it was last looked at.
    """

    first_ns: int
    position: int
    exported: int
    seen: int


Marks = dict[int, Mark]


class Ledger:
    """The marks of one selection of messages.

    Args:
        path: File of the ledger; one that cannot be read counts as lost.
        selection: Text of the selection.
    """

    def __init__(self, path: Path, selection: str) -> None:
        self._path = path
        self._selection = selection
        self._others: dict[str, object] = {}
        self._streams: dict[str, Marks] = {}
        self.missed = 0
        """Messages that were removed from the store before they were exported."""
        try:
            self._others = dict(json.loads(path.read_bytes())["selections"])
            of_mine = self._others.pop(selection, {"streams": {}, "missed": 0})
            for stream, marks in of_mine["streams"].items():  # type: ignore[index]
                self._streams[str(stream)] = {int(number): Mark(*map(int, mark)) for number, mark in marks.items()}
            self.missed = int(of_mine["missed"])  # type: ignore[index]
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            self._streams = {}

    def update(self, found: Sequence[Segment]) -> None:
        """Compare with the segments that the store has now."""
        streams: dict[str, Marks] = {}
        for segment in found:
            marks = streams.setdefault(segment.stream, {})
            known = self._streams.get(segment.stream, {}).get(segment.number)
            is_same = known is not None and (known.first_ns, known.position) == (segment.first_ns, segment.position)
            exported = min(known.exported, segment.messages) if is_same and known is not None else 0
            marks[segment.number] = Mark(segment.first_ns, segment.position, exported, segment.messages)
        for stream, marks in self._streams.items():
            self.missed += _missed(marks, streams.get(stream, {}))
        self._streams = streams

    def exported(self, segment: Segment) -> int:
        """Messages of a segment, from the first, that need not be read again."""
        return self._streams[segment.stream][segment.number].exported

    def note(self, segment: Segment) -> None:
        """Note that the messages that a segment had at the last `update` are exported."""
        self._streams[segment.stream][segment.number].exported = segment.messages

    def save(self) -> None:
        """Write the ledger.

        Raises:
            OSError: The file cannot be written.
        """
        streams = {
            stream: {number: [mark.first_ns, mark.position, mark.exported, mark.seen] for number, mark in marks.items()}
            for stream, marks in self._streams.items()
        }
        others = list(self._others.items())[-_SELECTIONS_MAX + 1 :]
        mine = {"streams": streams, "missed": self.missed}
        write_json(self._path, {"selections": {**dict(others), self._selection: mine}})


def _missed(before: Marks, now: Marks) -> int:
    """Messages of a stream that retention has removed and that were not exported."""
    gone = [mark for number, mark in before.items() if number not in now]
    missed = sum(mark.seen - mark.exported for mark in gone)
    if before and now:  # segments that came and went since
        newest = before[max(before)]
        oldest = now[min(now)]
        if max(before) not in now:
            missed += max(0, oldest.position - newest.position - newest.seen)
    return missed
