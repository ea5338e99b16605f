"""Types of the options of `heliograph store`."""

from __future__ import annotations

import argparse
import re

__all__ = ["duration", "size"]

_TIMES = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_SIZES = {"": 1, "k": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


def duration(text: str) -> float:
    """A time above 0 with its unit, as seconds."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([smhd])", text)
    if not match or not 0.0 < float(match[1]) * _TIMES[match[2]] <= 1e9:
        raise argparse.ArgumentTypeError(f"{text!r} is not a time such as 0.5s, 30m, 12h or 7d")
    return float(match[1]) * _TIMES[match[2]]


def size(text: str) -> int:
    """A size above 0, as bytes."""
    match = re.fullmatch(r"(\d+)([kMGT]?)", text)
    if not match or not 0 < int(match[1]) * _SIZES[match[2]] < 1 << 62:
        raise argparse.ArgumentTypeError(f"{text!r} is not a size such as 65536, 64k, 64M or 10G")
    return int(match[1]) * _SIZES[match[2]]
