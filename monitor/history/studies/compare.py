"""Is B slower than A? A comparison of quantiles that knows that neighbouring intervals resemble each other.

For each quantile the estimate is the ratio of B's to A's, of all values of the intervals. Its uncertainty comes from a
circular block bootstrap (`bootstrap`): blocks of neighbouring intervals are drawn, so that a condition that lasts
longer than an interval (load, time of day, a busy neighbour) stays within a block. Histograms add, so a resample is a
product of weights and counts. The length of a block follows from the number of values above the quantile in each
interval: by Bahadur's representation the quantile's error is a mean of these. Student's t of the limits has the number
of blocks less one per sample as its degrees of freedom.

This does not suffice for processes whose memory is as long as the sample. So the limits are calibrated on a baseline of
the same process (`calibrate`): neighbouring windows of it, compared with each other, should differ by the standard
error. The factor by which they differ more widens the limits. The share of these pairs that would be called different
without the factor is shown.

Verdicts, for a margin m (two one-sided tests, Schuirmann 1987; Holm 1979 over all quantiles and series):

- **slower**: the ratio is above 1 with confidence, and may be above 1 + m;
- **not slower**: the ratio is below 1 + m with confidence;
- **cannot say**: neither, or too few values or blocks for this quantile.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from heliograph.monitor.errors import UserError
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
from heliograph.monitor.history.studies.samples import Pair, Sample
from heliograph.monitor.latency import ranks_of

__all__ = ["QUANTILES", "Calibration", "Compared", "Contrast", "calibrate", "compare", "contrast", "verdict_of"]

QUANTILES: dict[str, float] = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p99.9": 0.999}
_CELL_ERROR = 0.001 / math.sqrt(12)
"""Standard error of a quantile's logarithm that the width of a cell of three digits causes."""
_BATCH_CELLS = 40_000_000

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Contrast:
    """One quantile of one series in both samples."""

    quantile: str
    a_ns: int
    b_ns: int
    ratio: float
    """B over A."""
    low: float
    """Lower end of the 95 % interval of the ratio; NaN when it cannot be given."""
    high: float
    p: float
    """Two-sided probability of a ratio this far from 1 if the two do not differ, adjusted by Holm."""
    detectable: float
    """Smallest relative change that this comparison finds with a probability of 80 %."""
    blocks: int
    """Blocks of the sample that has fewer."""
    verdict: str
    """``slower``, ``not slower`` or ``cannot say``."""
    reason: str
    """Why it cannot say; else empty."""


@dataclass(frozen=True, slots=True)
class Compared:
    """All quantiles of one series."""

    pair: Pair
    contrasts: tuple[Contrast, ...]
    effect: float
    """Probability that a value of B is larger than one of A, ties by half (Vargha and Delaney 2000); 0.5: no effect."""


# -- one quantile -----------------------------------------------------------------------------------------------------


def _quantiles(totals: Floats, values: npt.NDArray[np.int64], fraction: float) -> npt.NDArray[np.int64]:
    """Return the quantile of each row of counts."""
    cumulated = np.cumsum(totals, axis=1)
    ranks = ranks_of([fraction], cumulated[:, -1].astype(np.int64))
    result: npt.NDArray[np.int64] = values[(cumulated >= ranks).argmax(axis=1)]
    return result


def _above(sample: Sample, fraction: float) -> tuple[int, Floats]:
    """Return the quantile, and for each interval its values above it less those expected."""
    at = int(_quantiles(sample.counts.sum(axis=0)[None, :], sample.values, fraction)[0])
    over = sample.counts[:, sample.values > at].sum(axis=1)
    return at, over - over.sum() / sample.counts.sum() * sample.counts.sum(axis=1)


def _standard_error(sample: Sample, fraction: float, length: int, random: np.random.Generator) -> float:
    """Return the standard error of the logarithm of a quantile, by the circular block bootstrap."""
    n = sample.starts_us.size
    logs = []
    for first in range(0, RESAMPLES, step := max(1, _BATCH_CELLS // max(1, sample.values.size))):
        resamples = min(step, RESAMPLES - first)
        weights = block_weights(random, n, length, resamples)
        logs.append(np.log(np.maximum(1, _quantiles(weights @ sample.counts, sample.values, fraction))))
    return float(np.std(np.concatenate(logs), ddof=1))


@dataclass(frozen=True, slots=True)
class _Raw:
    """A contrast before adjustment: the logarithm of the ratio and its error."""

    quantile: str
    a_ns: int
    b_ns: int
    error: float
    freedom: float
    blocks: int
    reason: str

    @property
    def log_ratio(self) -> float:
        return math.log(max(1, self.b_ns)) - math.log(max(1, self.a_ns))


def contrast(a: Sample, b: Sample, quantile: str, seed: int = 0) -> _Raw:
    """Compare one quantile of two samples with the same cells.

    Args:
        a: The baseline.
        b: The candidate.
        quantile: A key of `QUANTILES`.
        seed: Of the bootstrap.
    """
    fraction = QUANTILES[quantile]
    at: list[int] = []
    errors: list[float] = []
    freedom, fewest, reason = 0.0, 1 << 62, ""
    for name, sample, number in (("A", a, 0), ("B", b, 1)):
        at_ns, influence = _above(sample, fraction)
        at.append(at_ns)
        length = block_length(influence)
        blocks = influence.size // length
        fewest = min(fewest, blocks)
        if sample.n * min(fraction, 1 - fraction) < MIN_TAIL:
            reason = (
                reason or f"{name} has {sample.n:,} values; {quantile} needs {math.ceil(MIN_TAIL / (1 - fraction)):,}"
            )
        elif blocks < MIN_BLOCKS:
            reason = reason or f"{name} has {blocks} independent stretches of time; {MIN_BLOCKS} are needed"
        else:
            random = np.random.default_rng((seed, number))
            # Never below the width of a cell, which rounds both quantiles.
            errors.append(max(_standard_error(sample, fraction, length, random), _CELL_ERROR))
            freedom += blocks - 1
    error = math.hypot(*errors) if not reason else math.nan
    return _Raw(quantile, at[0], at[1], error, max(1.0, freedom), fewest, reason)


# -- calibration ------------------------------------------------------------------------------------------------------


def calibrate(baseline: Sample, intervals: int, quantile: str, seed: int = 0) -> Calibration:
    """Compare neighbouring windows of one process.

    Args:
        baseline: Intervals of the process, longer than the samples to be compared.
        intervals: Length of a window: intervals of the samples to be compared.
        quantile: A key of `QUANTILES`.
        seed: Of the bootstrap.

    Returns:
        The calibration; `UNCALIBRATED` with too few pairs.
    """
    windows = [
        baseline.part(first, first + intervals)
        for first in range(0, baseline.starts_us.size - intervals + 1, max(1, intervals))
    ]
    scores = []
    limits = []
    for number, (a, b) in enumerate(pairwise(windows)):
        raw = contrast(a, b, quantile, seed + number)
        if not raw.reason and raw.error > 0:
            scores.append(abs(raw.log_ratio) / raw.error)
            limits.append(t_limit(raw.freedom))
    return calibration_of(scores, limits)


# -- all series -------------------------------------------------------------------------------------------------------


def compare(
    pairs: Sequence[Pair],
    *,
    margin: float = 0.05,
    quantiles: Sequence[str] = tuple(QUANTILES),
    calibrations: Sequence[dict[str, Calibration]] = (),
    seed: int = 0,
) -> list[Compared]:
    """Compare all series.

    Args:
        pairs: The series, as `samples.pairs` returns them.
        margin: Largest relative increase that does not matter.
        quantiles: Keys of `QUANTILES`.
        calibrations: For each pair, calibrations by quantile; empty: none.
        seed: Of the bootstrap; equal seeds give equal results.

    Returns:
        One result per pair with both samples.

    Raises:
        UserError: The margin is not above 0.
    """
    if not margin > 0:
        raise UserError(f"the margin must be above 0, not {margin:g}")
    found = []
    for number, pair in enumerate(pairs):
        if pair.a is None or pair.b is None:
            continue
        effect = _effect(pair.a, pair.b)
        known = calibrations[number] if calibrations else {}
        raws = [
            (contrast(pair.a, pair.b, quantile, seed + number), known.get(quantile, UNCALIBRATED).factor)
            for quantile in quantiles
        ]
        found.append((pair, effect, [replace(raw, error=raw.error * factor) for raw, factor in raws]))
    adjusted = iter(holm([p_value(raw.log_ratio, raw.error, raw.freedom) for _, _, raws in found for raw in raws]))
    return [
        Compared(pair, tuple(_judged(raw, next(adjusted), margin) for raw in raws), effect)
        for pair, effect, raws in found
    ]


def _judged(raw: _Raw, p: float, margin: float) -> Contrast:
    ratio = math.exp(raw.log_ratio)
    if raw.reason:
        low = high = detectable = math.nan
        verdict, reason = "cannot say", raw.reason
    else:
        decision = decide(raw.log_ratio, raw.error, raw.freedom, p, math.log1p(margin))
        low, high, detectable = math.exp(decision.low), math.exp(decision.high), math.expm1(decision.detectable)
        verdict = decision.verdict
        reason = f"it finds changes of {detectable:.1%} and more" if verdict == "cannot say" else ""
    return Contrast(raw.quantile, raw.a_ns, raw.b_ns, ratio, low, high, p, detectable, raw.blocks, verdict, reason)


def _effect(a: Sample, b: Sample) -> float:
    of_a, of_b = a.counts.sum(axis=0), b.counts.sum(axis=0)
    below = np.cumsum(of_a) - of_a
    return float(of_b @ (below + of_a / 2) / (of_a.sum() * of_b.sum()))


def verdict_of(results: Sequence[Compared]) -> str:
    """Return the verdict of a whole comparison: the worst of its contrasts; ``cannot say`` when there is none."""
    verdicts = [one.verdict for result in results for one in result.contrasts]
    if "slower" in verdicts:
        return "slower"
    return "not slower" if verdicts and all(verdict == "not slower" for verdict in verdicts) else "cannot say"
