"""The wanted alert rules, contact points and notification policy, from the files of `heliograph alerts render`."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from heliograph.dashboards.grafana.objects import Managed
from heliograph.dashboards.grafana.port import GrafanaPort, Json
from heliograph.monitor.errors import UserError

__all__ = ["Alerts", "load", "wanted"]

RULES, ROUTES = "alerting/heliograph.json", "notifications/heliograph.json"
POLICY_UID = "heliograph"
_UNITS = (("w", 604_800_000), ("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1000), ("ms", 1))
_NOT_IN_API = ("keepFiringFor",)
"""Keys of a rule's file that the provisioning API does not have."""


@dataclass(frozen=True, slots=True)
class Alerts:
    """The content of the files."""

    groups: Sequence[Mapping[str, Any]]
    contact_points: Sequence[Mapping[str, Any]]
    policy: Mapping[str, Any]


def load(directory: Path) -> Alerts:
    """Read the files.

    Raises:
        UserError: A file is absent or is not what `heliograph alerts render` writes.
    """
    found = []
    for name in (RULES, ROUTES):
        path = directory / name
        try:
            found.append(json.loads(path.read_text(encoding="utf-8")))
        except OSError as error:
            raise UserError(
                f"cannot read {path}: {error.strerror}; `heliograph alerts render` writes it; --alerts DIR names its "
                "directory, --only boards leaves the alerts alone"
            ) from error
        except ValueError as error:
            raise UserError(f"{path} is not JSON: {error}; write it with `heliograph alerts render`") from error
    rules, routes = found
    try:
        return Alerts(rules["groups"], routes["contactPoints"], routes["policy"])
    except (KeyError, TypeError) as error:
        raise UserError(f"the files in {directory} lack {error}; write them with `heliograph alerts render`") from error


def wanted(grafana: GrafanaPort, alerts: Alerts, folder_uid: str) -> tuple[list[Managed], list[str]]:
    """Return the wanted objects, and notes on what is left out."""
    if not folder_uid:
        raise UserError("Grafana keeps alert rules in a folder: name one with --folder, or use --only boards")
    points = [Managed("contact point", str(one["uid"]), str(one["name"]), dict(one)) for one in alerts.contact_points]
    known = {point.title for point in points} | {str(one.get("name")) for one in grafana.alerting("contact-points")}
    notes = [
        f"no contact point {one['receiver']!r}: its alerts follow the default policy; create it in Grafana, or set its "
        "webhook in the settings of the alerts"
        for one in alerts.policy["routes"]
        if one["receiver"] not in known
    ]
    routes = [one for one in alerts.policy["routes"] if one["receiver"] in known]
    policy = _durations(dict(alerts.policy) | {"routes": routes})
    objects = [*points, *_rules(alerts, folder_uid)]
    if routes:
        objects.append(Managed("notification policy", POLICY_UID, "Heliograph", policy))
    return objects, notes


def _rules(alerts: Alerts, folder_uid: str) -> Iterator[Managed]:
    for group in alerts.groups:
        for rule in group["rules"]:
            body = {key: value for key, value in rule.items() if key not in _NOT_IN_API}
            body |= {"folderUID": folder_uid, "ruleGroup": group["name"]}
            yield Managed("alert rule", str(rule["uid"]), str(rule["title"]), _durations(body))
        interval = _milliseconds(group["interval"]) // 1000
        yield Managed("alert group", f"{folder_uid}/{group['name']}", str(group["name"]), {"interval": interval})


def _durations(body: Json) -> Json:
    """Spell durations as Grafana does: 24h is 1d."""
    found = dict(body)
    for key in ("for", "group_wait", "group_interval", "repeat_interval"):
        if key in found:
            found[key] = _spelled(_milliseconds(found[key]))
    if "routes" in found:
        found["routes"] = [_durations(route) for route in found["routes"]]
    return found


def _milliseconds(text: str) -> int:
    return sum(int(number) * dict(_UNITS)[unit] for number, unit in re.findall(r"(\d+)(ms|[wdhms])", text))


def _spelled(rest: int) -> str:
    text = ""
    for unit, size in _UNITS:
        if rest >= size and not (unit in "wd" and rest % size):
            text += f"{rest // size}{unit}"
            rest %= size
    return text or "0s"
