"""The variables of the dashboard: the data source, and the selected node, topic and receiver.

A node may send, receive or both; `receiver` lists the nodes that receive.
"""

from __future__ import annotations

from heliograph.dashboards.grafana.port import Json
from heliograph.dashboards.grafana.queries import DELIVERED, NODE_UP

__all__ = ["DATA_SOURCE", "variables"]

DATA_SOURCE: Json = {"type": "prometheus", "uid": "${datasource}"}


def variables() -> list[Json]:
    """Return the variables in the order of display."""
    return [
        {
            "name": "datasource",
            "label": "Data source",
            "type": "datasource",
            "query": "prometheus",
            "hide": 0,
            "includeAll": False,
            "multi": False,
            "refresh": 1,
            "regex": "",
            "skipUrlSync": False,
        },
        _values("node", "Node", f"label_values({NODE_UP}, node)"),
        _values("topic", "Topic", f'label_values({DELIVERED}{{node=~"$node"}}, topic)'),
        _values("receiver", "Receiver", f'label_values({DELIVERED}{{topic=~"$topic"}}, node)'),
    ]


def _values(name: str, label: str, query: str) -> Json:
    return {
        "name": name,
        "label": label,
        "type": "query",
        "datasource": DATA_SOURCE,
        "definition": query,
        "query": {"query": query, "refId": f"{name}-values"},
        "includeAll": True,
        "allValue": ".+",
        "multi": True,
        "refresh": 2,
        "regex": "",
        "sort": 1,
        "hide": 0,
        "skipUrlSync": False,
        "current": {"selected": True, "text": ["All"], "value": ["$__all"]},
    }
