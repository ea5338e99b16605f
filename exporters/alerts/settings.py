"""The alerts of the product: conditions and texts from `rules.toml`, thresholds and severities from a settings file.

Names of alerts have no prefix here; `PREFIX` is put in front of them when they are rendered.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from heliograph.exporters.buckets import BOUNDS_NS
from heliograph.monitor.errors import UserError

__all__ = ["DEFAULT", "PREFIX", "Alert", "Inhibition", "Objective", "Route", "Settings", "load"]

PREFIX = "Heliograph"
DEFAULT = Path("deploy/alerts.toml")
SEVERITIES = ("critical", "warning", "info", "none")
_AT = "job, instance"
_DURATION = re.compile(r"\d+(ms|s|m|h|d|w)")
_BOARDS = {
    "receiver": ("heliograph-receiver", "receiver"),
    "node": ("heliograph-node", "node"),
    "store": ("heliograph-store", "node"),
    "stability": ("heliograph-stability", "node"),
    "none": ("heliograph-fleet", ""),
}
"""Dashboard of an alert, and the variable that its link sets, by the word in its rule."""
_COMPARISON = re.compile(r"(?:>=|<=|==|>|<) [0-9.]+$")
_SEVERAL = re.compile(r"[<>=]|\b(?:and|or|unless)\b")
_PLACEHOLDER = re.compile(r"<([A-Za-z_][\w.]*)>")


@dataclass(frozen=True, slots=True)
class Alert:
    """One alert with its thresholds filled in."""

    name: str
    group: str
    severity: str
    holds: str
    """How long the condition holds before the alert fires."""
    keep: str
    """How long the alert stays after the condition has ended."""
    expr: str
    measure: str
    """The expression whose value is compared with the threshold; the condition may have further parts. Empty: none."""
    comparison: str
    """Sign of the comparison; the alert is about values for which it holds."""
    limit: float
    """The threshold."""
    unit: str
    """Unit of the value; ``%``: a share of 1."""
    summary: str
    text: str
    runbook: str
    board: str
    """Uid of the dashboard of `dashboard`."""
    dashboard: str


@dataclass(frozen=True, slots=True)
class Objective:
    """A share of messages that must arrive within a time."""

    name: str
    topics: str
    seconds: float
    share: float
    messages_per_second: float


@dataclass(frozen=True, slots=True)
class Route:
    """The destination of a severity's notifications."""

    severity: str
    receiver: str
    repeat: str
    webhook: str


@dataclass(frozen=True, slots=True)
class Inhibition:
    """An alert that silences others with the same labels."""

    source: str
    matchers: Sequence[str]
    """Further conditions on the labels of the source."""
    targets: str
    equal: Sequence[str]


@dataclass(frozen=True, slots=True)
class Settings:
    """The content of a settings file, with the rules it configures."""

    alerts: Mapping[str, Alert]
    objectives: Sequence[Objective]
    routes: Sequence[Route]
    inhibitions: Sequence[Inhibition]
    evaluation: str
    wait: str
    interval: str
    packets_per_second: float
    """Least rate of a stream that has a ratio of requests."""


def load(path: Path = DEFAULT) -> Settings:
    """Read a settings file.

    Raises:
        UserError: The file cannot be read, is not TOML, or has a wrong or missing setting.
    """
    try:
        with path.open("rb") as file:
            given = tomllib.load(file)
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}; name the settings with --settings FILE") from error
    except tomllib.TOMLDecodeError as error:
        raise UserError(f"{path} is not valid TOML: {error}") from error
    try:
        return _settings(given)
    except (KeyError, TypeError, ValueError) as error:
        what = f"setting {error} is missing" if isinstance(error, KeyError) else str(error)
        raise UserError(f"{path}: {what}") from error


def _settings(given: Mapping[str, Any]) -> Settings:
    rules = tomllib.loads((files(__package__) / "rules.toml").read_text(encoding="utf-8"))
    of = given["alert"]
    if wrong := of.keys() ^ rules.keys():
        raise ValueError(f"these alerts are missing or unknown: {', '.join(sorted(wrong))}")
    alerts = {name: _alert(name, rule, given) for name, rule in rules.items()}
    objectives = [_objective(name, values) for name, values in given["objectives"].items()]
    routes = [Route(severity, **{k: str(v) for k, v in given["routes"][severity].items()}) for severity in SEVERITIES]
    inhibitions = [
        Inhibition(
            source=one["source"],
            matchers=[f'{one[key]} {sign} ""' for key, sign in (("with", "!="), ("without", "=")) if key in one],
            targets=one["targets"],
            equal=one["equal"],
        )
        for one in given["inhibit"]
    ]
    for one in inhibitions:
        known = {one.source, *one.targets.split("|")} - {".+"}
        if unknown := known - rules.keys():
            raise ValueError(f"an inhibition names an unknown alert: {', '.join(sorted(unknown))}")
    return Settings(
        alerts=alerts,
        objectives=objectives,
        routes=routes,
        inhibitions=inhibitions,
        evaluation=_duration("evaluation", given["scrape"]["evaluation"]),
        wait=_duration("wait", given["grouping"]["wait"]),
        interval=_duration("interval", given["grouping"]["interval"]),
        packets_per_second=float(of["NakRatioHigh"]["packets_per_second"]),
    )


def _alert(name: str, rule: Mapping[str, str], given: Mapping[str, Any]) -> Alert:
    own = given["alert"][name]
    if own["severity"] not in SEVERITIES:
        raise ValueError(f"severity {own['severity']!r} of {name} is not one of {', '.join(SEVERITIES)}")

    def value(match: re.Match[str]) -> str:
        key = match[1]
        if key == "at":
            return _AT
        if key == "job":
            return str(given["scrape"]["job"])
        other, _, setting = key.rpartition(".")
        found = (given["alert"][other] if other else own)[setting]
        if isinstance(found, bool) or not isinstance(found, int | float | str):
            raise ValueError(f"setting {key} of {name} must be a number or a text")
        return str(found)

    def filled(text: str) -> str:
        return _PLACEHOLDER.sub(value, text.strip())

    measure, sign, limit = _compared(name, *(filled(rule.get(key, "")) for key in ("expr", "measure", "limit")))
    grafana = str(given["links"]["grafana"]).rstrip("/")
    board, narrowed = _BOARDS[rule["link"]]
    variable = f"?var-{narrowed}={{{{ . | urlquery }}}}" if narrowed else ""
    dashboard = f"{grafana}/d/{board}"
    if variable:
        dashboard += "{{ with $labels.node }}" + variable + "{{ end }}"
    return Alert(
        name=name,
        group=rule["group"],
        severity=own["severity"],
        holds=_duration("for", own["for"]),
        keep=_duration("keep", own["keep"]),
        expr=filled(rule["expr"]),
        measure=measure,
        comparison=sign,
        limit=limit,
        unit=rule.get("unit", ""),
        summary=filled(rule["summary"]),
        text=filled(rule["text"]),
        runbook=f"{str(given['links']['runbooks']).rstrip('/')}/{PREFIX}{name}.md",
        board=board,
        dashboard=dashboard,
    )


def _compared(name: str, expr: str, measure: str, limit: str) -> tuple[str, str, float]:
    """Return the compared expression of a condition, the sign and the threshold; nothing if it always holds.

    Raises:
        ValueError: The condition has several parts, and no measure of its own.
    """
    if not measure:
        depth, outside = 0, ""
        for letter in expr:
            depth += letter in "({[" or -(letter in ")}]")
            outside += " " if depth or letter in ")}]" else letter
        if outside.strip() == "vector":
            return "", "", 0.0
        found = _COMPARISON.search(outside)
        if found is None or _SEVERAL.search(outside[: found.start()]):
            raise ValueError(f"the condition of {name} has several parts: its rule needs measure and limit")
        measure, limit = expr[: found.start()].strip(), found[0].strip()
    sign, _, number = limit.partition(" ")
    return measure, sign, float(number)


def _objective(name: str, values: Mapping[str, Any]) -> Objective:
    one = Objective(name, **values)
    if round(one.seconds * 1e9) not in BOUNDS_NS:
        bounds = ", ".join(f"{bound / 1e9:g}" for bound in BOUNDS_NS)
        raise ValueError(f"objective {name}: seconds must be a bound of the buckets: {bounds}")
    if not 0 < one.share < 1:
        raise ValueError(f"objective {name}: share must be between 0 and 1")
    return one


def _duration(name: str, text: str) -> str:
    if not _DURATION.fullmatch(text):
        raise ValueError(f"{name} = {text!r} is not a duration such as 30s, 5m or 1h")
    return text
