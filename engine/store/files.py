"""Files of a message store, listed and verified."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Segment", "ahead", "faults", "segments"]

_LOCK = "heliograph store 1\n"


@dataclass(frozen=True)
class Segment:
    """A segment of a stream, as found on disk."""

    stream: str
    number: int
    header: str
    position: int
    messages: int
    bytes: int
    whole_bytes: int
    first_ns: int
    last_ns: int
    tail: str
    index: str
    batches: int


def segments(
    path: Path, thorough: bool = False, progress: Callable[[int], None] = lambda segments: None
) -> list[Segment]:
    """The segments of a store, in the order of stream and number. The store may be written meanwhile.

    Args:
        path: Directory of the store.
        thorough: Check every record, not only the heads of batches.
        progress: Called with the number of segments read so far.

    Raises:
        Error: The directory cannot be read, is not a store, or has another version.
    """
    from heliograph.engine import _store

    found: list[Segment] = []
    for count, one in enumerate(_store.ids(path), 1):
        row = _store.segment(path, one, thorough)
        if row is not None:
            found.append(Segment(*row))
        else:  # Retention has removed it meanwhile, after those before it.
            found = [before for before in found if before.stream != _stream(one) or _is_there(path, before)]
        progress(count)
    return found


def ahead(path: Path) -> Path | None:
    """Directory of the messages that wait for earlier ones (docs/store.md, section 10); None: there is none."""
    lock = path / "ahead" / "store.lock"
    try:
        return lock.parent if lock.read_text() == _LOCK else None
    except (OSError, ValueError):  # a crash may leave it without a lock, and then it is empty
        return None


def _stream(one: tuple[bytes, int, int]) -> str:
    return f"{one[0].hex()}:{one[1]}"


def _is_there(path: Path, segment: Segment) -> bool:
    return (path / f"{segment.stream.replace(':', '-')}-{segment.number:016x}.seg").exists()


def faults(found: list[Segment]) -> list[str]:
    """Damage of a store. An incomplete end of a stream is none: a crash leaves it, and the writer cuts it off."""
    wrong = []
    for i, segment in enumerate(found):
        name = f"stream {segment.stream}, segment {segment.number}"
        is_last = i + 1 == len(found) or found[i + 1].stream != segment.stream
        if segment.header != "ok":
            if segment.header != "incomplete" or not is_last:
                wrong.append(f"{name}: header: {segment.header}")
            continue
        if segment.tail == "damaged" or (segment.tail != "ok" and not is_last):
            wrong.append(f"{name}: {segment.tail} at byte {segment.whole_bytes}")
        before = found[i - 1] if i > 0 and found[i - 1].stream == segment.stream else None
        if before is None or before.header != "ok" or before.tail != "ok":
            continue
        if segment.number != before.number + 1:
            wrong.append(f"{name}: segments before it are missing")
        elif segment.position != before.position + before.messages:
            wrong.append(f"{name}: begins at position {segment.position}, not {before.position + before.messages}")
    return wrong
