"""Prints wall clock times for people: local time, or UTC with ``--utc``.

Every command prints times through this module, so that two commands show one moment alike. It is part of the catalogue
package because every package may import it. JSON has no such choice: times are integers in ns since 1970.
"""

from __future__ import annotations

import argparse
from datetime import UTC, datetime

__all__ = ["add_utc_option", "at", "date_time", "show", "time_of_day"]

_is_utc = False


def add_utc_option(parser: argparse.ArgumentParser) -> None:
    """Add ``--utc``."""
    parser.add_argument("--utc", action="store_true", help="print times in UTC (default: local time, which TZ selects)")


def show(utc: bool) -> None:
    """Choose UTC or local time for this process."""
    global _is_utc
    _is_utc = utc


def at(ns: int) -> datetime:
    """Return a wall clock time in the time zone that is shown, cut to microseconds.

    Args:
        ns: Nanoseconds since 1970, UTC; any that fit into 64 bits.
    """
    seconds, rest = divmod(ns, 1_000_000_000)
    moment = datetime.fromtimestamp(seconds, UTC).replace(microsecond=rest // 1000)
    return moment if _is_utc else moment.astimezone()


def date_time(ns: int, timespec: str = "seconds") -> str:
    """Format date, time and offset from UTC, as in ``2026-11-23 22:05:03+01:00``; "-" for 0, which is no time.

    Args:
        ns: Nanoseconds since 1970, UTC.
        timespec: Last part that is shown: "seconds", "milliseconds" or "microseconds". The rest is cut off.
    """
    return at(ns).isoformat(" ", timespec) if ns else "-"


def time_of_day(ns: int, timespec: str = "seconds") -> str:
    """Format the time of day, as in ``22:05:03``; arguments as of `date_time`."""
    return at(ns).time().isoformat(timespec)
