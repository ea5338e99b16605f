"""Reconciliation: the counters of every object must add up, and data between sender and receiver is in flight.

The identities are data (`engine/catalogue/identities.toml`; the tests of the engine use the same). Within one object
they hold in every snapshot, also under traffic, because an object is read at one instant: `residual` is then 0. Between
the two ends of a stream the difference is in flight: never below 0, and 0 when traffic is quiet.

Two cases are left out: an object whose writer stopped during an update (torn), and a sum over cells that the engine of
the object does not have.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt

from heliograph.engine import catalogue
from heliograph.engine.catalogue import Identity, Join, Term
from heliograph.monitor.model import InstanceState, ObjectState, Snapshot
from heliograph.monitor.records import gathered

__all__ = ["Account", "Crossing", "accounts", "crossings", "is_quiet", "sentence", "worst"]


@dataclass(frozen=True, slots=True)
class Account:
    """One sum of one object."""

    instance: str
    scope: str
    labels: Mapping[str, str]
    """Labels of the object without its instance."""
    live: bool
    identity: str
    unit: str
    left: int
    right: int
    terms: Mapping[str, int]
    """The non-zero cells of the right side."""

    @property
    def residual(self) -> int:
        """Left side minus right side; 0 when the sum holds."""
        return self.left - self.right


@dataclass(frozen=True, slots=True)
class Crossing:
    """The two ends of a stream in one sum."""

    join: str
    unit: str
    sender: str
    """Name of the sending instance."""
    receiver: str
    labels: Mapping[str, str]
    """Stream and, for messages, topic."""
    sent: int
    passed: int
    in_flight: int
    """Sent and not yet passed; also 0 when the receiver was read later and is ahead of the record of its sender."""


@cache
def _optional(scope: str) -> frozenset[str]:
    """Cells that an object may lack because they do not apply to it."""
    return frozenset(cell.name for row in catalogue.scopes()[scope].statistics if row.only for cell in row.cells)


@cache
def _by_scope() -> Mapping[str, tuple[Identity, ...]]:
    found: dict[str, tuple[Identity, ...]] = {}
    for identity in catalogue.identities():
        found[identity.scope] = (*found.get(identity.scope, ()), identity)
    return found


def _sum(scope: str, terms: Iterable[Term], values: Mapping[str, int]) -> int | None:
    """Return the value of a side; None when a required cell is missing."""
    total = 0
    for term in terms:
        if not term.cell:
            total += term.sign * term.number
            continue
        value = values.get(term.cell)
        if value is None:
            if term.cell not in _optional(scope):
                return None
            value = 0
        total += term.sign * value
    return total


def _account(owner: InstanceState, item: ObjectState, identity: Identity) -> Account | None:
    left = _sum(item.scope, identity.left, item.values)
    right = _sum(item.scope, identity.right, item.values)
    if left is None or right is None:
        return None
    found = ((term, item.values.get(term.cell, 0)) for term in identity.right)
    return Account(
        instance=owner.name,
        scope=item.scope,
        labels={key: value for key, value in item.labels.items() if key != "instance"},
        live=item.live,
        identity=identity.name,
        unit=identity.unit,
        left=left,
        right=right,
        terms={term.cell: term.sign * value for term, value in found if value},
    )


def accounts(snapshot: Snapshot) -> list[Account]:
    """Return every sum of every object, also of destroyed objects: their final values must add up too."""
    return [
        account
        for owner in snapshot.instances
        for item in owner.objects
        if not item.torn
        for identity in _by_scope().get(item.scope, ())
        if (account := _account(owner, item, identity)) is not None
    ]


def _labels(item: ObjectState) -> tuple[str, ...]:
    """The labels that both ends have."""
    return tuple(item.labels[key] for key in ("stream", "topic") if key in item.labels)


def _ends(snapshot: Snapshot, scope: str) -> Iterator[tuple[InstanceState, ObjectState]]:
    return ((owner, item) for owner, item in snapshot.of(scope) if item.live and not item.torn)


def _crossing(
    join: Join, sender: tuple[InstanceState, ObjectState], receiver: tuple[InstanceState, ObjectState]
) -> Crossing | None:
    sent = _sum(join.sender, join.left, sender[1].values)
    passed = _sum(join.receiver, join.right, receiver[1].values)
    if sent is None or passed is None:
        return None
    ahead = sent - passed
    if join.modulo:
        half = join.modulo // 2
        ahead = (ahead + half) % join.modulo - half
    return Crossing(
        join=join.name,
        unit=join.unit,
        sender=sender[0].name,
        receiver=receiver[0].name,
        labels={key: value for key, value in receiver[1].labels.items() if key != "instance"},
        sent=sent,
        passed=sent - ahead,
        in_flight=max(0, ahead),
    )


def crossings(snapshot: Snapshot) -> list[Crossing]:
    """Return every pair of live ends in reach, by receiver."""
    found = []
    for join in catalogue.joins():
        senders = {_labels(item): (owner, item) for owner, item in _ends(snapshot, join.sender)}
        for owner, item in _ends(snapshot, join.receiver):
            sender = senders.get(_labels(item))
            crossing = _crossing(join, sender, (owner, item)) if sender else None
            if crossing is not None:
                found.append(crossing)
    return sorted(found, key=lambda row: (row.receiver, row.join, *row.labels.values()))


@dataclass(frozen=True, slots=True)
class _Sums:
    """The identities of a scope as a matrix: the residuals of objects are ``cells @ factors + constants``."""

    names: tuple[str, ...]
    """``scope.identity``."""
    cells: tuple[str, ...]
    factors: npt.NDArray[np.int64]
    """A row for each cell, a column for each identity."""
    constants: npt.NDArray[np.int64]
    is_needed: npt.NDArray[np.bool_]
    """Whether an object must have the cell for the identity, in the same form."""


@cache
def _sums(scope: str) -> _Sums:
    identities = _by_scope()[scope]
    sides = [
        (place, sign * term.sign, term)
        for place, identity in enumerate(identities)
        for sign, terms in ((1, identity.left), (-1, identity.right))
        for term in terms
    ]
    cells = tuple(dict.fromkeys(term.cell for _, _, term in sides if term.cell))
    factors = np.zeros((len(cells), len(identities)), np.int64)
    constants = np.zeros(len(identities), np.int64)
    for place, sign, term in sides:
        if term.cell:
            factors[cells.index(term.cell), place] += sign
        else:
            constants[place] += sign * term.number
    is_needed = np.zeros(factors.shape, np.bool_)
    for place, _, term in sides:
        if term.cell and term.cell not in _optional(scope):
            is_needed[cells.index(term.cell), place] = True
    return _Sums(tuple(f"{scope}.{one.name}" for one in identities), cells, factors, constants, is_needed)


def worst(instances: Iterable[InstanceState]) -> dict[tuple[str, str], int]:
    """Return the largest residual by instance and sum (``scope.identity``), one per sum."""
    by_scope: dict[str, list[tuple[str, Mapping[str, int]]]] = {scope: [] for scope in _by_scope()}
    for owner in instances:
        for item in owner.objects:
            if item.scope in by_scope and not item.torn:
                by_scope[item.scope].append((owner.name, item.values))
    found: dict[tuple[str, str], int] = {}
    for scope, members in by_scope.items():
        if not members:
            continue
        owners, sums = [name for name, _ in members], _sums(scope)
        table, has = gathered([values for _, values in members], sums.cells)
        residuals = table.view(np.int64) @ sums.factors + sums.constants
        holds = ~(~has @ sums.is_needed)
        first = [at for at, name in enumerate(owners) if at == 0 or owners[at - 1] != name]
        for at, of_owner in zip(first, np.logical_or.reduceat(holds, first), strict=True):
            found.update(((owners[at], sums.names[place]), 0) for place in np.flatnonzero(of_owner))
        for at, place in zip(*np.nonzero(holds & (residuals != 0)), strict=True):
            key, residual = (owners[at], sums.names[place]), int(residuals[at, place])
            if abs(residual) >= abs(found[key]):
                found[key] = residual
    return found


def is_quiet(before: Snapshot, after: Snapshot) -> bool:
    """Whether no counter of the sums changed between two snapshots, and both have the same objects."""

    def counted(snapshot: Snapshot) -> dict[tuple[str, str, tuple[str, ...], str], tuple[int, int]]:
        return {
            (row.instance, row.scope, tuple(row.labels.values()), row.identity): (row.left, row.right)
            for row in accounts(snapshot)
        }

    return counted(before) == counted(after)


def sentence(row: Account) -> str:
    """Describe the fault of a sum in a sentence."""
    by_name = {(one.scope, one.name): one for one in catalogue.identities()}
    said = by_name[row.scope, row.identity].help
    terms = ", ".join(f"{name} {value}" for name, value in row.terms.items()) or "nothing"
    if row.residual == 0:
        return f"{said} {row.left} = {terms}"
    verb = "are not accounted for" if row.residual > 0 else "are counted twice"
    return f"{abs(row.residual)} {row.unit} {verb}: {said} Values: {row.left} and {row.right} ({terms})"
