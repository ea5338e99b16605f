"""Plan and apply: compares a Grafana server with what is wanted and with what was last applied, then changes it.

`plan` only reads. `apply` executes a plan; a second plan then finds no changes. An edit on the server is kept; an edit
of a value that we changed too is a conflict, and a plan with a conflict is not applied. `force` replaces both. An
object with our uid but without our mark is rejected, not replaced. An object that changed between plan and apply raises
a `Conflict`.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from heliograph.dashboards.grafana import alerts
from heliograph.dashboards.grafana.alerts import Alerts
from heliograph.dashboards.grafana.compare import MISSING, Difference, Merge, digest, same
from heliograph.dashboards.grafana.objects import KINDS, MARK, Managed
from heliograph.dashboards.grafana.port import Conflict, GrafanaError, GrafanaPort, Json
from heliograph.dashboards.grafana.state import State

__all__ = ["MARK", "Change", "Plan", "Wish", "apply", "data_source", "plan"]

_UID_LENGTH = 40


@dataclass(frozen=True, slots=True)
class Wish:
    """The wanted state of a server."""

    boards: Sequence[Mapping[str, Any]] | None = None
    """None: boards are left alone."""
    folder: str = ""
    """Title of the Grafana folder; empty: the top level."""
    data_source: Mapping[str, Any] | None = None
    alerts: Alerts | None = None
    """None: alerts are left alone."""


@dataclass(frozen=True, slots=True)
class Change:
    """The result of one comparison with the server."""

    kind: str
    action: Literal["create", "update", "keep", "delete", "unwanted"]
    """unwanted: made by us, no longer wanted, and kept because pruning is off."""
    uid: str
    title: str
    body: Any = MISSING
    """The merged value to send."""
    stored: Any = MISSING
    wanted: Any = MISSING
    """The value to record as applied."""
    differences: tuple[Difference, ...] = ()

    @property
    def key(self) -> str:
        """Its key in the record."""
        return f"{self.kind}:{self.uid}"

    @property
    def needed(self) -> bool:
        """Whether the server must be changed."""
        return self.action in {"create", "update", "delete"}

    @property
    def conflicts(self) -> int:
        """The number of conflicts."""
        return sum(one.kind == "conflict" for one in self.differences)

    @property
    def lines(self) -> tuple[str, ...]:
        """The differences as text; numbers and positions of panels are one line."""
        moved = [one for one in self.differences if one.kind == "change" and one.path.endswith((" id", " gridPos"))]
        found = [one.text() for one in self.differences if one not in moved]
        return (
            (*found, f"layout: {len({one.path.rpartition(' ')[0] for one in moved})} panels move")
            if moved
            else (*found,)
        )


@dataclass(frozen=True, slots=True)
class Plan:
    """The changes, in the order in which they must be made."""

    changes: tuple[Change, ...]
    state: State
    folder_uid: str = ""
    notes: tuple[str, ...] = field(default=())

    @property
    def needed(self) -> int:
        """The number of changes to make."""
        return sum(change.needed for change in self.changes)

    @property
    def conflicts(self) -> int:
        """The number of conflicts; `apply` refuses a plan that has any."""
        return sum(change.conflicts for change in self.changes)

    @property
    def differs(self) -> bool:
        """Whether the server differs from what is wanted."""
        return any(change.action != "keep" or change.differences for change in self.changes)


def data_source(url: str) -> Json:
    """Return a Prometheus data source for `url`, with our uid."""
    return {
        "uid": "heliograph-prometheus",
        "name": "Heliograph Prometheus",
        "type": "prometheus",
        "access": "proxy",
        "url": url,
        "jsonData": {"httpMethod": "POST", "managedBy": MARK},
    }


def plan(grafana: GrafanaPort, wish: Wish, *, force: bool = False, prune: bool = False) -> Plan:
    """Compare `wish` with the server.

    Args:
        grafana: The server; only read.
        wish: The wanted state.
        force: Whether the wanted values replace edits.
        prune: Whether objects that we made and no longer want are deleted.
    """
    state = State.read(grafana)
    changes: list[Change] = []
    folder_uid = ""
    if wish.folder:
        changes.append(folder := _folder(grafana, wish.folder))
        folder_uid = folder.uid
    wanted, notes = list(_wanted(wish, folder_uid)), [state.note] if state.note else []
    if wish.alerts is not None:
        objects, missing = alerts.wanted(grafana, wish.alerts, folder_uid)
        wanted += objects
        notes += missing
        source = data_source("")["uid"]
        if wish.data_source is None and KINDS["data source"].read(grafana, source) is MISSING:
            notes.append(f"the alert rules query the data source {source!r}, which is absent; pass --prometheus-url")
    wanted.sort(key=lambda one: list(KINDS).index(one.kind))
    changes += [_compared(grafana, one, state, force=force) for one in wanted]
    groups = {name for name, part in (("boards", wish.boards), ("alerts", wish.alerts)) if part is not None}
    changes += _unwanted(grafana, state, {one.key for one in wanted}, groups, force=force, prune=prune)
    if state.unfinished:
        notes.append(f"the last apply did not finish; it may have changed {', '.join(state.unfinished)}")
    return Plan(tuple(changes), state, folder_uid, tuple(notes))


def apply(grafana: GrafanaPort, planned: Plan, progress: Callable[[Change], None] = lambda _: None) -> int:
    """Execute a plan and return the number of changes; the first error ends it.

    The record names the objects before they are written, and what was written after the last one or an error.

    Raises:
        Conflict: The plan has conflicts, or the server changed since it was planned. Other changes may be done.
        GrafanaError: A call failed. The message has the number of changes that were made.
    """
    if planned.conflicts:
        raise Conflict("the plan has conflicts: an edit on the server and a change of ours at the same path")
    state, done, recording = planned.state, 0, False
    needed = [change for change in planned.changes if change.needed]
    try:
        for change in needed:
            if change.kind == "folder":
                grafana.create_folder(change.title, change.uid)
                done += 1
                progress(change)
        objects = [change for change in needed if change.kind != "folder"]
        state.unfinished = [change.key for change in objects]
        if objects:
            state.save(grafana, planned.folder_uid)
            recording = True
        for change in objects:
            _execute(grafana, change)
            state.unfinished.remove(change.key)
            _record(state, change)
            done += 1
            progress(change)
        for change in planned.changes:
            if change.action == "keep" and change.kind != "folder":
                _record(state, change)
        state.save(grafana, planned.folder_uid)
    except BaseException as error:
        if recording:
            with contextlib.suppress(GrafanaError):  # the first error is the one to report
                state.save(grafana, planned.folder_uid)
        if isinstance(error, GrafanaError):
            rest = f"{done} of {len(needed)} changes were made; repeat `heliograph grafana apply` for the rest"
            raise type(error)(f"{error}; {rest}") from error
        raise
    return done


def _execute(grafana: GrafanaPort, change: Change) -> None:
    kind = KINDS[change.kind]
    if kind.checked or change.action == "delete":
        now = kind.read(grafana, change.uid)
        if (now is MISSING) != (change.stored is MISSING) or digest(now or None) != digest(change.stored or None):
            raise Conflict(f"{change.kind} {change.uid!r} changed in the meantime; plan again")
    if change.action == "delete":
        kind.delete(grafana, change.uid)
    else:
        kind.write(grafana, change.uid, change.body, change.stored)


def _record(state: State, change: Change) -> None:
    if change.wanted is MISSING:
        state.objects.pop(change.key, None)
    else:
        state.objects[change.key] = change.wanted


def _wanted(wish: Wish, folder_uid: str) -> Iterator[Managed]:
    if wish.data_source is not None:
        source = dict(wish.data_source)
        yield Managed("data source", str(source["uid"]), str(source["name"]), source)
    for board in wish.boards or ():
        body = {key: value for key, value in board.items() if key not in {"id", "version"}}
        body |= {"tags": [*board.get("tags", []), MARK], "folderUid": folder_uid}
        yield Managed("dashboard", str(board["uid"]), str(board["title"]), body)


def _folder(grafana: GrafanaPort, title: str) -> Change:
    """Find the folder with our uid, else the folder with this title, else plan a new one."""
    uid = re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")[:_UID_LENGTH] or "heliograph"
    if (found := grafana.folder(uid)) is None:
        found = next((folder for folder in grafana.folders() if folder.get("title") == title), None)
    if found is None:
        return Change("folder", "create", uid, title)
    return Change("folder", "keep", str(found["uid"]), str(found.get("title", title)))


def _compared(grafana: GrafanaPort, one: Managed, state: State, *, force: bool) -> Change:
    kind = KINDS[one.kind]
    stored = kind.read(grafana, one.uid)
    applied = state.objects.get(one.key, MISSING)
    if stored is MISSING and applied is MISSING:
        return Change(one.kind, "create", one.uid, one.title, one.wanted, stored, one.wanted)
    if stored is not MISSING and applied is MISSING:
        kind.check(one.uid, stored)
    # The server migrates the schema, so its number is no difference.
    compared = [_without_schema(value) for value in (applied, stored, one.wanted)]
    merge = Merge(force=force)
    body = merge(*compared)
    if body is not MISSING and "schemaVersion" in one.wanted:
        body = dict(body) | {"schemaVersion": one.wanted["schemaVersion"]}
    found = tuple(merge.differences)
    action: Literal["create", "update", "keep"] = "keep"
    if any(difference.kind != "edit" for difference in found):
        action = "create" if stored is MISSING else "update"
    return Change(one.kind, action, one.uid, one.title, body, stored, one.wanted, found)


def _unwanted(
    grafana: GrafanaPort, state: State, wanted: set[str], groups: set[str], *, force: bool, prune: bool
) -> Iterator[Change]:
    """Yield the objects that we made and no longer want; forget those that are gone."""
    if "alerts" in groups:  # a group of rules goes with its last rule
        for key in [key for key in state.objects if key.startswith("alert group:") and key not in wanted]:
            state.objects.pop(key)
    for name, kind in reversed(list(KINDS.items())):
        for key, applied in sorted(state.objects.items()):
            if key in wanted or kind.group not in groups or not key.startswith(f"{name}:"):
                continue
            uid = key.partition(":")[2]
            title = str(applied.get("title") or applied.get("name") or uid)
            stored = kind.read(grafana, uid)
            if stored is MISSING:
                state.objects.pop(key)
            elif not prune:
                yield Change(name, "unwanted", uid, title, applied, stored, applied)
            else:
                edited = not same(_without_schema(stored), _without_schema(applied))
                found = Difference("overwrite" if force else "conflict", "all", applied, stored, MISSING)
                yield Change(name, "delete", uid, title, MISSING, stored, MISSING, (found,) if edited else ())


def _without_schema(value: Any) -> Any:
    return value if value is MISSING else {key: item for key, item in value.items() if key != "schemaVersion"}
