"""The difference between two drawings of a part of the page, as operations that the browser applies to what it holds.

Most of a view is equal to the view before: a curve has one more point and has lost its oldest, a table has other
figures in the same rows. A difference has only what changed. `assets/updates.js` applies it.

A difference is one of::

    {"set": VALUE}           the whole part
    {"do": [OPERATION, ...]} operations, in this order

    [PATH, "set", KEY, VALUE]    an item of the dictionary or list at PATH
    [PATH, "delete", KEY]        an item of a dictionary
    [PATH, "extend", VALUES]     values after the last of a list
    [PATH, "drop", COUNT]        the first values of a list
    [PATH, "order", ELEMENTS]    a list of elements with keys: of each its place before, or a new element

A path is a list of keys and indices from the part downwards; -1 stands for "props" and "children", the way from an
element to what is in it. It begins with the number of steps that it has in common with the path of the operation
before: the cells of a table differ in their last steps only.

A row with a key (the property of React) is the same row wherever it is in its table: the worst receiver of a fleet
changes from sample to sample, and a row that only moved has its place as difference.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

__all__ = ["OF_CLASS", "Difference", "difference", "of_component", "plain"]

Difference = Mapping[str, Any]

_MOST_MOVED: Final = 16
"""Largest number of points by which a curve is found to have moved, after missed views."""
_INWARD: Final = -1
_Path = tuple[str | int, ...]
_Operations = list[list[Any]]
_NUMBERS: Final = frozenset({float, int, type(None)})
_WORDS: Final = frozenset({str, int, type(None)})
OF_CLASS: Final = frozenset(
    {"_prop_names", "_valid_wildcard_attributes", "available_properties", "available_wildcard_properties"}
)
"""Attributes of each component of Dash that are no properties of its element."""


def of_component(component: Any, properties: dict[str, Any]) -> dict[str, Any]:
    """Return a component as the browser gets it, with properties that are JSON values."""
    return {"props": properties, "type": component._type, "namespace": component._namespace}


def plain(part: Any) -> Any:
    """Return a part of the page as JSON values: components and figures as the browser gets them.

    NaN and infinity, which JSON does not have, become None. Lists and dictionaries are new ones.

    Raises:
        TypeError: A value is none of these.
    """
    if part is None or isinstance(part, str | int):
        return part
    if isinstance(part, float):
        return part if math.isfinite(part) else None
    if isinstance(part, list | tuple):
        kinds = set(map(type, part))  # a curve has thousands of values of two or three types
        if kinds <= _WORDS:
            return list(part)
        if kinds <= _NUMBERS:
            return [value if value is None or math.isfinite(value) else None for value in part]
        return [plain(item) for item in part]
    if isinstance(part, dict):
        return {name: item if type(item) is str else plain(item) for name, item in part.items()}
    if hasattr(part, "_prop_names"):  # much faster than its to_plotly_json, which looks for each property it may have
        own = [(name, item) for name, item in vars(part).items() if name not in OF_CLASS]
        properties = {name: item if type(item) is str else plain(item) for name, item in own}
        return of_component(part, properties)
    if isinstance(part, Mapping):
        return {name: plain(item) for name, item in part.items()}
    if hasattr(part, "to_plotly_json"):
        return plain(part.to_plotly_json())
    if hasattr(part, "tolist"):  # of numpy
        return plain(part.tolist())
    raise TypeError(f"a part of the page has a {type(part).__name__}, which JSON does not have")


def difference(before: Any, after: Any) -> Difference | None:
    """Return what makes `before` of a browser `after`; None: nothing.

    Args:
        before: What the browser holds, as JSON values (see `plain`).
        after: What it shall hold.
    """
    if before == after:
        return None
    found: _Operations = []
    is_alike = type(before) is type(after) and isinstance(after, dict | list)
    if is_alike and _compare(found, (), before, after):
        short = _shortened(found)
        if _size(short) < _size(after):
            return {"do": short}
    return {"set": after}


def _shortened(found: _Operations) -> _Operations:
    """Write each path as the number of steps of the path before, and the other steps."""
    short: _Operations = []
    before: Sequence[Any] = ()
    for whole, *rest in found:
        path, common = _inward(whole), 0
        while common < min(len(path), len(before)) and path[common] == before[common]:
            common += 1
        short.append([[common, *path[common:]], *rest])
        before = path
    return short


def _inward(path: Sequence[str | int]) -> _Path:
    """Write a path with one step from an element to what is in it."""
    steps: list[str | int] = []
    for step in path:
        if step == "children" and steps and steps[-1] == "props":
            steps[-1] = _INWARD
        else:
            steps.append(step)
    return tuple(steps)


def _compare(found: _Operations, path: _Path, before: Any, after: Any) -> bool:
    """Add what differs below a path; return False where only the whole value can be replaced."""
    if isinstance(before, dict) and isinstance(after, dict) and _is_the_same_thing(before, after):
        found += [[path, "delete", name] for name in before.keys() - after.keys()]
        for name, value in after.items():
            if name in before and (before[name] == value or _compare(found, (*path, name), before[name], value)):
                continue
            found.append([path, "set", name, value])
        return True
    if not isinstance(before, list) or not isinstance(after, list) or not before or not after:
        return False
    if (order := _order(before, after)) is not None:
        if order != list(range(len(before))):
            found.append([path, "order", order])
        _compare_each(found, path, [(at, before[old]) for at, old in enumerate(order) if type(old) is int], after)
        return True
    if (moved := _moved(before, after)) is not None:
        if added := after[len(before) - moved :]:
            found.append([path, "extend", added])
        if moved:
            found.append([path, "drop", moved])
        return True
    changed = [place for place, (old, new) in enumerate(zip(before, after, strict=False)) if old != new]
    if len(before) != len(after) or (_is_curve(after) and len(changed) * 8 > len(after)):
        return False
    _compare_each(found, path, [(place, before[place]) for place in changed], after)
    return True


def _compare_each(found: _Operations, path: _Path, before: Sequence[tuple[int, Any]], after: Sequence[Any]) -> None:
    """Add what differs in some items of a list.

    Args:
        before: Place in `after`, and the item as the browser holds it.
    """
    for place, old in before:
        if old != after[place] and not _compare(found, (*path, place), old, after[place]):
            found.append([path, "set", place, after[place]])


def _order(before: Sequence[Any], after: Sequence[Any]) -> list[Any] | None:
    """Return for each element the place before of the element that becomes it, or the element itself.

    One with a new key is made of one that has left, because most of it is alike. None: an element has no key, or two
    have the same.
    """
    old, new = _keys(before), _keys(after)
    if old is None or new is None:
        return None
    left = iter([place for key, place in old.items() if key not in new])
    return [old[key] if key in old else next(left, after[place]) for key, place in new.items()]


def _keys(elements: Sequence[Any]) -> dict[str, int] | None:
    """Return the places of elements by their keys; None: one has no key, or two have the same."""
    places = {}
    for place, element in enumerate(elements):
        properties = element.get("props") if isinstance(element, dict) else None
        key = properties.get("key") if isinstance(properties, dict) else None
        if not isinstance(key, str) or key in places:
            return None
        places[key] = place
    return places


def _is_the_same_thing(before: dict[str, Any], after: dict[str, Any]) -> bool:
    """A trace of another name, or a component of another type, is replaced as a whole."""
    return all(before.get(name) == after.get(name) for name in ("type", "name"))


def _is_curve(values: Sequence[Any]) -> bool:
    return not isinstance(values[0], dict | list)


def _moved(before: Sequence[Any], after: Sequence[Any]) -> int | None:
    """Return the number of oldest values that a curve has lost while all others stayed; None: others changed too."""
    if not _is_curve(after):
        return None
    for moved in range(min(_MOST_MOVED, len(before))):
        if before[moved:] == after[: len(before) - moved]:
            return moved
    return None


def _size(value: Any) -> int:
    return len(json.dumps(value))
