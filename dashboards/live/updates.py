"""The messages to a browser: one for each view, with the parts of its page that changed.

A message is JSON::

    {"stamp":   how current the page is, and the interval of the samples,
     "now":     parts that depend on the time of the message, whole,
     "drawing": number of the drawing that the browser holds after this message,
     "before":  number of the drawing that the parts change; null: they are whole,
     "parts":   {"ID.PROPERTY": DIFFERENCE, ...}}        (see `differences.py`)

A page is drawn once for each view and choice, and written as JSON once for each drawing that browsers show
(`easel.py`). The cost of a further browser is the copy of a text.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from heliograph.dashboards.live.easel import Easel
from heliograph.dashboards.live.pages.head import stamp, taken
from heliograph.dashboards.live.pages.parts import as_sent
from heliograph.dashboards.live.store import Status, Store, View, status_of

__all__ = ["Followed", "Message", "Updates", "Values"]

Values = Mapping[str, Sequence[str]]
"""The selections of a browser, by their names in the address."""

_OWN = ("children", "figure")
"""Kinds of parts that the scripts of a page draw (`assets/elements.js`, `assets/charts.js`)."""


def _nothing(view: View, choice: Any) -> Mapping[str, Any]:
    return {}


def _no_need(store: Store) -> None:
    """Nothing but the samples."""


@dataclass(frozen=True)
class Followed:
    """A page that follows the fleet."""

    prefix: str
    """Start of the ids of the page."""
    places: Mapping[str, str] = field(default_factory=dict)
    """Property of each part by id."""
    draw: Callable[[View, Any], Mapping[str, Any]] = _nothing
    """Makes the parts by id, from a view and a choice."""
    choose: Callable[[View, Values], Hashable] = lambda view, values: None
    """Makes the choice of the selections; values that are not possible must not raise."""
    need: Callable[[Store], None] = _no_need
    """Tells the store that somebody looks at this page."""
    present: Callable[[View, Status, Mapping[str, Any]], Mapping[str, Any]] = lambda view, status, state: {}
    """Makes the parts that depend on the time, by "ID.PROPERTY", from view, status and stamp; they hide drawn parts."""
    timely: Sequence[tuple[str, str]] = ()
    """Id and property of parts that only `present` makes and that are not children."""
    drawn_by_dash: Collection[str] = ()
    """Ids of the parts whose children have components that `assets/elements.js` does not draw."""

    @property
    def drawn_by_browser(self) -> dict[str, str]:
        """Return the parts that the scripts of the page draw, "children" or "figure" by id."""
        return {name: kind for name, kind in self.places.items() if kind in _OWN and name not in self.drawn_by_dash}


@dataclass(frozen=True, slots=True)
class Message:
    """A message and the drawing that a browser holds after it."""

    drawing: int
    text: str


class Updates:
    """Makes the messages of all pages; safe to use from many threads."""

    def __init__(self, store: Store, pages: Mapping[str, Followed], clock: Callable[[], int] = time.time_ns) -> None:
        """Prepare the pages.

        Args:
            store: The data.
            pages: The pages by address; "/" is among them.
            clock: Wall clock in ns since 1970.
        """
        self._store = store
        self._pages = pages
        self._clock = clock
        self._easels = {path: self._easel(page) for path, page in pages.items()}

    @staticmethod
    def _easel(page: Followed) -> Easel[Any]:
        def draw(view: View, choice: Any) -> dict[str, Any]:
            return {f"{name}.{page.places[name]}": part for name, part in page.draw(view, choice).items()}

        return Easel(draw)

    def message(self, path: str, values: Values, shown: int | None) -> Message:
        """Return the message for a browser, from the newest view.

        Args:
            path: Address of the page; an unknown one is the first page.
            values: The selections.
            shown: Number of the drawing that the browser holds; None or one that is not kept: it gets all parts.
        """
        page = self._pages.get(path) or self._pages["/"]
        easel = self._easels[path if path in self._pages else "/"]
        page.need(self._store)
        view = self._store.view
        status = status_of(view, self._clock())
        state = stamp(view, status) | {"sent_ms": round(time.monotonic() * 1000)}
        drawing, update = easel.update(view, page.choose(view, values), shown)
        present = {f"{page.prefix}taken.children": taken(view), **page.present(view, status, state)}
        head = {
            "stamp": state,
            "now": as_sent(present),
            "drawing": drawing.number,
            "before": update.before,
        }
        return Message(drawing.number, f'{json.dumps(head)[:-1]},"parts":{update.text}}}')
