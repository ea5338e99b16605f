"""Links of rows and lines: to the board of their node, receiver or topic, and to addresses outside of Grafana."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from heliograph.dashboards.grafana.port import Json
from heliograph.dashboards.grafana.variables import NAMES

__all__ = ["NODE", "RECEIVER", "RECEIVER_OF_TOPIC", "SEEN", "STREAM", "TOPIC", "Link"]


@dataclass(frozen=True, slots=True)
class Link:
    """A link from a row or line to a board, with values of its labels as variables; or to an address."""

    title: str
    board: str = ""
    sets: Mapping[str, str] = field(default_factory=dict)
    """Label by variable; an empty label selects all."""
    address: str = ""

    def json(self, source: str) -> Json:
        """Return the link; `source` is the prefix of labels: ``__data.fields`` in a table, else ``__field.labels``."""
        if self.address:
            return {"title": self.title, "url": self.address.replace("__labels", source), "targetBlank": True}
        given = {"job": "job", "host": "instance"} | dict(self.sets)
        kept = ["${__url_time_range}", *(f"${{{name}:queryparam}}" for name in NAMES if name not in given)]
        values = [f"var-{name}=" + (f"${{{source}.{label}}}" if label else "$__all") for name, label in given.items()]
        return {"title": self.title, "url": f"/d/heliograph-{self.board}?{'&'.join([*kept, *values])}"}


NODE = Link("Open the node", "node", {"node": "node"})
RECEIVER = Link("Open the receiver", "receiver", {"receiver": "node"})
RECEIVER_OF_TOPIC = Link("Open the receiver", "receiver", {"receiver": "node", "topic": "topic"})
SEEN = Link("Open the receiver", "receiver", {"receiver": "name", "host": ""})
"""From a receiver as its source sees it: its own host is not known."""
TOPIC = Link("Open the topic", "topic", {"topic": "topic"})
STREAM = Link("Open losses and congestion", "loss", {"node": "node"})
