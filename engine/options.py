"""Options: keywords become the text the engine reads, ``name=value&name=value``.

Names, types and ranges are the catalogue's. A mistake is told here, with the range and the nearest name, before
anything is created.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from typing import Literal, TypeAlias
from urllib.parse import quote

from heliograph.engine import catalogue
from heliograph.engine.catalogue import Option
from heliograph.engine.errors import OptionError

__all__ = ["OptionValue", "Owner", "encode", "parse"]

OptionValue: TypeAlias = str | int | float | bool | os.PathLike[str] | None
"""What a keyword may be given; None means: not given."""

Owner = Literal["instance", "transmitter", "receiver"]


def encode(owner: Owner, options: Mapping[str, OptionValue]) -> str | None:
    """The options of one object as the engine reads them; None when there are none.

    Args:
        owner: what the options are for.
        options: values by name; those that are None are left out.

    Raises:
        OptionError: a name is unknown or another object's, or a value has the wrong type or is outside its range.
    """
    given = [(_find(owner, name), value) for name, value in options.items() if value is not None]
    return "&".join(f"{option.name}={quote(_text(option, value), safe='')}" for option, value in given) or None


def parse(owner: Owner, text: str) -> tuple[str, OptionValue]:
    """One ``name=value`` as typed on a command line, as a name and a value fit for `encode`.

    Raises:
        OptionError: it has no "=", the name is unknown, or the value cannot be read as the option's type.
    """
    name, separator, value = text.partition("=")
    if not separator:
        raise _refusal(f'an option is given as name=value, not "{text}"')
    option = _find(owner, name)
    try:
        if option.type == "integer":
            return name, int(value)
        if option.type == "float":
            return name, float(value)
    except ValueError:
        raise _mismatch(option, value) from None
    if option.type == "boolean":
        if value not in ("true", "false"):
            raise _mismatch(option, value)
        return name, value == "true"
    return name, value


def _refusal(text: str) -> OptionError:
    error = OptionError(text)
    error.code = "OPTION"
    return error


def _find(owner: Owner, name: str) -> Option:
    known = catalogue.options()
    option = known.get(name)
    if option is None:
        raise _refusal(f'unknown option "{name}"{_suggestion(name, [o.name for o in known.values() if owner in o.on])}')
    if owner not in option.on:
        raise _refusal(f'option "{name}" belongs to {" and ".join(f"{on}s" for on in option.on)}, not to {owner}s')
    return option


def _suggestion(name: str, names: list[str]) -> str:
    from difflib import get_close_matches  # only when somebody has mistyped

    near = get_close_matches(name, names, n=1)
    return f'; did you mean "{near[0]}"?' if near else f"; there are: {', '.join(sorted(names))}"


def _text(option: Option, value: OptionValue) -> str:
    match option.type:
        case "boolean":
            if isinstance(value, bool):
                return "true" if value else "false"
        case "integer":
            if isinstance(value, int) and not isinstance(value, bool) and _within(option, value):
                return str(value)
        case "float":
            if isinstance(value, int | float) and not isinstance(value, bool) and _within(option, value):
                return repr(value)
        case "choice":
            if value in option.choices:
                return str(value)
        case "string":
            if isinstance(value, str | os.PathLike) and "\0" not in os.fspath(value):
                return os.fspath(value)
    raise _mismatch(option, value)


def _within(option: Option, value: float) -> bool:
    low = -math.inf if option.low is None else option.low
    high = math.inf if option.high is None else option.high
    return math.isfinite(value) and low <= value <= high


def _mismatch(option: Option, value: object) -> OptionError:
    return _refusal(f'option "{option.name}" is {_domain(option)}, not {value!r}')


def _domain(option: Option) -> str:
    match option.type:
        case "boolean":
            return "true or false"
        case "choice":
            return "one of " + ", ".join(option.choices)
        case "string":
            return "a text without NUL"
    kind = "a whole number" if option.type == "integer" else "a number"
    unit = f" {option.unit}" if option.unit else ""
    if option.low is None or option.high is None:
        return kind + unit
    return f"{kind} from {_plain(option.low)} to {_plain(option.high)}{unit}"


def _plain(number: float) -> str:
    return f"{number:.12f}".rstrip("0").rstrip(".")
