"""`heliograph history blame`: the causes of late messages as text and as one JSON object."""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from typing import Any

from heliograph.engine.catalogue.outside import json_text
from heliograph.monitor.errors import UserError
from heliograph.monitor.history.actions import report_problems
from heliograph.monitor.history.merge import ALL_LABELS
from heliograph.monitor.history.report.charts import duration
from heliograph.monitor.history.report.writing import write_report
from heliograph.monitor.history.studies.blame import HICCUPS, METRICS, SENDERS, TOTAL, Blamed, blame, late_of
from heliograph.monitor.history.studies.bootstrap import check_installed
from heliograph.monitor.history.studies.days import Note, note_lines
from heliograph.monitor.history.studies.lines import notes_json, series_name
from heliograph.monitor.history.studies.objectives import parse_duration
from heliograph.monitor.history.studies.page import Part, Span, study_page
from heliograph.monitor.history.studies.samples import PAIR, parse_selection
from heliograph.monitor.history.studies.sources import Source
from heliograph.monitor.text import printable, table

__all__ = ["run_blame"]

_HEADS = ("cause", "share", "95 % interval")


def run_blame(args: argparse.Namespace) -> int:
    """Run `heliograph history blame`; exit code 0, or 1 when some input could not be used.

    Raises:
        UserError: An option cannot be read, nothing is selected, or there is no spool or history.
    """
    check_installed()
    by = tuple(dict.fromkeys(name.strip() for name in args.by.split(",") if name.strip()))
    if unknown := sorted(set(by) - set(ALL_LABELS)):
        raise UserError(f"--by: there is no label {unknown[0]}; the labels are {', '.join(ALL_LABELS)}")
    by = tuple(name for name in by if name != "metric")
    if not by:
        raise UserError("--by: name at least one label, such as topic")
    limit_ns = parse_duration(args.late) if args.late else None
    selection = parse_selection(args.select)
    source = Source(args.spool, args.history, args.interval)
    keep = tuple(dict.fromkeys((*PAIR, *by, "host", "level")))
    (received,), problems, notes = source.read([selection], METRICS, keep)
    if TOTAL not in received["metric"].to_pylist():
        raise UserError(f"{source.name}: no interval of {TOTAL} is selected by {selection.text!r}")
    # Stops of a host concern all receivers on it, and its instances may have other labels.
    anywhere = replace(selection, labels={})
    (others,), _, _ = source.read([anywhere], (HICCUPS, SENDERS), (*PAIR, "host"))
    hiccups, senders = (others.filter(_is(others, metric)) for metric in (HICCUPS, SENDERS))
    blamed = [blame(one, args.seed) for one in late_of(received, hiccups, senders, limit_ns, by)]
    if args.out:
        write_report(_html(blamed, notes), args.out)
    print(_json(blamed, notes) if args.json else "\n".join(_lines(blamed, notes)), flush=True)
    return 1 if report_problems(problems) else 0


def _is(rows: Any, metric: str) -> Any:
    import pyarrow.compute as pc

    return pc.equal(rows["metric"], metric)


def _rows(one: Blamed) -> list[list[str]]:
    return [[each.cause, f"{each.share:.1%}", f"{each.low:.1%} to {each.high:.1%}"] for each in one.shares]


def _html(blamed: Sequence[Blamed], notes: Sequence[Note]) -> str:
    parts = []
    for one in blamed:
        late = one.of
        said = [
            f"{late.late.sum():,.0f} of {late.messages.sum():,.0f} messages took longer than "
            f"{duration(late.limit_ns)}; the median is {duration(late.median_ns)}.",
            f"Verdict: {one.verdict}" + (f": {one.reason}" if one.reason else ""),
        ]
        spans = [Span(each.cause, each.share, each.low, each.high, f"{each.share:.1%}") for each in one.shares]
        parts.append(Part(series_name(dict(late.series)), said, _HEADS, _rows(one), spans))
    verdicts = sorted({one.verdict for one in blamed})
    return study_page("Who made messages late?", [f"{len(blamed):,} series"], " · ".join(verdicts), parts, notes)


def _lines(blamed: Sequence[Blamed], notes: Sequence[Note]) -> Iterator[str]:
    for one in blamed:
        late = one.of
        yield (
            f"{series_name(dict(late.series))}: {late.late.sum():,.0f} of {late.messages.sum():,.0f} messages took "
            f"longer than {duration(late.limit_ns)}; the median is {duration(late.median_ns)}"
        )
        if one.shares:
            yield from (line.rstrip() for line in table(_HEADS, _rows(one)))
            hosts = printable(", ".join(late.hosts))
            if math.isnan(one.multiple):
                yield f"{hosts}: no stop of half the extra delay"
            else:
                yield f"stops of {hosts} come with {one.multiple:.2f} times the late messages that they should cause"
        if "senders" in late.unknown:
            yield "no hiccups of the senders' hosts are recorded: their stops count as transport"
        yield f"verdict: {one.verdict}" + (f": {one.reason}" if one.reason else "")
        yield ""
    yield from note_lines(notes)


def _json(blamed: Sequence[Blamed], notes: Sequence[Note]) -> str:
    return json_text({"series": [_blamed_json(one) for one in blamed], "notes": notes_json(notes)})


def _blamed_json(one: Blamed) -> dict[str, Any]:
    late = one.of
    return {
        "labels": dict(late.series),
        "limit_ns": late.limit_ns,
        "median_ns": late.median_ns,
        "messages": int(late.messages.sum()),
        "late": int(late.late.sum()),
        "intervals": late.late.size,
        "blocks": one.blocks,
        "shares": [asdict(each) for each in one.shares],
        "multiple": None if math.isnan(one.multiple) else one.multiple,
        "hosts": list(late.hosts),
        "hosts_unknown": list(late.unknown),
        "verdict": one.verdict,
        "reason": one.reason,
    }
