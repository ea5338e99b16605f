"""``heliograph export``: runs exporters until it is stopped.

All exporters share one process and one read of the segments; each has its own lane. Ctrl-C or SIGTERM ends the command
in order: it takes a last snapshot, every exporter writes its remaining data, and the exit code is 0.
"""

from __future__ import annotations

import argparse
import gc
import os
import select
import signal
import sys
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from heliograph.engine.catalogue.times import add_utc_option
from heliograph.exporters import EXPORTERS, Exporter, available, load
from heliograph.exporters.costs import Costs
from heliograph.monitor.commands.arguments import (
    add_allowed_host_option,
    add_collect_option,
    add_segments_option,
    interval,
    open_source,
    positive,
)
from heliograph.monitor.errors import UserError
from heliograph.monitor.text import printable

if TYPE_CHECKING:
    from heliograph.monitor.collector.account import Account
    from heliograph.monitor.model import Snapshot

__all__ = ["command"]

_EPILOG = """\
examples:
  heliograph export prometheus
  heliograph export prometheus --listen 0.0.0.0:9464 --web-config web.yml
  heliograph export prometheus --once --out metrics.prom
  heliograph export prometheus spool hdrlog --dir spool --file latency.hlog
  heliograph export pushgateway --gateway http://gateway:9091 --group host=$(hostname)

Exporters of other packages take settings as --set NAME.OPTION=VALUE.
"""

_STOP = {signal.SIGINT, signal.SIGTERM}
_COLLECT_AFTER = 50_000
"""New objects until Python searches for cycles."""


def command(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add ``heliograph export``."""
    parser = subparsers.add_parser(
        "export",
        help="export statistics to Prometheus, an HDR log, a spool or the console",
        description="Run one or more exporters until Ctrl-C or SIGTERM.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("names", metavar="NAME", nargs="+", help=f"exporters to run: {', '.join(available())}")
    add_segments_option(parser)
    add_collect_option(parser)
    add_utc_option(parser)
    parser.add_argument(
        "--interval", type=interval, default=1.0, metavar="S", help="seconds between snapshots (default: 1)"
    )
    parser.add_argument(
        "--module",
        action="append",
        default=[],
        metavar="NAME[=OPTIONS]",
        help="also feed a module, as 'heliograph monitor' does, and export its counters (module_...)",
    )
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="NAME.OPTION=VALUE",
        help="setting of an exporter from another package",
    )
    prometheus = parser.add_argument_group("prometheus")
    prometheus.add_argument(
        "--listen", metavar="HOST:PORT", help="address of the /metrics endpoint (default: 127.0.0.1:9464)"
    )
    add_allowed_host_option(prometheus)
    prometheus.add_argument(
        "--web-config",
        type=Path,
        metavar="FILE",
        help="TLS and basic authentication, in the web-config format of Prometheus (exporters/README.md)",
    )
    prometheus.add_argument(
        "--native-schema",
        type=int,
        choices=range(-4, 9),
        metavar="N",
        help="resolution of native histograms, -4 to 8: 2^N buckets for each power of two (default: 5)",
    )
    prometheus.add_argument(
        "--created-series",
        action="store_true",
        help="in OpenMetrics, also export the time at which each counter and histogram began (NAME_created)",
    )
    prometheus.add_argument("--once", action="store_true", help="write the metrics once as text and exit")
    prometheus.add_argument(
        "--out", type=Path, metavar="FILE", help="with --once: output file (default: standard output)"
    )
    both = parser.add_argument_group("prometheus and pushgateway")
    both.add_argument("--max-series", type=positive, metavar="N", help="largest number of series (default: 20000)")
    both.add_argument(
        "--window", type=interval, metavar="S", help="shortest percentile window in seconds (default: 15)"
    )
    push = parser.add_argument_group("pushgateway")
    push.add_argument("--gateway", metavar="URL", help="address of the Pushgateway")
    push.add_argument("--job", help="label 'job' of the pushed metrics (default: heliograph)")
    push.add_argument(
        "--group", action="append", default=[], metavar="LABEL=VALUE", help="label of the group; repeatable"
    )
    parser.add_argument_group("spool").add_argument(
        "--dir", type=Path, metavar="DIR", help="directory of the Parquet files"
    )
    parser.add_argument_group("hdrlog").add_argument("--file", type=Path, metavar="FILE", help="the log file")
    history = parser.add_argument_group("spool and hdrlog")
    history.add_argument(
        "--record", type=interval, metavar="S", help="length of the recorded intervals in seconds (default: 10)"
    )
    history.add_argument(
        "--backlog", action="store_true", help="also record values counted before the exporter started"
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run the named exporters; returns the exit code.

    Raises:
        UserError: A setting is missing, unknown or invalid.
    """
    if doubled := {name for name in args.names if args.names.count(name) > 1}:
        raise UserError(f"exporter {', '.join(sorted(doubled))} is named twice")
    _refuse_strays(args)
    if args.once:
        return _once(args)
    return _serve(args)


_FLAGS: dict[str, tuple[str, ...]] = {
    "listen": ("prometheus",),
    "allowed_host": ("prometheus",),
    "web_config": ("prometheus",),
    "native_schema": ("prometheus",),
    "created_series": ("prometheus",),
    "max_series": ("prometheus", "pushgateway"),
    "window": ("prometheus", "pushgateway"),
    "gateway": ("pushgateway",),
    "job": ("pushgateway",),
    "group": ("pushgateway",),
    "dir": ("spool",),
    "file": ("hdrlog",),
    "record": ("spool", "hdrlog"),
    "backlog": ("spool", "hdrlog"),
}


def _refuse_strays(args: argparse.Namespace) -> None:
    """Reject the settings of exporters that do not run."""
    for flag, owners in _FLAGS.items():
        if getattr(args, flag) not in (None, False, []) and not set(owners) & set(args.names):
            raise UserError(f"--{flag.replace('_', '-')} belongs to {' and '.join(owners)}, which is not named")
    if args.once and args.names != ["prometheus"]:
        raise UserError("--once works only with the exporter prometheus")
    if args.once and args.module:
        raise UserError("--once cannot feed a module")
    if args.out and not args.once:
        raise UserError("--out needs --once: the endpoint writes no file")


def _settings(
    name: str,
    args: argparse.Namespace,
    lanes: Callable[[], Iterable[Any]],
    account: Callable[[], Account | None],
    costs: Costs,
    whole: Callable[[bool | Collection[str]], Snapshot] | None,
) -> dict[str, Any]:
    """Return the arguments for the class of an exporter."""

    def given(**settings: Any) -> dict[str, Any]:
        return {key: value for key, value in settings.items() if value is not None}

    def needed(flag: str) -> Any:
        value = getattr(args, flag)
        if value is None:
            raise UserError(f"exporter {name!r} needs --{flag}")
        return value

    both = {"max_series": args.max_series, "window": args.window, "lanes": lanes, "account": account}
    match name:
        case "prometheus":
            return given(
                listen=args.listen,
                allowed_hosts=args.allowed_host,
                web_config=args.web_config,
                native_schema=args.native_schema,
                created_series=args.created_series,
                costs=costs,
                whole=whole,
                **both,
            )
        case "pushgateway":
            group = dict(_pair(text, "--group LABEL=VALUE") for text in args.group)
            return {"url": needed("gateway"), "grouping": group, **given(job=args.job, **both)}
        case "spool":
            return {"directory": needed("dir"), **given(interval=args.record, backlog=args.backlog or None)}
        case "hdrlog":
            return {"path": needed("file"), **given(interval=args.record, backlog=args.backlog or None)}
        case _:
            pairs = (_pair(text, "--set NAME.OPTION=VALUE") for text in args.set)
            return {key.partition(".")[2]: value for key, value in pairs if key.partition(".")[0] == name}


def _pair(text: str, form: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not (key and equals):
        raise UserError(f"{text!r} is not of the form {form}")
    return key, value


def _serve(args: argparse.Namespace) -> int:
    from heliograph.exporters.loop import ExportLoop
    from heliograph.exporters.sink import exporter_lane
    from heliograph.monitor.modules import Lane, open_module
    from heliograph.monitor.sampler import Sampler

    for key in (_pair(text, "--set NAME.OPTION=VALUE")[0].partition(".")[0] for text in args.set):
        if key not in args.names or key in EXPORTERS:
            raise UserError(f"--set {key}.…: {key!r} is not a named exporter of another package")
    lanes: list[Lane] = []
    with _stop_signals() as wait, open_source(args) as sampler:
        costs = Costs()
        guard = threading.Lock()

        def sample(histograms: bool | Collection[str]) -> Snapshot:
            with guard, costs.during("sampling"):
                return sampler.sample(histograms=histograms)

        # Histograms are most of the cost of a reading. The console does not show them; scrapes read them themselves.
        by_scrape = args.names == ["prometheus"] and not args.module and not args.collect
        histograms = bool(args.module) or any(name != "console" for name in args.names)
        whole = sample if by_scrape else None
        made = _made(args, lambda: [lane.stats for lane in lanes], lambda: sampler.account, costs, whole)
        lanes += [exporter_lane(name, exporter) for name, exporter in made]
        try:
            for request in args.module:
                lanes.append(open_module(request))
        except BaseException:
            for lane in lanes:
                lane.close()
            raise
        print(
            f"heliograph: exporting {printable(sampler.place)} to {', '.join(map(_name_of, made))}",
            file=sys.stderr,
            flush=True,
        )

        # A snapshot of a large fleet has many objects and no cycles: the search for cycles takes a tenth of the time.
        gc.set_threshold(_COLLECT_AFTER, *gc.get_threshold()[1:])

        def glance() -> Snapshot:
            with guard, costs.during("sampling"):
                return sampler.glance() if isinstance(sampler, Sampler) else sampler.sample(histograms=False)

        ExportLoop(glance if by_scrape else lambda: sample(histograms), lanes, args.interval, wait).run()
    return 0


def _name_of(made: tuple[str, Exporter]) -> str:
    name, exporter = made
    url = getattr(exporter, "url", None)
    return f"{name} at {url}" if url else name


def _made(
    args: argparse.Namespace,
    lanes: Callable[[], Iterable[Any]],
    account: Callable[[], Account | None],
    costs: Costs,
    whole: Callable[[bool | Collection[str]], Snapshot] | None,
) -> list[tuple[str, Exporter]]:
    """Create all exporters, or none: when one fails, those already created are closed."""
    made: list[tuple[str, Exporter]] = []
    try:
        for name in args.names:
            maker = load(name)
            settings = _settings(name, args, lanes, account, costs, whole)
            try:
                made.append((name, maker(**settings)))
            except TypeError as error:
                if name in EXPORTERS:
                    raise
                raise UserError(f"exporter {name!r} rejects these settings: {error}") from error
            except OSError as error:
                raise UserError(f"exporter {name!r} cannot start: {error}") from error
    except BaseException:
        for _, exporter in made:
            exporter.close()
        raise
    return made


@contextmanager
def _stop_signals() -> Iterator[Callable[[float], bool]]:
    """Return a wait that ends early with True when the process is asked to stop.

    The handlers do nothing, so that they never interrupt an exporter. The wakeup pipe shows that a signal came.
    (Blocking the signals is not enough: the threads of a library could receive them.)
    """
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    pipe_before = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    handlers_before = {number: signal.signal(number, lambda _number, _frame: None) for number in _STOP}

    def wait(seconds: float) -> bool:
        ready, _, _ = select.select([reader], [], [], seconds)
        return bool(ready) and not _STOP.isdisjoint(os.read(reader, 64))

    try:
        yield wait
    finally:
        for number, handler in handlers_before.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(pipe_before)
        os.close(reader)
        os.close(writer)


def _once(args: argparse.Namespace) -> int:
    """Write the metrics of two snapshots one interval apart, so that the percentiles have a window."""
    from heliograph.exporters.collector import MAX_SERIES, SnapshotCollector
    from heliograph.exporters.prometheus import exposition

    with open_source(args) as sampler:
        collector = SnapshotCollector(max_series=args.max_series or MAX_SERIES, account=lambda: sampler.account)
        collector.update(sampler.sample())
        time.sleep(args.interval)
        snapshot = sampler.sample()
        collector.update(snapshot)
        absence = sampler.absence if args.collect else f"no instance has a segment in {sampler.place}"
        text = exposition(collector)
    if not snapshot.instances:
        print(f"heliograph: {printable(absence)}", file=sys.stderr)
    if args.out is None:
        sys.stdout.buffer.write(text)
        sys.stdout.buffer.flush()
        return 0
    try:
        part = args.out.with_name(f".{args.out.name}.{os.getpid()}")
        part.write_bytes(text)
        part.replace(args.out)
    except OSError as error:
        raise UserError(f"{args.out} cannot be written: {error.strerror}") from error
    return 0
