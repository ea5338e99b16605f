"""Panels: one function per kind. Each panel has a description and draws its own threshold.

The description states the content and the healthy values. Ids are positions in the dashboard; no id comes from a
server.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from heliograph.dashboards.grafana.port import Json
from heliograph.dashboards.grafana.queries import Query
from heliograph.dashboards.grafana.variables import DATA_SOURCE
from heliograph.dashboards.words import Tone, Word

__all__ = ["Column", "Panel", "Threshold", "heatmap", "placed", "row", "stat", "table", "timeline", "timeseries"]

COLUMNS = 24
GREEN, AMBER, RED = "green", "orange", "red"
_COLOURS: Mapping[Tone, str] = {"good": GREEN, "watch": AMBER, "bad": RED, "idle": "text"}


@dataclass(frozen=True, slots=True)
class Threshold:
    """A value from `watch` on needs attention, from `bad` on it is wrong; either may be None."""

    watch: float | None = None
    bad: float | None = None

    def steps(self) -> list[Json]:
        """Return the steps in the form of Grafana."""
        steps: list[Json] = [{"color": GREEN, "value": None}]
        if self.watch is not None:
            steps.append({"color": AMBER, "value": self.watch})
        if self.bad is not None:
            steps.append({"color": RED, "value": self.bad})
        return steps


@dataclass(frozen=True, slots=True)
class Panel:
    """A panel without its position."""

    body: Json
    width: int
    height: int


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table: its unit and threshold."""

    unit: str = "short"
    threshold: Threshold = field(default_factory=Threshold)
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
    """A heading across the dashboard."""
    return Panel({"type": "row", "title": title, "collapsed": False, "panels": []}, COLUMNS, 1)


def stat(
    title: str,
    queries: Sequence[Query],
    *,
    description: str,
    healthy: str,
    unit: str = "short",
    threshold: Threshold | None = None,
    zero: str = "",
    width: int = 4,
) -> Panel:
    """One number, coloured by its threshold; `zero` is the text for 0."""
    mappings = [{"type": "value", "options": {"0": {"text": zero, "color": GREEN, "index": 0}}}] if zero else []
    body = _panel("stat", title, queries, description, healthy, unit, threshold or Threshold())
    body["fieldConfig"]["defaults"] |= {"mappings": mappings, "decimals": 2 if unit == "percentunit" else 0}
    if unit == "s":
        del body["fieldConfig"]["defaults"]["decimals"]
    body["options"] = {
        "colorMode": "value",
        "graphMode": "area",
        "justifyMode": "auto",
        "orientation": "auto",
        "reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False},
        "textMode": "auto",
    }
    return Panel(body, width, 4)


def timeseries(
    title: str,
    queries: Sequence[Query],
    *,
    description: str,
    healthy: str,
    unit: str,
    threshold: Threshold | None = None,
    log: bool = False,
    stack: bool = False,
    width: int = 12,
) -> Panel:
    """Lines over time, with the threshold drawn in the graph."""
    body = _panel("timeseries", title, queries, description, healthy, unit, threshold or Threshold())
    body["fieldConfig"]["defaults"]["custom"] = {
        "drawStyle": "line",
        "lineWidth": 1,
        "fillOpacity": 35 if stack else 4,
        "showPoints": "never",
        "spanNulls": False,
        "stacking": {"mode": "normal" if stack else "none", "group": "A"},
        "scaleDistribution": {"type": "log", "log": 10} if log else {"type": "linear"},
        "thresholdsStyle": {"mode": "line" if threshold else "off"},
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
    title: str, queries: Sequence[Query], words: Mapping[Any, Word], *, description: str, healthy: str, width: int = 12
) -> Panel:
    """Bands of states over time, one per series, each with its text."""
    body = _panel("state-timeline", title, queries, description, healthy, "short", Threshold())
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


def heatmap(title: str, queries: Sequence[Query], *, description: str, healthy: str, width: int = 12) -> Panel:
    """The distribution of a histogram over time."""
    body = _panel("heatmap", title, queries, description, healthy, "s", Threshold())
    for target in body["targets"]:
        target["format"] = "heatmap"
    body["options"] = {
        "calculate": False,
        "cellGap": 1,
        "color": {
            "mode": "scheme",
            "scheme": "Blues",
            "steps": 64,
            "exponent": 0.5,
            "fill": "dark-blue",
            "reverse": False,
        },
        "filterValues": {"le": 1e-9},
        "rowsFrame": {"layout": "auto"},
        "tooltip": {"mode": "single", "yHistogram": True, "showColorScale": False},
        "yAxis": {"axisPlacement": "left", "reverse": False, "unit": "s"},
        "legend": {"show": False},
    }
    return Panel(body, width, 8)


def table(
    title: str,
    queries: Sequence[Query],
    columns: Mapping[str, Column],
    *,
    description: str,
    healthy: str,
    sort: str,
    width: int = 24,
) -> Panel:
    """The newest values side by side, one column per query (named by its legend), the worst first."""
    body = _panel("table", title, queries, description, healthy, "short", Threshold())
    letters = [target["refId"] for target in body["targets"]]
    renamed = {f"Value #{letter}": query.legend for letter, query in zip(letters, queries, strict=True)}
    body["transformations"] = [
        {"id": "merge", "options": {}},
        {"id": "organize", "options": {"excludeByName": {"Time": True}, "renameByName": renamed}},
    ]
    body["fieldConfig"]["overrides"] = [
        {"matcher": {"id": "byName", "options": name}, "properties": _properties(column)}
        for name, column in columns.items()
    ]
    body["options"] = {"showHeader": True, "sortBy": [{"displayName": sort, "desc": True}]}
    return Panel(body, width, 9)


def _properties(column: Column) -> list[Json]:
    found: list[Json] = [
        {"id": "unit", "value": column.unit},
        {"id": "thresholds", "value": {"mode": "absolute", "steps": column.threshold.steps()}},
    ]
    if column.words:
        found.append({"id": "mappings", "value": _mappings(column.words)})
    if column.words or column.threshold != Threshold():
        found.append({"id": "custom.cellOptions", "value": {"type": "color-text"}})
    if column.gauge:
        found[-1] = {"id": "custom.cellOptions", "value": {"type": "gauge", "mode": "basic"}}
        found += [{"id": "min", "value": 0}, {"id": "max", "value": 1}]
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
    description: str,
    healthy: str,
    unit: str,
    threshold: Threshold,
) -> Json:
    return {
        "type": kind,
        "title": title,
        "description": f"{description}\n\nHealthy: {healthy}",
        "datasource": DATA_SOURCE,
        "fieldConfig": {
            "defaults": {"unit": unit, "thresholds": {"mode": "absolute", "steps": threshold.steps()}},
            "overrides": [],
        },
        "targets": [_target(number, query) for number, query in enumerate(queries)],
    }


def _target(number: int, query: Query) -> Json:
    body: Json = {
        "refId": chr(ord("A") + number),
        "datasource": DATA_SOURCE,
        "expr": query.expr,
        "legendFormat": query.legend or "__auto",
        "editorMode": "code",
    }
    how = {"format": "table", "instant": True, "range": False} if query.instant else {"instant": False, "range": True}
    return body | how
