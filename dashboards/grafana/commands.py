"""``heliograph grafana``: show the boards, compare boards and alerts with a server, and apply them."""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from heliograph.monitor.errors import UserError
from heliograph.monitor.text import printable

if TYPE_CHECKING:
    from heliograph.dashboards.grafana.plan import Change, Plan

__all__ = ["command"]

_ALERTS = Path("deploy/grafana")
_DIFFERENT = 1
_NEEDED = 3
_PLANS = 3
"""Number of plans before a server that changes all the time is an error."""
_EXAMPLE = """\
examples:
  heliograph grafana show > heliograph-fleet.json
  export GRAFANA_URL=http://127.0.0.1:3000 GRAFANA_TOKEN=TOKEN
  heliograph grafana diff                    # what differs, by board and panel; exit code 1 if anything does
  heliograph grafana plan                    # what apply would do
  heliograph grafana apply --prometheus-url http://127.0.0.1:9090
  heliograph grafana apply --only alerts     # rules, contact points and policy, from `heliograph alerts render`
  heliograph grafana apply --force           # replace edits that were made in Grafana
  heliograph grafana plan --prune            # also delete what an earlier version installed; shows each deletion
  heliograph grafana diff --json | jq -r '.changes[].differences[] | select(.kind == "edit").path'

An edit in Grafana is kept. An edit of a value that Heliograph changed too is a conflict: plan shows it, and apply
writes nothing and exits with 3 unless --force is given.

exit codes: 0 done, nothing differs; 1 diff: something differs; 2 a call failed; 3 a conflict, or plan --check: apply
would change something.

The variables keep the token out of the process list. It is the token of a service account with the role Editor (Admin
for --prometheus-url and for alerts; --only boards leaves alerts alone).
"""


def command(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add ``heliograph grafana``."""
    parser = subparsers.add_parser(
        "grafana",
        help="the Grafana boards and alerts: show them, compare them with a server, install them",
        description="The Grafana boards, generated from the catalogue of statistics, and the alerts. `diff` and `plan` "
        "only read. `apply` can be repeated; it keeps edits that were made in Grafana, and deletes nothing without "
        "--prune.",
        epilog=_EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    show = actions.add_parser("show", help="print a board as JSON", description="Print a board as JSON.")
    show.add_argument("uid", nargs="?", default="heliograph-fleet", help="uid of the board (default: %(default)s)")
    show.set_defaults(run=_show)
    for name, text in (
        ("diff", "show the differences between a server and what is wanted"),
        ("plan", "compare with a server and show what apply would change"),
        ("apply", "install or update boards and alerts on the server"),
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
        action.add_argument("--only", choices=("boards", "alerts"), help="leave the other ones alone")
        action.add_argument(
            "--alerts",
            type=Path,
            metavar="DIR",
            help=f"directory in which `heliograph alerts render` wrote the files of Grafana (default: {_ALERTS}, if it "
            "is there)",
        )
        if name != "diff":
            action.add_argument("--force", action="store_true", help="replace edits that were made in Grafana")
        action.add_argument("--prune", action="store_true", help="delete what was installed and is no longer wanted")
        if name == "plan":
            action.add_argument("--check", action="store_true", help="exit with 3 if changes are needed")
        action.add_argument("--json", action="store_true", help="print one JSON object")
        action.set_defaults(run=_provision, force=False, check=False)


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
    from heliograph.dashboards.grafana.alerts import load
    from heliograph.dashboards.grafana.boards import boards
    from heliograph.dashboards.grafana.plan import Wish, apply, data_source, plan
    from heliograph.dashboards.grafana.port import Conflict

    grafana = GrafanaApiBackend(args.url, token)
    source = data_source(args.prometheus_url) if args.prometheus_url else None
    rules = None
    if args.only != "boards" and (args.only or args.alerts or _ALERTS.is_dir()):
        rules = load(args.alerts or _ALERTS)
    wish = Wish(None if args.only == "alerts" else boards(), args.folder, source, rules)
    done = 0

    def progress(change: Change) -> None:
        nonlocal done
        done += 1
        text = f"[{done}] {change.kind} {change.title!r} {_DONE[change.action]}"
        print(printable(text), file=sys.stderr)

    for attempt in range(1, _PLANS + 1):
        planned = plan(grafana, wish, force=args.force, prune=args.prune)
        if not args.json:
            _print(planned, args.action)
        if args.action != "apply" or planned.conflicts:
            break
        try:
            apply(grafana, planned, progress)
        except Conflict as error:
            if attempt == _PLANS:
                raise
            print(printable(f"{error}; planning again"), file=sys.stderr)
            continue
        if args.json:
            print(json.dumps(_json(planned) | {"done": done}, ensure_ascii=False))
        else:
            print(f"{done} changed" if done else "nothing to change")
        return 0
    if args.json:
        print(json.dumps(_json(planned) | ({"done": done} if args.action == "apply" else {}), ensure_ascii=False))
    if args.action == "diff":
        return _DIFFERENT if planned.differs else 0
    if planned.conflicts and args.action == "apply":
        print(f"{planned.conflicts} conflicts: nothing was written; --force replaces the edits", file=sys.stderr)
    return _NEEDED if planned.conflicts or (planned.needed and args.check) else 0


_SIGNS = {"create": "+", "update": "~", "keep": "=", "delete": "-", "unwanted": "!"}
_DONE = {"create": "created", "update": "updated", "delete": "deleted"}


def _print(planned: Plan, action: str) -> None:
    for note in planned.notes:
        print(printable(f"note: {note}"))
    for change in planned.changes:
        if action == "diff" and change.action == "keep" and not change.differences:
            continue
        verb = "no longer wanted; --prune deletes it" if change.action == "unwanted" else change.action
        print(printable(f"{_SIGNS[change.action]} {change.kind} {change.title!r} (uid {change.uid}): {verb}"))
        for line in change.lines:
            print(f"    {printable(line)}")
    if action == "diff":
        if not planned.differs:
            print("nothing differs")
    elif action == "plan":
        needed = f"{planned.needed} to change" if planned.needed else "nothing to change"
        print(needed + (f", {planned.conflicts} conflicts" if planned.conflicts else ""))


def _json(planned: Plan) -> dict[str, Any]:
    return {
        "changes": [
            {
                "kind": change.kind,
                "uid": change.uid,
                "title": change.title,
                "action": change.action,
                "differences": [one.json() for one in change.differences],
            }
            for change in planned.changes
        ],
        "needed": planned.needed,
        "conflicts": planned.conflicts,
        "notes": list(planned.notes),
    }
