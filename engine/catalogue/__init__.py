"""The catalogue of all names: statistics, events, actions, options, profiles, errors and constants of the wire.

The tables are TOML files in this folder. This package reads them and imports nothing else of Heliograph, so every
package may use it. `names` derives every other spelling; `generate` writes the C headers and the reference pages.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any, Literal

__all__ = [
    "Action",
    "Cell",
    "Derived",
    "Error",
    "Event",
    "Identity",
    "Join",
    "Option",
    "Profile",
    "Scope",
    "Split",
    "Statistic",
    "Term",
    "actions",
    "derived",
    "errors",
    "events",
    "identities",
    "joins",
    "options",
    "profiles",
    "protocol",
    "renamed_options",
    "scopes",
]

Kind = Literal["counter", "gauge", "signed", "peak", "histogram"]
Severity = Literal["info", "warning", "error"]

_FOLDER = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Split:
    """Division of a statistic into several cells, one for each value of `label`."""

    label: str
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Cell:
    """One 64-bit word of an object's record."""

    name: str
    statistic: Statistic
    value: str | None
    """Value of the statistic's split label; None if it has no split."""


@dataclass(frozen=True, slots=True)
class Statistic:
    """One statistic of a scope."""

    scope: str
    name: str
    kind: Kind
    unit: str
    level: int
    help: str
    split: Split | None = None
    only: tuple[str, ...] = ()
    """The statistic applies to objects with one of these features; if empty, to all objects."""

    @property
    def cells(self) -> tuple[Cell, ...]:
        """Its cells, in the order of the record."""
        if self.split is None:
            return (Cell(self.name, self, None),)
        return tuple(Cell(f"{self.name}_{value}", self, value) for value in self.split.values)


@dataclass(frozen=True, slots=True)
class Scope:
    """A kind of object that has statistics."""

    name: str
    id: int
    help: str
    labels: tuple[str, ...]
    info: tuple[str, ...]
    statistics: tuple[Statistic, ...]

    @property
    def cells(self) -> tuple[Cell, ...]:
        """All cells of the record, in order."""
        return tuple(cell for statistic in self.statistics for cell in statistic.cells)


@dataclass(frozen=True, slots=True)
class Event:
    """A kind of event."""

    name: str
    id: int
    severity: Severity
    arguments: tuple[str, ...]
    help: str


@dataclass(frozen=True, slots=True)
class Action:
    """An action of a source on a receiver."""

    name: str
    number: int
    notice: bool
    """Whether the source notifies the receiver of it."""
    help: str


@dataclass(frozen=True, slots=True)
class Derived:
    """A metric family that is not in segments: computed by the monitor, or about an exporter itself."""

    name: str
    kind: Literal["counter", "gauge"]
    unit: str
    labels: tuple[str, ...]
    help: str
    stamp: bool = False
    """Whether the value is a point in time, not a duration."""


@dataclass(frozen=True, slots=True)
class Term:
    """One cell of a sum, or a constant."""

    sign: Literal[1, -1]
    cell: str
    """Empty for a constant."""
    number: int = 0


@dataclass(frozen=True, slots=True)
class Identity:
    """A sum over the cells of one object that holds in every snapshot."""

    scope: str
    name: str
    unit: str
    left: tuple[Term, ...]
    right: tuple[Term, ...]
    help: str


@dataclass(frozen=True, slots=True)
class Join:
    """A sum over the cells of both ends of a stream: left minus right is in flight."""

    name: str
    sender: str
    """Scope of the sender's object; `receiver` is the scope of the receiver's object."""
    receiver: str
    unit: str
    left: tuple[Term, ...]
    right: tuple[Term, ...]
    modulo: int
    """The two ends may differ by multiples of it; 0: they may not."""
    help: str


@dataclass(frozen=True, slots=True)
class Option:
    """A setting of an instance, transmitter or receiver."""

    name: str
    on: tuple[str, ...]
    type: Literal["string", "choice", "integer", "float", "boolean"]
    default: str | int | float | bool
    help: str
    unit: str = ""
    choices: tuple[str, ...] = ()
    low: float | None = None
    high: float | None = None
    expert: bool = False
    for_tests: bool = False
    variants: Mapping[str, Mapping[str, Any]] = field(default_factory=dict, hash=False)
    """Fields that differ for an owner."""
    per_handle: bool = False
    """Whether handles that share a stream may have different values."""

    def of(self, owner: str) -> Option:
        """The option as it applies to an owner."""
        return replace(self, on=(owner,), **self.variants.get(owner, {}))

    @property
    def member(self) -> str:
        """The member of its owner's struct in C."""
        return f"{self.name}_ns" if self.type == "float" and self.unit == "seconds" else self.name


@dataclass(frozen=True, slots=True)
class Profile:
    """A named preset of options' defaults."""

    name: str
    help: str
    values: Mapping[str, str | int | float | bool]
    """Defaults by option; all other options keep their own."""


@dataclass(frozen=True, slots=True)
class Error:
    """An error code of the C interface and the Python class that carries it."""

    name: str
    value: int
    python: str
    help: str


def _table(name: str) -> dict[str, Any]:
    with (_FOLDER / f"{name}.toml").open("rb") as file:
        return tomllib.load(file)


def _statistic(scope: str, name: str, row: Mapping[str, Any]) -> Statistic:
    split = row.get("split")
    return Statistic(
        scope=scope,
        name=name,
        kind=row["kind"],
        unit=row["unit"],
        level=row["level"],
        help=row["help"],
        split=Split(split["label"], tuple(split["values"])) if split else None,
        only=tuple(row.get("only", ())),
    )


@cache
def scopes() -> Mapping[str, Scope]:
    """Every scope by name, in the order of their ids."""
    return {
        name: Scope(
            name=name,
            id=row["id"],
            help=row["help"],
            labels=tuple(row["labels"]),
            info=tuple(row["info"]),
            statistics=tuple(_statistic(name, key, stat) for key, stat in row["stat"].items()),
        )
        for name, row in _table("statistics")["scope"].items()
    }


@cache
def events() -> Mapping[str, Event]:
    """Every event by name."""
    return {
        name: Event(name, row["id"], row["severity"], tuple(row["arguments"]), row["help"])
        for name, row in _table("events")["event"].items()
    }


@cache
def actions() -> Mapping[str, Action]:
    """Every action by name, in the order of their numbers (1, 2, 3, ...)."""
    return {
        name: Action(name, row["number"], row["notice"], row["help"])
        for name, row in _table("actions")["action"].items()
    }


def _terms(scope: str, texts: list[str]) -> tuple[Term, ...]:
    """The terms of one side; a statistic with a split expands to all its cells."""
    found: list[Term] = []
    for text in texts:
        sign: Literal[1, -1] = -1 if text.startswith("-") else 1
        name = text.removeprefix("-")
        if name.isdigit():
            found.append(Term(sign, "", int(name)))
            continue
        cells = [cell.name for row in scopes()[scope].statistics if row.name == name for cell in row.cells]
        cells = cells or [cell.name for cell in scopes()[scope].cells if cell.name == name]
        if not cells:
            raise ValueError(f"scope {scope} has no statistic {name}")
        found += [Term(sign, cell) for cell in cells]
    return tuple(found)


@cache
def identities() -> tuple[Identity, ...]:
    """Every identity, by scope."""
    return tuple(
        Identity(scope, name, row["unit"], _terms(scope, row["left"]), _terms(scope, row["right"]), row["help"])
        for scope, rows in _table("identities")["identity"].items()
        for name, row in rows.items()
    )


@cache
def joins() -> tuple[Join, ...]:
    """Every identity of two ends."""
    return tuple(
        Join(
            name=name,
            sender=row["sender"],
            receiver=row["receiver"],
            unit=row["unit"],
            left=_terms(row["sender"], row["left"]),
            right=_terms(row["receiver"], row["right"]),
            modulo=row["modulo"],
            help=row["help"],
        )
        for name, row in _table("identities")["join"].items()
    )


@cache
def derived() -> Mapping[str, Derived]:
    """Every derived family by name."""
    return {
        name: Derived(name, row["kind"], row["unit"], tuple(row["labels"]), row["help"], row.get("stamp", False))
        for name, row in _table("derived")["family"].items()
    }


def _tuples(row: Mapping[str, Any]) -> Mapping[str, Any]:
    return {key: tuple(value) if isinstance(value, list) else value for key, value in row.items()}


@cache
def options() -> Mapping[str, Option]:
    """Every option by name."""
    return {
        name: Option(
            name=name,
            on=tuple(row["on"]),
            type=row["type"],
            default=row["default"],
            help=row["help"],
            unit=row.get("unit", ""),
            choices=tuple(row.get("choices", ())),
            low=row.get("low"),
            high=row.get("high"),
            expert=row.get("expert", False),
            for_tests=row.get("for_tests", False),
            variants={"receiver": _tuples(row["receiver"])} if "receiver" in row else {},
            per_handle=row.get("per_handle", False),
        )
        for name, row in _table("options")["option"].items()
    }


@cache
def renamed_options() -> Mapping[str, str]:
    """Current names of renamed options, by former name."""
    return {old: new for new, names in _table("options")["renamed_from"].items() for old in names}


@cache
def profiles() -> Mapping[str, Profile]:
    """Every profile by name, in the order of the choices of the option `profile`."""
    return {
        name: Profile(name, row["help"], {key: value for key, value in row.items() if key != "help"})
        for name, row in _table("profiles")["profile"].items()
    }


@cache
def errors() -> Mapping[str, Error]:
    """Every error by name."""
    return {
        name: Error(name, row["value"], row["python"], row["help"]) for name, row in _table("errors")["error"].items()
    }


@cache
def protocol() -> Mapping[str, int]:
    """Every wire constant by its dotted name, such as ``pgm.packet_type.ODATA``."""
    return {
        f"{protocol}.{group}.{name}": value
        for protocol, groups in _table("protocol").items()
        for group, rows in groups.items()
        for name, value in rows.items()
    }
