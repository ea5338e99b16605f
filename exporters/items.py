"""Items: the objects of a snapshot as the outside knows them, each under labels that nothing else has.

Inside, an object is known by its segment, slot and generation; outside, by label values alone.  Three things have to be
settled on the way:

- Two segments may carry one name: a node that was started again after a crash, or two nodes by mistake. A running one
  goes before what an earlier run left behind, which is only counted (`Node.remains`). A second running one is told
  apart by its process id.
- A stream knows its receivers by address. Where a receiver in reach says that it asks from that address, the peer is
  called by the receiver's node; an address has an ephemeral port, a node's name stays.
- Objects that end up under the same labels become one (see `combined`).

Objects that are gone, and those of nodes that are dead or closed, are not items: what vanished must not go on
reporting.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from heliograph.engine import catalogue
from heliograph.engine.catalogue import Statistic
from heliograph.exporters.buckets import same_layout
from heliograph.monitor.latency import merged
from heliograph.monitor.model import Health, Histogram, InstanceState, ObjectState, Snapshot

__all__ = ["RUNNING", "Item", "Key", "Node", "combined", "items", "nodes"]

Key = tuple[str, tuple[str, ...]]
"""Scope and label values."""

RUNNING = frozenset({Health.LIVE, Health.STALE})
_POSITIONS = ("window_", "next_")


@dataclass(frozen=True, slots=True)
class Node:
    """An instance under the name it has outside."""

    name: str
    state: InstanceState
    remains: int = 0
    """Segments of earlier runs under the same name."""


@dataclass(frozen=True, slots=True)
class Item:
    """Values under labels that no other item of the scope has."""

    scope: str
    labels: tuple[str, ...]
    """Values of the scope's labels, in the catalogue's order."""
    values: Mapping[str, int]
    histograms: Mapping[str, Histogram] = field(default_factory=dict)
    info: Mapping[str, str] = field(default_factory=dict)

    @property
    def key(self) -> Key:
        """What identifies it."""
        return self.scope, self.labels


def nodes(snapshot: Snapshot) -> list[Node]:
    """Every instance once, under a name that no other has; sorted by name."""
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


def _item(node: Node, item: ObjectState, peer_names: Mapping[tuple[str, str], str]) -> Item:
    labels = dict(item.labels)
    labels["instance"] = node.name
    if item.scope == "peer":
        labels["peer"] = peer_names.get((labels.get("stream", ""), labels.get("peer", "")), labels.get("peer", ""))
    values = tuple(labels.get(name, "") for name in catalogue.scopes()[item.scope].labels)
    return Item(item.scope, values, item.values, item.histograms, item.info)


def items(found: Iterable[Node], peer_names: Mapping[tuple[str, str], str]) -> list[Item]:
    """The live objects of the running nodes, in the order of the catalogue's scopes.

    Args:
        found: All nodes.
        peer_names: Node of a peer by stream and address (`heliograph.monitor.fleet.peer_names`).
    """
    running = [node for node in found if node.state.health in RUNNING]
    scopes = catalogue.scopes()
    by_key: defaultdict[Key, list[Item]] = defaultdict(list)
    for node in running:
        for state in node.state.objects:
            if state.live and state.scope in scopes:
                item = _item(node, state, peer_names)
                by_key[item.key].append(item)
    order = {name: place for place, name in enumerate(scopes)}
    whole = [same[0] if len(same) == 1 else combined(same, same[0].labels) for same in by_key.values()]
    return sorted(whole, key=lambda item: order[item.scope])


def combined(same: Sequence[Item], labels: tuple[str, ...]) -> Item:
    """One item in place of several of one scope.

    Counters, sizes and histograms add up, peaks and moments keep the highest, values that may be below 0 the one
    farthest from it; positions (numbers of messages and packets) mean nothing together and are left out.
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
        # Engines of different versions may count in different cells; those of the first are shown.
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
