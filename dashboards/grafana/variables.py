"""The variables of every board: the data source, and the selected job, host, node, topic and receiver.

A host is a scraped exporter, which Prometheus labels `instance`. A node may send, receive or both; `receiver` lists the
nodes that receive.
"""

from __future__ import annotations

from heliograph.dashboards.grafana.port import Json
from heliograph.dashboards.grafana.queries import HOST, JOB, metric

__all__ = ["DATA_SOURCE", "NAMES", "variables"]

DATA_SOURCE: Json = {"type": "prometheus", "uid": "${datasource}"}
NAMES = ("datasource", "job", "host", "node", "topic", "receiver")


def variables() -> list[Json]:
    """Return the variables in the order of display."""
    up, delivered = metric("node_up"), metric("receiver.messages_delivered")
    topics = f'__name__=~"{delivered}|{metric("transmitter.messages_sent")}"'
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
        _values("job", "Job", f"label_values({up}, job)"),
        _values("host", "Host", f"label_values({up}{{{JOB}}}, instance)"),
        _values("node", "Node", f"label_values({up}{{{HOST}}}, node)"),
        _values("topic", "Topic", f"label_values({{{topics},{HOST}}}, topic)"),
        _values("receiver", "Receiver", f'label_values({delivered}{{{HOST},topic=~"$topic"}}, node)', every=".*"),
    ]


def _values(name: str, label: str, query: str, every: str = ".+") -> Json:
    return {
        "name": name,
        "label": label,
        "type": "query",
        "datasource": DATA_SOURCE,
        "definition": query,
        "query": {"query": query, "refId": f"{name}-values"},
        "includeAll": True,
        "allValue": every,
        "multi": True,
        "refresh": 2,
        "regex": "",
        "sort": 1,
        "hide": 0,
        "skipUrlSync": False,
        "current": {"selected": True, "text": ["All"], "value": ["$__all"]},
    }
