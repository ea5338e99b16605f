"""``heliograph alerts``: list and render the alerts, and check a recording against them."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from heliograph.engine.catalogue.outside import json_text
from heliograph.engine.catalogue.times import add_utc_option, date_time
from heliograph.exporters.alerts.render import FILES
from heliograph.exporters.alerts.settings import DEFAULT, PREFIX, Alert, load
from heliograph.monitor.errors import UserError
from heliograph.monitor.text import printable

if TYPE_CHECKING:
    from heliograph.exporters.alerts.check import Finding

__all__ = ["command"]

_EXAMPLE = """\
  heliograph alerts list
  heliograph alerts render                        # writes deploy/prometheus, deploy/alertmanager, deploy/grafana
  heliograph alerts render --only prometheus      # prints one file
  heliograph alerts check feed.4711.1.flight      # the alerts that this recording would have raised
  heliograph alerts check /var/lib/prometheus/metrics2
"""


def command(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add ``heliograph alerts``."""
    parser = subparsers.add_parser(
        "alerts",
        help="list, render and check the alerts",
        epilog=_EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    shown = actions.add_parser("list", help="every alert with its severity, times and meaning")
    shown.add_argument("--json", action="store_true", help="one JSON object")
    shown.set_defaults(run=_list)
    render = actions.add_parser("render", help="write the rules of Prometheus and Grafana and Alertmanager's routes")
    render.add_argument("--only", choices=FILES, help="print this file in place of writing all")
    render.add_argument("--out", type=Path, default=Path("deploy"), metavar="DIR", help="default: %(default)s")
    render.set_defaults(run=_render)
    check = actions.add_parser("check", help="the alerts that a recorded past would have raised")
    check.add_argument(
        "past", nargs="+", type=Path, metavar="RECORDING", help="flight recordings, or one data directory of Prometheus"
    )
    check.add_argument("--step", type=float, metavar="SECONDS", help="default: 1 of recordings, 5 of a directory")
    check.add_argument("--all-users", action="store_true", help="also read files of other users")
    check.add_argument("--json", action="store_true", help="one JSON object")
    add_utc_option(check)
    check.set_defaults(run=_check)
    for one in (shown, render, check):
        one.add_argument(
            "--settings", type=Path, default=DEFAULT, metavar="FILE", help="the settings file; default: %(default)s"
        )


def _list(arguments: argparse.Namespace) -> int:
    alerts = list(load(arguments.settings).alerts.values())
    print(json_text({"alerts": [asdict(one) for one in alerts]}) if arguments.json else _table(alerts))
    return 0


def _table(alerts: Sequence[Alert]) -> str:
    width = max(len(one.name) for one in alerts) + len(PREFIX)
    rows = [f"{'ALERT':{width}}  SEVERITY  FOR  KEEP  RUNBOOK"]
    for one in alerts:
        name = f"{PREFIX}{one.name}"
        rows.append(f"{name:{width}}  {one.severity:8}  {one.holds:>3}  {one.keep:>4}  {one.runbook}")
    return "\n".join(rows)


def _render(arguments: argparse.Namespace) -> int:
    settings = load(arguments.settings)
    if arguments.only:
        sys.stdout.write(FILES[arguments.only][1](settings))
        return 0
    for path, renderer in FILES.values():
        file = arguments.out / path
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(renderer(settings), encoding="utf-8")
        except OSError as error:
            raise UserError(f"cannot write {file}: {error.strerror}") from error
        print(file)
    return 0


def _check(arguments: argparse.Namespace) -> int:
    from heliograph.exporters.alerts.check import check, of_flights, of_prometheus  # needs prometheus-client

    settings = load(arguments.settings)
    if arguments.step is not None and not arguments.step >= 0.01:
        raise UserError("--step must be at least 0.01")
    if len(arguments.past) == 1 and arguments.past[0].is_dir():
        past = of_prometheus(arguments.past[0], arguments.step or 5.0)
    else:
        past = of_flights(arguments.past, arguments.step or 1.0, arguments.all_users)
    found = check(past, settings)
    if arguments.json:
        about = {"start_ns": round(past.start * 1e9), "step_s": past.step, "steps": past.steps}
        print(json_text({**about, "alerts": [_fields(one) for one in found]}))
        return 0
    print(f"{past.steps} steps of {past.step:g} s from {_moment(past.start)}")
    for one in found:
        labels = " ".join(f"{key}={printable(value)}" for key, value in one.labels if key != "instance")
        print(f"{one.severity:8}  {one.alert}  {labels}\n{'':10}{_times(one)}")
    if not found:
        print("no alert, and no condition of an alert held")
    return 0


def _fields(one: Finding) -> dict[str, Any]:
    fields = {**asdict(one), "labels": dict(one.labels)}
    for name in ("condition", "condition_ended", "fired", "resolved"):
        seconds = fields.pop(name)
        fields[f"{name}_ns"] = None if seconds is None else round(seconds * 1e9)
    return fields


def _moment(seconds: float | None) -> str:
    return "the end" if seconds is None else date_time(round(seconds * 1e9))


def _times(one: Finding) -> str:
    held = f"its condition held from {_moment(one.condition)} to {_moment(one.condition_ended)}"
    if one.fired is None:
        return f"did not fire: {held}, for less than {one.holds}"
    return f"fired from {_moment(one.fired)} to {_moment(one.resolved)}; {held}"
