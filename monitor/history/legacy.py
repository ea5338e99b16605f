"""HdrHistogram payloads of earlier versions, V0 and V1, as today's V2.

V1 has V2's header of 40 bytes, V0 one of 32 bytes: cookie, digits, lowest, highest, total. Both have counts as fixed
big-endian words of 2, 4 or 8 bytes, whose size is in the cookie, one per cell up to the last filled one. The compressed
forms are a cookie, a length, and the body within zlib. The rules are those of `AbstractHistogram.decodeFromByteBuffer`
of the Java reference. jHiccup 2.0 and older loggers write such payloads.
"""

from __future__ import annotations

import struct
import zlib

import numpy as np

from heliograph.monitor import _hdr

__all__ = ["inflated", "modern"]

_V0, _V0_COMPRESSED = 0x1C849308, 0x1C849309
_V1, _V1_COMPRESSED = 0x1C849301, 0x1C849302
_WORD_SIZE_BITS = 0xF0
_HEADER_BYTES = {_V0: 32, _V1: 40}
_MAX_BODY_BYTES = 64 << 20


def modern(payload: bytes) -> bytes:
    """Return a V2 payload with the same counts; a payload that is neither V0 nor V1 comes back as it is.

    Raises:
        ValueError: The payload is V0 or V1 and cannot be what it claims to be.
    """
    if len(payload) < 8:
        return payload
    cookie = int.from_bytes(payload[:4], "big")
    kind = cookie & ~_WORD_SIZE_BITS
    if kind in (_V0_COMPRESSED, _V1_COMPRESSED):
        payload = inflated(payload)
        cookie = int.from_bytes(payload[:4], "big")
        if cookie & ~_WORD_SIZE_BITS != (_V0 if kind == _V0_COMPRESSED else _V1):
            raise ValueError("the payload has another version within its zlib part")
        kind = cookie & ~_WORD_SIZE_BITS
    if kind not in _HEADER_BYTES:
        return payload
    return _rewritten(payload, kind, (cookie & _WORD_SIZE_BITS) >> 4 & 0xE)


def inflated(payload: bytes) -> bytes:
    """Return the body of a compressed payload of any version.

    Raises:
        ValueError: The payload is cut or damaged, or its body has more than 64 MiB.
    """
    length = int.from_bytes(payload[4:8], "big")
    if length != len(payload) - 8:
        raise ValueError(f"the payload has {len(payload) - 8} bytes after its head, not {length}")
    inflater = zlib.decompressobj()
    try:
        body = inflater.decompress(payload[8:], _MAX_BODY_BYTES)
    except zlib.error as error:
        raise ValueError(f"the payload cannot be inflated: {error}") from None
    if not inflater.eof:
        raise ValueError("the payload ends within its zlib part, or is too large")
    return body


def _rewritten(body: bytes, kind: int, word_bytes: int) -> bytes:
    header_bytes = _HEADER_BYTES[kind]
    if len(body) < header_bytes:
        raise ValueError("the payload ends within its header")
    if kind == _V1:
        _, length, offset, digits, lowest, highest, ratio = struct.unpack(">Iiiiqqd", body[:40])
        if offset != 0 or ratio != 1.0:
            raise ValueError("the payload is a shifted or scaled histogram")
        if not 0 <= length <= len(body) - header_bytes:
            raise ValueError(f"the payload has {len(body) - header_bytes} bytes of counts, not {length}")
        words = body[header_bytes : header_bytes + length]
    else:
        _, digits, lowest, highest, _ = struct.unpack(">Iiqqq", body[:32])
        words = body[header_bytes:]
    if word_bytes not in (2, 4, 8):
        raise ValueError(f"the payload has words of {word_bytes} bytes")
    cells = _hdr.cells(digits, lowest, highest)
    if len(words) % word_bytes or len(words) // word_bytes > cells:
        raise ValueError(f"the payload has {len(words)} bytes of counts for {cells} cells of {word_bytes} bytes")
    found = np.frombuffer(words, dtype=f">i{word_bytes}").astype(np.int64)
    if found.size and int(found.min()) < 0:
        raise ValueError("the payload has a negative count")
    counts = np.zeros(cells, dtype=np.uint64)
    counts[: found.size] = found.astype(np.uint64)
    return _hdr.encode(counts, digits, lowest, highest)
