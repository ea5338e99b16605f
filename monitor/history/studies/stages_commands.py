"""`heliograph history stages`: the comparison of stages as text and as one JSON object."""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from heliograph.engine.catalogue.outside import json_text
from heliograph.monitor.errors import UserError
from heliograph.monitor.history.actions import report_problems
from heliograph.monitor.history.report.charts import duration
from heliograph.monitor.history.report.writing import write_report
from heliograph.monitor.history.studies.blame import HICCUPS
from heliograph.monitor.history.studies.bootstrap import check_installed
from heliograph.monitor.history.studies.days import Note, note_lines
from heliograph.monitor.history.studies.lines import notes_json, series_name
from heliograph.monitor.history.studies.objectives import parse_duration
from heliograph.monitor.history.studies.page import Part, Span, study_page
from heliograph.monitor.history.studies.samples import PAIR, Selection, parse_selection
from heliograph.monitor.history.studies.sources import Source
from heliograph.monitor.history.studies.stages import (
    METRICS,
    SENDER_METRICS,
    TOTAL,
    WHOLE,
    Labels,
    Moved,
    Stage,
    alike,
    calibrate,
    cause_of,
    stages,
    stages_of,
    verdict_of,
)
from heliograph.monitor.text import printable, table

__all__ = ["run_stages"]

_HEADS = ("stage", "A", "B", "change", "95 % interval", "share", "p99 A", "p99 B", "p", "verdict")
SERIES = ("instance", "topic", "tag")
OF_RECEIVERS = ("instance", "link", "stream", "host", "incarnation")
"""Labels of a receiver that its senders do not share."""


@dataclass(frozen=True, slots=True)
class _Stops:
    """Periods that are left out because a host stopped in them."""

    limit_ns: int
    left_out: tuple[int, ...]
    """Of A, of B, and of the baseline."""
    of: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _Study:
    """A finished comparison, with everything that its output says."""

    a: Selection
    b: Selection
    margin: float
    moved: Sequence[Moved]
    only_a: Sequence[Labels]
    only_b: Sequence[Labels]
    notes: Sequence[Note]
    stops: _Stops | None

    @property
    def verdict(self) -> str:
        """Of all series."""
        return verdict_of(self.moved)

    @property
    def causes(self) -> list[str]:
        """Stages that explain a slower series, those of most series first."""
        found = [cause.name for one in self.moved if (cause := cause_of(one)) is not None]
        return sorted(set(found), key=lambda name: (-found.count(name), name))


def run_stages(args: argparse.Namespace) -> int:
    """Run `heliograph history stages`; exit code 0, or 1 when some input could not be used.

    Raises:
        UserError: A selection cannot be read or selects nothing, or there is no spool or history.
    """
    check_installed()
    chosen = [parse_selection(text) for text in (args.a, args.b, args.calibrate_on or args.a)]
    source = Source(args.spool, args.history, args.interval)
    received, problems, notes = source.read(chosen, METRICS)
    for selection, rows in zip(chosen, received, strict=True):
        if TOTAL not in rows["metric"].to_pylist():
            raise UserError(f"{source.name}: no interval of {TOTAL} is selected by {selection.text!r}")
    stops = None
    if args.without_stops:
        received, stops = _without_stops(source, chosen, received, parse_duration(args.without_stops))
    sent, _, _ = source.read([_of_senders(one) for one in chosen], SENDER_METRICS)
    by = [name for name in SERIES if name not in {*chosen[0].labels, *chosen[1].labels}]
    a, b, baseline = (stages_of(*rows, by) for rows in zip(received, sent, strict=True))
    calibrations = {
        series: calibrate(alike(baseline[series], a[series], b[series])[0], window, args.seed)
        for series in a
        if series in b and series in baseline and not baseline[series].reason
        for window in [min(len(a[series].sums), len(b[series].sums))]
    }
    moved = stages(a, b, margin=args.margin / 100, calibrations=calibrations, seed=args.seed)
    done = _Study(
        chosen[0],
        chosen[1],
        args.margin / 100,
        moved,
        [series for series in a if series not in b],
        [series for series in b if series not in a],
        notes,
        stops,
    )
    if args.out:
        write_report(_html(done), args.out)
    print(_json(done) if args.json else "\n".join(_lines(done)), flush=True)
    return 1 if report_problems(problems) else 0


def _of_senders(selection: Selection) -> Selection:
    return replace(
        selection, labels={name: value for name, value in selection.labels.items() if name not in OF_RECEIVERS}
    )


def _without_stops(
    source: Source, chosen: Sequence[Selection], received: Sequence[pa.Table], limit_ns: int
) -> tuple[list[pa.Table], _Stops]:
    """Return the rows of the periods in which no host of the receivers stopped for `limit_ns` or longer.

    The period after a stop, in which queues become empty again, is left out too.
    """
    hiccups, _, _ = source.read([replace(one, labels={}) for one in chosen], HICCUPS, (*PAIR, "host"))
    kept, left_out, of = [], [], []
    for selection, rows, stopped in zip(chosen, received, hiccups, strict=True):
        # A host is empty where the rows of a period are of several.
        hosts = pa.array([host for host in pc.unique(rows["host"]).to_pylist() if host], pa.string())
        mine = stopped.filter(pc.is_in(stopped["host"], hosts)) if len(hosts) else stopped
        if not mine.num_rows:
            raise UserError(f"--without-stops: no hiccups of the hosts of {selection.text!r} are recorded")
        stops = pc.unique(mine.filter(pc.greater_equal(mine["max"], limit_ns))["ts"].cast(pa.int64())).to_numpy()
        times = pa.array(np.union1d(stops, stops + source.period_us), pa.int64())
        calm = rows.filter(pc.invert(pc.is_in(rows["ts"].cast(pa.int64()), times)))
        kept.append(calm)
        of.append(len(pc.unique(rows["ts"])))
        left_out.append(of[-1] - len(pc.unique(calm["ts"])))
        if not calm.num_rows:
            raise UserError(f"--without-stops: the hosts of {selection.text!r} stopped in each interval")
    return kept, _Stops(limit_ns, tuple(left_out), tuple(of))


# -- text -------------------------------------------------------------------------------------------------------------


def _lines(done: _Study) -> Iterator[str]:
    yield printable(f"A: {done.a.text}    B: {done.b.text}    margin {done.margin:.3g} of the whole's mean")
    for one in done.moved:
        yield ""
        sizes = f"{one.a_messages:,} messages in {one.intervals[0]:,} intervals"
        yield f"{_name(one.series)}: {sizes}, and {one.b_messages:,} in {one.intervals[1]:,}; means per message"
        if one.whole is not None:
            yield from (line.rstrip() for line in table(_HEADS, [_row(each) for each in (*one.stages, one.whole)]))
            yield from _calibration(one)
        yield printable(_sentence(one, done))
    for side, alone in (("A", done.only_a), ("B", done.only_b)):
        yield from (f"{_name(series)}: only in {side}" for series in alone)
    yield from note_lines(done.notes)
    yield ""
    if done.stops is not None:
        a, b = (f"{out:,} of {of:,}" for out, of in zip(done.stops.left_out[:2], done.stops.of[:2], strict=True))
        yield f"left out: intervals in which a host stopped for {duration(done.stops.limit_ns)}: A {a}, B {b}"
    yield "Means add: a share is a part of the change of the mean. Percentiles do not add; p99 is of the stage alone."
    yield printable(f"verdict: {_verdict(done)}")


def _name(series: Labels) -> str:
    return series_name(dict(series))


def _signed(ns: float) -> str:
    return f"{'-' if ns < 0 else '+'}{duration(abs(ns))}"


def _row(one: Stage) -> list[str]:
    p99 = [duration(value) if value is not None else "-" for value in one.quantiles.get("p99", (None, None))]
    return [
        one.name,
        *(duration(value) if value >= 0 else _signed(value) for value in (one.a_ns, one.b_ns)),
        _signed(one.change_ns),
        "-" if math.isnan(one.low_ns) else f"{_signed(one.low_ns)} to {_signed(one.high_ns)}",
        "-" if math.isnan(one.share) else f"{one.share:.0%}",
        *(p99 if one.name != WHOLE else ["-", "-"]),
        "-" if math.isnan(one.p) else f"{one.p:.3f}",
        one.verdict + (f": {one.reason}" if one.reason else ""),
    ]


def _calibration(one: Moved) -> Iterator[str]:
    known = [stage for stage in (*one.stages, *([one.whole] if one.whole else [])) if stage.calibration.pairs]
    if not known:
        yield "not calibrated: the baseline is too short; the limits may be too narrow (see --calibrate-on)"
        return
    each = ", ".join(f"{stage.name} x{stage.calibration.factor:.2f}" for stage in known)
    pairs = max(stage.calibration.pairs for stage in known)
    yield f"calibrated on {pairs} pairs of neighbouring windows of one process; factor: {each}"


def _sentence(one: Moved, done: _Study) -> str:
    a, b, whole = done.a.text, done.b.text, one.whole
    if whole is None:
        return f"cannot say: {one.reason}"
    amount = f"{_signed(whole.change_ns)} per message, {whole.change_ns / max(1.0, whole.a_ns):+.1%}"
    rose = [stage.name for stage in one.stages if stage.verdict == "slower"]
    if whole.verdict == "slower":
        cause = cause_of(one)
        if cause is None:
            return f"{b} is slower than {a} ({amount}), but no stage stands out: cannot say which"
        limits = f"95 % interval {max(0.0, cause.share_low):.0%} to {cause.share_high:.0%}"
        return f"{b} is slower than {a} ({amount}): {cause.name} explains {cause.share:.0%} of the change ({limits})"
    others = f"; but slower: {', '.join(rose)}" if rose else ""
    if whole.verdict == "not slower":
        return f"{b} is not slower than {a} ({amount}){others}"
    return f"cannot say whether {b} is slower than {a} ({amount}): {whole.reason}{others}"


def _verdict(done: _Study) -> str:
    if done.verdict != "slower":
        return done.verdict
    return f"slower: {done.b.text} in {', '.join(done.causes) or 'no stage that stands out'}"


# -- page -------------------------------------------------------------------------------------------------------------


def _html(done: _Study) -> str:
    parts = []
    for one in done.moved:
        every = [] if one.whole is None else [*one.stages, one.whole]
        spans = [Span(each.name, each.change_ns, each.low_ns, each.high_ns, _signed(each.change_ns)) for each in every]
        said = [
            _sentence(one, done) + ".",
            f"{one.a_messages:,} messages in {one.intervals[0]:,} intervals, and {one.b_messages:,} in "
            f"{one.intervals[1]:,}; means per message, which add.",
            *(_calibration(one) if every else ()),
        ]
        margin = done.margin * one.whole.a_ns if one.whole is not None else math.nan
        parts.append(Part(_name(one.series), said, _HEADS, list(map(_row, every)), spans, 0.0, margin))
    about = [f"A: {done.a.text} · B: {done.b.text}", f"margin {done.margin:.3g} of the whole's mean"]
    about += [f"{_name(series)}: only in A" for series in done.only_a]
    about += [f"{_name(series)}: only in B" for series in done.only_b]
    return study_page("Which stage moved?", about, _verdict(done), parts, done.notes)


# -- JSON -------------------------------------------------------------------------------------------------------------


def _json(done: _Study) -> str:
    return json_text(
        {
            "a": done.a.text,
            "b": done.b.text,
            "margin": done.margin,
            "verdict": done.verdict,
            "causes": done.causes,
            "series": [_moved_json(one, done) for one in done.moved],
            "only_a": [dict(series) for series in done.only_a],
            "only_b": [dict(series) for series in done.only_b],
            "notes": notes_json(done.notes),
            "stops": None if done.stops is None else _stops_json(done.stops),
        }
    )


def _stops_json(stops: _Stops) -> dict[str, Any]:
    sides = zip(("a", "b"), stops.left_out, stops.of, strict=False)  # without the baseline
    return {"limit_ns": stops.limit_ns, **{side: {"left_out": out, "intervals": of} for side, out, of in sides}}


def _moved_json(one: Moved, done: _Study) -> dict[str, Any]:
    cause = cause_of(one)
    return {
        "labels": dict(one.series),
        "a": {"messages": one.a_messages, "intervals": one.intervals[0]},
        "b": {"messages": one.b_messages, "intervals": one.intervals[1]},
        "blocks": one.blocks,
        "verdict": one.whole.verdict if one.whole is not None else "cannot say",
        "cause": cause.name if cause is not None else None,
        "text": _sentence(one, done),
        "reason": one.reason,
        "whole": _stage_json(one.whole) if one.whole is not None else None,
        "stages": [_stage_json(stage) for stage in one.stages],
    }


def _number(value: float) -> float | None:
    return None if math.isnan(value) else value


def _quantiles_json(quantiles: Mapping[str, tuple[int | None, int | None]]) -> dict[str, Any]:
    return {name: {"a_ns": a, "b_ns": b} for name, (a, b) in quantiles.items()}


def _stage_json(one: Stage) -> dict[str, Any]:
    return {
        "stage": one.name,
        "a_ns": one.a_ns,
        "b_ns": one.b_ns,
        "change_ns": one.change_ns,
        "low_ns": _number(one.low_ns),
        "high_ns": _number(one.high_ns),
        "share": _number(one.share),
        "share_low": _number(one.share_low),
        "share_high": _number(one.share_high),
        "p": _number(one.p),
        "detectable_ns": _number(one.detectable_ns),
        "quantiles": _quantiles_json(one.quantiles),
        "calibration_pairs": one.calibration.pairs,
        "calibration_factor": one.calibration.factor,
        "verdict": one.verdict,
        "reason": one.reason,
    }
