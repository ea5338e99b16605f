"""``heliograph alerts``: list and render the alerts, and check a recording against them."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from heliograph.exporters.alerts.render import FILES
from heliograph.exporters.alerts.settings import DEFAULT, PREFIX, Alert, load
from heliograph.monitor.errors import UserError

__all__ = ["command"]

_EXAMPLE = """\
  heliograph alerts list
  heliograph alerts render                        # writes deploy/prometheus, deploy/alertmanager, deploy/grafana
  heliograph alerts render --only prometheus      # prints one file
"""


def command(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add ``heliograph alerts``."""
    parser = subparsers.add_parser(
        "alerts",
        help="list and render the alerts",
        epilog=_EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    shown = actions.add_parser("list", help="every alert with its severity, times and meaning")
    shown.set_defaults(run=_list)
    render = actions.add_parser("render", help="write the rules of Prometheus and Grafana and Alertmanager's routes")
    render.add_argument("--only", choices=FILES, help="print this file in place of writing all")
    render.add_argument("--out", type=Path, default=Path("deploy"), metavar="DIR", help="default: %(default)s")
    render.set_defaults(run=_render)
    for one in (shown, render):
        one.add_argument(
            "--settings", type=Path, default=DEFAULT, metavar="FILE", help="the settings file; default: %(default)s"
        )


def _list(arguments: argparse.Namespace) -> int:
    print(_table(list(load(arguments.settings).alerts.values())))
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
