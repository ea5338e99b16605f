"""Renders the alerts: Prometheus rules, also for Kubernetes, Alertmanager routes, and Grafana-managed rules."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from heliograph.exporters.alerts.settings import PREFIX, Alert, Objective, Settings
from heliograph.exporters.buckets import le

__all__ = ["FILES", "alertmanager", "grafana", "kubernetes", "prometheus", "records"]

_HEAD = "# Rendered by `heliograph alerts render` from deploy/alerts.toml; do not edit.\n\n"
_AT = "job, instance"
_BURN_WINDOWS = ("5m", "30m", "1h", "2h", "6h", "1d", "3d")
_QUERY = re.compile(r" ?\{\{ with printf .*?\| query \}\}.*?\{\{ end \}\}")


def records(settings: Settings) -> Iterator[tuple[str, str, Mapping[str, str]]]:
    """Yield recording rules: name, expression, labels."""
    for window in ("1m", "5m"):
        naks = f"rate(heliograph_tx_stream_naks_received_sequences_total[{window}])"
        sent = f"rate(heliograph_tx_stream_packets_sent_total[{window}])"
        by = f"sum by ({_AT}, node, stream)"
        yield (
            f"stream:heliograph_nak_ratio:rate{window}",
            f"{by} ({naks}) / ({by} ({sent}) > {settings.packets_per_second:g})",
            {},
        )
    windows = 'heliograph_receiver_total_latency_window_seconds{percentile="p99.9"}[1h]'
    yield "receiver:heliograph_latency_p999:rate1h", f"max by ({_AT}, node) (quantile_over_time(0.5, {windows}))", {}
    for objective in settings.objectives:
        for window in _BURN_WINDOWS:
            yield (
                f"receiver:heliograph_latency_burn:rate{window}",
                _burn(objective, window),
                {"objective": objective.name},
            )


def _burn(objective: Objective, window: str) -> str:
    """Late share of the messages over the share that may be late; absent below the least rate of messages."""
    name, topics = "heliograph_receiver_total_latency_seconds", f"topic=~{json.dumps(objective.topics)}"
    by = f"sum by ({_AT}, node)"
    good = f'{by} (rate({name}_bucket{{{topics}, le="{le(round(objective.seconds * 1e9))}"}}[{window}]))'
    every = f"{by} (rate({name}_count{{{topics}}}[{window}])) > {objective.messages_per_second:g}"
    return f"(1 - {good} / ({every})) / {1 - objective.share:.6g}"


def prometheus(settings: Settings) -> str:
    """Return the rule file of Prometheus."""
    lines = [_HEAD + "groups:"]
    short = [one for one in records(settings) if ":latency" not in one[0] and "latency" not in one[0]]
    long = [one for one in records(settings) if one not in short]
    for group, interval, found in (("records", "", short), ("latency-records", "1m", long)):
        lines += [f"  - name: heliograph-{group}", *([f"    interval: {interval}"] if interval else []), "    rules:"]
        for name, expr, labels in found:
            lines += [f"      - record: {name}", *_block("expr", expr, 8)]
            lines += [f"        labels: {json.dumps(labels)}"] if labels else []
    for group in dict.fromkeys(alert.group for alert in settings.alerts.values()):
        lines += ["", f"  - name: heliograph-{group}", "    rules:"]
        for alert in (one for one in settings.alerts.values() if one.group == group):
            lines += [
                f"      - alert: {PREFIX}{alert.name}",
                *_block("expr", alert.expr, 8),
                f"        for: {alert.holds}",
                f"        keep_firing_for: {alert.keep}",
                f"        labels: {{severity: {alert.severity}}}",
                "        annotations:",
                *(f"          {key}: {json.dumps(text, ensure_ascii=False)}" for key, text in _notes(alert).items()),
            ]
    return "\n".join(lines) + "\n"


def kubernetes(settings: Settings) -> str:
    """Return the rules as an object of the Prometheus Operator."""
    head = (
        "apiVersion: monitoring.coreos.com/v1\nkind: PrometheusRule\n"
        "metadata:\n  name: heliograph\n  labels: {app.kubernetes.io/name: heliograph}\nspec:\n"
    )
    rules = prometheus(settings).removeprefix(_HEAD).splitlines()
    return _HEAD + head + "".join(f"  {line}".rstrip() + "\n" for line in rules)


def _notes(alert: Alert) -> dict[str, str]:
    return {
        "summary": alert.summary,
        "description": alert.text,
        "runbook_url": alert.runbook,
        "dashboard_url": alert.dashboard,
    }


def _block(key: str, text: str, indent: int) -> list[str]:
    room = " " * indent
    return [f"{room}{key}: |-", *(f"{room}  {line}".rstrip() for line in text.splitlines())]


def alertmanager(settings: Settings) -> str:
    """Return the configuration of Alertmanager."""
    routes = {one.severity: one for one in settings.routes}
    config: dict[str, Any] = {
        "route": {
            "receiver": routes["warning"].receiver,
            "group_by": ["alertname", "instance", "node"],
            "group_wait": settings.wait,
            "group_interval": settings.interval,
            "repeat_interval": routes["warning"].repeat,
            "routes": [
                {
                    "matchers": [f"severity = {one.severity}"],
                    "receiver": one.receiver,
                    "repeat_interval": one.repeat,
                }
                for one in settings.routes
            ],
        },
        "receivers": [
            {"name": one.receiver, **({"webhook_configs": [{"url": one.webhook}]} if one.webhook else {})}
            for one in settings.routes
        ],
        "inhibit_rules": [
            {
                "source_matchers": [
                    f"alertname = {PREFIX}{one.source}",
                    *one.matchers,
                ],
                "target_matchers": [
                    f'alertname =~ "{PREFIX}({one.targets})"',
                    f"alertname != {PREFIX}{one.source}",
                    "severity != none",
                ],
                "equal": list(one.equal),
            }
            for one in settings.inhibitions
        ],
    }
    return _HEAD + _yaml(config)


def _yaml(value: Mapping[str, Any], room: str = "") -> str:
    """Return mappings and lists of mappings in blocks, and all else as JSON, which is YAML too."""
    out = ""
    for key, item in value.items():
        if isinstance(item, Mapping):
            out += f"{room}{key}:\n{_yaml(item, room + '  ')}"
        elif isinstance(item, list) and item and isinstance(item[0], Mapping):
            out += f"{room}{key}:\n"
            for one in item:
                inner = _yaml(one, room + "    ")
                out += f"{room}  - {inner.lstrip()}"
        else:
            out += f"{room}{key}: {json.dumps(item, ensure_ascii=False)}\n"
    return out


def grafana(settings: Settings) -> str:
    """Return the file from which Grafana provisions its own rules; the recording rules stay in Prometheus."""
    groups = [
        {
            "orgId": 1,
            "name": f"heliograph-{group}",
            "folder": "Heliograph",
            "interval": "10s",  # the shortest interval of Grafana
            "rules": [_grafana_rule(one) for one in settings.alerts.values() if one.group == group],
        }
        for group in dict.fromkeys(alert.group for alert in settings.alerts.values())
    ]
    return json.dumps({"apiVersion": 1, "groups": groups}, indent=1) + "\n"


def _grafana_rule(alert: Alert) -> dict[str, Any]:
    # A row of the condition may have the value 0. So A gives the value for the texts, and B is 1 for each row of A.
    def query(name: str, expr: str) -> dict[str, Any]:
        return {
            "refId": name,
            "datasourceUid": "heliograph-prometheus",
            "relativeTimeRange": {"from": 600, "to": 0},
            "model": {"refId": name, "expr": expr, "instant": True, "range": False},
        }

    threshold = {
        "refId": "C",
        "datasourceUid": "__expr__",
        "model": {
            "refId": "C",
            "type": "threshold",
            "expression": "B",
            "conditions": [{"evaluator": {"type": "gt", "params": [0]}}],
        },
    }
    notes = {
        key: _QUERY.sub("", text).replace("$value", "$values.A.Value").strip() for key, text in _notes(alert).items()
    }
    notes["__dashboardUid__"] = alert.board
    return {
        "uid": "helio-" + hashlib.sha256(alert.name.encode()).hexdigest()[:12],
        "title": f"{PREFIX}{alert.name}",
        "condition": "C",
        "data": [query("A", alert.expr), query("B", f"({alert.expr}) * 0 + 1"), threshold],
        "noDataState": "OK",
        "execErrState": "Error",
        "for": alert.holds,
        "keepFiringFor": alert.keep,
        "labels": {"severity": alert.severity},
        "annotations": notes,
        "isPaused": False,
    }


def grafana_routes(settings: Settings) -> str:
    """Return the contact points and the notification policy that `heliograph grafana apply` sets.

    Grafana must not read this file: a policy from a file replaces those of all other users.
    """
    points = [
        {
            "uid": f"heliograph-{one.severity}",
            "name": one.receiver,
            "type": "webhook",
            "settings": {"url": one.webhook, "httpMethod": "POST"},
            "disableResolveMessage": False,
        }
        for one in settings.routes
        if one.webhook
    ]
    policy = {
        "object_matchers": [["alertname", "=~", f"{PREFIX}.+"]],
        "group_by": ["alertname", "instance", "node"],
        "group_wait": settings.wait,
        "group_interval": settings.interval,
        "routes": [
            {
                "receiver": one.receiver,
                "object_matchers": [["severity", "=", one.severity]],
                "repeat_interval": one.repeat,
            }
            for one in settings.routes
        ],
    }
    return json.dumps({"contactPoints": points, "policy": policy}, indent=1) + "\n"


FILES: Mapping[str, tuple[str, Callable[[Settings], str]]] = {
    "prometheus": ("prometheus/rules/heliograph.yml", prometheus),
    "kubernetes": ("kubernetes/alerts.yaml", kubernetes),
    "alertmanager": ("alertmanager/alertmanager.yml", alertmanager),
    "grafana": ("grafana/alerting/heliograph.json", grafana),
    "grafana-routes": ("grafana/notifications/heliograph.json", grafana_routes),
}
"""By kind: path below the output directory, and the renderer."""
