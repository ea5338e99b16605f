"""Types of command-line options; light, so that every room's commands can use them."""

from __future__ import annotations

import argparse
from collections.abc import Callable

__all__ = ["interval", "positive", "within"]


def within(low: float, high: float) -> Callable[[str], float]:
    """Type of an option in seconds from `low` to `high`."""

    def seconds_of(text: str) -> float:
        try:
            seconds = float(text)
        except ValueError:
            seconds = low - 1
        if not low <= seconds <= high:
            raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds from {low:g} to {high:g}")
        return seconds

    return seconds_of


interval = within(0.05, 3600)
"""Type of an option in seconds, 0.05 to 3600."""


def positive(text: str) -> int:
    """Type of an option that counts, 1 or more."""
    if not text.isdigit() or not int(text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1")
    return int(text)
