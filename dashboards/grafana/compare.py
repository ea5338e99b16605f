"""Compares the stored JSON of a server with the wanted JSON. Pure functions of two JSON values.

A server adds ids, versions, defaults and fields of newer releases. The stored value is therefore first reduced to the
shape of the wanted value (`project`). The rest is compared by hash, and shown as a list of differences by path. A list
is one value: an added panel is a difference.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import Any

__all__ = ["differences", "digest", "project"]

SERVERS_OWN = frozenset({"id", "version", "iteration", "schemaVersion"})
"""Keys at the top level of a dashboard that belong to the server."""

_LONGEST = 70


def project(stored: Any, wanted: Any) -> Any:
    """Return the part of `stored` that has the shape of `wanted`."""
    if isinstance(wanted, Mapping) and isinstance(stored, Mapping):
        return {key: project(stored[key], value) for key, value in wanted.items() if key in stored}
    if isinstance(wanted, list) and isinstance(stored, list):
        paired = [project(old, new) for old, new in zip(stored, wanted, strict=False)]
        return paired + stored[len(paired) :]
    return stored


def digest(value: Any) -> str:
    """Return the SHA-256 of a value. Equal values have equal hashes for any order of keys and spelling of numbers."""
    text = json.dumps(_plain(value), sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


def differences(stored: Any, wanted: Any, path: str = "") -> Iterator[str]:
    """Yield the differences, one line each: ``panels[3].title: 'Loss' -> 'Loss by cause'``."""
    if isinstance(stored, Mapping) and isinstance(wanted, Mapping):
        for key in [*wanted, *(key for key in stored if key not in wanted)]:
            place = f"{path}.{key}" if path else str(key)
            if key not in wanted:
                yield f"{place}: {_short(stored[key])} -> nothing"
            elif key not in stored:
                yield f"{place}: nothing -> {_short(wanted[key])}"
            else:
                yield from differences(stored[key], wanted[key], place)
    elif isinstance(stored, list) and isinstance(wanted, list):
        for index in range(max(len(stored), len(wanted))):
            place = f"{path}[{index}]"
            if index >= len(wanted):
                yield f"{place}: {_short(stored[index])} -> nothing"
            elif index >= len(stored):
                yield f"{place}: nothing -> {_short(wanted[index])}"
            else:
                yield from differences(stored[index], wanted[index], place)
    elif digest(stored) != digest(wanted):
        yield f"{path}: {_short(stored)} -> {_short(wanted)}"


def _plain(value: Any) -> Any:
    """Return the value with 2.0 written as 2, as servers in other languages store it."""
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _short(value: Any) -> str:
    if isinstance(value, Mapping) and "title" in value:
        return f"{{{value['title']}}}"
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
