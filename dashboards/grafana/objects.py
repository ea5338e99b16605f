"""The kinds of objects that `heliograph grafana` manages: how each is read, written and deleted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from heliograph.dashboards.grafana.compare import MISSING
from heliograph.dashboards.grafana.port import Conflict, GrafanaPort, Json

__all__ = ["KINDS", "MARK", "Kind", "Managed"]

MARK = "heliograph-managed"
"""Tag of a dashboard, or entry in the jsonData of a data source, that this provisioner created."""

_SERVERS_OWN = ("id", "iteration")
"""Keys of a dashboard that are never sent. The version is sent: a save must name the version that it replaces."""


@dataclass(frozen=True, slots=True)
class Managed:
    """One object with its wanted value."""

    kind: str
    uid: str
    title: str
    wanted: Json

    @property
    def key(self) -> str:
        """Its key in the record."""
        return f"{self.kind}:{self.uid}"


class Kind(Protocol):
    """The calls for one kind of object."""

    group: str
    """boards or alerts, as `--only` names them; empty: never deleted."""
    checked: bool
    """Whether apply reads the object again and compares it, because Grafana checks no version of it."""

    def read(self, grafana: GrafanaPort, uid: str) -> Any:
        """Return the stored value or MISSING."""
        ...

    def check(self, uid: str, stored: Mapping[str, Any]) -> None:
        """Raise a `Conflict` if the object is not ours."""
        ...

    def write(self, grafana: GrafanaPort, uid: str, body: Json, stored: Any) -> None:
        """Create the object, or replace `stored`."""
        ...

    def delete(self, grafana: GrafanaPort, uid: str) -> None:
        """Delete the object."""
        ...


class _Dashboard:
    """A dashboard; its folder is the key `folderUid`."""

    group = "boards"
    checked = False

    def read(self, grafana: GrafanaPort, uid: str) -> Any:
        if (answer := grafana.dashboard(uid)) is None:
            return MISSING
        return dict(answer["dashboard"]) | {"folderUid": (answer.get("meta") or {}).get("folderUid") or ""}

    def check(self, uid: str, stored: Mapping[str, Any]) -> None:
        if MARK not in (stored.get("tags") or []):
            raise Conflict(
                f"dashboard {uid!r} ({stored.get('title')}) exists and was not made by `heliograph grafana`; "
                f"give it another uid, or the tag {MARK!r} to let it be replaced"
            )

    def write(self, grafana: GrafanaPort, uid: str, body: Json, stored: Any) -> None:
        board = {key: value for key, value in body.items() if key not in (*_SERVERS_OWN, "folderUid")}
        if stored is not MISSING:
            board["version"] = stored.get("version", 0)
        grafana.save_dashboard(board, body.get("folderUid", ""), "heliograph grafana apply")

    def delete(self, grafana: GrafanaPort, uid: str) -> None:
        grafana.delete_dashboard(uid)


class _DataSource:
    group = ""
    checked = True

    def read(self, grafana: GrafanaPort, uid: str) -> Any:
        found = grafana.data_source(uid)
        return MISSING if found is None else found

    def check(self, uid: str, stored: Mapping[str, Any]) -> None:
        if stored.get("readOnly") or (stored.get("jsonData") or {}).get("managedBy") != MARK:
            raise Conflict(
                f"data source {uid!r} exists and was not made by `heliograph grafana`; omit --prometheus-url and "
                "select it in the dashboard, or remove it first"
            )

    def write(self, grafana: GrafanaPort, uid: str, body: Json, stored: Any) -> None:
        body = {key: value for key, value in body.items() if key not in ("id", "orgId", "readOnly")}
        grafana.save_data_source(body, exists=stored is not MISSING)

    def delete(self, grafana: GrafanaPort, uid: str) -> None:
        raise AssertionError("a data source is never deleted")


class _ContactPoint:
    group = "alerts"
    checked = True

    def read(self, grafana: GrafanaPort, uid: str) -> Any:
        points = grafana.alerting("contact-points")
        return next((point for point in points if point.get("uid") == uid), MISSING)

    def check(self, uid: str, stored: Mapping[str, Any]) -> None:
        """The uid is ours."""

    def write(self, grafana: GrafanaPort, uid: str, body: Json, stored: Any) -> None:
        body = {key: value for key, value in body.items() if key != "provenance"}
        if stored is MISSING:
            grafana.save_alerting("POST", "contact-points", body)
        else:
            grafana.save_alerting("PUT", f"contact-points/{uid}", body)

    def delete(self, grafana: GrafanaPort, uid: str) -> None:
        grafana.delete_alerting(f"contact-points/{uid}")


class _AlertRule:
    group = "alerts"
    checked = True

    def read(self, grafana: GrafanaPort, uid: str) -> Any:
        found = grafana.alerting(f"alert-rules/{uid}")
        return MISSING if found is None else found

    def check(self, uid: str, stored: Mapping[str, Any]) -> None:
        """The uid is ours."""

    def write(self, grafana: GrafanaPort, uid: str, body: Json, stored: Any) -> None:
        own = {key: value for key, value in body.items() if key not in {"id", "updated", "provenance"}}
        own.setdefault("orgID", 1)  # Grafana takes that of the token
        if stored is MISSING:
            grafana.save_alerting("POST", "alert-rules", own)
        else:
            grafana.save_alerting("PUT", f"alert-rules/{uid}", own)

    def delete(self, grafana: GrafanaPort, uid: str) -> None:
        grafana.delete_alerting(f"alert-rules/{uid}")


class _AlertGroup:
    """The interval of a group of rules. Grafana creates a group with its first rule, and deletes it with its last."""

    group = ""
    checked = False

    def read(self, grafana: GrafanaPort, uid: str) -> Any:
        found = grafana.alerting(self._path(uid))
        return MISSING if found is None else {"interval": found.get("interval")}

    def check(self, uid: str, stored: Mapping[str, Any]) -> None:
        """A group has no owner."""

    def write(self, grafana: GrafanaPort, uid: str, body: Json, stored: Any) -> None:
        if (now := grafana.alerting(self._path(uid))) is not None:
            grafana.save_alerting("PUT", self._path(uid), now | {"interval": body["interval"]})

    def delete(self, grafana: GrafanaPort, uid: str) -> None:
        raise AssertionError("a group is never deleted")

    def _path(self, uid: str) -> str:
        folder, _, name = uid.partition("/")
        return f"folder/{folder}/rule-groups/{name}"


class _Policy:
    """Our branch of the tree of notification policies. The rest of the tree stays as it is."""

    group = "alerts"
    checked = True

    def read(self, grafana: GrafanaPort, uid: str) -> Any:
        branches = grafana.alerting("policies").get("routes") or []
        return next((branch for branch in branches if self._ours(branch)), MISSING)

    def check(self, uid: str, stored: Mapping[str, Any]) -> None:
        """Its matchers are ours."""

    def write(self, grafana: GrafanaPort, uid: str, body: Json, stored: Any) -> None:
        self._save(grafana, [body])

    def delete(self, grafana: GrafanaPort, uid: str) -> None:
        self._save(grafana, [])

    def _save(self, grafana: GrafanaPort, ours: list[Json]) -> None:
        tree = {key: value for key, value in grafana.alerting("policies").items() if key != "provenance"}
        branches = tree.get("routes") or []
        place = next((index for index, branch in enumerate(branches) if self._ours(branch)), len(branches))
        others = [branch for branch in branches if not self._ours(branch)]
        grafana.save_alerting("PUT", "policies", tree | {"routes": [*others[:place], *ours, *others[place:]]})

    def _ours(self, branch: Mapping[str, Any]) -> bool:
        return branch.get("object_matchers") == POLICY_MATCHERS


POLICY_MATCHERS = [["alertname", "=~", "Heliograph.+"]]
"""Identifies our branch of the notification policies."""

KINDS: Mapping[str, Kind] = {
    "data source": _DataSource(),
    "dashboard": _Dashboard(),
    "contact point": _ContactPoint(),
    "alert rule": _AlertRule(),
    "alert group": _AlertGroup(),
    "notification policy": _Policy(),
}
"""In the order in which they are written; deleted in the opposite order."""
