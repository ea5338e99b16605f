"""``heliograph live``: serves the live page, or takes a picture of a running page."""

from __future__ import annotations

import argparse
import gc
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from types import FrameType

from heliograph.dashboards.live.access import Access, content_policy, read_token, with_headers
from heliograph.monitor.alerts import load_evaluator
from heliograph.monitor.commands.arguments import (
    add_allowed_host_option,
    add_collect_option,
    add_segments_option,
    open_source,
)
from heliograph.monitor.commands.common import folder_of
from heliograph.monitor.errors import UserError
from heliograph.monitor.web import AllowedHosts, guarded, is_loopback

__all__ = ["command"]

_GARBAGE = 100_000
"""New objects after which Python looks for cycles: a sample makes some for each receiver, and none is in a cycle."""

_EXAMPLE = """\
examples:
  heliograph live
  heliograph live --listen 127.0.0.1:8051 --interval 0.5
  heliograph live --listen 0.0.0.0:8050 --token-file /etc/heliograph/live.token
  heliograph live --alertmanager http://127.0.0.1:9093
  heliograph live --capture live.png --url http://127.0.0.1:8050/

The pages listen on this machine only, where every user may read them, unless --listen names another address. That needs
--token-file: a file with one line of 16 to 256 characters, closed to other users. Make one with
  (umask 077; head -c 24 /dev/urandom | base64 > live.token)
Readers sign in with the token once in 12 hours; programs send it as Authorization: Bearer TOKEN. The page has no TLS:
put a proxy with TLS before it, and let the proxy keep the Host header.
The pages are read-only. With --control-token-file, another such file, readers with its token can send commands to the
instances of this host that run as the same user; each command is an event with the name of its sender.
"""


def command(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add ``heliograph live``."""
    parser = subparsers.add_parser(
        "live",
        help="serve the live page: receivers in trouble and the causes",
        description="Serve the live page of all instances on this host until Ctrl-C.",
        epilog=_EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--listen", default="127.0.0.1:8050", metavar="HOST:PORT", help="address of the page (default: %(default)s)"
    )
    parser.add_argument(
        "--token-file", type=Path, metavar="FILE", help="require the token in this file; needed beyond this machine"
    )
    parser.add_argument(
        "--control-token-file",
        type=Path,
        metavar="FILE",
        help="allow commands to the instances of this host with the token in this file; default: read-only",
    )
    parser.add_argument(
        "--alertmanager", metavar="URL", help="show the silences of this Alertmanager, http://HOST:PORT; read only"
    )
    parser.add_argument(
        "--alert-settings", type=Path, metavar="FILE", help="thresholds of the alerts; default: those of this release"
    )
    add_allowed_host_option(parser)
    add_segments_option(parser)
    add_collect_option(parser)
    parser.add_argument(
        "--interval", type=_interval, default=1.0, metavar="S", help="seconds between samples (default: 1)"
    )
    parser.add_argument(
        "--recordings",
        type=Path,
        metavar="DIR",
        action="append",
        default=[],
        help="offer the flight recordings in this directory too, besides those of the instances of this host; "
        "repeatable",
    )
    parser.add_argument(
        "--history", type=Path, metavar="DIR", help="show the latency history in this directory (heliograph history)"
    )
    parser.add_argument(
        "--decisions",
        type=Path,
        metavar="DIR",
        action="append",
        default=[],
        help="offer the decision logs in this directory (option decision_log) to the page What if; repeatable",
    )
    picture = parser.add_argument_group("picture of a running page")
    picture.add_argument("--capture", type=Path, metavar="FILE", help="write a PNG file with Chromium and exit")
    picture.add_argument("--url", default="http://127.0.0.1:8050/", help="address of the page (default: %(default)s)")
    picture.add_argument(
        "--after", type=float, default=3.0, metavar="S", help="seconds the page runs before the picture (default: 3)"
    )
    picture.add_argument(
        "--width", type=int, default=1440, metavar="PIXELS", help="width of the window (default: %(default)s)"
    )
    parser.set_defaults(run=_run)


def _interval(text: str) -> float:
    value = float(text)
    if not 0.1 <= value <= 60:
        raise argparse.ArgumentTypeError("must be from 0.1 to 60 seconds")
    return value


def _run(args: argparse.Namespace) -> int:
    return _capture(args) if args.capture else _serve(args)


def _capture(args: argparse.Namespace) -> int:
    from heliograph.dashboards.live.capture import capture

    token = read_token(args.token_file) if args.token_file else None
    capture(args.url, args.capture, width=args.width, after=args.after, token=token)
    return 0


def _serve(args: argparse.Namespace) -> int:
    host, port = _address(args.listen)
    token = read_token(args.token_file) if args.token_file else None
    if token is None and not is_loopback(host):
        raise UserError(
            f"--listen {args.listen} opens the page to other machines; pass --token-file FILE so that only readers "
            f"with its token see it, or listen on this machine only: --listen 127.0.0.1:{port}"
        )
    command_token = read_token(args.control_token_file) if args.control_token_file else None
    if command_token is not None and args.collect:
        raise UserError("--control-token-file is for the instances of this host; leave it out with --collect")
    if command_token is not None and command_token == token:
        raise UserError("--token-file and --control-token-file hold the same token: every reader could send commands")
    try:
        from heliograph.dashboards.live.alerting import Alerting
        from heliograph.dashboards.live.app import create
        from heliograph.dashboards.live.control import Control
        from heliograph.dashboards.live.past import Past
        from heliograph.dashboards.live.recordings import Shelf
        from heliograph.dashboards.live.replays import Replays
        from heliograph.dashboards.live.serving import listen
        from heliograph.dashboards.live.silences import Alertmanager
        from heliograph.dashboards.live.store import Store
    except ModuleNotFoundError as error:
        raise UserError(f"{error.name} is not installed: install heliograph[live]") from error

    shelf = Shelf(_folders(args), args.all_users)
    replays = Replays(_named("--decisions", args.decisions))
    alertmanager = Alertmanager(args.alertmanager) if args.alertmanager else None
    alerts = Alerting(load_evaluator(args.alert_settings, args.interval), alertmanager)
    with open_source(args) as source:
        store = Store(
            lambda: source.sample(histograms=store.histograms),
            interval=args.interval,
            place=source.place,
            absence=(lambda: source.absence) if args.collect else None,
            alerts=alerts,
        )
        control = Control(command_token, lambda: store.found, store.record) if command_token else None
        past = Past(args.history) if args.history else None
        app = create(store, control=control, shelf=shelf, past=past, replays=replays)
        checked = guarded(Access(app.server, token), AllowedHosts(host, args.allowed_host))
        server = listen(with_headers(checked, content_policy(app.csp_hashes())), host, port)

        def end(number: int, _: FrameType | None) -> None:
            store.end()  # first, because the server waits for its streams
            raise SystemExit(0)

        gc.set_threshold(_GARBAGE)
        store.start()
        alerts.start()
        try:
            shown = f"[{host}]" if ":" in host else host
            print(f"heliograph live on http://{shown}:{port}/, reading {store.view.place}; stop with Ctrl-C")
            sys.stdout.flush()
            signal.signal(signal.SIGTERM, end)
            signal.signal(signal.SIGINT, end)
            server.run()
        finally:
            server.close()
            store.close()
            alerts.close()
    return 0


def _folders(args: argparse.Namespace) -> list[Path]:
    """Return the directories of flight recordings: those of the instances of this host, and the named ones.

    Raises:
        UserError: A named directory does not exist.
    """
    return [*([] if args.collect else [folder_of(args)]), *_named("--recordings", args.recordings)]


def _named(option: str, folders: Sequence[Path]) -> Sequence[Path]:
    """Return the directories of an option.

    Raises:
        UserError: One of them does not exist.
    """
    for folder in folders:
        if not folder.is_dir():
            raise UserError(f"{option} {folder}: directory not found")
    return folders


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not host or not port.isdecimal() or not 0 < int(port) < 65536:
        raise UserError(f"--listen {text!r} is not HOST:PORT, for example 127.0.0.1:8050")
    return host, int(port)
