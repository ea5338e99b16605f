"""``heliograph top``: shows the fleet on a terminal, worst receivers first.

`frame` turns two snapshots into lines and is independent of the terminal. `_Screen` changes the terminal and always
restores it.
"""

from __future__ import annotations

import argparse
import os
import select
import shutil
import sys
import termios
import time
import tty
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Self

from heliograph.monitor import fleet, sources
from heliograph.monitor.behaviour import Behaviour
from heliograph.monitor.clocks import clocks_text
from heliograph.monitor.commands.arguments import add_collect_option, interval, open_source, positive
from heliograph.monitor.commands.common import Subparsers, add_command, add_instance_option, chosen, only
from heliograph.monitor.model import Health, Snapshot
from heliograph.monitor.sampler import Source
from heliograph.monitor.text import (
    bytes_text,
    count_text,
    duration_text,
    percent_text,
    printable,
    rate_text,
    table,
)
from heliograph.monitor.window import Watcher
from heliograph.monitor.worst import worst

__all__ = ["command", "frame"]

HISTOGRAMS = ("total_latency", "batch_latency")
_RESET = "\x1b[0m"
_COLOURS = {
    Behaviour.OK: "\x1b[32m",
    Behaviour.RECOVERING: "\x1b[33m",
    Behaviour.LOSSY: "\x1b[33;1m",
    Behaviour.FALLING_BEHIND: "\x1b[31;1m",
    Behaviour.STALLED: "\x1b[37;41;1m",
    Behaviour.STOPPED: "\x1b[37;41;1m",
}
_BOLD = "\x1b[1m"
_HEADS = ("RECEIVER", "SENDER", "SOURCE")


def command(subparsers: Subparsers[argparse.ArgumentParser]) -> None:
    """Add ``top``."""
    parser = add_command(
        subparsers,
        "top",
        "watch the fleet live, worst receivers first",
        "Watch every instance on this host, the worst receivers first. Keys: q quits.\n"
        "Rates and latencies cover the last interval. A latency between two hosts carries a mark when their clocks\n"
        "were not compared (18.1 µs ?), or not accurately enough (~18.1 µs ±90.0 µs). CLOCK is the offset of the\n"
        "receiver's clock and its error bound. LATE BY names the cause of the latest message in a thousand: the host,\n"
        "which delayed all work; the network, which lost packets; or the transport and the application.",
        "heliograph top --interval 2",
    )
    parser.add_argument("--interval", metavar="SECONDS", type=interval, default=1.0, help="default: 1")
    parser.add_argument("--once", action="store_true", help="print one table for one interval and exit")
    parser.add_argument("--count", metavar="N", type=positive, help="stop after N tables")
    add_collect_option(parser)
    add_instance_option(parser)
    parser.set_defaults(run=run)


def _summary(previous: Snapshot | None, current: Snapshot) -> list[str]:
    rows = fleet.instances(previous, current)
    live = sum(row.health is Health.LIVE for row in rows)
    moment = datetime.fromtimestamp(current.time_ns // 1_000_000_000)
    sent, received = sum(row.sent_per_s for row in rows), sum(row.received_per_s for row in rows)
    naks = sum(row.naks_sent_per_s for row in rows)
    return [
        f"heliograph  {moment:%H:%M:%S}  {live} of {len(rows)} instances live  sent {rate_text(sent)} msg/s  "
        f"received {rate_text(received)} msg/s  {rate_text(naks)} NAK/s"
    ]


def _latencies(row: fleet.ReceiverRow) -> Sequence[str]:
    """p50, p99.9 and the maximum, with the clock error of a one-way latency."""
    p50, _, p999, longest = row.latency
    return [value.text if value is not None else "-" for value in (p50, p999, longest)]


def _receiver_lines(rows: Sequence[fleet.ReceiverRow], width: int | None) -> list[tuple[str, Behaviour | None]]:
    head = (
        "RECEIVER", "TOPIC", "STATE", "MSG/S", "LAG", "BEHIND", "QUEUE", "LOST", "MISSING", "NAK/S", "CLOCK", "P50",
        "P99.9",
        "MAX", "LATE BY", "WHY",
    )  # fmt: skip
    cells = [
        (
            row.instance,
            row.topic,
            row.behaviour.words,
            rate_text(row.delivered_per_s),
            count_text(row.lag_messages),
            duration_text(row.lag_seconds * 1e9 if row.lag_seconds is not None else None),
            percent_text(row.queue_fill),
            count_text(row.lost),
            percent_text(row.missing_ratio),
            rate_text(row.naks_per_s),
            clocks_text(row.clocks),
            *_latencies(row),
            row.late.blame if row.late else "-",
            row.reason,
        )
        for row in rows
    ]
    lines = table(head, cells, left=3, width=width)
    return list(zip(lines, [None, *(row.behaviour for row in rows)], strict=True))


def _stream_lines(previous: Snapshot | None, current: Snapshot, width: int | None) -> list[str]:
    """Format the table of streams: their rates, and the state of their receivers."""
    head = (
        "SOURCE", "STREAM", "RATE", "DECIDED", "LOSS", "STATE", "LIMITED",
        "RECEIVERS", "IN TROUBLE", "ISOLATED", "STORM",
    )  # fmt: skip
    cells = [
        (
            row.instance,
            row.stream,
            f"{bytes_text(row.rate)}/s" if row.rate else "no limit",
            f"{bytes_text(row.rate_decided)}/s" if row.rate_decided else "-",
            percent_text(row.loss),
            row.rate_state or "-",
            percent_text(row.limited_share),
            count_text(row.receivers),
            count_text(row.troubled),
            count_text(row.isolated),
            "NAK STORM" if row.storm else "-",
        )
        for row in sources.streams(previous, current)
    ]
    return ["", *table(head, cells, left=2, width=width)] if cells else []


def _known_lines(previous: Snapshot | None, current: Snapshot, width: int | None) -> list[str]:
    """Format the table of receivers as their sources see them, the worst first."""
    head = (
        "SOURCE", "RECEIVER", "CLASS", "ACTION", "LOSS", "LAG", "BEHIND", "BUFFER", "RTT", "NAK/S", "OF ALL",
        "SHED", "DATA LEFT", "WAITED", "SLOW FOR",
    )  # fmt: skip
    known = worst(sources.receivers_of(current, previous))
    cells = [
        (
            row.instance,
            row.called,
            row.behaviour.words,
            row.action or "-",
            percent_text(row.loss),
            count_text(row.lag),
            duration_text(row.lag_ns),
            percent_text(row.buffer_fill),
            duration_text(row.round_trip_ns or None),
            rate_text(row.naks_per_s),
            percent_text(row.nak_share_lately),
            count_text(row.naks_shed),
            row.forecast_text,
            duration_text(row.blame_ns or None),
            duration_text(row.slow_ns or None),
        )
        for row in known
    ]
    return ["", *table(head, cells, left=4, width=width)] if cells else []


def _worst_line(rows: Sequence[fleet.ReceiverRow]) -> str:
    trouble = [row for row in fleet.worst_instances(rows) if row.behaviour is not Behaviour.OK and row.badness > 0]
    if not trouble:
        at_once = " (one observation)" if any(row.looks == 1 for row in rows) else ""
        return f"every receiver keeps up{at_once}" if rows else "no receivers"
    told = (f"{row.instance} ({row.behaviour.replace('_', ' ')}: {row.reason})" for row in trouble)
    return printable("worst: " + "; then ".join(told))


def frame(
    previous: Snapshot | None,
    current: Snapshot,
    width: int | None = None,
    height: int | None = None,
    colour: bool = False,
    watcher: Watcher | None = None,
) -> list[str]:
    """Return the lines of one display.

    Args:
        previous: The previous snapshot; None: figures cover the whole life of each object.
        current: The current snapshot.
        width: Cut lines to this width; None: no limit.
        height: Largest number of lines; None: no limit.
        colour: Mark states with ANSI colours.
        watcher: Holds the earlier snapshots; None: receivers are judged by one observation.
    """
    rows = fleet.receivers(previous, current, watcher)
    lines: list[tuple[str, Behaviour | None]] = [(line[:width], None) for line in _summary(previous, current)]
    lines.append((_worst_line(rows)[:width], None))
    ill = [row for row in fleet.instances(previous, current) if row.health is not Health.LIVE]
    for row in ill:
        advice = " ('heliograph clean' removes its files)" if row.health is Health.DEAD else ""
        told = f"{row.health}: {row.name}: {row.reason}{advice}"
        lines.append((printable(told)[:width], Behaviour.STOPPED))
    sending = fleet.transmitters(previous, current)
    senders = table(
        ("SENDER", "TOPIC", "MSG/S", "DATA/S", "NAK/S", "REPAIRS", "PEERS", "QUEUE", "BATCH P99", "RECEIVERS"),
        [
            (
                row.instance,
                row.topic,
                rate_text(row.sent_per_s),
                bytes_text(row.bytes_per_s),
                rate_text(row.naks_per_s),
                percent_text(row.repair_ratio),
                count_text(row.tracked_receivers),
                bytes_text(row.queue_bytes),
                duration_text(row.batch_p99_ns),
                count_text(row.receivers),
            )
            for row in sending
        ],
        left=2,
        width=width,
    )
    lines += [("", None), *_receiver_lines(rows, width)]
    below = [("", None), *((line, None) for line in senders)] if sending else []
    below += [(line, None) for lines_of in (_stream_lines, _known_lines) for line in lines_of(previous, current, width)]
    if height is not None and len(lines) + len(below) > height:
        below = below[: max(0, height - len(lines))]
    lines += below
    return [_painted(line, mark, colour) for line, mark in lines[:height]]


def _painted(line: str, mark: Behaviour | None, colour: bool) -> str:
    if not colour:
        return line
    if mark is not None:
        return f"{_COLOURS[mark]}{line}{_RESET}" if mark is not Behaviour.OK else line
    return f"{_BOLD}{line}{_RESET}" if line.startswith(("heliograph", *_HEADS)) else line


class _Screen:
    """The terminal in use by `top`: alternate screen, no cursor, keys without Enter."""

    def __init__(self) -> None:
        self._keys = sys.stdin.fileno() if sys.stdin.isatty() else None
        self._settings = termios.tcgetattr(self._keys) if self._keys is not None else None

    def __enter__(self) -> Self:
        if self._keys is not None:
            tty.setcbreak(self._keys)
        sys.stdout.write("\x1b[?1049h\x1b[?25l")
        return self

    def __exit__(self, *_: object) -> None:
        try:
            sys.stdout.write("\x1b[?25h\x1b[?1049l")
            sys.stdout.flush()
        finally:
            if self._keys is not None and self._settings is not None:
                termios.tcsetattr(self._keys, termios.TCSADRAIN, self._settings)

    def show(self, lines: Sequence[str]) -> None:
        """Replace the display without flicker: overwrite each line, then clear the rest."""
        sys.stdout.write("\x1b[H" + "\r\n".join(f"{line}\x1b[K" for line in lines) + "\x1b[J")
        sys.stdout.flush()

    def wait(self, until: float, redraw: Callable[[], None]) -> bool:
        """Wait until a moment of the monotonic clock; redraw on a size change. Returns False when q was pressed."""
        size = shutil.get_terminal_size()
        while (left := until - time.monotonic()) > 0:
            ready, _, _ = select.select([self._keys] if self._keys is not None else [], [], [], min(left, 0.2))
            if ready and self._keys is not None:
                key = os.read(self._keys, 64)
                if not key or b"q" in key.lower() or b"\x03" in key:
                    return False
            if shutil.get_terminal_size() != size:
                size = shutil.get_terminal_size()
                redraw()
        return True


def _live(sampler: Source, arguments: argparse.Namespace) -> int:
    def draw() -> None:
        size = shutil.get_terminal_size()
        lines = frame(previous, current, size.columns, size.lines - 1, colour=colour, watcher=watcher)
        if not current.instances:
            lines = [*lines, printable(sampler.absence)]
        screen.show([*lines, ""][: size.lines])

    watcher = Watcher()
    colour = not os.environ.get("NO_COLOR")
    previous: Snapshot | None = None
    current = chosen(sampler.sample(HISTOGRAMS), arguments.instance)
    shown = 0
    with _Screen() as screen:
        while (
            arguments.count is None or shown <= arguments.count
        ):  # the first display covers whole lives and appears at once
            draw()
            shown += 1
            if not screen.wait(time.monotonic() + arguments.interval, draw):
                break
            previous, current = current, only(sampler.sample(HISTOGRAMS), arguments.instance)
    return 0


def _plain(sampler: Source, arguments: argparse.Namespace, tables: int | None) -> int:
    watcher = Watcher()
    previous = chosen(sampler.sample(HISTOGRAMS), arguments.instance)
    fleet.receivers(None, previous, watcher)  # the first observation
    shown = 0
    while tables is None or shown < tables:
        time.sleep(arguments.interval)
        current = only(sampler.sample(HISTOGRAMS), arguments.instance)
        absence = [] if current.instances else [printable(sampler.absence)]
        print("\n".join([*frame(previous, current, watcher=watcher), *absence]) + "\n", flush=True)
        previous = current
        shown += 1
    return 0


def run(arguments: argparse.Namespace) -> int:
    """Show the fleet: live on a terminal; as plain tables elsewhere, with ``TERM=dumb`` or with ``--once``."""
    with open_source(arguments) as sampler:
        if arguments.once or not sys.stdout.isatty() or os.environ.get("TERM") == "dumb":
            return _plain(sampler, arguments, 1 if arguments.once else arguments.count)
        return _live(sampler, arguments)
