"""Types of command-line options; light, so that every room's commands can use them."""

from __future__ import annotations

import argparse

__all__ = ["interval", "positive"]


def interval(text: str) -> float:
    """Type of an option in seconds, 0.05 to 3600."""
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0.05 <= seconds <= 3600:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds from 0.05 to 3600")
    return seconds


def positive(text: str) -> int:
    """Type of an option that counts, 1 or more."""
    if not text.isdigit() or not int(text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1")
    return int(text)
