"""The interface to a Grafana server: its calls by uid, and one family of errors.

This module does no HTTP. `backend` implements the interface through `grafana-api`; tests use the same backend with a
test server. Numeric ids are not part of the interface: every server assigns its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Protocol

from heliograph.monitor.errors import UserError

__all__ = [
    "Conflict",
    "Forbidden",
    "GrafanaError",
    "GrafanaPort",
    "Json",
    "NotFound",
    "Refused",
    "ServerFailure",
    "Unauthorized",
    "Unreachable",
]

Json = dict[str, Any]


class GrafanaError(UserError):
    """A call to Grafana failed; the message has the cause and the remedy."""


class Unreachable(GrafanaError):
    """No Grafana server answered at the address."""


class Unauthorized(GrafanaError):
    """401: the token is missing, wrong or expired."""


class Forbidden(GrafanaError):
    """403: the token is valid but does not permit the call."""


class NotFound(GrafanaError):
    """404: the uid does not exist."""


class Conflict(GrafanaError):
    """409 or 412: it exists already, or it changed in the meantime."""


class Refused(GrafanaError):
    """Any other 4xx: Grafana did not accept the request."""


class ServerFailure(GrafanaError):
    """5xx, or an answer that does not come from Grafana."""


class GrafanaPort(Protocol):
    """A Grafana server. Every call may raise a `GrafanaError`; reads return None for a missing object."""

    def dashboard(self, uid: str) -> Json | None:
        """Return ``{"dashboard": {...}, "meta": {"folderUid": ...}}``."""
        ...

    def save_dashboard(self, dashboard: Mapping[str, Any], folder_uid: str, message: str) -> None:
        """Create the dashboard, or replace the version in ``dashboard["version"]``; `Conflict` if it is outdated."""
        ...

    def delete_dashboard(self, uid: str) -> None:
        """Delete the dashboard, if it is still there."""
        ...

    def folder(self, uid: str) -> Json | None:
        """Return the folder with this uid."""
        ...

    def folders(self) -> Sequence[Json]:
        """Return all folders of the top level."""
        ...

    def create_folder(self, title: str, uid: str) -> None:
        """Create a folder at the top level."""
        ...

    def data_source(self, uid: str) -> Json | None:
        """Return the data source with this uid."""
        ...

    def save_data_source(self, body: Mapping[str, Any], *, exists: bool) -> None:
        """Create the data source with ``body["uid"]``, or update it when it exists."""
        ...

    def alerting(self, path: str) -> Any:
        """Return an object or a list of the provisioning API of alerts, such as ``alert-rules/UID``."""
        ...

    def save_alerting(self, method: Literal["POST", "PUT"], path: str, body: Mapping[str, Any]) -> None:
        """Create (POST) or replace (PUT) an object, so that it stays editable in Grafana."""
        ...

    def delete_alerting(self, path: str) -> None:
        """Delete an object, if it is still there."""
        ...
