"""What the provisioner needs of a Grafana server: seven calls by uid, and one family of errors.

Nothing here speaks HTTP.  `backend` does, through `grafana-api`; tests do it through the same backend against a server
of their own.  Numeric ids never cross this border: Grafana gives them anew on every server.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

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
    """A call to Grafana did not do what was asked; the message says why and what to do."""


class Unreachable(GrafanaError):
    """No Grafana answered at the address."""


class Unauthorized(GrafanaError):
    """401: the token is missing, wrong or expired."""


class Forbidden(GrafanaError):
    """403: the token is good but may not do this."""


class NotFound(GrafanaError):
    """404: there is nothing of this uid."""


class Conflict(GrafanaError):
    """409 or 412: it exists already, or somebody changed it meanwhile."""


class Refused(GrafanaError):
    """Any other 4xx: Grafana did not accept the request."""


class ServerFailure(GrafanaError):
    """5xx, or an answer that is not Grafana's."""


class GrafanaPort(Protocol):
    """A Grafana server.  Every call raises a `GrafanaError`; the reading ones return None for what does not exist."""

    def dashboard(self, uid: str) -> Json | None:
        """``{"dashboard": {...}, "meta": {"folderUid": ...}}``."""
        ...

    def save_dashboard(self, dashboard: Mapping[str, Any], folder_uid: str, message: str) -> None:
        """Create it, or replace the version named in ``dashboard["version"]``; `Conflict` if that is no longer the
        newest."""
        ...

    def folder(self, uid: str) -> Json | None:
        """The folder of this uid."""
        ...

    def folders(self) -> Sequence[Json]:
        """All folders of the top level."""
        ...

    def create_folder(self, title: str, uid: str) -> None:
        """Create a folder of the top level."""
        ...

    def data_source(self, uid: str) -> Json | None:
        """The data source of this uid."""
        ...

    def save_data_source(self, body: Mapping[str, Any], *, exists: bool) -> None:
        """Create the data source of ``body["uid"]``, or update it when it exists."""
        ...
