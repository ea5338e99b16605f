"""The record of the values last applied, kept in Grafana (ADR 0046).

It is a hidden constant of the dashboard "Heliograph state": compressed JSON behind its SHA-256. Every operator reads
the same record. The version of this dashboard also orders operators: of two that apply at the same time, one gets a
`Conflict`.
"""

from __future__ import annotations

import base64
import hashlib
import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from heliograph.dashboards.grafana.compare import digest
from heliograph.dashboards.grafana.port import Conflict, GrafanaPort, Json

__all__ = ["STATE_UID", "State"]

STATE_UID = "heliograph-state"
_TAG = "heliograph-state"
_NOTE = """\
This dashboard is the record of `heliograph grafana apply`: the values that it last applied, in a hidden variable.
With it, `heliograph grafana diff` tells an edit on this server from a change in Heliograph. Do not edit or delete it.
"""


@dataclass(slots=True)
class State:
    """The record as it was read, with the changes since."""

    objects: dict[str, Json] = field(default_factory=dict)
    """The value last applied, by kind and uid."""
    unfinished: list[str] = field(default_factory=list)
    """Objects that an interrupted apply may have written."""
    note: str = ""
    """A fault of the record, for the reader."""
    _version: int | None = None
    _written: str = ""

    @classmethod
    def read(cls, grafana: GrafanaPort) -> State:
        """Read the record; an absent one is empty."""
        answer = grafana.dashboard(STATE_UID)
        if answer is None:
            return cls(_written=digest([{}, []]))
        board = answer["dashboard"]
        if _TAG not in (board.get("tags") or []):
            raise Conflict(
                f"dashboard {STATE_UID!r} ({board.get('title')}) exists and is not the record of `heliograph grafana`; "
                "give it another uid"
            )
        version = board.get("version", 0)
        try:
            (text,) = [one["query"] for one in board["templating"]["list"] if one["name"] == "state"]
            check, _, packed = text.partition(":")
            content = zlib.decompress(base64.b64decode(packed, validate=True))
            if hashlib.sha256(content).hexdigest() != check:
                raise ValueError("checksum")
            values = json.loads(content)
            objects, unfinished = dict(values["objects"]), list(values["unfinished"])
        except (KeyError, TypeError, ValueError, AttributeError, zlib.error):
            note = "the record of the last apply is damaged: differences cannot be told from edits; restore an earlier "
            return cls(note=f"{note}version of the dashboard {STATE_UID!r} in Grafana", _version=version)
        return cls(objects, unfinished, _version=version, _written=digest([objects, unfinished]))

    def save(self, grafana: GrafanaPort, folder_uid: str) -> None:
        """Write the record if it changed; `Conflict` if somebody else wrote it since it was read."""
        if (written := digest([self.objects, self.unfinished])) == self._written:
            return
        if self._version is not None:
            # Grafana gives each save the next version.
            grafana.save_dashboard(self._board() | {"version": self._version}, folder_uid, "heliograph grafana apply")
            self._version += 1
        else:
            grafana.save_dashboard(self._board(), folder_uid, "heliograph grafana apply")
            answer = grafana.dashboard(STATE_UID)
            self._version = answer["dashboard"].get("version", 1) if answer else None
        self._written = written

    def _board(self) -> Json:
        values: Mapping[str, Any] = {"objects": self.objects, "unfinished": self.unfinished}
        content = json.dumps(values, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
        text = f"{hashlib.sha256(content).hexdigest()}:{base64.b64encode(zlib.compress(content, 9)).decode()}"
        return {
            "uid": STATE_UID,
            "title": "Heliograph state",
            "tags": [_TAG],
            "schemaVersion": 39,
            "editable": False,
            "templating": {
                "list": [{"type": "constant", "name": "state", "hide": 2, "skipUrlSync": True, "query": text}]
            },
            "panels": [
                {
                    "id": 1,
                    "type": "text",
                    "title": "Record of heliograph grafana apply",
                    "gridPos": {"h": 5, "w": 24, "x": 0, "y": 0},
                    "options": {"mode": "markdown", "content": _NOTE},
                }
            ],
        }
