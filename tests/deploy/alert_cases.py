"""The cases of `alerts/*.yml`, as unit tests for promtool.

A case has series (name and values in promtool's notation) and, by time, the labels of the alerts that fire. Every
series gets the labels `job` and `instance` of one exporter, and so does every expected alert, unless the case names its
own or says `bare`. The severity is added. Texts of alerts are compared for the cases that give them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml

from heliograph.exporters.alerts.settings import PREFIX, Settings

ROOT = Path(__file__).resolve().parents[2]
Case = dict[str, Any]

_TARGET = {"job": "heliograph", "instance": "h:9464"}
_INTERVAL = "5s"


def load() -> dict[str, list[Case]]:
    """The written cases of each alert, and the one that every alert has: no series but that of the target."""
    found: dict[str, list[Case]] = {}
    for path in sorted((ROOT / "tests/deploy/alerts").glob("*.yml")):
        found |= yaml.load(path.read_text(), yaml.BaseLoader)
    for alert, cases in found.items():
        fires: list[Mapping[str, str]] = [{"bare": "1"}] if alert == "Watchdog" else []
        cases.append({"name": "series absent", "series": ["up 1x60"], "at": {"5m": fires}})
    return found


def fires(case: Case) -> bool:
    return any(case["at"].values())


def resolves(case: Case) -> bool:
    return fires(case) and not list(case["at"].values())[-1]


def _series(text: str) -> dict[str, str]:
    name, labels, values = re.fullmatch(r"([\w:]+)(?:\{(.*)\})? (.+)", text).groups()  # type: ignore[union-attr]
    own = [labels] if labels else []
    target = [f'{key}="{value}"' for key, value in _TARGET.items() if f"{key}=" not in (labels or "")]
    return {"series": f"{name}{{{', '.join([*own, *target])}}}", "values": values}


def _labels(given: Mapping[str, str], severity: str) -> dict[str, str]:
    labels = {**({} if "job" in given or "bare" in given else _TARGET), **given, "severity": severity}
    labels.pop("bare", None)
    return labels


def _test(alert: str, case: Case, settings: Settings, notes: bool) -> Mapping[str, Any]:
    def ask(time: str, firing: Iterable[Mapping[str, str]]) -> Mapping[str, Any]:
        return {
            "eval_time": time,
            "alertname": f"{PREFIX}{alert}",
            "exp_alerts": [
                {
                    "exp_labels": _labels(one, settings.alerts[alert].severity),
                    **({"exp_annotations": case["notes"]} if notes else {}),
                }
                for one in firing
            ],
        }

    return {
        "name": f"{alert}: {case['name']}",
        "interval": case.get("interval", _INTERVAL),
        "input_series": [_series(text) for text in case["series"]],
        "alert_rule_test": [ask(*item) for item in case["at"].items()],
    }


def files(folder: Path, rules: str, settings: Settings, cases: Mapping[str, list[Case]]) -> list[Path]:
    """Write rule files and the unit tests about them; return the unit tests.

    A rule file has one alert and the recording rules that it uses, without those whose result the cases give. The
    interval of the cases is also the time between two evaluations.
    """
    groups: dict[tuple[str, str, bool, frozenset[str]], list[Mapping[str, Any]]] = {}
    for alert, own in cases.items():
        for case in own:
            given = frozenset(name for text in case["series"] if ":" in (name := re.split(r"[{ ]", text)[0]))
            key = (alert, case.get("interval", _INTERVAL), "notes" in case, given)
            groups.setdefault(key, []).append(_test(alert, case, settings, "notes" in case))
    loaded = [rule for group in yaml.load(rules, yaml.CSafeLoader)["groups"] for rule in group["rules"]]
    found = []
    for number, ((alert, interval, notes, given), tests) in enumerate(groups.items()):
        (rule,) = (dict(one) for one in loaded if one.get("alert") == f"{PREFIX}{alert}")
        if not notes:
            rule.pop("annotations")
        used = [one for one in loaded if (name := one.get("record")) and name in rule["expr"] and name not in given]
        group = {"groups": [{"name": "one", "rules": [*used, rule]}]}
        (folder / f"rules{number}.yml").write_text(json.dumps(group))
        file = folder / f"tests{number}.yml"
        content = {"rule_files": [f"rules{number}.yml"], "evaluation_interval": interval, "tests": tests}
        file.write_text(json.dumps(content))
        found.append(file)
    return found
