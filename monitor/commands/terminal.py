"""A terminal in use by a command that draws the whole screen, restored in any case."""

from __future__ import annotations

import os
import re
import select
import shutil
import sys
import termios
import time
import tty
from collections.abc import Callable, Sequence
from typing import Self

__all__ = ["Screen", "is_screen", "keys_of", "terminal_size"]

_NAMES = {
    "\x1b[A": "up", "\x1b[B": "down", "\x1b[5~": "page up", "\x1b[6~": "page down", "\x1b[H": "home", "\x1b[F": "end",
    "\x1b[1~": "home", "\x1b[4~": "end", "\x1bOA": "up", "\x1bOB": "down", "\x1bOH": "home", "\x1bOF": "end",
    "\r": "enter", "\n": "enter", "\x7f": "backspace", "\b": "backspace", "\x1b": "escape", "\x03": "q",
}  # fmt: skip
_KEY = re.compile(r"\x1b(?:\[[0-9;]*[A-Za-z~]|O[A-Z])|.", re.DOTALL)

_BEGUN = re.compile(rb"\x1b(?:\[[0-9;]*|O)?\Z")
_REST_SECONDS = 0.05


def is_screen() -> bool:
    """Whether standard output is a terminal whose cursor can be moved."""
    return sys.stdout.isatty() and os.environ.get("TERM") != "dumb"


def keys_of(data: bytes) -> list[str]:
    """Return the keys in what a terminal sent: characters as they are, others by name such as ``page up``.

    Unknown sequences are left out.
    """
    keys = []
    for found in _KEY.findall(data.decode("utf-8", "ignore")):
        if found in _NAMES:
            keys.append(_NAMES[found])
        elif found.isprintable():
            keys.append(found)
    return keys


def terminal_size() -> os.terminal_size:
    """Return the size of the terminal itself; COLUMNS and LINES, which do not follow it, count only without one."""
    try:
        return os.get_terminal_size(sys.stdout.fileno())
    except (OSError, ValueError):
        return shutil.get_terminal_size()


class Screen:
    """The terminal in use: alternate screen, no cursor, keys without Enter."""

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

    def wait(self, until: float, pressed: Callable[[str], bool], redraw: Callable[[], None]) -> bool:
        """Wait until a moment of the monotonic clock.

        Args:
            until: The moment.
            pressed: Called with each key; returns False to end.
            redraw: Called after keys, and when the size of the terminal changes.

        Returns:
            False when a key or the end of the input ended the wait.
        """
        size = terminal_size()
        while (left := until - time.monotonic()) > 0:
            ready, _, _ = select.select([self._keys] if self._keys is not None else [], [], [], min(left, 0.2))
            if ready and self._keys is not None:
                data = os.read(self._keys, 64)
                # On a slow line, the rest of a sequence may come a moment later; Escape alone has none.
                if _BEGUN.search(data) and select.select([self._keys], [], [], _REST_SECONDS)[0]:
                    data += os.read(self._keys, 64)
                if not data or not all(pressed(key) for key in keys_of(data)):
                    return False
                redraw()
            if terminal_size() != size:
                size = terminal_size()
                redraw()
        return True
