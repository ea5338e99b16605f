"""`heliograph history compare` and `heliograph history gate`, and the output of `heliograph history changes`."""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from heliograph.engine.catalogue.outside import json_text
from heliograph.monitor.errors import UserError
from heliograph.monitor.history.report.charts import duration
from heliograph.monitor.history.report.writing import write_report
from heliograph.monitor.text import printable, table

if TYPE_CHECKING:
    from heliograph.monitor.history.studies.changes import Change, RecentChange, Studied
    from heliograph.monitor.history.studies.compare import Calibration, Compared, Contrast
    from heliograph.monitor.history.studies.days import Note
    from heliograph.monitor.history.studies.samples import Pair, Selection

__all__ = [
    "Study",
    "change_lines",
    "changes_html",
    "changes_json",
    "exit_code_of",
    "run_compare",
    "run_gate",
    "study",
    "study_html",
    "study_json",
    "study_text",
]

_HEADS = ("", "A", "B", "B / A", "95 % interval", "p", "verdict")
EXIT_CODES = {"not slower": 0, "slower": 1, "cannot say": 2}

Calibrations = dict[str, "Calibration"]


class Study:
    """A finished comparison, with everything that its output says."""

    def __init__(
        self,
        a: Selection,
        b: Selection,
        args: argparse.Namespace,
        compared: Sequence[Compared],
        calibrations: Sequence[Calibrations],
        alone: Sequence[Pair],
        notes: Sequence[Note],
    ) -> None:
        from heliograph.monitor.history.studies.compare import verdict_of

        self.a = a
        self.b = b
        self.metric: str = args.metric
        self.margin: float = args.margin / 100
        self.compared = compared
        self.calibrations = calibrations
        self.alone = alone
        """Series that only one of the selections has."""
        self.notes = notes
        self.verdict = verdict_of(compared)


def study(args: argparse.Namespace) -> tuple[Study, int]:
    """Make a comparison; returns it and the amount of unusable input, which is reported on stderr.

    Raises:
        UserError: A selection cannot be read or selects nothing, or there is no spool or history.
    """
    from heliograph.monitor.history.actions import report_problems
    from heliograph.monitor.history.studies.bootstrap import check_installed

    check_installed()
    from heliograph.monitor.history.studies.compare import QUANTILES, calibrate, compare
    from heliograph.monitor.history.studies.samples import pairs, parse_selection
    from heliograph.monitor.history.studies.sources import Source

    quantiles = [name.strip() for name in args.quantiles.split(",") if name.strip()]
    if unknown := [name for name in quantiles or [""] if name not in QUANTILES]:
        raise UserError(f"--quantiles: {unknown[0]!r} is not one of {', '.join(QUANTILES)}")
    chosen = [parse_selection(text) for text in (args.a, args.b, args.calibrate_on or args.a)]
    source = Source(args.spool, args.history, args.interval)
    (rows_a, rows_b, rows_c), problems, notes = source.read(chosen, args.metric)
    for selection, rows in zip(chosen, (rows_a, rows_b, rows_c), strict=True):
        if rows.num_rows == 0:
            raise UserError(f"{source.name}: no interval of {args.metric} is selected by {selection.text!r}")
    apart = {*chosen[0].labels, *chosen[1].labels}
    found = pairs(rows_a, rows_b, apart)
    both = [pair for pair in found if pair.a is not None and pair.b is not None]
    baselines = {pair.series: pair.a for pair in pairs(rows_c, rows_b, apart)}
    calibrations: list[Calibrations] = []
    for pair in both:
        baseline = baselines.get(pair.series)
        assert pair.a is not None
        assert pair.b is not None
        window = min(pair.a.starts_us.size, pair.b.starts_us.size)
        calibrations.append(
            {quantile: calibrate(baseline, window, quantile, args.seed) for quantile in quantiles} if baseline else {}
        )
    compared = compare(both, margin=args.margin / 100, quantiles=quantiles, calibrations=calibrations, seed=args.seed)
    alone = [pair for pair in found if pair.a is None or pair.b is None]
    return Study(chosen[0], chosen[1], args, compared, calibrations, alone, notes), report_problems(problems)


def exit_code_of(verdict: str) -> int:
    """Return the exit code of `history gate`: 0 not slower, 1 slower, 2 cannot say."""
    return EXIT_CODES[verdict]


def study_text(done: Study) -> Iterator[str]:
    """Return a study as people read it."""
    from heliograph.monitor.history.studies.days import note_lines

    yield printable(f"A: {done.a.text}    B: {done.b.text}    {done.metric}    margin {done.margin:.3g}")
    for one, known in zip(done.compared, done.calibrations, strict=True):
        assert one.pair.a is not None
        assert one.pair.b is not None
        yield ""
        name = printable(" ".join(value for _, value in one.pair.series if value) or "all")
        sizes = " and ".join(
            f"{sample.n:,} values in {sample.starts_us.size:,} intervals" for sample in (one.pair.a, one.pair.b)
        )
        yield f"{name}: {sizes}; a value of B is larger than one of A with probability {one.effect:.3f}"
        rows = list(map(_row, one.contrasts))
        yield from (line.rstrip() for line in table(_HEADS, rows))
        yield from _calibration_text(known)
    for pair in done.alone:
        name = printable(" ".join(value for _, value in pair.series if value) or "all")
        yield f"{name}: only in {'A' if pair.b is None else 'B'}"
    yield from note_lines(done.notes)
    yield ""
    yield f"verdict: {done.verdict}"


def _row(each: Contrast) -> list[str]:
    return [
        each.quantile,
        duration(each.a_ns),
        duration(each.b_ns),
        f"{each.ratio:.3f}",
        "-" if math.isnan(each.low) else f"{each.low:.3f} to {each.high:.3f}",
        "-" if math.isnan(each.p) else f"{each.p:.3f}",
        each.verdict + (f": {each.reason}" if each.reason else ""),
    ]


def study_html(done: Study) -> str:
    """Return a study as a page."""
    from heliograph.monitor.history.studies.page import Part, Span, study_page

    parts = []
    for one, known in zip(done.compared, done.calibrations, strict=True):
        assert one.pair.a is not None
        assert one.pair.b is not None
        sizes = " and ".join(
            f"{sample.n:,} values in {sample.starts_us.size:,} intervals" for sample in (one.pair.a, one.pair.b)
        )
        effect = f"A value of B is larger than one of A with probability {one.effect:.3f}."
        spans = [Span(each.quantile, each.ratio, each.low, each.high, f"x {each.ratio:.3f}") for each in one.contrasts]
        parts.append(
            Part(
                " ".join(value for _, value in one.pair.series if value) or "all",
                [f"{sizes}. {effect}", *_calibration_text(known)],
                _HEADS,
                list(map(_row, one.contrasts)),
                spans,
                1.0,
                1.0 + done.margin,
            )
        )
    alone = [
        f"{' '.join(value for _, value in pair.series if value) or 'all'}: only in {'A' if pair.b is None else 'B'}"
        for pair in done.alone
    ]
    about = [f"A: {done.a.text} · B: {done.b.text}", f"{done.metric} · margin {done.margin:.3g}", *alone]
    return study_page("Is B slower than A?", about, done.verdict, parts, done.notes)


def _calibration_text(known: Calibrations) -> Iterator[str]:
    pairs = max((one.pairs for one in known.values()), default=0)
    if pairs == 0:
        yield "not calibrated: the baseline is too short; the limits may be too narrow (see --calibrate-on)"
        return
    each = ", ".join(
        f"{quantile} {one.called_different:.0%} x{one.factor:.2f}" for quantile, one in known.items() if one.pairs
    )
    yield f"calibrated on {pairs} pairs of neighbouring windows of one process; called different before, factor: {each}"


def study_json(done: Study) -> str:
    """Return a study as one JSON object."""
    from heliograph.monitor.history.studies.lines import notes_json

    return json_text(
        {
            "a": done.a.text,
            "b": done.b.text,
            "metric": done.metric,
            "margin": done.margin,
            "verdict": done.verdict,
            "series": [_series_json(one, known) for one, known in zip(done.compared, done.calibrations, strict=True)],
            "only_a": [dict(pair.series) for pair in done.alone if pair.b is None],
            "only_b": [dict(pair.series) for pair in done.alone if pair.a is None],
            "notes": notes_json(done.notes),
        }
    )


def _series_json(one: Compared, known: Calibrations) -> dict[str, Any]:
    assert one.pair.a is not None
    assert one.pair.b is not None
    return {
        "labels": dict(one.pair.series),
        "a": {"values": one.pair.a.n, "intervals": one.pair.a.starts_us.size},
        "b": {"values": one.pair.b.n, "intervals": one.pair.b.starts_us.size},
        "effect": one.effect,
        "quantiles": [
            {
                "quantile": each.quantile,
                "a_ns": each.a_ns,
                "b_ns": each.b_ns,
                "ratio": each.ratio,
                "low": _number(each.low),
                "high": _number(each.high),
                "p": _number(each.p),
                "detectable": _number(each.detectable),
                "blocks": each.blocks,
                "verdict": each.verdict,
                "reason": each.reason,
                "calibration_pairs": known[each.quantile].pairs if each.quantile in known else 0,
                "calibration_factor": known[each.quantile].factor if each.quantile in known else 1.0,
            }
            for each in one.contrasts
        ],
    }


def _number(value: float) -> float | None:
    return None if math.isnan(value) else value


def _unused(found: Studied) -> list[Note]:
    from heliograph.monitor.history.studies.days import Note

    return [Note("left out: changes are found from hours", found.unused)] if found.unused else []


def changes_json(found: Studied) -> str:
    """Return change points as one JSON object; durations in ns."""
    from heliograph.monitor.history.studies.lines import notes_json

    return json_text(
        {
            "changes": [asdict(one) for one in found.changes],
            "recent": [asdict(one) for one in found.recent],
            "series_studied": found.series,
            "too_few_days": list(found.thin),
            "too_few_days_recent": list(found.thin_recent),
            "notes": notes_json(_unused(found)),
        }
    )


def changes_html(found: Studied) -> str:
    """Return change points as a page, one part per series."""
    from heliograph.monitor.history.studies.page import Part, Span, study_page

    parts: dict[str, list[_Shown]] = {}
    for one in _shown(found):
        parts.setdefault(one.series, []).append(one)
    heads = ("day", "quantile", "before", "after", "after / before", "p", "what else changed")
    drawn = [
        Part(
            name,
            [],
            heads,
            [
                [
                    each.when,
                    each.quantile,
                    duration(each.change.before_ns),
                    duration(each.change.after_ns),
                    f"{each.change.ratio:.2f}",
                    each.certainty,
                    ", ".join(each.change.notes),
                ]
                for each in of
            ],
            [
                Span(
                    f"{each.when[:16]} {each.quantile}",
                    each.change.ratio,
                    each.low,
                    each.high,
                    f"x {each.change.ratio:.2f}",
                )
                for each in of
            ],
            1.0,
        )
        for name, of in parts.items()
    ]
    about = [
        f"{found.series:,} series studied",
        *(f"too few days: {text}" for text in found.thin),
        *(f"too few days for a recent change: {text}" for text in found.thin_recent),
    ]
    verdict = f"{len(found.changes) + len(found.recent):,} in {len(parts):,} series" if parts else "no change"
    if found.recent:
        verdict += f", {len(found.recent):,} recent and not confirmed"
    return study_page("When did a latency change?", about, verdict, drawn, _unused(found))


@dataclass(frozen=True, slots=True)
class _Shown:
    """A change, dated or recent, as page and text show it."""

    change: Change | RecentChange
    when: str
    certainty: str
    line: tuple[str, str]
    """Text before the series, and behind the ratio."""
    low: float = math.nan
    high: float = math.nan

    @property
    def series(self) -> str:
        return " ".join(value for value in self.change.series.values() if value)

    @property
    def quantile(self) -> str:
        return self.change.quantile.replace("_", ".")


def _shown(found: Studied) -> list[_Shown]:
    """Return all changes, the dated ones first."""
    dated = [_Shown(one, one.day, f"{one.p:.3f}", (one.day, f"  p {one.p:.3f}")) for one in found.changes]
    return dated + [_shown_recent(one) for one in found.recent]


def _shown_recent(one: RecentChange) -> _Shown:
    hour = one.since.replace("T", " ").removesuffix("Z")
    length = f"{one.hours / 24:.0f} days" if one.hours >= 48 else f"{one.hours} hours"
    interval = f" [{one.low:.2f}, {one.high:.2f}]  {length}, not confirmed"
    return _Shown(one, f"{hour}, {length}", "not confirmed", (f"since {hour}", interval), one.low, one.high)


def change_lines(found: Studied) -> Iterator[str]:
    """Return change points as text."""
    from heliograph.monitor.history.studies.days import note_lines

    for one in _shown(found):
        head, tail = one.line
        notes = printable("; " + ", ".join(one.change.notes)) if one.change.notes else ""
        yield (
            f"{head}  {printable(one.series)}  {one.quantile}  {duration(one.change.before_ns)} -> "
            f"{duration(one.change.after_ns)}  x{one.change.ratio:.2f}{tail}{notes}"
        )
    if not found.changes and not found.recent:
        yield f"no change in {found.series} series"
    for text in found.thin:
        yield printable(f"too few days: {text}")
    for text in found.thin_recent:
        yield printable(f"too few days for a recent change: {text}")
    yield from note_lines(_unused(found))


def run_compare(args: argparse.Namespace) -> int:
    """Run `heliograph history compare`; exit code 0, or 1 when some input could not be used."""
    done, problems = study(args)
    _print(done, args)
    return 1 if problems else 0


def run_gate(args: argparse.Namespace) -> int:
    """Run `heliograph history gate`; exit code by the verdict."""
    done, _ = study(args)
    _print(done, args)
    return exit_code_of(done.verdict)


def _print(done: Study, args: argparse.Namespace) -> None:
    if args.out:
        write_report(study_html(done), args.out)
    for line in [study_json(done)] if args.json else study_text(done):
        print(line)
    sys.stdout.flush()
