"""Panels: one function per kind. Each panel has a description and draws the thresholds of its alerts.

The description states the content and the healthy values. Ids are positions in the dashboard; no id comes from a
server.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from heliograph.dashboards.grafana.limits import AMBER, GREEN, RED, Threshold
from heliograph.dashboards.grafana.links import Link
from heliograph.dashboards.grafana.port import Json
from heliograph.dashboards.grafana.queries import Query
from heliograph.dashboards.grafana.variables import DATA_SOURCE
from heliograph.dashboards.words import Tone, Word

__all__ = ["Column", "Panel", "alerts", "heatmap", "lines", "placed", "row", "stat", "table", "timeline"]

COLUMNS = 24
_COLOURS: Mapping[Tone, str] = {"good": GREEN, "watch": AMBER, "bad": RED, "idle": "text"}


@dataclass(frozen=True, slots=True)
class Panel:
    """A panel without its position."""

    body: Json
    width: int
    height: int


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table."""

    query: Query
    unit: str = "short"
    limit: Threshold = field(default_factory=Threshold)
    words: Mapping[Any, Word] = field(default_factory=dict)
    gauge: bool = False


def placed(panels: Sequence[Panel]) -> list[Json]:
    """Place panels from left to right and top to bottom, and number them."""
    found: list[Json] = []
    x = y = tallest = 0
    for number, panel in enumerate(panels, start=1):
        if x + panel.width > COLUMNS:
            x, y, tallest = 0, y + tallest, 0
        found.append(panel.body | {"id": number, "gridPos": {"h": panel.height, "w": panel.width, "x": x, "y": y}})
        x, tallest = x + panel.width, max(tallest, panel.height)
    return found


def row(title: str) -> Panel:
    """A heading across the board."""
    return Panel({"type": "row", "title": title, "collapsed": False, "panels": []}, COLUMNS, 1)


def stat(
    title: str,
    query: Query,
    unit: str,
    about: str,
    healthy: str,
    limit: Threshold | None = None,
    *,
    zero: str = "",
    width: int = 4,
) -> Panel:
    """One number, colored by its threshold; `zero` is the text for 0."""
    body = _panel("stat", title, [query], unit, about, healthy, limit)
    mappings = [{"type": "value", "options": {"0": {"text": zero, "color": GREEN, "index": 0}}}] if zero else []
    body["fieldConfig"]["defaults"] |= {"mappings": mappings}
    if unit != "s":
        body["fieldConfig"]["defaults"]["decimals"] = 2 if unit == "percentunit" else 0
    body["options"] = {
        "colorMode": "value",
        "graphMode": "area",
        "justifyMode": "auto",
        "orientation": "auto",
        "reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False},
        "textMode": "auto",
    }
    return Panel(body, width, 4)


def lines(
    title: str,
    queries: Sequence[Query],
    unit: str,
    about: str,
    healthy: str,
    limit: Threshold | None = None,
    *,
    opens: Link | None = None,
    log: bool = False,
    stack: bool = False,
    width: int = 12,
) -> Panel:
    """Lines over time, with the threshold drawn in the graph; a click on a line opens a link."""
    body = _panel("timeseries", title, queries, unit, about, healthy, limit, opens)
    body["fieldConfig"]["defaults"]["custom"] = {
        "drawStyle": "line",
        "lineWidth": 1,
        "fillOpacity": 35 if stack else 4,
        "showPoints": "never",
        "spanNulls": False,
        "stacking": {"mode": "normal" if stack else "none", "group": "A"},
        "scaleDistribution": {"type": "log", "log": 10} if log else {"type": "linear"},
        "thresholdsStyle": {"mode": "line" if limit else "off"},
    }
    body["fieldConfig"]["defaults"]["color"] = {"mode": "palette-classic"}
    if not log:
        body["fieldConfig"]["defaults"]["min"] = 0
    body["options"] = {
        "legend": {"displayMode": "table", "placement": "right", "calcs": ["lastNotNull", "max"], "showLegend": True},
        "tooltip": {"mode": "multi", "sort": "desc"},
    }
    return Panel(body, width, 8)


def timeline(
    title: str,
    query: Query,
    words: Mapping[Any, Word],
    about: str,
    healthy: str,
    limit: Threshold | None = None,
    *,
    opens: Link | None = None,
    width: int = 12,
) -> Panel:
    """Bands of states over time, one per series, each with its text."""
    body = _panel("state-timeline", title, [query], "short", about, healthy, None, opens)
    body["links"] = (limit or Threshold()).links()
    body["fieldConfig"]["defaults"] |= {
        "mappings": _mappings(words),
        "custom": {"fillOpacity": 75, "lineWidth": 0, "spanNulls": False},
    }
    body["options"] = {
        "alignValue": "center",
        "mergeValues": True,
        "rowHeight": 0.8,
        "showValue": "auto",
        "legend": {"displayMode": "list", "placement": "bottom", "showLegend": False},
        "tooltip": {"mode": "single", "sort": "none"},
    }
    return Panel(body, width, 8)


def heatmap(title: str, query: Query, about: str, healthy: str, *, width: int = 12) -> Panel:
    """The distribution of a histogram over time."""
    body = _panel("heatmap", title, [query], "s", about, healthy, None)
    body["targets"][0] |= {"format": "heatmap", "legendFormat": "{{le}}"}
    scheme = {"mode": "scheme", "scheme": "Blues", "steps": 64, "exponent": 0.5, "fill": "dark-blue", "reverse": False}
    body["options"] = {
        "calculate": False,
        "cellGap": 1,
        "color": scheme,
        "filterValues": {"le": 1e-9},
        "rowsFrame": {"layout": "auto"},
        "tooltip": {"mode": "single", "yHistogram": True, "showColorScale": False},
        "yAxis": {"axisPlacement": "left", "reverse": False, "unit": "s"},
        "legend": {"show": False},
    }
    return Panel(body, width, 8)


def table(
    title: str,
    columns: Mapping[str, Column],
    about: str,
    healthy: str,
    *,
    links: Mapping[str, Sequence[Link]],
    sort: str,
    width: int = 24,
) -> Panel:
    """The newest values side by side, the worst first; `links` are by the label whose cells carry them."""
    body = _panel("table", title, [column.query for column in columns.values()], "short", about, healthy, None)
    for target in body["targets"]:
        target |= {"format": "table", "instant": True, "range": False, "legendFormat": ""}
    renamed = {f"Value #{t['refId']}": name for t, name in zip(body["targets"], columns, strict=True)}
    if len(renamed) == 1:
        renamed["Value"] = next(iter(columns))  # Grafana names the only query's values so
    body["transformations"] = [
        {"id": "merge", "options": {}},
        {"id": "organize", "options": {"excludeByName": {"Time": True}, "renameByName": renamed}},
    ]
    body["fieldConfig"]["overrides"] = [
        *({"matcher": {"id": "byName", "options": name}, "properties": _cell(one)} for name, one in columns.items()),
        *(
            {
                "matcher": {"id": "byName", "options": label},
                "properties": [{"id": "links", "value": [link.json("__data.fields") for link in found]}],
            }
            for label, found in links.items()
        ),
    ]
    body["options"] = {"showHeader": True, "sortBy": [{"displayName": sort, "desc": True}]}
    body["links"] = [link for column in columns.values() for link in column.limit.links()]
    return Panel(body, width, 9)


def alerts(title: str, about: str, healthy: str, *, width: int = 12) -> Panel:
    """The list of the alerts that are pending or fire now."""
    body = _panel("alertlist", title, [], "short", about, healthy, None)
    del body["targets"]
    body["options"] = {
        "alertName": "Heliograph",
        "dashboardAlerts": False,
        "groupMode": "default",
        "groupBy": [],
        "maxItems": 20,
        "sortOrder": 3,
        "stateFilter": {"firing": True, "pending": True, "error": True, "noData": False, "normal": False},
        "viewMode": "list",
    }
    return Panel(body, width, 8)


def _cell(column: Column) -> list[Json]:
    found: list[Json] = [
        {"id": "unit", "value": column.unit},
        {"id": "thresholds", "value": {"mode": "absolute", "steps": column.limit.steps()}},
    ]
    if column.words:
        found.append({"id": "mappings", "value": _mappings(column.words)})
    if column.gauge:
        found.append({"id": "custom.cellOptions", "value": {"type": "gauge", "mode": "basic"}})
        found += [{"id": "min", "value": 0}, {"id": "max", "value": 1}]
    elif column.words or column.limit.at:
        found.append({"id": "custom.cellOptions", "value": {"type": "color-text"}})
    return found


def _mappings(words: Mapping[Any, Word]) -> list[Json]:
    options = {
        str(word.rank): {"text": word.text, "color": _COLOURS[word.tone], "index": index}
        for index, word in enumerate(words.values())
    }
    return [{"type": "value", "options": options}]


def _panel(
    kind: str,
    title: str,
    queries: Sequence[Query],
    unit: str,
    about: str,
    healthy: str,
    limit: Threshold | None,
    opens: Link | None = None,
) -> Json:
    threshold = limit or Threshold()
    links = [opens.json("__field.labels")] if opens else []
    return {
        "type": kind,
        "title": title,
        "description": f"{about}\n\nHealthy: {healthy}",
        "datasource": DATA_SOURCE,
        "links": threshold.links(),
        "fieldConfig": {
            "defaults": {
                "unit": unit,
                "thresholds": {"mode": "absolute", "steps": threshold.steps()},
                "links": links,
            },
            "overrides": [],
        },
        "targets": [_target(number, query) for number, query in enumerate(queries)],
    }


def _target(number: int, query: Query) -> Json:
    return {
        "refId": chr(ord("A") + number),
        "datasource": DATA_SOURCE,
        "expr": query.expr,
        "legendFormat": query.legend or "__auto",
        "editorMode": "code",
        "instant": False,
        "range": True,
        **({"exemplar": True} if query.has_exemplars else {}),
    }
