"""Which stage of latency moved between two samples?

Means add: the mean latency of a message is the sum of the means of its stages, so each stage has a share of the change.
Percentiles do not add: the p99 of the whole is not the sum of the stages' p99, and no share of its change belongs to a
stage. So stages are compared by their mean per message, from the exact sums that intervals carry.

The whole is total + dispatch: from submit to the application. Per message of a receiver:

- network, socket, recovery, order and dispatch are the sums of their histograms. A stage that only some messages have
  (recovery) counts as 0 for the others. So it also grows when it becomes more frequent.
- The source's part is total less network, socket, recovery and order. The error of two clocks cancels out in it.
  Where intervals of the topic's transmitters are there, it is split into batch and pace in their proportion: these are
  measured per packet, and packets hold different numbers of messages.
- callback is the time in the callback. It comes after the end of a message and delays those behind it, in dispatch. So
  it is judged, and no part of the whole.

Each change is a difference of means per message. Its error comes from the circular block bootstrap of `bootstrap`, with
blocks as long as the stage needs. For the shares all stages are drawn together, with the blocks of the whole.
Calibration, Holm's adjustment (over the stages of all series, and over the wholes) and verdicts are those of `compare`.
The margin is a part of the whole's mean in A: doubling a stage that is a thousandth of the whole does not matter.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from heliograph.monitor.errors import UserError
from heliograph.monitor.history.merge import merge
from heliograph.monitor.history.schema import PERCENTILES
from heliograph.monitor.history.studies.bootstrap import (
    MIN_BLOCKS,
    MIN_TAIL,
    RESAMPLES,
    UNCALIBRATED,
    Calibration,
    block_length,
    block_weights,
    calibration_of,
    decide,
    holm,
    p_value,
    t_limit,
)
from heliograph.monitor.text import duration_text

__all__ = [
    "METRICS",
    "SENDER_METRICS",
    "TOTAL",
    "WHOLE",
    "Moved",
    "Stage",
    "Stages",
    "alike",
    "calibrate",
    "cause_of",
    "stages",
    "stages_of",
    "verdict_of",
]

TOTAL = "receiver_total_latency"
RECEIVED = {
    "network": "receiver_network_latency",
    "socket": "receiver_socket_latency",
    "recovery": "receiver_recovery_latency",
    "order": "receiver_order_latency",
}
DISPATCH = "receiver_dispatch_latency"
CALLBACK = "receiver_callback_time"
SENT = {"batch": "transmitter_batch_latency", "pace": "transmitter_pace_latency"}
METRICS = (TOTAL, *RECEIVED.values(), DISPATCH, CALLBACK)
SENDER_METRICS = tuple(SENT.values())
HISTOGRAMS = {**SENT, **RECEIVED, "dispatch": DISPATCH, "callback": CALLBACK}
"""Metric by stage; the source's part as a whole has none."""
SOURCE = "source"
WHOLE = "whole"
TWO_CLOCKS = ("network", "recovery", WHOLE)
MIN_MESSAGES = 100
COVERED = 0.9
"""Least part of the messages that must be in the histograms of the stages."""
NEGATIVE = 0.01
"""Largest part of negative values, which clocks cause and which are in no mean."""
QUANTILES = ("p50", "p99")
THIN_QUANTILE = {name: math.ceil(MIN_TAIL / (1 - PERCENTILES[name])) for name in QUANTILES}

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Labels = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Stages:
    """One side of a series: sums by interval and stage."""

    names: tuple[str, ...]
    """Stages that are parts of the whole, in their order; then perhaps ``callback``."""
    sums: Floats
    """One row per interval in the order of time, one column per stage, ns."""
    messages: Floats
    """Messages that each sum belongs to; same shape."""
    values: Mapping[str, int]
    """Values of each stage's histogram."""
    quantiles: Mapping[str, Mapping[str, int | None]]
    """Quantiles of each stage's histogram, ns; None: too few values."""
    clock_error_ns: int
    reason: str = ""
    """Why it cannot be compared; else empty."""

    @property
    def means(self) -> Floats:
        """Mean of each stage per message, ns."""
        result: Floats = self.sums.sum(axis=0) / np.maximum(1.0, self.messages.sum(axis=0))
        return result

    @property
    def count(self) -> int:
        """Messages."""
        return int(self.messages[:, 0].sum()) if self.messages.size else 0

    def part(self, first: int, last: int) -> Stages:
        """Return the intervals from index `first` up to but not including `last`."""
        rows = slice(first, last)
        return Stages(
            self.names, self.sums[rows], self.messages[rows], self.values, self.quantiles, self.clock_error_ns
        )

    def only(self, names: Sequence[str]) -> Stages:
        """Return some of the stages; batch and pace become ``source`` where only this is wanted."""
        sums, messages = [], []
        for name in names:
            at = [self.names.index(one) for one in ((*SENT,) if name == SOURCE not in self.names else (name,))]
            sums.append(self.sums[:, at].sum(axis=1))
            messages.append(self.messages[:, at[0]])
        return Stages(
            tuple(names),
            np.stack(sums, axis=1),
            np.stack(messages, axis=1),
            self.values,
            self.quantiles,
            self.clock_error_ns,
            self.reason,
        )


@dataclass(frozen=True, slots=True)
class Stage:
    """One stage, or the whole, in both samples."""

    name: str
    a_ns: float
    """Mean per message."""
    b_ns: float
    change_ns: float
    low_ns: float
    """Lower end of the 95 % interval of the change; NaN when it cannot be given."""
    high_ns: float
    share: float
    """Share of the whole's change; NaN when the whole did not change with confidence, or for what is no part of it."""
    share_low: float
    share_high: float
    p: float
    """Two-sided probability of such a change if there is none, adjusted by Holm."""
    detectable_ns: float
    """Smallest change that this comparison finds with a probability of 80 %."""
    calibration: Calibration
    quantiles: Mapping[str, tuple[int | None, int | None]]
    """Of the stage's own histogram, A and B, ns."""
    verdict: str
    """``slower``, ``not slower`` or ``cannot say``."""
    reason: str
    """Why it cannot say; else empty."""


@dataclass(frozen=True, slots=True)
class Moved:
    """All stages of one series."""

    series: Labels
    a_messages: int
    b_messages: int
    intervals: tuple[int, int]
    blocks: int
    stages: tuple[Stage, ...]
    """Empty when there is a reason."""
    whole: Stage | None
    reason: str
    """Why the stages cannot be compared; else empty."""


# -- from rows to sums ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Rows:
    """One metric of one series by interval."""

    starts: Integers
    n: Floats
    sums: Floats
    dropped: int
    clock_error_ns: int
    table: pa.Table


def stages_of(received: pa.Table, sent: pa.Table, by: Sequence[str]) -> dict[Labels, Stages]:
    """Return the stages of each series of a sample.

    Args:
        received: Rows of `METRICS`, one per period and series. Without their histograms (column `h`) the stages have
            no quantiles.
        sent: Rows of `SENDER_METRICS`.
        by: Labels that name a series.
    """
    series = received.select([*by, "metric"]).group_by(list(by)).aggregate([]).to_pylist() if received.num_rows else []
    result = {}
    for labels in series:
        mine = {metric: _rows(received, metric, labels) for metric in METRICS}
        topic = {name: value for name, value in labels.items() if name == "topic"}
        theirs = {metric: _rows(sent, metric, topic) for metric in SENDER_METRICS}
        if mine[TOTAL].starts.size:
            result[tuple((name, str(labels[name])) for name in by)] = _stages(mine, theirs)
    return dict(sorted(result.items()))


def _rows(table: pa.Table, metric: str, labels: Mapping[str, str]) -> _Rows:
    mask = pc.equal(table["metric"], metric)
    for name, value in labels.items():
        mask = pc.and_(mask, pc.equal(table[name], value))
    chosen = table.filter(mask)
    ts = chosen["ts"].cast(pa.int64()).to_numpy()
    starts, at = np.unique(ts, return_inverse=True)
    n, sums = np.zeros(starts.size), np.zeros(starts.size)
    np.add.at(n, at, chosen["n"].to_numpy())
    np.add.at(sums, at, chosen["sum"].to_numpy())
    return _Rows(
        starts,
        n,
        sums,
        pc.sum(chosen["dropped"]).as_py() or 0,
        pc.max(chosen["clock_error_ns"]).as_py() or 0,
        chosen,
    )


def _stages(mine: Mapping[str, _Rows], theirs: Mapping[str, _Rows]) -> Stages:
    starts = np.unique(np.concatenate([rows.starts for rows in mine.values()]))
    total, of_total = _aligned(starts, mine[TOTAL])
    parts = {name: _aligned(starts, mine[metric])[0] for name, metric in RECEIVED.items()}
    source = total - sum(parts.values())
    columns: dict[str, tuple[Floats, Floats]] = {}
    sent = {name: _aligned(starts, theirs[metric])[0] for name, metric in SENT.items()}
    if all(theirs[metric].starts.size for metric in SENDER_METRICS):
        both = sent["batch"] + sent["pace"]
        usual = sent["batch"].sum() / max(1.0, both.sum())
        of_batch = np.where(both > 0, sent["batch"] / np.maximum(1.0, both), usual)
        columns |= {"batch": (source * of_batch, of_total), "pace": (source * (1 - of_batch), of_total)}
    else:
        columns[SOURCE] = (source, of_total)
    columns |= {name: (values, of_total) for name, values in parts.items()}
    dispatched, of_dispatch = _aligned(starts, mine[DISPATCH])
    if of_dispatch.sum() >= COVERED * of_total.sum():
        columns["dispatch"] = (dispatched, of_dispatch)
    called = mine[CALLBACK]
    if called.starts.size:
        columns["callback"] = (_aligned(starts, called)[0], of_total)
    histograms = {name: {**mine, **theirs}[metric] for name, metric in HISTOGRAMS.items()}
    return Stages(
        tuple(columns),
        np.stack([sums for sums, _ in columns.values()], axis=1),
        np.stack([messages for _, messages in columns.values()], axis=1),
        {name: int(rows.n.sum()) for name, rows in histograms.items()},
        {name: _quantiles(rows) for name, rows in histograms.items()},
        max(rows.clock_error_ns for rows in mine.values()),
        _missing(mine),
    )


def _aligned(starts: Integers, rows: _Rows) -> tuple[Floats, Floats]:
    """Return sums and values in the intervals `starts`; those of others are left out."""
    sums, n = np.zeros(starts.size), np.zeros(starts.size)
    known = np.isin(rows.starts, starts)
    at = np.searchsorted(starts, rows.starts[known])
    sums[at], n[at] = rows.sums[known], rows.n[known]
    return sums, n


def _missing(mine: Mapping[str, _Rows]) -> str:
    """Return why the stages of a side cannot be told apart."""
    messages = float(mine[TOTAL].n.sum())
    if messages < MIN_MESSAGES:
        return f"{messages:,.0f} messages; {MIN_MESSAGES} are needed"
    travelled = (mine[RECEIVED["network"]].n.sum() + mine[RECEIVED["recovery"]].n.sum()) / messages
    ordered = mine[RECEIVED["order"]].n.sum() / messages
    if min(travelled, ordered) < COVERED:
        what = "order" if ordered < COVERED else "network and recovery"
        return f"histograms of {what} have {min(travelled, ordered):.0%} of the messages; they need level 3"
    for metric in (TOTAL, RECEIVED["network"]):
        if mine[metric].dropped > NEGATIVE * messages:
            return f"{mine[metric].dropped / messages:.0%} of the values of {metric} are out of range: check the clocks"
    return ""


def _quantiles(rows: _Rows) -> dict[str, int | None]:
    if not rows.table.num_rows or "h" not in rows.table.column_names:
        return dict.fromkeys(QUANTILES)
    whole = merge(rows.table, None, by=("metric",))[0]
    # Of several layouts, the one with most values: their cells cannot be added.
    best = int(np.argmax(whole["n"].to_numpy()))
    n = whole["n"][best].as_py()
    return {name: whole[name][best].as_py() if n >= THIN_QUANTILE[name] else None for name in QUANTILES}


# -- comparison -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Drawn:
    """The difference of two samples, one item per stage; the last one is the whole."""

    change: Floats
    error: Floats
    """Standard errors."""
    draws: Floats
    """Changes of resamples with the blocks of the whole, one row each."""
    freedom: Floats
    blocks: Integers
    """Of the sample that has fewer."""
    reasons: tuple[str, ...]
    """Why the error cannot be given; else empty."""


def _with_whole(sums: Floats, messages: Floats, is_part: npt.NDArray[np.bool_]) -> Floats:
    """Return means per message by stage, and the whole's as the last column."""
    means = sums / np.maximum(1.0, messages)
    result: Floats = np.concatenate([means, means[..., is_part].sum(axis=-1, keepdims=True)], axis=-1)
    return result


def _draw(a: Stages, b: Stages, seed: int) -> _Drawn:
    is_part = np.array([name != "callback" for name in a.names])
    means, errors, draws, blocks = [], [], [], []
    reasons = [""] * (is_part.size + 1)
    for name, side, number in (("A", a, 0), ("B", b, 1)):
        influence = (side.sums - side.means * side.messages) / np.maximum(1.0, side.messages.sum(axis=0))
        influence = np.concatenate([influence, influence[:, is_part].sum(axis=1, keepdims=True)], axis=1)
        intervals = influence.shape[0]
        lengths = [block_length(column) for column in influence.T]
        drawn = {}
        for length in set(lengths):
            weights = block_weights(np.random.default_rng((seed, number)), intervals, length, RESAMPLES)
            drawn[length] = _with_whole(weights @ side.sums, weights @ side.messages, is_part)
        means.append(_with_whole(side.sums.sum(axis=0), side.messages.sum(axis=0), is_part))
        errors.append(np.array([np.std(drawn[length][:, at], ddof=1) for at, length in enumerate(lengths)]))
        draws.append(drawn[lengths[-1]])
        blocks.append(np.array([intervals // length for length in lengths]))
        for at, count in enumerate(blocks[-1]):
            if count < MIN_BLOCKS:
                reasons[at] = (
                    reasons[at] or f"{name} has {count} independent stretches of time; {MIN_BLOCKS} are needed"
                )
    return _Drawn(
        means[1] - means[0],
        np.where([bool(reason) for reason in reasons], np.nan, np.hypot(*errors)),
        draws[1] - draws[0],
        np.maximum(1.0, blocks[0] + blocks[1] - 2.0),
        np.minimum(*blocks),
        tuple(reasons),
    )


def calibrate(baseline: Stages, intervals: int, seed: int = 0) -> dict[str, Calibration]:
    """Compare neighbouring windows of one process.

    Args:
        baseline: Intervals of the process, more than the samples to be compared have.
        intervals: Length of a window: intervals of the samples to be compared.
        seed: Of the bootstrap.

    Returns:
        A calibration for each stage and for the whole; `UNCALIBRATED` with too few pairs.
    """
    names = (*baseline.names, WHOLE)
    count = len(names)
    scores: list[list[float]] = [[] for _ in range(count)]
    limits: list[list[float]] = [[] for _ in range(count)]
    windows = [
        baseline.part(first, first + intervals)
        for first in range(0, baseline.sums.shape[0] - intervals + 1, max(1, intervals))
    ]
    for number, (a, b) in enumerate(pairwise(windows)):
        drawn = _draw(a, b, seed + number)
        for at in range(count):
            if drawn.error[at] > 0:  # not NaN, not constant
                scores[at].append(abs(drawn.change[at]) / drawn.error[at])
                limits[at].append(t_limit(drawn.freedom[at]))
    return {name: calibration_of(*one) for name, *one in zip(names, scores, limits, strict=True)}


_Found = tuple[Labels, Stages, Stages, _Drawn | None, list[Calibration]]


def stages(
    a: Mapping[Labels, Stages],
    b: Mapping[Labels, Stages],
    *,
    margin: float = 0.05,
    calibrations: Mapping[Labels, Mapping[str, Calibration]] | None = None,
    seed: int = 0,
) -> list[Moved]:
    """Compare the stages of all series that both samples have.

    Args:
        a: The baseline, as `stages_of` returns it.
        b: The candidate.
        margin: Largest increase that does not matter, as a part of the whole's mean in A.
        calibrations: Of each series, as `calibrate` returns them; a stage without one is not calibrated.
        seed: Of the bootstrap; equal seeds give equal results.

    Raises:
        UserError: The margin is not above 0.
    """
    if not margin > 0:
        raise UserError(f"the margin must be above 0, not {margin:g}")
    found: list[_Found] = []
    for number, series in enumerate(key for key in a if key in b):
        of_a, of_b = alike(a[series], b[series])
        drawn = _draw(of_a, of_b, seed + number) if not of_a.reason and not of_b.reason else None
        mine = (calibrations or {}).get(series, {})
        found.append((series, of_a, of_b, drawn, [mine.get(name, UNCALIBRATED) for name in (*of_a.names, WHOLE)]))
    p_stages, p_wholes = (iter(holm(p_values)) for p_values in _tests(found))
    return [_moved(*one, p_stages, p_wholes, margin) for one in found]


def _tests(found: Sequence[_Found]) -> tuple[list[float], list[float]]:
    """Return the probabilities of all stages, and of all wholes: two questions, each adjusted for its number."""
    of_stages: list[float] = []
    of_wholes: list[float] = []
    for _, _, _, drawn, known in found:
        if drawn is None:
            continue
        p_values = [
            # What is 0 in both samples is no test.
            p_value(change, error * one.factor, freedom) if change or error else math.nan
            for change, error, freedom, one in zip(drawn.change, drawn.error, drawn.freedom, known, strict=True)
        ]
        of_stages += p_values[:-1]
        of_wholes += p_values[-1:]
    return of_stages, of_wholes


def alike(*sides: Stages) -> list[Stages]:
    """Return sides with the stages that all have; a source that is unsplit in one is unsplit in all."""
    names = [name for name in sides[0].names if all(name in side.names for side in sides[1:])]
    if not (SOURCE in names or set(SENT) <= set(names)):
        names = [SOURCE, *(name for name in names if name not in SENT)]
    return [side.only(names) for side in sides]


def _moved(
    series: Labels,
    a: Stages,
    b: Stages,
    drawn: _Drawn | None,
    known: Sequence[Calibration],
    p_stages: Iterator[float],
    p_wholes: Iterator[float],
    margin: float,
) -> Moved:
    sizes = (a.count, b.count, (a.sums.shape[0], b.sums.shape[0]))
    if drawn is None:
        side, reason = ("A", a.reason) if a.reason else ("B", b.reason)
        return Moved(series, *sizes, 0, (), None, f"{side}: {reason}")
    is_part = np.array([name != "callback" for name in a.names])
    means = [_with_whole(side.sums.sum(axis=0), side.messages.sum(axis=0), is_part) for side in (a, b)]
    limit = margin * float(means[0][-1])
    whole_change = float(drawn.change[-1])
    # False for an error that is NaN
    whole_moved = abs(whole_change) > t_limit(drawn.freedom[-1]) * drawn.error[-1] * known[-1].factor
    rows = []
    for at, name in enumerate((*a.names, WHOLE)):
        p = next(p_wholes if name == WHOLE else p_stages)
        change, error, freedom = float(drawn.change[at]), float(drawn.error[at]), float(drawn.freedom[at])
        decision = decide(change, error * known[at].factor, freedom, p, limit)
        share = share_error = math.nan
        if whole_moved and name not in ("callback", WHOLE):
            share = change / whole_change
            # The ratio to first order, which holds where a resample of the whole comes close to 0.
            spread = float(np.std(drawn.draws[:, at] - share * drawn.draws[:, -1], ddof=1)) / abs(whole_change)
            share_error = spread * known[at].factor * t_limit(drawn.freedom[-1])
        verdict, reason = decision.verdict, drawn.reasons[at]
        values = max(side.values.get(name, 0) for side in (a, b))
        if verdict == "slower" and name in TWO_CLOCKS and change <= a.clock_error_ns + b.clock_error_ns:
            verdict, reason = "cannot say", "the error of the clocks may be as large as the change"
        elif verdict == "slower" and name in HISTOGRAMS and values < MIN_TAIL:
            verdict, reason = "cannot say", f"{values} values; {MIN_TAIL} are needed"
        elif verdict == "cannot say" and not reason:
            reason = f"it finds changes of {duration_text(decision.detectable)} and more"
        rows.append(
            Stage(
                name,
                float(means[0][at]),
                float(means[1][at]),
                change,
                decision.low,
                decision.high,
                share,
                share - share_error,
                share + share_error,
                p,
                decision.detectable,
                known[at],
                {q: (a.quantiles.get(name, {}).get(q), b.quantiles.get(name, {}).get(q)) for q in QUANTILES},
                verdict,
                reason,
            )
        )
    return Moved(series, *sizes, int(drawn.blocks[-1]), tuple(rows[:-1]), rows[-1], "")


def cause_of(moved: Moved) -> Stage | None:
    """Return the stage that explains most of a slower whole; None when the whole is not slower, or none stands out."""
    if moved.whole is None or moved.whole.verdict != "slower":
        return None
    slower = [one for one in moved.stages if one.verdict == "slower" and not math.isnan(one.share)]
    return max(slower, key=lambda one: one.change_ns, default=None)


def verdict_of(results: Sequence[Moved]) -> str:
    """Return the verdict on the wholes of all series: the worst; ``cannot say`` when there is none."""
    verdicts = [one.whole.verdict if one.whole is not None else "cannot say" for one in results]
    if "slower" in verdicts:
        return "slower"
    return "not slower" if verdicts and all(verdict == "not slower" for verdict in verdicts) else "cannot say"
