"""`heliograph history`: rollup, stream, compact, prune, merge, import, verify, percentiles, report, studies.

Heavy libraries are loaded on use.

Exit code 0: success; 1: done, but part of the input could not be used (it is named on stderr); 2: nothing was done; the
reason is on stderr.
"""

from __future__ import annotations

import argparse
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from heliograph.monitor.errors import UserError
from heliograph.monitor.history.actions import (
    NAMED,
    Actions,
    Progress,
    add_action,
    history_option,
    needs_pyarrow,
    progress_option,
    report_problems,
    report_rolled_up,
    spool_option,
)
from heliograph.monitor.history.cause_commands import add_blame, add_stages
from heliograph.monitor.history.histogram_commands import add_percentiles, add_verify
from heliograph.monitor.history.retention_commands import add_compact, add_prune
from heliograph.monitor.history.stream_command import add_stream
from heliograph.monitor.history.studies.options import add_study_options, page_option
from heliograph.monitor.text import printable

if TYPE_CHECKING:
    from heliograph.monitor.history.studies.days import Rows

__all__ = ["command"]

_EPILOG = """\
examples:
  heliograph export spool --dir spool                    record, until Ctrl-C
  heliograph history rollup --spool spool --history history
  heliograph history report --history history --out report.html
  heliograph history import jHiccup.hlog --spool spool   import a log of another program
  heliograph history merge --spool spool                 percentiles at once, without Spark
  heliograph history compare --a build=4.1 --b build=4.2 is the new build slower?
  heliograph history stages --a build=4.1 --b build=4.2  and in which stage?
  heliograph history compact && heliograph history prune --older-than 90d    from cron: keep days for old hours
"""


def command(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add ``heliograph history``."""
    parser = subparsers.add_parser(
        "history",
        help="roll up, report and import recorded latencies",
        description="Work on recorded latency histograms: exact merges at any grouping, percentiles computed last.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    _add_rollup(actions)
    add_stream(actions)
    add_compact(actions)
    add_prune(actions)
    _add_merge(actions)
    _add_import(actions)
    add_verify(actions)
    add_percentiles(actions)
    _add_report(actions)
    _add_compare(actions)
    _add_gate(actions)
    add_stages(actions)
    add_blame(actions)
    _add_changes(actions)
    _add_objectives(actions)
    _add_calendar(actions)


def _add_rollup(actions: Actions[argparse.ArgumentParser]) -> None:
    parser = add_action(
        actions,
        "rollup",
        _rollup,
        "merge a spool into hours, with Spark",
        "Add the new interval histograms of a spool to the history: one row per hour and series, with percentiles.\n"
        "Each interval is merged once, whenever it comes; a second run changes nothing. Several spools, such as those\n"
        "of several hosts, may fill one history. Spark is faster for many days or many machines; --master selects the\n"
        "cluster, whose workers must see both directories. For some new minutes --no-spark is faster.",
        "heliograph history rollup --spool spool --history history --master 'local[4]'",
    )
    spool_option(parser)
    history_option(parser, is_written=True)
    parser.add_argument("--master", default="local[2]", help="Spark master (default: local[2])")
    parser.add_argument(
        "--replace",
        action="store_true",
        help="rebuild the hours of the spool from this spool alone; intervals that only the history has are lost",
    )
    parser.add_argument("--no-spark", action="store_true", help="merge on this machine, without Spark and Java")
    progress_option(parser)


def _add_merge(actions: Actions[argparse.ArgumentParser]) -> None:
    parser = add_action(
        actions,
        "merge",
        _merge,
        "percentiles of a spool at once, without Spark",
        "Merge a spool on this machine with the same C kernel and print the percentiles of each series.",
        "heliograph history merge --spool spool --hourly",
    )
    spool_option(parser)
    parser.add_argument(
        "--by",
        default="instance,topic,stream,metric,tag",
        metavar="LABELS",
        help="labels that tell series apart, with commas (default: %(default)s); also host, build, link, incarnation, "
        "level",
    )
    parser.add_argument("--hourly", action="store_true", help="one line per hour and series instead of one per series")
    parser.add_argument("--json", action="store_true", help="one JSON object, times and durations in ns")
    progress_option(parser)


def _add_import(actions: Actions[argparse.ArgumentParser]) -> None:
    parser = add_action(
        actions,
        "import",
        _import,
        "import HdrHistogram logs into a spool",
        "Import HdrHistogram interval logs into a spool: versions 1.0 to 1.3, tagged or plain, also compressed by\n"
        "gzip, with histograms of versions 0 to 2 or of floating-point values. Values are in ns; floating-point ones\n"
        "may have another unit. A second import changes nothing.",
        "heliograph history import *.hlog --spool spool",
    )
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE", help="a log")
    spool_option(parser, is_written=True)
    parser.add_argument("--instance", help="label of the series (default: the name of the file)")
    parser.add_argument(
        "--double-unit",
        choices=("ns", "us", "ms", "s"),
        default="ns",
        help="unit of floating-point values (default: ns)",
    )
    progress_option(parser)


def _add_report(actions: Actions[argparse.ArgumentParser]) -> None:
    parser = add_action(
        actions,
        "report",
        _report,
        "show a history as one HTML file",
        "Write a history as one self-contained HTML file: percentiles with their 95 % intervals, stages of a message,\n"
        "recovered messages apart, hours of the week, gaps, restarts and builds, every hour, all rows to download.\n"
        "A percentile with fewer than ten values beyond it is not shown.",
        "heliograph history report --history history --out report.html",
    )
    history_option(parser)
    parser.add_argument(
        "--out", type=Path, default=Path("report.html"), metavar="FILE", help="the report (default: report.html)"
    )
    parser.add_argument("--title", default="Latency history", help="its title")
    parser.add_argument("--within", metavar="DURATION", help="judge the series against this limit, such as 1ms")
    _share_option(parser)


_SELECTION_TEXT = (
    "A selection is a list of LABEL=PATTERN with * and ?, and from=TIME and to=TIME, in UTC or with an offset.\n"
    "Labels: instance, topic, stream, metric, tag, host, build, link, incarnation, level."
)
_PAIRS_TEXT = (
    f"{_SELECTION_TEXT} Series that agree in\n"
    "instance, topic and tag are compared; a label that a selection names need not agree."
)


def _add_compare(actions: Actions[argparse.ArgumentParser]) -> None:
    parser = add_action(
        actions,
        "compare",
        _compare,
        "compare two builds, hosts, links or periods",
        "Compare quantiles of two samples of a spool, or of the hours of a history: ratio, 95 % interval, and a\n"
        "verdict per series and quantile: slower, not slower (within the margin), or cannot say. Neighbours resemble\n"
        "each other; the limits take that into account, and are calibrated on the baseline where it is long enough.\n\n"
        f"{_PAIRS_TEXT}",
        "heliograph history compare --spool spool --a build=4.1 --b build=4.2",
    )
    add_study_options(parser, "a", "b")


def _add_gate(actions: Actions[argparse.ArgumentParser]) -> None:
    parser = add_action(
        actions,
        "gate",
        _gate,
        "the same with an exit code, for the release tests of a trading system",
        "Compare a candidate with a baseline. Exit code 0: not slower; 1: slower; 2: cannot say, or an error.\n\n"
        f"{_PAIRS_TEXT}",
        "heliograph history gate --spool spool --baseline build=4.1 --candidate build=4.2 --margin 3",
    )
    add_study_options(parser, "baseline", "candidate")


def _add_changes(actions: Actions[argparse.ArgumentParser]) -> None:
    parser = add_action(
        actions,
        "changes",
        _changes,
        "find the days on which a latency changed",
        "Find change points of daily quantiles in a history, for each series, with the builds, hosts and links that\n"
        "changed on the same day. A series needs ten days. One series in a hundred without a change has a false\n"
        "alarm (--significance). A change of the last seven days is shown as not confirmed; a series needs 21 days.",
        "heliograph history changes --history history",
    )
    history_option(parser)
    parser.add_argument(
        "--quantiles", default="p50,p99,p99_9", metavar="LIST", help="columns of the history (default: %(default)s)"
    )
    parser.add_argument(
        "--significance",
        type=float,
        default=0.01,
        metavar="SHARE",
        help="share of unchanged series that get a false alarm, 0.002 to 0.5 (default: 0.01)",
    )
    parser.add_argument("--json", action="store_true", help="one JSON object, durations in ns")
    page_option(parser)


def _series_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--select", default="", metavar="SELECTION", help="labels and times (default: everything)")
    parser.add_argument("--metric", default="receiver_total_latency", help="metric (default: %(default)s)")
    parser.add_argument(
        "--by",
        default="instance,topic,tag",
        metavar="LABELS",
        help="labels that tell series apart, with commas (default: %(default)s)",
    )
    parser.add_argument("--json", action="store_true", help="one JSON object, times and durations in ns")


def _add_objectives(actions: Actions[argparse.ArgumentParser]) -> None:
    parser = add_action(
        actions,
        "objectives",
        _objectives,
        "the share of messages and hours that kept to a limit",
        "For each series of a history: the share of the messages within a limit, the used part of the error budget,\n"
        "and the hours that met the objective. Exit code 0: all met; 1: some missed, or part of the history cannot be\n"
        "read; 2: no data, or an error.\n\n"
        f"{_SELECTION_TEXT}",
        "heliograph history objectives --within 1ms --share 99.9 --select from=2026-11-01,to=2026-12-01",
    )
    history_option(parser)
    parser.add_argument("--within", required=True, metavar="DURATION", help="the limit, such as 250us or 1ms")
    _share_option(parser)
    _series_options(parser)
    page_option(parser)


def _share_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--share", type=_target, default=99.9, metavar="PERCENT", help="the target, in percent (default: 99.9)"
    )


def _target(text: str) -> float:
    value = float(text)
    if not 0 < value < 100:
        raise argparse.ArgumentTypeError(f"{text} is not a percentage above 0 and below 100")
    return value


def _add_calendar(actions: Actions[argparse.ArgumentParser]) -> None:
    parser = add_action(
        actions,
        "calendar",
        _calendar,
        "percentiles by day, and by hour of the week",
        "Show the percentiles of each day and of each hour of the week, from merged counts. A percentile with fewer\n"
        "than ten values beyond it is not shown.\n\n"
        f"{_SELECTION_TEXT}",
        "heliograph history calendar --zone Europe/London --out calendar.html",
    )
    history_option(parser)
    parser.add_argument(
        "--quantile", default="p99.9", metavar="QUANTILE", help="shown by hour of the week (default: p99.9)"
    )
    parser.add_argument("--zone", default="UTC", help="time zone of days and hours (default: UTC)")
    parser.add_argument("--out", type=Path, metavar="FILE", help="write an HTML page instead of text")
    _series_options(parser)


def _selected(args: argparse.Namespace) -> tuple[Rows, tuple[str, ...], int]:
    """Return the selected rows of a history, the labels of its series, and the amount of unusable input."""
    from heliograph.monitor.history.hours import read_history
    from heliograph.monitor.history.merge import ALL_LABELS
    from heliograph.monitor.history.studies.days import choose_rows, notes_text
    from heliograph.monitor.history.studies.samples import parse_selection

    by = tuple(dict.fromkeys(name.strip() for name in args.by.split(",") if name.strip()))
    if unknown := sorted(set(by) - set(ALL_LABELS)):
        raise UserError(f"--by: there is no label {unknown[0]}; the labels are {', '.join(ALL_LABELS)}")
    selection = parse_selection(args.select)
    table, broken = read_history(args.history)
    problems = report_problems((one, 0) for one in broken)
    rows = choose_rows(table, selection, args.metric)
    if rows.hours.num_rows + rows.days.num_rows == 0:
        cut = "".join(f" ({text})" for text in notes_text(rows.notes))
        raise UserError(f"{args.history}: no hour of {args.metric} is selected by {selection.text!r}{cut}")
    return rows, by, problems


def _objectives(args: argparse.Namespace) -> int:
    needs_pyarrow()
    from heliograph.monitor.history.report.writing import write_report
    from heliograph.monitor.history.studies.days import Note, day_names, note_lines
    from heliograph.monitor.history.studies.lines import objective_lines, objectives_html, objectives_json
    from heliograph.monitor.history.studies.objectives import Objective, judge, parse_duration

    objective = Objective(parse_duration(args.within), args.share / 100)
    rows, by, problems = _selected(args)
    judged = judge(rows.hours, objective, by, rows.days)
    if not judged:
        raise UserError(f"{args.history}: the selected hours have no values")
    notes = list(rows.notes)
    if rows.days.num_rows:
        notes.append(Note("their messages count, their hours do not", day_names(rows.days)))
    if args.out:
        write_report(objectives_html(judged, objective, notes), args.out)
    if args.json:
        print(objectives_json(judged, objective, notes))
    else:
        print("\n".join((*objective_lines(judged), *note_lines(notes))))
    return 1 if problems or not all(one.is_met for one in judged) else 0


def _calendar(args: argparse.Namespace) -> int:
    needs_pyarrow()
    from heliograph.monitor.history.report.writing import write_report
    from heliograph.monitor.history.schema import PERCENTILES, metric_titles
    from heliograph.monitor.history.studies.calendar import calendars, days_of, zone_of
    from heliograph.monitor.history.studies.calendar_page import calendar_page
    from heliograph.monitor.history.studies.days import Note, day_names, note_lines, notes_text
    from heliograph.monitor.history.studies.lines import calendar_lines, calendars_json

    quantile = args.quantile.replace(".", "_")
    if quantile not in PERCENTILES:
        raise UserError(f"--quantile: {args.quantile!r} is not one of {', '.join(PERCENTILES)}")
    zone = zone_of(args.zone)
    rows, by, problems = _selected(args)
    days, others = days_of(zone, rows.days)
    notes = list(rows.notes)
    if days.num_rows:
        notes.append(Note("not in the hours of the week", day_names(days)))
    if others.num_rows:
        notes.append(Note(f"left out: they are not days of {args.zone}", day_names(others)))
    found = calendars(rows.hours, zone, by, days)
    if not found:
        reasons = "".join(f" ({text})" for text in notes_text(notes))
        raise UserError(f"{args.history}: the selected hours have no values{reasons}")
    if args.out:
        title = metric_titles().get(args.metric, args.metric)
        write_report(calendar_page(found, quantile, args.zone, title, notes_text(notes)), args.out)
        print(f"{args.out}: {len(found)} series")
    elif args.json:
        print(calendars_json(found, args.zone, notes))
    else:
        print("\n".join((*calendar_lines(found, quantile, args.zone), *note_lines(notes))))
    return 1 if problems else 0


def _changes(args: argparse.Namespace) -> int:
    needs_pyarrow()
    from heliograph.monitor.history.hours import read_history
    from heliograph.monitor.history.report.writing import write_report
    from heliograph.monitor.history.studies.changes import changes
    from heliograph.monitor.history.studies.commands import change_lines, changes_html, changes_json

    table, broken = read_history(args.history)
    found = changes(
        table,
        significance=args.significance,
        quantiles=[name.strip() for name in args.quantiles.split(",") if name.strip()],
    )
    if args.out:
        write_report(changes_html(found), args.out)
    for line in [changes_json(found)] if args.json else change_lines(found):
        print(line)
    return 1 if report_problems((one, 0) for one in broken) else 0


def _compare(args: argparse.Namespace) -> int:
    needs_pyarrow()
    from heliograph.monitor.history.studies.commands import run_compare

    return run_compare(args)


def _gate(args: argparse.Namespace) -> int:
    needs_pyarrow()
    from heliograph.monitor.history.studies.commands import run_gate

    return run_gate(args)


def _rollup(args: argparse.Namespace) -> int:
    needs_pyarrow()
    from heliograph.monitor.history.files import no_spool
    from heliograph.monitor.history.rollup import Threads, rollup

    if not args.spool.is_dir():
        raise no_spool(args.spool)
    progress = Progress(args.progress)
    try:
        if args.no_spark:
            done = rollup(Threads(), args.spool, args.history, replace=args.replace, progress=progress.tell)
        else:
            from heliograph.monitor.history.rollup_spark import OnSpark
            from heliograph.monitor.history.spark import spark_session

            progress.tell(f"starting Spark on {args.master} …")
            with spark_session(args.master) as spark:
                done = rollup(OnSpark(spark), args.spool, args.history, replace=args.replace, progress=progress.tell)
    finally:
        progress.close()
    return report_rolled_up(str(args.history), done)


def _merge(args: argparse.Namespace) -> int:
    needs_pyarrow()
    from heliograph.monitor.history.merge import ALL_LABELS, HOUR_US, merge_spool
    from heliograph.monitor.history.text import series_json, text_table

    by = tuple(dict.fromkeys(name.strip() for name in args.by.split(",") if name.strip()))
    if unknown := sorted(set(by) - set(ALL_LABELS)):
        raise UserError(f"--by: there is no label {unknown[0]}; the labels are {', '.join(ALL_LABELS)}")
    progress = Progress(args.progress)
    try:
        table, problems = merge_spool(
            args.spool,
            HOUR_US if args.hourly else None,
            by=by,
            progress=lambda done, of: progress.tell(f"merged {done:,} of {of:,} intervals"),
        )
    finally:
        progress.close()
    for line in [series_json(table)] if args.json else text_table(table, by=by, hourly=args.hourly):
        print(line)
    return 1 if report_problems(problems) else 0


def _tell_line(progress: Progress, path: Path, line: int) -> None:
    progress.tell(f"{path}: line {line:,}")


def _import(args: argparse.Namespace) -> int:
    needs_pyarrow()
    from heliograph.monitor.history.hgrm import UNITS
    from heliograph.monitor.history.importer import import_hlog

    progress = Progress(args.progress)
    malformed = 0
    for path in args.files:
        try:
            done = import_hlog(
                path,
                args.spool,
                instance=args.instance,
                double_unit_ns=UNITS[args.double_unit],
                progress=partial(_tell_line, progress, path),
            )
        finally:
            progress.close()
        note = " (imported before, nothing changed)" if done.already_there else ""
        empty = f", {done.empty:,} without values" if done.empty else ""
        print(printable(f"{path}: {done.intervals:,} intervals{empty}{note}"))
        for line in done.malformed[:NAMED]:
            print(printable(f"heliograph: {path}:{line.line}: left out: {line.reason}"), file=sys.stderr)
        if done.refused > NAMED:
            print(printable(f"heliograph: {path}: and {done.refused - NAMED} more lines"), file=sys.stderr)
        malformed += len(done.malformed)
    return 1 if malformed else 0


def _report(args: argparse.Namespace) -> int:
    needs_pyarrow()
    from heliograph.monitor.history.report.make import report
    from heliograph.monitor.history.report.writing import write_report
    from heliograph.monitor.history.studies.objectives import Objective, parse_duration

    objective = Objective(parse_duration(args.within), args.share / 100) if args.within else None
    made = report(args.history, args.title, objective)
    write_report(made.html, args.out)
    print(f"{args.out}: {made.series} series")
    return 1 if report_problems((broken, 0) for broken in made.broken) else 0
