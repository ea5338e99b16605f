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


KINDS: Mapping[str, Kind] = {"data source": _DataSource(), "dashboard": _Dashboard()}
"""In the order in which they are written; deleted in the opposite order."""
