"""``heliograph top``: shows the fleet on a terminal, worst receivers first."""

from __future__ import annotations

import argparse
import os
import time
from dataclasses import replace

from heliograph.engine.catalogue.outside import json_text
from heliograph.engine.catalogue.times import add_utc_option
from heliograph.monitor import fleet
from heliograph.monitor.columns import cut
from heliograph.monitor.commands.arguments import add_collect_option, interval, open_source, positive
from heliograph.monitor.commands.common import Subparsers, add_command, add_instance_option, chosen, only
from heliograph.monitor.commands.terminal import Screen, is_screen, terminal_size
from heliograph.monitor.commands.top_frame import SORTS, Picture, View, frame, lines_of, picture
from heliograph.monitor.model import Snapshot
from heliograph.monitor.sampler import Source
from heliograph.monitor.text import printable
from heliograph.monitor.window import Watcher

__all__ = ["command", "frame"]

HISTOGRAMS = ("total_latency", "batch_latency")
_KEYS = "q quit  / filter  s sort  r reverse  arrows, PgUp, PgDn scroll"


def command(subparsers: Subparsers[argparse.ArgumentParser]) -> None:
    """Add ``top``."""
    parser = add_command(
        subparsers,
        "top",
        "watch the fleet live, worst receivers first",
        "Watch every instance on this host, the worst receivers first. Keys: q quits; / filters by a text in name,\n"
        "topic, state or reason (Escape ends the filter); s changes the sort key, r reverses it; arrows, PgUp,\n"
        "PgDn, Home and End scroll. A narrow terminal shows the most important columns.\n"
        "Rates and latencies cover the last interval. A latency between two hosts carries a mark when their clocks\n"
        "were not compared (18.1 µs ?), or not accurately enough (~18.1 µs ±90.0 µs). CLOCK is the offset of the\n"
        "receiver's clock and its error bound. LATE BY names the cause of the latest message in a thousand: the host,\n"
        "which delayed all work; the network, which lost packets; or the transport and the application.",
        "heliograph top --interval 2 --sort queue --filter PRICES",
    )
    parser.add_argument("--interval", metavar="SECONDS", type=interval, default=1.0, help="default: 1")
    parser.add_argument("--once", action="store_true", help="print one table for one interval and exit")
    parser.add_argument("--count", metavar="N", type=positive, help="stop after N tables")
    parser.add_argument("--sort", choices=SORTS, default="worst", help="sort key of the receivers (default: worst)")
    parser.add_argument("--reverse", action="store_true", help="reverse the order")
    parser.add_argument("--filter", metavar="TEXT", default="", help="only receivers with this text in a column")
    parser.add_argument(
        "--json", action="store_true", help="with --once one JSON object, otherwise one per interval, one per line"
    )
    add_collect_option(parser)
    add_instance_option(parser)
    add_utc_option(parser)
    parser.set_defaults(run=run)


class _Session:
    """The state between two displays: the picture, the view, and the filter that is being typed."""

    def __init__(self, view: View, colour: bool) -> None:
        self.view = view
        self.colour = colour
        self.found: Picture | None = None
        self.absence = ""
        self._typed: str | None = None
        self._page = 1

    def press(self, key: str) -> bool:
        """Act on a key; returns False when it ends the command."""
        if self._typed is not None:
            return self._type(key)
        steps = {"up": -1, "k": -1, "down": 1, "j": 1, "page up": -self._page, "page down": self._page}
        if key in ("q", "Q"):
            return False
        if key in steps:
            self.view = replace(self.view, first=max(0, self.view.first + steps[key]))
        elif key in ("home", "end"):
            self.view = replace(self.view, first=0 if key == "home" else 1 << 30)
        elif key == "s":
            names = list(SORTS)
            following = names[(names.index(self.view.sort) + 1) % len(names)]
            self.view = replace(self.view, sort=following, first=0)
        elif key == "r":
            self.view = replace(self.view, reverse=not self.view.reverse, first=0)
        elif key == "/":
            self._typed = self.view.text
        elif key == "escape":
            self.view = replace(self.view, text="", first=0)
        return True

    def _type(self, key: str) -> bool:
        assert self._typed is not None
        if key == "escape":
            self._typed, self.view = None, replace(self.view, text="", first=0)
            return True
        if key == "enter":
            self._typed = None
            return True
        self._typed = self._typed[:-1] if key == "backspace" else self._typed + (key if len(key) == 1 else "")
        self.view = replace(self.view, text=self._typed, first=0)
        return True

    def lines(self, columns: int, rows: int) -> list[str]:
        """Return the lines of the screen; the last one shows the view and the keys."""
        assert self.found is not None
        lines, self.view, self._page = lines_of(self.found, self.view, columns, max(1, rows - 1), self.colour)
        if self.absence:
            lines = [*lines, cut(printable(self.absence), columns)]
        lines = lines[: max(0, rows - 1)]
        return [*lines, *[""] * (rows - 1 - len(lines)), cut(self._status(), columns)]

    def _status(self) -> str:
        assert self.found is not None
        if self._typed is not None:
            return f"filter: {printable(self._typed)}_  (Enter keeps it, Escape ends it)"
        total = len(self.view.chosen(self.found.receivers))
        first = self.view.first
        where = f"{first + 1}-{min(first + self._page, total)} of {total}" if total else "no receiver"
        order = f"by {self.view.sort}" + (" reversed" if self.view.reverse else "")
        text = f"  filter: {printable(self.view.text)}" if self.view.text else ""
        return f"{where} {order}{text}  {_KEYS}"


def _view(arguments: argparse.Namespace) -> View:
    return View(arguments.sort, arguments.reverse, arguments.filter)


def _live(sampler: Source, arguments: argparse.Namespace) -> int:
    session = _Session(_view(arguments), colour=not os.environ.get("NO_COLOR"))
    watcher = Watcher()
    previous: Snapshot | None = None
    current = chosen(sampler.sample(HISTOGRAMS), arguments.instance)
    shown = 0

    def draw() -> None:
        size = terminal_size()
        screen.show(session.lines(size.columns, size.lines))

    with Screen() as screen:
        # The first display covers whole lives and appears at once.
        while arguments.count is None or shown <= arguments.count:
            session.found = picture(previous, current, watcher)
            session.absence = "" if current.instances else sampler.absence
            draw()
            shown += 1
            if not screen.wait(time.monotonic() + arguments.interval, session.press, draw):
                break
            previous, current = current, only(sampler.sample(HISTOGRAMS), arguments.instance)
    return 0


def _plain(sampler: Source, arguments: argparse.Namespace, tables: int | None) -> int:
    watcher = Watcher()
    view = _view(arguments)
    previous = chosen(sampler.sample(HISTOGRAMS), arguments.instance)
    fleet.receivers(None, previous, watcher)  # the first observation
    shown = 0
    while tables is None or shown < tables:
        time.sleep(arguments.interval)
        current = only(sampler.sample(HISTOGRAMS), arguments.instance)
        found = picture(previous, current, watcher)
        if arguments.json:
            print(json_text(found.fields(view)), flush=True)
        else:
            absence = [] if current.instances else [printable(sampler.absence)]
            print("\n".join([*lines_of(found, view)[0], *absence]) + "\n", flush=True)
        previous = current
        shown += 1
    return 0


def run(arguments: argparse.Namespace) -> int:
    """Show the fleet: live on a terminal; as plain tables elsewhere, with ``TERM=dumb`` or with ``--once``."""
    plain = arguments.once or arguments.json or not is_screen()
    with open_source(arguments) as sampler:
        if plain:
            return _plain(sampler, arguments, 1 if arguments.once else arguments.count)
        return _live(sampler, arguments)
