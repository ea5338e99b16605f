"""``heliograph grafana``: show, plan and apply the dashboard."""

from __future__ import annotations

import argparse
import os

from heliograph.monitor.errors import UserError
from heliograph.monitor.text import printable

__all__ = ["command"]

_DIFFERS = 3
_EXAMPLE = """\
examples:
  heliograph grafana show > heliograph-fleet.json
  heliograph grafana plan  --url http://127.0.0.1:3000 --token TOKEN
  heliograph grafana apply --url http://127.0.0.1:3000 --token TOKEN --prometheus-url http://127.0.0.1:9090

The options default to GRAFANA_URL and GRAFANA_TOKEN; the variable keeps the token out of the process list. The token
is that of a service account with the role Editor (Admin for --prometheus-url).
"""


def command(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add ``heliograph grafana``."""
    parser = subparsers.add_parser(
        "grafana",
        help="the Grafana dashboard: show it, compare it with a server, install it",
        description="The Grafana dashboard, generated from the catalogue of statistics. `plan` shows the changes "
        "that `apply` would make. `apply` can be repeated and deletes nothing.",
        epilog=_EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    show = actions.add_parser("show", help="print a board as JSON", description="Print a board as JSON.")
    show.add_argument("uid", nargs="?", default="heliograph-fleet", help="uid of the board (default: %(default)s)")
    show.set_defaults(run=_show)
    for name, text in (
        ("plan", "compare with a server and show what apply would change"),
        ("apply", "install or update the dashboard on the server"),
    ):
        action = actions.add_parser(
            name, help=text, description=text, epilog=_EXAMPLE, formatter_class=argparse.RawDescriptionHelpFormatter
        )
        action.add_argument(
            "--url", default=os.environ.get("GRAFANA_URL"), help="address of Grafana (default: $GRAFANA_URL)"
        )
        action.add_argument("--token", help="token of a service account (default: $GRAFANA_TOKEN)")
        action.add_argument(
            "--folder", default="Heliograph", help="title of the Grafana folder, '' for none (default: %(default)s)"
        )
        action.add_argument(
            "--prometheus-url", metavar="URL", help="also create a data source for the Prometheus at this address"
        )
        if name == "plan":
            action.add_argument("--check", action="store_true", help="exit with 3 if changes are needed")
        action.set_defaults(run=_provision)


def _show(args: argparse.Namespace) -> int:
    from heliograph.dashboards.grafana.boards import boards, text

    found = {board["uid"]: board for board in boards()}
    if args.uid not in found:
        raise UserError(f"no board {args.uid!r}; the boards are {', '.join(found)}")
    print(text(found[args.uid]), end="")
    return 0


def _provision(args: argparse.Namespace) -> int:
    token = args.token or os.environ.get("GRAFANA_TOKEN")
    if not args.url:
        raise UserError("no address: pass --url or set GRAFANA_URL, for example http://127.0.0.1:3000")
    if not token:
        raise UserError("no token: pass --token or set GRAFANA_TOKEN (Grafana: Administration > Service accounts)")
    try:
        from heliograph.dashboards.grafana.backend import GrafanaApiBackend
    except ModuleNotFoundError as error:
        raise UserError(f"{error.name} is not installed: install heliograph[grafana]") from error
    from heliograph.dashboards.grafana.boards import boards
    from heliograph.dashboards.grafana.plan import Wish, apply, data_source, plan

    grafana = GrafanaApiBackend(args.url, token)
    source = data_source(args.prometheus_url) if args.prometheus_url else None
    changes = plan(grafana, Wish(boards()[0], args.folder, source))
    for change in changes:
        sign = {"create": "+", "update": "~", "keep": "="}[change.action]
        print(printable(f"{sign} {change.kind} {change.title!r} (uid {change.uid}): {change.action}"))
        for line in change.lines:
            print(f"    {printable(line)}")
    needed = sum(change.needed for change in changes)
    if args.action == "plan":
        print(f"{needed} to change" if needed else "nothing to change")
        return _DIFFERS if needed and args.check else 0
    done = apply(grafana, changes)
    print(f"{done} changed" if done else "nothing to change")
    return 0
