"""Three-way comparison of JSON: the value last applied, the stored value, and the wanted value. Pure functions.

A server adds ids, versions, defaults and fields of newer releases. A key that is in neither the applied nor the wanted
value is therefore no difference; it stays as it is. An empty value (null, false, "", [], {}) equals an absent one.

Items of a list are matched by identity (`_pairs`): panels by id, type and title; other items by uid, name, refId or
matchers. A list whose items have no identity is one value.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

__all__ = ["MISSING", "Difference", "Merge", "digest", "project", "same"]

_LONGEST = 70


class _Missing:
    """The value of an absent key, item or object."""

    def __bool__(self) -> bool:
        return False

    def __repr__(self) -> str:
        return "nothing"


MISSING: Final[Any] = _Missing()


@dataclass(frozen=True, slots=True)
class Difference:
    """A path where the stored value is not the wanted value."""

    kind: Literal["change", "edit", "conflict", "overwrite"]
    """change: apply sets the wanted value. edit: changed on the server, and kept. conflict: changed on the server and
    in what is wanted. overwrite: an edit or a conflict that `--force` replaces."""
    path: str
    applied: Any
    stored: Any
    wanted: Any

    def text(self) -> str:
        """Return the difference as one line."""
        applied, stored, wanted = _short(self.applied), _short(self.stored), _short(self.wanted)
        match self.kind:
            case "change":
                return f"{self.path}: {stored} -> {wanted}"
            case "edit":
                return f"{self.path}: {applied} -> {stored} (edited on the server; kept)"
            case "overwrite":
                return f"{self.path}: {stored} -> {wanted} (overwrites an edit)"
        return f"{self.path}: conflict: last applied {applied}, edited to {stored}, wanted {wanted}"

    def json(self) -> dict[str, Any]:
        """Return the difference as JSON; an absent value has no key."""
        values = {"applied": self.applied, "stored": self.stored, "wanted": self.wanted}
        found = {name: value for name, value in values.items() if value is not MISSING}
        return {"kind": self.kind, "path": self.path, **found}


class Merge:
    """Merges the wanted value into the stored one, and collects the differences."""

    def __init__(self, *, force: bool = False) -> None:
        """Prepare a merge; with `force` the wanted value replaces edits."""
        self._force = force
        self.differences: list[Difference] = []

    def __call__(self, applied: Any, stored: Any, wanted: Any, path: str = "") -> Any:
        """Return the merged value, or MISSING."""
        if same(stored, wanted) and not same(stored, applied):
            return stored
        if (
            isinstance(stored, Mapping)
            and isinstance(wanted, Mapping)
            and (applied is MISSING or isinstance(applied, Mapping))
            and not path.endswith("gridPos")
        ):
            return self._mapping(applied or {}, stored, wanted, path)
        if isinstance(stored, list) and isinstance(wanted, list) and (applied is MISSING or isinstance(applied, list)):
            pairs = _pairs(applied or [], stored, wanted, path)
            if pairs is not None:
                return self._items(pairs, stored, path)
        return self._value(applied, stored, wanted, path)

    def _mapping(
        self, applied: Mapping[str, Any], stored: Mapping[str, Any], wanted: Mapping[str, Any], path: str
    ) -> Any:
        merged = {}
        for key in [*stored, *(key for key in wanted if key not in stored)]:
            if key not in applied and key not in wanted:
                merged[key] = stored[key]
                continue
            below = f"{path}{' ' if path.endswith(_QUOTES) else '.'}{key}" if path else str(key)
            old, there, new = (values.get(key, MISSING) for values in (applied, stored, wanted))
            if (value := self(old, there, new, below)) is not MISSING:
                merged[key] = value
        return merged

    def _items(self, pairs: Sequence[_Pair], stored: Sequence[Any], path: str) -> list[Any]:
        panels = _is_panels(path)
        common = [pair for pair in pairs if pair.stored is not MISSING and pair.wanted is not MISSING]
        if not panels and len(common) > 1:
            there = sorted(common, key=lambda pair: stored.index(pair.stored))
            before = sorted(common, key=lambda pair: pair.place)
            orders = [[pair.label for pair in order] for order in (before, there, common)]
            if self._value(orders[0], orders[1], orders[2], f"{path} order") != orders[2]:
                pairs = [*there, *(pair for pair in pairs if pair not in common)]
        merged = []
        for pair in pairs:
            below = f"panel {pair.label!r}" if panels else f"{path}[{pair.label}]"
            if (value := self(pair.applied, pair.stored, pair.wanted, below)) is not MISSING:
                merged.append(value)
        return _numbered(merged) if panels else merged

    def _value(self, applied: Any, stored: Any, wanted: Any, path: str) -> Any:
        ours, theirs = not _exact(applied, wanted), not same(_bare(stored), _bare(applied))
        if same(stored, wanted) and (theirs or not ours):
            return stored
        if not theirs:
            self.differences.append(Difference("change", path, applied, stored, wanted))
            return wanted
        kind: Literal["overwrite", "conflict", "edit"]
        kind = "overwrite" if self._force else "conflict" if ours else "edit"
        self.differences.append(Difference(kind, path or "all", applied, stored, wanted))
        return wanted if self._force else stored


def project(stored: Any, wanted: Any) -> Any:
    """Return the part of `stored` that has the shape of `wanted`; an absent value stands for an empty one."""
    if isinstance(wanted, Mapping) and isinstance(stored, Mapping):
        found = {}
        for key, value in wanted.items():
            if key in stored:
                found[key] = project(stored[key], value)
            elif _empty(value):
                found[key] = value
        return found
    if isinstance(wanted, list) and isinstance(stored, list):
        paired = [project(old, new) for old, new in zip(stored, wanted, strict=False)]
        return paired + stored[len(paired) :]
    return stored


def same(value: Any, reference: Any) -> bool:
    """Return whether the part of `value` that `reference` describes is equal to it."""
    if value is MISSING or reference is MISSING:
        return _empty(value) and _empty(reference)
    return digest(project(value, reference)) == digest(reference)


def digest(value: Any) -> str:
    """Return the SHA-256 of a value. Equal values have equal hashes for any order of keys and spelling of numbers."""
    text = json.dumps(_plain(value), sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class _Pair:
    """One item of a list in its three values."""

    label: str
    applied: Any
    stored: Any
    wanted: Any
    place: int
    """Position in the applied list."""


_QUOTES = ("'", '"')
_IDENTITIES = ("uid", "name", "refId", "object_matchers")


def _pairs(applied: list[Any], stored: list[Any], wanted: list[Any], path: str) -> list[_Pair] | None:
    """Match the items of three lists, the wanted ones first; None if the items have no identity."""
    lists = (applied, stored, wanted)
    if not all(isinstance(item, Mapping) for items in lists for item in items):
        return None
    if _is_panels(path):
        of_stored = _match(stored, applied, [("id", "type", "title"), ("type", "title"), ("id",)])
        of_wanted = _match(wanted, applied, [("type", "title"), ("id", "type")])
        left = [index for index in range(len(stored)) if index not in of_stored]
        fresh = [index for index in range(len(wanted)) if index not in of_wanted]
        joined = _match([wanted[i] for i in fresh], [stored[i] for i in left], [("type", "title")])
        links: list[tuple[int | None, int | None, int | None]] = []
        by_applied = {old: new for new, old in of_stored.items()}
        for index in range(len(wanted)):
            if index in of_wanted:
                links.append((of_wanted[index], by_applied.get(of_wanted[index]), index))
            else:
                other = joined.get(fresh.index(index))
                links.append((None, None if other is None else left[other], index))
        dropped = set(range(len(applied))) - set(of_wanted.values())
        links += [(index, by_applied.get(index), None) for index in sorted(dropped)]
        links += [(None, index, None) for place, index in enumerate(left) if place not in joined.values()]
    else:
        key = next((key for key in _IDENTITIES if all(_unique(items, key) for items in lists)), None)
        if key is None:
            return None
        places = [{digest(item[key]): index for index, item in enumerate(items)} for items in lists]
        names = dict.fromkeys([*places[2], *places[1], *places[0]])
        links = [(places[0].get(name), places[1].get(name), places[2].get(name)) for name in names]
    found = []
    for old, there, new in links:
        values: list[Any] = [
            MISSING if index is None else items[index] for items, index in zip(lists, (old, there, new), strict=True)
        ]
        named = next(value for value in (values[0], values[2], values[1]) if value is not MISSING)
        label = str(named.get("title", "")) if _is_panels(path) else _label(named[key])
        place = len(applied) if old is None else old
        found.append(_Pair(label, values[0], values[1], values[2], place))
    return found


def _match(
    left: Sequence[Mapping[str, Any]], right: Sequence[Mapping[str, Any]], passes: Sequence[tuple[str, ...]]
) -> dict[int, int]:
    """Return the index in `right` of each item of `left`, by the keys of the first pass that fits."""
    found: dict[int, int] = {}
    for keys in passes:
        free: dict[Hashable, list[int]] = {}
        for index in range(len(right) - 1, -1, -1):
            if index not in found.values():
                free.setdefault(tuple(str(right[index].get(key)) for key in keys), []).append(index)
        for index, item in enumerate(left):
            if index not in found and (places := free.get(tuple(str(item.get(key)) for key in keys))):
                found[index] = places.pop()
    return found


def _unique(items: Sequence[Mapping[str, Any]], key: str) -> bool:
    return len({digest(item[key]) for item in items if key in item}) == len(items)


def _label(value: Any) -> str:
    if isinstance(value, list):
        return ",".join("".join(map(str, one)) if isinstance(one, list) else str(one) for one in value)
    return str(value)


def _is_panels(path: str) -> bool:
    return path == "panels" or path.endswith((" panels", ".panels"))


def _numbered(panels: list[Any]) -> list[Any]:
    """Give a kept panel whose id is taken a new one."""
    used: set[Any] = set()
    top = max((panel.get("id") or 0 for panel in panels), default=0)
    found = []
    for panel in panels:
        if panel.get("id") in used:
            top += 1
            panel = dict(panel) | {"id": top}
        used.add(panel.get("id"))
        found.append(panel)
    return found


def _bare(value: Any) -> Any:
    """Return a panel without its number and position."""
    if isinstance(value, Mapping) and "gridPos" in value:
        return {key: item for key, item in value.items() if key not in {"id", "gridPos"}}
    return value


def _exact(one: Any, other: Any) -> bool:
    if one is MISSING or other is MISSING:
        return one is other
    return digest(_bare(one)) == digest(_bare(other))


def _empty(value: Any) -> bool:
    return value is None or value is False or value is MISSING or value in ("", [], {})


def _plain(value: Any) -> Any:
    """Return the value with 2.0 written as 2, as servers in other languages store it."""
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _short(value: Any) -> str:
    if value is MISSING:
        return "nothing"
    if isinstance(value, Mapping) and "title" in value:
        return f"{{{value['title']}}}"
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
