"""Plan and apply: shows the changes that a Grafana server needs, then makes them.

`plan` only reads. `apply` executes a plan; a second plan then finds no changes. Nothing is ever deleted. A dashboard or
data source with our uid but without our mark is rejected, not replaced. A dashboard is replaced only in the version
that was compared: a change between plan and apply raises a `Conflict`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from heliograph.dashboards.grafana.compare import SERVERS_OWN, differences, digest, project
from heliograph.dashboards.grafana.port import Conflict, GrafanaPort, Json

__all__ = ["MARK", "Change", "Wish", "apply", "data_source", "plan"]

MARK = "heliograph-managed"
"""Tag of a dashboard, or entry in the jsonData of a data source, that this provisioner created."""

_UID_LENGTH = 40


@dataclass(frozen=True, slots=True)
class Wish:
    """The wanted state of a server."""

    dashboard: Mapping[str, Any]
    folder: str = ""
    """Title of the Grafana folder; empty: the top level."""
    data_source: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Change:
    """The result of one comparison with the server."""

    kind: Literal["folder", "data source", "dashboard"]
    action: Literal["create", "update", "keep"]
    uid: str
    title: str
    body: Mapping[str, Any]
    """The body to send."""
    lines: tuple[str, ...] = ()
    """The differences as text."""

    @property
    def needed(self) -> bool:
        """Whether the server must be changed."""
        return self.action != "keep"


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


def plan(grafana: GrafanaPort, wish: Wish) -> tuple[Change, ...]:
    """Compare `wish` with the server; returns the changes in the order in which they must be made."""
    changes: list[Change] = []
    folder_uid = ""
    if wish.folder:
        changes.append(folder := _folder(grafana, wish.folder))
        folder_uid = folder.uid
    if wish.data_source is not None:
        changes.append(_data_source(grafana, wish.data_source))
    changes.append(_dashboard(grafana, wish.dashboard, folder_uid))
    return tuple(changes)


def apply(grafana: GrafanaPort, changes: Sequence[Change]) -> int:
    """Execute a plan and return the number of changes; the first error ends it."""
    done = 0
    for change in changes:
        if not change.needed:
            continue
        if change.kind == "folder":
            grafana.create_folder(change.title, change.uid)
        elif change.kind == "data source":
            grafana.save_data_source(change.body, exists=change.action == "update")
        else:
            body = change.body
            grafana.save_dashboard(body["dashboard"], body["folderUid"], body["message"])
        done += 1
    return done


def _folder(grafana: GrafanaPort, title: str) -> Change:
    """Find the folder with our uid, else the folder with this title, else plan a new one."""
    uid = re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")[:_UID_LENGTH] or "heliograph"
    if (found := grafana.folder(uid)) is None:
        found = next((folder for folder in grafana.folders() if folder.get("title") == title), None)
    if found is None:
        return Change("folder", "create", uid, title, {})
    return Change("folder", "keep", str(found["uid"]), str(found.get("title", title)), {})


def _data_source(grafana: GrafanaPort, wanted: Mapping[str, Any]) -> Change:
    uid, name = str(wanted["uid"]), str(wanted["name"])
    stored = grafana.data_source(uid)
    if stored is None:
        return Change("data source", "create", uid, name, wanted)
    if stored.get("readOnly") or (stored.get("jsonData") or {}).get("managedBy") != MARK:
        raise Conflict(
            f"data source {uid!r} exists and was not made by `heliograph grafana`; omit --prometheus-url and "
            "select it in the dashboard, or remove it first"
        )
    part = project(stored, wanted)
    if digest(part) == digest(wanted):
        return Change("data source", "keep", uid, name, wanted)
    body = dict(wanted) | ({"version": stored["version"]} if "version" in stored else {})
    return Change("data source", "update", uid, name, body, tuple(differences(part, wanted)))


def _dashboard(grafana: GrafanaPort, dashboard: Mapping[str, Any], folder_uid: str) -> Change:
    uid, title = str(dashboard["uid"]), str(dashboard["title"])
    wanted = {key: value for key, value in dashboard.items() if key not in SERVERS_OWN}
    wanted["tags"] = [*dashboard.get("tags", []), MARK]
    body = wanted | ({"schemaVersion": dashboard["schemaVersion"]} if "schemaVersion" in dashboard else {})
    message = f"heliograph grafana apply ({digest(wanted)[:12]})"
    answer = grafana.dashboard(uid)
    if answer is None:
        return Change("dashboard", "create", uid, title, _save(body, folder_uid, message))
    stored = answer["dashboard"]
    if MARK not in (stored.get("tags") or []):
        raise Conflict(
            f"dashboard {uid!r} ({stored.get('title')}) exists and was not made by `heliograph grafana`; "
            f"give it another uid, or the tag {MARK!r} to let it be replaced"
        )
    part = project(stored, wanted)
    lines = list(differences(part, wanted))
    stored_folder = (answer.get("meta") or {}).get("folderUid") or ""
    if stored_folder != folder_uid:
        lines.append(f"folder: {stored_folder or 'top level'} -> {folder_uid or 'top level'}")
    if digest(part) == digest(wanted) and stored_folder == folder_uid:
        return Change("dashboard", "keep", uid, title, _save(body, folder_uid, message))
    body["version"] = stored.get("version", 0)
    return Change("dashboard", "update", uid, title, _save(body, folder_uid, message), tuple(lines))


def _save(dashboard: Mapping[str, Any], folder_uid: str, message: str) -> Json:
    return {"dashboard": dashboard, "folderUid": folder_uid, "message": message}
