"""Uncertainty of the figures of a long time, from how its parts differ.

Values of neighbouring hours resemble each other, so the time is divided into about 24 batches of hours, and the batches
count as independent (batch means: Schmeiser 1982, "Batch size effects in the analysis of simulation output").
A mean, or the share of the values above a limit, is a ratio of sums; its error follows from the batches' residuals. It
is never below that of independent values. The interval of a percentile is that of its share, read back from the merged
histogram (Woodruff 1952, "Confidence intervals for medians and other position measures").

A percentile with fewer than ten values beyond it is refused: it would be one of the largest values of chance.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from heliograph.monitor.history.studies.bootstrap import MIN_BLOCKS, MIN_TAIL, t_limit
from heliograph.monitor.latency import percentiles
from heliograph.monitor.model import Histogram

__all__ = ["BATCHES", "MIN_BLOCKS", "MIN_TAIL", "Limits", "is_thin", "least", "percentile_limits", "ratio_reach"]

BATCHES = 24

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Limits:
    """A 95 % interval."""

    low: float
    high: float | None
    """None: above all values that were seen."""


def is_thin(n: int, fraction: float) -> bool:
    """Whether fewer than `MIN_TAIL` of n values are expected beyond a percentile."""
    return n * (1 - fraction) < MIN_TAIL - 1e-6


@lru_cache(maxsize=64)
def least(fraction: float) -> int:
    """Return the smallest number of values of which a percentile is not thin."""
    n = math.floor(MIN_TAIL / (1 - fraction)) - 1
    while is_thin(n, fraction):
        n += 1
    return n


def ratio_reach(parts: Floats, sizes: Floats) -> float | None:
    """Return half the 95 % interval of ``sum(parts) / sum(sizes)``.

    Args:
        parts: One number per batch or hour, in the order of time; more than `BATCHES` are added up to `BATCHES`.
        sizes: Values of each of them.

    Returns:
        None when fewer than `MIN_BLOCKS` have values.
    """
    parts, sizes = parts[sizes > 0], sizes[sizes > 0]
    if sizes.size < MIN_BLOCKS:
        return None
    batches = min(BATCHES, sizes.size)
    residuals = parts - parts.sum() / sizes.sum() * sizes
    sums = np.add.reduceat(residuals, np.arange(batches) * sizes.size // batches)
    error = math.sqrt(batches / (batches - 1) * float((sums**2).sum())) / float(sizes.sum())
    return t_limit(batches - 1) * error


def percentile_limits(histogram: Histogram, fraction: float, above: Floats, sizes: Floats) -> Limits | None:
    """Return the 95 % interval of a percentile, ns.

    Args:
        histogram: All values.
        fraction: The percentile, above 0 and below 1.
        above: Values above it by batch, in the order of time.
        sizes: Values of each of them.

    Returns:
        None when too few batches have values.
    """
    reach = ratio_reach(above, sizes)
    if reach is None:
        return None
    n = float(sizes.sum())
    reach = max(reach, 1.96 * math.sqrt(fraction * (1 - fraction) / n))
    low, high = percentiles(histogram, [max(0.0, fraction - reach), min(1.0, fraction + reach)])
    return Limits(low, high if fraction + reach < 1 - 1 / n else None)
