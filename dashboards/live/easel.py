"""The drawings of the newest views: each is drawn once for all browsers, and a browser gets what changed."""

from __future__ import annotations

import json
import secrets
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, NamedTuple, TypeVar

from heliograph.dashboards.live.differences import Difference, difference
from heliograph.dashboards.live.pages.parts import as_sent
from heliograph.dashboards.live.store import View

__all__ = ["Drawing", "Easel", "Update"]

_Choice = TypeVar("_Choice", bound=Hashable)

_MOST_CHOICES = 32
_MOST_SHOWN = 16
"""Drawings that are kept for browsers that show them; one that shows an older drawing gets a whole one."""


class Update(NamedTuple):
    """The difference that makes a browser show a drawing."""

    before: int | None
    """Number of the drawing that it changes; None: any, because it has all parts."""
    changes: Mapping[str, Difference]
    """By part; a part that is equal is left out."""
    text: str
    """The changes as JSON, written once for all browsers."""


@dataclass(frozen=True, slots=True)
class Drawing:
    """The parts of a page, drawn from one view with one choice."""

    number: int
    """Unique among all drawings, also of other pages and of a server before."""
    sequence: int
    """Number of the view."""
    parts: Mapping[str, Any]
    """By id, as JSON values."""
    _updates: dict[int | None, Update] = field(default_factory=dict)
    """By the number of the drawing that a browser shows: browsers mostly show the same."""

    def update(self, shown: Drawing | None) -> Update:
        """Return what makes a browser that shows `shown` show this drawing; None: it shows nothing yet."""
        before = shown.number if shown is not None else None
        found = self._updates.get(before)
        if found is None:
            if shown is None:
                changes: dict[str, Difference] = {name: {"set": part} for name, part in self.parts.items()}
            else:
                compared = ((name, difference(shown.parts.get(name), part)) for name, part in self.parts.items())
                changes = {name: change for name, change in compared if change is not None}
            found = Update(before, changes, json.dumps(changes, separators=(",", ":")))
            self._updates[before] = found
        return found


class Easel(Generic[_Choice]):
    """The drawings of one page; safe to use from many threads."""

    def __init__(self, draw: Callable[[View, Any], Mapping[str, Any]]) -> None:
        """Create an easel without drawings.

        Args:
            draw: Makes the parts of the page by id, from a view and a choice.
        """
        self._draw = draw
        self._lock = threading.Lock()
        self._newest: OrderedDict[_Choice, Drawing] = OrderedDict()
        self._shown: OrderedDict[int, Drawing] = OrderedDict()

    def drawing(self, view: View, choice: _Choice) -> Drawing:
        """Return the drawing of a view with a choice, drawn at most once; a newer one stays."""
        with self._lock:
            done = self._newest.get(choice)
            if done is None or done.sequence < view.sequence:
                parts = as_sent(self._draw(view, choice))
                done = Drawing(secrets.randbits(52), view.sequence, parts)  # an integer in the browser too
                self._newest[choice] = done
                self._shown[done.number] = done
            self._newest.move_to_end(choice)
            while len(self._newest) > _MOST_CHOICES:
                self._newest.popitem(last=False)
            while len(self._shown) > _MOST_SHOWN:
                self._shown.popitem(last=False)
            return done

    def update(self, view: View, choice: _Choice, shown: Any) -> tuple[Drawing, Update]:
        """Return the drawing of a view with a choice, and what makes a browser show it.

        Args:
            view: The view.
            choice: The choice of the browser.
            shown: Number of the drawing that the browser shows; anything else, or an old one, gets all parts.
        """
        newest = self.drawing(view, choice)
        with self._lock:
            return newest, newest.update(self._shown.get(shown) if isinstance(shown, int) else None)
