"""Options: keywords become the text the engine reads, ``name=value&name=value``. The engine checks names and values."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TypeAlias
from urllib.parse import quote

from heliograph.engine.errors import OptionError

__all__ = ["OptionValue", "encode", "split"]

OptionValue: TypeAlias = str | int | float | bool | os.PathLike[str] | None
"""Values of a keyword; None means: not given."""


def encode(options: Mapping[str, OptionValue]) -> str | None:
    """The options of one object as the engine reads them; None when there are none.

    Args:
        options: values by name; those that are None are left out.

    Raises:
        OptionError: a value cannot be written as text.
    """
    given = [(name, value) for name, value in options.items() if value is not None]
    return "&".join(f"{quote(name, safe='')}={quote(_text(name, value), safe='')}" for name, value in given) or None


def split(text: str) -> tuple[str, str]:
    """One ``name=value`` as typed on a command line, as a name and a value fit for `encode`.

    Raises:
        OptionError: it has no "=".
    """
    name, separator, value = text.partition("=")
    if not separator:
        raise _refusal(f'an option is given as name=value, not "{text}"')
    return name, value


def _refusal(text: str) -> OptionError:
    error = OptionError(text)
    error.code = "OPTION"
    return error


def _text(name: str, value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, str | os.PathLike) and "\0" not in os.fspath(value):
        return os.fspath(value)
    raise _refusal(f"option {name} is a text without NUL, a number, or true or false, not {value!r}")
