"""Items: the objects of a snapshot under external labels; no two items of a scope have the same labels.

Internally an object has a segment, slot and generation; externally it has only label values. This module resolves three
conflicts:

- Two segments may have one name, after a restart or by mistake. A running node takes the name before the remains of an
  earlier run, which are only counted (`Node.remains`). A second running node gets its process id as a suffix.
- A stream identifies its receivers by address. When a known receiver sends its requests from that address, the item
  gets the name of its node: the port of an address changes, a node's name does not.
- Objects with equal labels are combined into one item (see `combined`).

Destroyed objects and objects of dead or closed nodes are not items: they must not report any longer.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from heliograph.engine import catalogue
from heliograph.engine.catalogue import Statistic
from heliograph.exporters.buckets import same_layout
from heliograph.monitor.model import Health, Histogram, InstanceState, ObjectState, Snapshot
from heliograph.monitor.sparse import merged

__all__ = ["RUNNING", "Item", "Key", "Node", "combined", "items", "nodes"]

Key = tuple[str, tuple[str, ...]]
"""Scope and label values."""

RUNNING = frozenset({Health.LIVE, Health.STALE})
_POSITIONS = ("window_", "next_")


@dataclass(frozen=True, slots=True)
class Node:
    """An instance under its external name."""

    name: str
    state: InstanceState
    remains: int = 0
    """Number of segments of earlier runs under the same name."""


@dataclass(frozen=True, slots=True)
class Item:
    """Values under labels that no other item of the scope has."""

    scope: str
    labels: tuple[str, ...]
    """Values of the scope's labels in the order of the catalogue."""
    values: Mapping[str, int]
    histograms: Mapping[str, Histogram] = field(default_factory=dict)
    info: Mapping[str, str] = field(default_factory=dict)
    created_ns: int = 0
    """Time at which its counts began, ns; 0: unknown, or several objects with different times."""

    @property
    def key(self) -> Key:
        """The identity of the item."""
        return self.scope, self.labels

    def label(self, name: str) -> str | None:
        """Return a label by its name; None: its scope has no such label."""
        return dict(zip(catalogue.scopes()[self.scope].labels, self.labels, strict=True)).get(name)


def nodes(snapshot: Snapshot) -> list[Node]:
    """Return every instance once under a unique name, sorted by name."""
    by_name: defaultdict[str, list[InstanceState]] = defaultdict(list)
    for instance in sorted(snapshot.instances, key=lambda item: (item.name, item.started_ns)):
        by_name[instance.name].append(instance)
    found = []
    for name, states in by_name.items():
        running = [state for state in states if state.health in RUNNING]
        ended = [state for state in states if state.health not in RUNNING]
        first, *clashing = running or ended[-1:]
        left = sum(state is not first and state.health is not Health.CLOSED for state in ended)
        found.append(Node(name, first, left))
        found += [Node(f"{name}@{state.pid}", state) for state in clashing]
    return found


def _item(node: Node, item: ObjectState, receiver_names: Mapping[tuple[str, str], str]) -> Item:
    names = catalogue.scopes()[item.scope].labels
    if item.scope != "tx_receiver" and tuple(item.labels) == names and names[0] == "instance":  # the usual case
        values = (node.name, *list(item.labels.values())[1:])
    else:
        labels = {**item.labels, "instance": node.name}
        if item.scope == "tx_receiver":
            address = labels.get("receiver", "")
            labels["receiver"] = receiver_names.get((labels.get("stream", ""), address), address)
        values = tuple([labels.get(name, "") for name in names])
    created_ns = item.created_ns or node.state.started_ns
    return Item(item.scope, values, item.values, item.histograms, item.info, created_ns)


def items(found: Iterable[Node], receiver_names: Mapping[tuple[str, str], str]) -> list[Item]:
    """Return the live objects of the running nodes, in the order of the catalogue's scopes.

    Args:
        found: All nodes.
        receiver_names: Node of a receiver by stream and address (`heliograph.monitor.fleet.receiver_names`).
    """
    running = [node for node in found if node.state.health in RUNNING]
    scopes = catalogue.scopes()
    by_key: defaultdict[Key, list[Item]] = defaultdict(list)
    for node in running:
        for state in node.state.objects:
            if state.live and state.scope in scopes:
                item = _item(node, state, receiver_names)
                by_key[item.key].append(item)
    order = {name: place for place, name in enumerate(scopes)}
    whole = [same[0] if len(same) == 1 else combined(same, same[0].labels) for same in by_key.values()]
    return sorted(whole, key=lambda item: order[item.scope])


def combined(same: Sequence[Item], labels: tuple[str, ...]) -> Item:
    """Combine several items of one scope into one.

    Counters, sizes and histograms are added. Peaks and times take the highest value; signed values take the one
    farthest from 0. Positions (message and packet numbers) have no meaning together and are left out.
    """
    scope = catalogue.scopes()[same[0].scope]
    values = {}
    for cell in scope.cells:
        cells = [item.values[cell.name] for item in same if cell.name in item.values]
        if cells and not _is_position(cell.statistic):
            values[cell.name] = _together(cell.statistic, cells)
    histograms = {}
    for name in (cell.name for cell in scope.cells if cell.statistic.kind == "histogram"):
        found = [item.histograms[name] for item in same if name in item.histograms]
        # Engines of different versions may have different cells; the cells of the first are shown.
        if (whole := merged(one for one in found if same_layout(one, found[0]))) is not None:
            histograms[name] = whole
    return Item(scope.name, labels, values, histograms)


def _together(statistic: Statistic, cells: Sequence[int]) -> int:
    if statistic.kind == "signed":
        return max(cells, key=abs)
    return max(cells) if _keeps_highest(statistic) else sum(cells)


def _is_position(statistic: Statistic) -> bool:
    return statistic.kind == "gauge" and statistic.name.startswith(_POSITIONS)


def _keeps_highest(statistic: Statistic) -> bool:
    return statistic.kind == "peak" or (statistic.kind == "gauge" and statistic.unit == "nanoseconds")
