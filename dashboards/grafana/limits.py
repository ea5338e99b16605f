"""The settings of the alerts as the boards use them: thresholds, objectives and the addresses of links."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from heliograph.dashboards.grafana.port import Json

__all__ = ["Limits", "Threshold"]

GREEN, AMBER, RED = "green", "orange", "red"
_SEVERITY = {"critical": RED, "warning": AMBER, "info": AMBER}
_ABOVE_ZERO = 1e-9
"""Threshold of an alert that fires for any value above 0."""


@dataclass(frozen=True, slots=True)
class Threshold:
    """The values at which alerts fire, with the color of each alert's severity."""

    at: tuple[tuple[float, str], ...] = ()
    alerts: tuple[str, ...] = ()
    runbooks: str = ""

    def steps(self) -> list[Json]:
        """Return the steps in the form of Grafana."""
        return [{"color": GREEN, "value": None}, *({"color": color, "value": at} for at, color in sorted(self.at))]

    def links(self) -> list[Json]:
        """Return links to the runbooks of the alerts."""
        return [
            {"title": f"Runbook of {name}", "url": f"{self.runbooks}/Heliograph{name}.md", "targetBlank": True}
            for name in self.alerts
        ]

    def __or__(self, other: Threshold) -> Threshold:
        return Threshold(self.at + other.at, self.alerts + other.alerts, self.runbooks or other.runbooks)


class Limits:
    """The settings in `deploy/alerts.toml`; the package contains a copy."""

    def __init__(self, path: Path | None = None) -> None:
        source = path or files("heliograph.dashboards.grafana") / "alerts.toml"
        self._given: Mapping[str, Any] = tomllib.loads(source.read_text(encoding="utf-8"))

    def __call__(self, alert: str, setting: str = "", above: float = 0) -> Threshold:
        """Return the threshold of an alert: the value of a setting plus `above`, or any value above 0."""
        own = self._given["alert"][alert]
        value = float(own[setting]) + above if setting else _ABOVE_ZERO
        return Threshold(((value, _SEVERITY[own["severity"]]),), (alert,), self.runbooks)

    def runbook(self, alert: str) -> Threshold:
        """Return the runbook of an alert that has no threshold in the unit of a panel."""
        return Threshold((), (alert,), self.runbooks)

    def accepted(self) -> str:
        """Return a matcher that excludes losses that a setting or an action accepts."""
        return f'reason!~"{self._given["alert"]["UnrecoverableLoss"]["accepted"]}"'

    @property
    def objective(self) -> Threshold:
        """The strictest latency objective."""
        shortest = min(float(one["seconds"]) for one in self._given["objectives"].values())
        return Threshold(((shortest, RED),), ("LatencyBudgetFastBurn",), self.runbooks)

    @property
    def late(self) -> Mapping[str, float]:
        """The share of messages that may be late, by objective."""
        return {name: 1 - float(one["share"]) for name, one in self._given["objectives"].items()}

    @property
    def runbooks(self) -> str:
        """The address in front of the runbooks."""
        return str(self._given["links"]["runbooks"]).rstrip("/")

    @property
    def live(self) -> str:
        """The address of the live page."""
        return str(self._given["links"]["live"]).rstrip("/")
