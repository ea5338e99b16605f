"""Types of the options of `heliograph store`."""

from __future__ import annotations

import argparse
import re
from datetime import datetime

__all__ = ["BY", "age", "duration", "natural", "number_or_time", "size"]

BY = ("position", "number", "sequence", "time")
"""Values of a message that limit what is read."""

_TIMES = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_SIZES = {"": 1, "k": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


def duration(text: str) -> float:
    """A time above 0 with its unit, as seconds."""
    seconds = age(text)
    if seconds == 0.0:
        raise argparse.ArgumentTypeError(f"{text!r} is not above 0")
    return seconds


def age(text: str) -> float:
    """A time of 0 or more with its unit, as seconds."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([smhd])", text)
    if not match or float(match[1]) * _TIMES[match[2]] > 1e9:
        raise argparse.ArgumentTypeError(f"{text!r} is not a time such as 0.5s, 30m, 12h or 7d")
    return float(match[1]) * _TIMES[match[2]]


def size(text: str) -> int:
    """A size above 0, as bytes."""
    match = re.fullmatch(r"(\d+)([kMGT]?)", text)
    if not match or not 0 < int(match[1]) * _SIZES[match[2]] < 1 << 62:
        raise argparse.ArgumentTypeError(f"{text!r} is not a size such as 65536, 64k, 64M or 10G")
    return int(match[1]) * _SIZES[match[2]]


def natural(text: str) -> int:
    """A whole number of at least 1."""
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least 1")
    return int(text)


def number_or_time(text: str) -> int:
    """A number, or a time as ns since 1970; a time without an offset is local."""
    try:
        value = int(text) if text.isdecimal() else round(datetime.fromisoformat(text).timestamp() * 1e6) * 1000
    except (ValueError, OverflowError):
        value = -1
    if not 0 <= value < 1 << 64:
        raise argparse.ArgumentTypeError(f"{text!r} is neither a number nor a time such as 2026-11-23T09:00:00")
    return value
