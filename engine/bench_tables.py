"""The tables that ``heliograph bench`` prints. Latencies are in us."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

__all__ = ["table"]

Rows: TypeAlias = Sequence[dict[str, Any]]

_PERCENTILES = ("min", "p50", "p90", "p99", "p99.9", "p99.99", "max")
_WORST = ("p50", "p99", "p99.9", "max")
_US = "  (latency in us)"


def table(what: str, rows: Rows) -> str:
    """The table of a subcommand."""
    return "\n".join({"python": _python, "grid": _grid, "waits": _waits}.get(what, _runs)(rows))


def _latencies(row: dict[str, Any], names: Sequence[str]) -> str:
    return "".join(f" {row['latency_ns'][name] / 1000:>9,.1f}" for name in names)


def _heads(names: Sequence[str]) -> str:
    return "".join(f" {name:>9}" for name in names)


def _runs(rows: Rows) -> Iterator[str]:
    yield (
        f"{'transport':<12} {'bytes':>7} {'loss':>6} {'messages/s':>12} {'MB/s':>9} {'lost':>6} {'repaired':>9}"
        + _heads([*_PERCENTILES, "jitter"])
        + _US
    )
    for row in rows:
        yield (
            f"{row['transport']:<12} {row['size']:>7} {row['loss']:>6.2%} {row['messages_per_second']:>12,.0f} "
            f"{row['megabytes_per_second']:>9,.1f} {row['unrecoverable']:>6} {row['recovered']:>9,}"
            + _latencies(row, _PERCENTILES)
            + f" {row['jitter_ns'] / 1000:>9,.1f}"
        )
        if "goodput_ratio" in row:
            yield f"{'':<12} goodput with loss / without: {row['goodput_ratio']:.2f}"


def _python(rows: Rows) -> Iterator[str]:
    yield f"{'transport':<12} {'way':<6} {'bytes':>7} {'messages/s':>12} {'lost':>6} {'sender ns/message':>18}"
    for row in rows:
        yield (
            f"{row['transport']:<12} {row['way']:<6} {row['size']:>7} {row['messages_per_second']:>12,.0f} "
            f"{row['unrecoverable']:>6} {row['sender_ns_per_message']:>18,.0f}"
        )


def _grid(rows: Rows) -> Iterator[str]:
    names = ("mean", *_WORST)
    yield f"{'bytes':>5} {'offered/s':>9} {'transport':<12} {'lost':>6}{_heads([*names, 'jitter', 'mean/tcp'])}{_US}"
    for row in rows:
        ratio = f" {row['mean_ratio']:>9.2f}" if "mean_ratio" in row else ""
        yield (
            f"{row['size']:>5} {row['offered_rate']:>9,.0f} {row['transport']:<12} {row['unrecoverable']:>6}"
            f"{_latencies(row, names)} {row['jitter_ns'] / 1000:>9,.1f}{ratio}"
        )
    yield "tcp is a bare connection with one write for each message; mean/tcp below 1: the transport is faster."


def _waits(rows: Rows) -> Iterator[str]:
    yield f"{'wait':<8} {'transport':<12} {'bytes':>5} {'offered/s':>9}{_heads([*_WORST, 'jitter'])} {'CPU':>6}{_US}"
    for row in rows:
        yield (
            f"{row['wait']:<8} {row['transport']:<12} {row['size']:>5} {row['offered_rate']:>9,.0f}"
            f"{_latencies(row, _WORST)} {row['jitter_ns'] / 1000:>9,.1f} {row['receiver_cpu']:>6.0%}"
        )
    yield "wait is the receiver's option idle, in mode poll; CPU is the receiving process, 100% is one core."
