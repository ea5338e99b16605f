"""Command-line options of comparisons, without the libraries that comparisons need."""

from __future__ import annotations

import argparse
from pathlib import Path

from heliograph.monitor.history.actions import place

__all__ = ["add_seed_and_json", "add_sides", "add_source", "add_study_options", "page_option"]


def add_study_options(parser: argparse.ArgumentParser, a: str, b: str) -> None:
    """Add the options of a comparison of quantiles; `a` and `b` name the options of the selections."""
    add_source(parser)
    add_sides(parser, a, b)
    parser.add_argument("--metric", default="receiver_total_latency", help="metric (default: %(default)s)")
    parser.add_argument(
        "--quantiles", default="p50,p90,p99,p99.9", metavar="LIST", help="quantiles to compare (default: %(default)s)"
    )


def add_sides(parser: argparse.ArgumentParser, a: str, b: str) -> None:
    """Add the options of every comparison; `a` and `b` name the options of the selections."""
    parser.add_argument(
        f"--{a}",
        required=True,
        dest="a",
        metavar="SELECTION",
        help="labels and times of the baseline, such as 'build=4.1,host=ny4-*,from=2026-11-20T08:00,to=2026-11-21'",
    )
    parser.add_argument(f"--{b}", required=True, dest="b", metavar="SELECTION", help="the same of the other sample")
    parser.add_argument(
        "--margin", type=_percent, default=5.0, metavar="PERCENT", help="increase that does not matter (default: 5)"
    )
    parser.add_argument(
        "--calibrate-on",
        metavar="SELECTION",
        help="a longer stretch of the baseline's process, for the honesty of the limits (default: the baseline)",
    )
    add_seed_and_json(parser)


def add_seed_and_json(parser: argparse.ArgumentParser) -> None:
    """Add the seed, ``--json`` and ``--out``."""
    parser.add_argument("--seed", type=int, default=0, help="seed of the bootstrap; equal seeds, equal results")
    parser.add_argument("--json", action="store_true", help="one JSON object, durations in ns")
    page_option(parser)


def page_option(parser: argparse.ArgumentParser) -> None:
    """Add ``--out``."""
    parser.add_argument("--out", type=Path, metavar="FILE", help="also write an HTML page, one self-contained file")


def add_source(parser: argparse.ArgumentParser) -> None:
    """Add where the intervals come from: a spool, or the hours of a history."""
    source = parser.add_mutually_exclusive_group()
    source.add_argument(
        "--spool", type=place, default=Path("spool"), metavar="DIR", help="directory of the spool (default: spool)"
    )
    source.add_argument("--history", type=place, metavar="DIR", help="read the hours of this history instead")
    parser.add_argument(
        "--interval",
        type=_seconds,
        metavar="SECONDS",
        help="intervals that start in the same period of this length are added (default: 10; of a history: 3600)",
    )


def _percent(text: str) -> float:
    value = float(text)
    if not 0 < value <= 1000:
        raise argparse.ArgumentTypeError(f"{text} is not a percentage above 0 and up to 1000")
    return value


def _seconds(text: str) -> float:
    value = float(text)
    if not 0.001 <= value <= 86_400:
        raise argparse.ArgumentTypeError(f"{text} is not a number of seconds from 0.001 to 86400")
    return value
