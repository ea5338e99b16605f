"""Text that came from outside, as each door may show it: names, topics, hosts, labels, reasons, message text.

Whoever sends decides what such a text holds: escape sequences that move the cursor, characters that turn the direction
of reading or cannot be seen, markup, templates, formulas. `outside` is the one function that makes it harmless, and
`json_text` its counterpart for whole JSON documents. It stands with the catalogue because every floor may import this
package, and a door that had its own would forget a case.

A character is harmless when `str.isprintable` says so. Control characters (C0, DEL, C1), line and paragraph
separators, characters of format (direction, zero width), halves of surrogates and what Unicode does not know are not.
"""

from __future__ import annotations

import hashlib
import json
from enum import StrEnum
from html import escape
from typing import Any

__all__ = ["MOST", "Door", "html_text", "json_text", "outside"]

MOST = 2000
"""Characters of a text that are shown; a name has no more than some hundred."""
_REPLACED = "\N{REPLACEMENT CHARACTER}"
_KEPT = 480
_PLOTLY = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "$": "&#36;", "%{": "%&#123;"}


class Door(StrEnum):
    """Where a text is shown."""

    TEXT = "text"
    """A terminal, a log for people, or a page that escapes markup by itself: the harmful are replaced visibly."""
    LABEL = "label"
    """An identity, as a label of Prometheus: what differs stays different. Harmful characters and backslashes become
    ``\\uXXXX``; a long one ends in a hash of all of it."""
    HTML = "html"
    """HTML or SVG, within an element or a quoted attribute."""
    PLOTLY = "plotly"
    """A name or a text of a Plotly figure: neither its markup nor its templates find anything."""
    CSV = "csv"
    """A field of a table that a spreadsheet may open: no formula, quoted where it has to be."""


def outside(text: str, door: Door = Door.TEXT, most: int | None = MOST) -> str:
    """A text that came from outside, harmless at a door.

    Args:
        text: As it came.
        door: Where it goes.
        most: Characters that are kept; None: all.
    """
    if door is Door.LABEL:
        return _label(text)
    shown = text if text.isprintable() else "".join(char if char.isprintable() else _REPLACED for char in text)
    if most is not None and len(shown) > most:
        shown = shown[: most - 1] + "…"
    match door:
        case Door.HTML:
            return escape(shown, quote=True)
        case Door.PLOTLY:
            for mark, entity in _PLOTLY.items():
                shown = shown.replace(mark, entity)
        case Door.CSV:
            if shown[:1] in ("=", "+", "-", "@", _REPLACED):
                shown = "'" + shown
            if any(mark in shown for mark in ',;"'):
                shown = '"' + shown.replace('"', '""') + '"'
    return shown


def html_text(text: str, most: int | None = MOST) -> str:
    """`outside` for HTML and SVG."""
    return outside(text, Door.HTML, most)


def _escaped(char: str) -> str:
    code = ord(char)
    if code > 0xFFFF:  # as JSON has it: two halves
        code -= 0x10000
        return f"\\u{0xD800 | code >> 10:04x}\\u{0xDC00 | code & 0x3FF:04x}"
    return f"\\u{code:04x}"


def _label(text: str) -> str:
    shown = text
    if not text.isprintable() or "\\" in text:
        shown = "".join(char if char.isprintable() and char != "\\" else _escaped(char) for char in text)
    if len(shown) > _KEPT + 32:
        digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
        shown = f"{shown[:_KEPT]}…{digest}"
    return shown


def json_text(value: Any, **settings: Any) -> str:
    """A value as JSON that may be shown on a terminal: readable, whole, and without a harmful character.

    Args:
        value: What `json.dumps` takes.
        settings: As of `json.dumps`.
    """
    text = json.dumps(value, ensure_ascii=False, **settings)
    if text.isprintable():
        return text
    # Within strings `dumps` has escaped C0; outside of them there is nothing but its own line ends.
    return "".join(char if char.isprintable() or char == "\n" else _escaped(char) for char in text)
