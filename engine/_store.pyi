from collections.abc import Sequence
from os import PathLike

Segment = tuple[str, int, str, int, int, int, int, int, int, str, str, int]
"""Stream, number, header, first position, messages, bytes, whole bytes, first and last receive time, tail, index,
batches."""
Message = tuple[str, int, int, int, int, int, bytes]
"""Topic, sequence, number, submit and receive time, flags, payload."""

def segments(path: str | PathLike[str], thorough: bool, first: int, limit: int, /) -> list[Segment]: ...
def append(
    path: str | PathLike[str],
    gsi: bytes,
    port: int,
    source: str,
    messages: Sequence[Message],
    batch_bytes: int,
    segment_bytes: int,
    /,
) -> None: ...
