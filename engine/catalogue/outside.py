"""Escapes untrusted text for each output: names, topics, hosts, labels, reasons, message text.

The sender controls the content of such texts: escape sequences, characters that are invisible or change the reading
direction, markup, templates, formulas. `outside` makes a text safe, and `json_text` does so for JSON documents. They
are part of the catalogue package because every package may import it, so there is only one implementation.

A character is safe if `str.isprintable` is true. Control characters (C0, DEL, C1), line and paragraph separators,
format characters (direction, zero width), surrogates and unassigned code points are not safe.
"""

from __future__ import annotations

import hashlib
import json
from enum import StrEnum
from html import escape
from typing import Any

__all__ = ["MOST", "Output", "html_text", "json_text", "outside"]

MOST = 2000
"""Highest number of characters shown; names have a few hundred at most."""
_REPLACED = "\N{REPLACEMENT CHARACTER}"
_KEPT = 480
_PLOTLY = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "$": "&#36;", "%{": "%&#123;"}


class Output(StrEnum):
    """Kinds of output."""

    TEXT = "text"
    """A terminal, a log, or a page that escapes markup itself: unsafe characters are replaced visibly."""
    LABEL = "label"
    """An identity, such as a Prometheus label: different texts stay different. Unsafe characters and backslashes become
    ``\\uXXXX``; a long text ends with a hash of the whole."""
    HTML = "html"
    """HTML or SVG, within an element or a quoted attribute."""
    PLOTLY = "plotly"
    """A name or a text of a Plotly figure, without effective markup or templates."""
    CSV = "csv"
    """A CSV field for spreadsheets: formulas are disabled, quotes are added if needed."""


def outside(text: str, output: Output = Output.TEXT, most: int | None = MOST) -> str:
    """Make an untrusted text safe for an output.

    Args:
        text: The text.
        output: The kind of output.
        most: Highest number of characters kept; None: no limit.
    """
    if output is Output.LABEL:
        return _label(text)
    shown = text if text.isprintable() else "".join(char if char.isprintable() else _REPLACED for char in text)
    if most is not None and len(shown) > most:
        shown = shown[: most - 1] + "…"
    if output is Output.TEXT:
        return shown
    match output:
        case Output.HTML:
            return escape(shown, quote=True)
        case Output.PLOTLY:
            for mark, entity in _PLOTLY.items():
                shown = shown.replace(mark, entity)
        case Output.CSV:
            if shown[:1] in ("=", "+", "-", "@", _REPLACED):
                shown = "'" + shown
            if any(mark in shown for mark in ',;"'):
                shown = '"' + shown.replace('"', '""') + '"'
    return shown


def html_text(text: str, most: int | None = MOST) -> str:
    """`outside` for HTML and SVG."""
    return outside(text, Output.HTML, most)


def _escaped(char: str) -> str:
    code = ord(char)
    if code > 0xFFFF:  # a surrogate pair, as in JSON
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
    """A value as complete JSON that is safe to print on a terminal.

    Args:
        value: A value for `json.dumps`.
        settings: Arguments for `json.dumps`.
    """
    text = json.dumps(value, ensure_ascii=False, **settings)
    if text.isprintable():
        return text
    # Within strings `dumps` has escaped C0; outside strings the only control characters are its own newlines.
    return "".join(char if char.isprintable() or char == "\n" else _escaped(char) for char in text)
