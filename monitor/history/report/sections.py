"""Cards of the report beside those of its metrics: stages, recovered messages, objective, coverage, changes, days."""

from __future__ import annotations

from collections.abc import Sequence

from heliograph.engine.catalogue.outside import html_text
from heliograph.monitor.history.report.cells import HEADS, THIN, full, named, of_whole, percent, with_reach
from heliograph.monitor.history.report.charts import Bar, Track, bars, duration, tracks
from heliograph.monitor.history.report.figures import STACKED, Figures, MetricFigures, SeriesFigures, Stacked
from heliograph.monitor.history.report.metric import Clock
from heliograph.monitor.history.report.timeline import Event, covered, gaps
from heliograph.monitor.history.studies.calendar_page import calendar_card
from heliograph.monitor.history.studies.lines import objective_rows
from heliograph.monitor.page import shell

__all__ = ["calendars_card", "changes_card", "coverage_card", "objective_card", "recovered_card", "stages_card"]

TRACKS = 50
LISTED = 200


def stages_card(stages: Sequence[Stacked]) -> str:
    """Return the means of the stages of one message, one bar per receiver."""
    if not stages:
        return ""
    names = list(dict.fromkeys(name for one in stages for name in one.stages.names))
    found = []
    for one in stages:
        of_stage = dict(zip(one.stages.names, one.stages.means.tolist(), strict=True))
        parts = [(name, max(0.0, of_stage.get(name, 0.0))) for name in names if name != "callback"]
        found.append(Bar(one.name, parts, duration(sum(value for _, value in parts))))
    key = shell.legend((name, "", "") for name in names if name != "callback")
    rows = [
        (
            html_text(one.name) if not at else "",
            html_text(name),
            with_reach(max(0.0, float(one.stages.means[at])), one.reaches[at]),
            *(
                "–" if name not in one.stages.quantiles else _quantile(one.stages.quantiles[name][quantile])
                for quantile in ("p50", "p99")
            ),
        )
        for one in stages
        for at, name in enumerate(one.stages.names)
    ]
    table = shell.table(("Receiver", "Stage", "Mean per message", "50 %", "99 %"), rows, (0, 1))
    state = " open" if len(rows) <= 40 else ""
    return (
        "<section class='card'><h2>Stages of one message</h2>"
        "<p class='sub'>From submit to the application. Means add; percentiles are of the stage alone. Callback is "
        f"the time in the application, after the message. At most {STACKED} receivers, those with the worst "
        f"99.9 %.</p>{key}{bars(found, 'Mean of each stage by receiver')}"
        f"<details{state}><summary><h3>Stages ({len(rows):,})</h3></summary>{table}</details></section>"
    )


def _quantile(value: int | None) -> str:
    return THIN if value is None else duration(value)


def recovered_card(whole: MetricFigures | None, recovered: MetricFigures | None) -> str:
    """Return the recovered messages beside all messages of their series."""
    if whole is None or recovered is None:
        return ""
    apart = {_of_series(one): one for one in recovered.series if one.whole.n}
    rows = []
    for one in whole.series:
        lost = apart.get(_of_series(one))
        if lost is not None and one.whole.n:
            rows.append((named(one), "all", "100 %", *of_whole(one)))
            rows.append(("", "recovered", percent(min(1.0, lost.whole.n / one.whole.n)), *of_whole(lost)))
    if not rows:
        return ""
    heads = ("Series", "Messages", "Share", "Values", "Mean", *HEADS, "Max", "Jitter")
    return (
        "<section class='card'><h2>Recovered messages apart</h2><p class='sub'>Messages whose packet was lost and "
        f"repaired. They are among all messages too.</p>{shell.table(heads, rows, (0, 1))}</section>"
    )


def _of_series(one: SeriesFigures) -> tuple[str, ...]:
    return tuple(value for name, value in one.labels.items() if name != "metric")


def objective_card(figures: Figures) -> str:
    """Return the series of the first metric against the objective."""
    if not figures.judged:
        return ""
    objective = figures.judged[0].objective
    heads, rows = objective_rows(figures.judged)
    missed = sum(not one.is_met for one in figures.judged)
    table = shell.table(
        [head.capitalize() for head in heads], [[html_text(cell) for cell in row] for row in rows], (0,)
    )
    return (
        f"<section class='card'><h2>Objective: {objective.target * 100:g} % within {duration(objective.limit_ns)}</h2>"
        f"<p class='sub'>{html_text(figures.metrics[0].title)}: {missed:,} of {len(rows):,} series missed it. "
        "Counts, no estimates: values in the cell that holds the limit count as outside.</p>"
        f"{table}</section>"
    )


def coverage_card(metric: MetricFigures, clock: Clock) -> str:
    """Return the time of each series that no interval covers, as tracks and as a table."""
    first, end = clock
    whole = (end - first).total_seconds()
    rows, found = [], []
    complete = 0
    for one in metric.series:
        missing = gaps([(hour.start, hour.length, hour.covered_ms) for hour in one.hours], first, end)
        if not missing:
            complete += 1
            continue
        texts = [f"{gap.start:%Y-%m-%d %H:%M} to {gap.end:%Y-%m-%d %H:%M}" for gap in missing]
        drawn = [
            ((gap.start - first).total_seconds() / whole, (gap.end - first).total_seconds() / whole, text)
            for gap, text in zip(missing, texts, strict=True)
        ]
        found.append(Track(full(one), drawn))
        shares = [percent(gap.covered) for gap in missing]
        longest = max(range(len(missing)), key=lambda at: missing[at].end - missing[at].start)
        share = percent(covered(missing, first, end))
        rows.append((named(one), share, f"{len(missing):,}", texts[longest], shares[longest]))
    text = f"{complete:,} of {len(metric.series):,} series have all hours, covered to 98 % or more."
    parts = [f"<section class='card'><h2>Coverage</h2><p class='sub'>{text}"]
    if rows:
        parts.append(
            " A gap is an hour without an interval, or covered to less than 98 %: no recording, no instance, or no "
            f"value.</p>{tracks(found[:TRACKS], 'Gaps by series')}"
        )
        heads = ("Series", "Covered", "Gaps", "Longest gap", "Covered in it")
        parts.append(shell.table(heads, rows[:LISTED], (0, 3)))
    else:
        parts.append("</p>")
    return "".join([*parts, "</section>"])


def changes_card(events: Sequence[Event]) -> str:
    """Return restarts and other builds as a table."""
    if not events:
        return ""
    rows = [
        (f"{one.hour:%Y-%m-%d %H:%M}", html_text(one.what), html_text(one.instance), html_text(one.host))
        for one in events[-LISTED:]
    ]
    more = f"<p class='sub'>The last {LISTED:,} of {len(events):,}.</p>" if len(events) > LISTED else ""
    state = " open" if len(rows) <= 40 else ""
    table = shell.table(("Hour", "Change", "Instance", "Host"), rows, (0, 1, 2, 3))
    return (
        f"<section class='card'><h2>What changed</h2><details{state}><summary><h3>Restarts and builds "
        f"({len(events):,})</h3></summary>{table}{more}</details></section>"
    )


def calendars_card(figures: Figures) -> str:
    """Return days and hours of the week of the worst series."""
    if not figures.calendars:
        return ""
    cards = []
    for one in figures.calendars:
        quantile = next(
            (name for name in ("p99_9", "p99", "p90", "p50")
             if 2 * sum(cell.percentiles[name] is not None for cell in one.week.values()) >= len(one.week)),
            "p50",
        )  # fmt: skip
        cards.append(calendar_card(one, quantile, of="h3"))
    return (
        f"<section class='card'><h2>Days and hours of the week</h2><p class='sub'>"
        f"{html_text(figures.metrics[0].title)}, the {len(cards)} series with the worst 99.9 %; UTC. A darker cell is "
        f"a higher latency of the same series.</p>{''.join(cards)}</section>"
    )
