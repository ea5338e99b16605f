"""The state of a page in its address: ``/lab?lines=all&windows=0-60``. A link shows the same to another reader.

The browser writes the selections of a page into the address (`assets/state.js`). A value that is not possible, or no
longer, is replaced by the default, and the page says so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from urllib.parse import parse_qs

__all__ = ["fields", "refused"]

_LONGEST = 8192
_MOST_FIELDS = 100
_SHOWN = 60


def fields(search: str) -> tuple[Mapping[str, Sequence[str]], list[str]]:
    """Return the values of an address by name, and messages for the reader.

    Args:
        search: The part of the address from "?" on, or nothing.
    """
    if len(search) <= _LONGEST:
        try:
            return parse_qs(search.removeprefix("?"), max_num_fields=_MOST_FIELDS), []
        except ValueError:
            pass
    return {}, ["The address holds too many values. The page shows its default."]


def refused(name: str, value: str, why: str) -> str:
    """Return the message for a value that is not possible."""
    shown = value if len(value) <= _SHOWN else value[: _SHOWN - 1] + "…"
    return f'{name} "{shown}" {why}.'
