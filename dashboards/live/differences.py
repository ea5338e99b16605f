"""The difference between two drawings of a part of the page, as a patch that Dash applies in the browser.

Most of a view is equal to the view before: a curve has one more point and has lost its oldest, a table has other
figures in the same rows. A patch has only what changed.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

from dash import Patch, no_update

__all__ = ["difference", "plain"]

_MOST_MOVED: Final = 16
"""Largest number of points by which a curve is found to have moved, after missed views."""
_Path = tuple[str | int, ...]
_NUMBERS: Final = frozenset({float, int, type(None)})
_WORDS: Final = frozenset({str, int, type(None)})


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
    if isinstance(part, Mapping):
        return {name: plain(item) for name, item in part.items()}
    if hasattr(part, "to_plotly_json"):
        return plain(part.to_plotly_json())
    if hasattr(part, "tolist"):  # of numpy
        return plain(part.tolist())
    raise TypeError(f"a part of the page has a {type(part).__name__}, which JSON does not have")


def difference(before: Any, after: Any) -> Any:
    """Return the update that makes `before` of a browser `after`: nothing, a patch, or `after` itself.

    Args:
        before: What the browser shows, as JSON values (see `plain`).
        after: What it shall show.

    Returns:
        `dash.no_update`, a `dash.Patch`, or `after` where that is shorter.
    """
    if before == after:
        return no_update
    if type(before) is not type(after) or not isinstance(after, dict | list):
        return after
    patch = Patch()
    if not _compare(patch, (), before, after):
        return after
    return patch if _size(patch.to_plotly_json()) < _size(after) else after


def _compare(patch: Patch, path: _Path, before: Any, after: Any) -> bool:
    """Add what differs below a path; return False where only the whole value can be replaced."""
    if isinstance(before, dict) and isinstance(after, dict) and _is_the_same_thing(before, after):
        for name in before.keys() - after.keys():
            del _at(patch, path)[name]
        for name, value in after.items():
            if name in before and (before[name] == value or _compare(patch, (*path, name), before[name], value)):
                continue
            _at(patch, path)[name] = value
        return True
    if not isinstance(before, list) or not isinstance(after, list) or not before or not after:
        return False
    if (moved := _moved(before, after)) is not None:
        curve = _at(patch, path)
        if added := after[len(before) - moved :]:
            curve.extend(added)
        for _ in range(moved):
            del curve[0]
        return True
    changed = [place for place, (old, new) in enumerate(zip(before, after, strict=False)) if old != new]
    if len(before) != len(after) or (_is_curve(after) and len(changed) * 8 > len(after)):
        return False
    for place in changed:
        if not _compare(patch, (*path, place), before[place], after[place]):
            _at(patch, path)[place] = after[place]
    return True


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


def _at(patch: Patch, path: _Path) -> Patch:
    for step in path:
        patch = patch[step]
    return patch


def _size(value: Any) -> int:
    return len(json.dumps(value))
