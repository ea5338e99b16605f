"""Options: converts keywords to the engine's text, ``name=value&name=value``. The engine checks names and values."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias
from urllib.parse import quote

from heliograph.engine.errors import OptionError

__all__ = ["OptionValue", "by_owner", "encode", "refusal", "split", "stores_text"]

OptionValue: TypeAlias = str | int | float | bool | os.PathLike[str] | None
"""Value of an option; None means that the option is not given."""


def encode(options: Mapping[str, OptionValue]) -> str | None:
    """The options of one object as text for the engine; None if there are none.

    Args:
        options: Values by name; None values are ignored.

    Raises:
        OptionError: A value has an unsupported type or contains NUL.
    """
    given = [(name, value) for name, value in options.items() if value is not None]
    return "&".join(f"{quote(name, safe='')}={quote(_text(name, value), safe='')}" for name, value in given) or None


def stores_text(stores: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | None) -> str | None:
    """The value of the option ``stores``: one store as it is, several with commas between.

    Raises:
        OptionError: One of several has a comma itself, or is no text.
    """
    if stores is None:
        return None
    if isinstance(stores, str | os.PathLike):
        return _text("stores", stores)
    texts = [_text("stores", store) for store in stores]
    for text in texts:
        if "," in text:
            raise refusal(f"option stores: the name {text!r} has a comma, which separates stores")
    return ",".join(texts)


def split(text: str) -> tuple[str, str]:
    """Split one ``name=value`` of a command line into name and value.

    Raises:
        OptionError: There is no "=".
    """
    name, separator, value = text.partition("=")
    if not separator:
        raise refusal(f'an option must have the form name=value, not "{text}"')
    return name, value


def by_owner(texts: Iterable[str]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The ``name=value`` texts of a command line, by name: options of the instance, and the others.

    Raises:
        OptionError: A text has no "=".
    """
    from heliograph.engine import catalogue

    others: dict[str, Any] = {}
    instances: dict[str, Any] = {}
    for text in texts:
        name, value = split(text)
        option = catalogue.options().get(name)
        of_instance = option is not None and "instance" in option.on
        (instances if of_instance else others)[name] = value
    return instances, others


def refusal(text: str) -> OptionError:
    """The error of an invalid option, for ``raise``."""
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
    raise refusal(f"option {name} must be a text without NUL, a number or a bool, not {value!r}")
