"""Uncertainty of figures of many intervals, and the decision that follows from it: shared by all comparisons.

Neighbouring intervals resemble each other. So resamples draw blocks of them (circular block bootstrap, Politis and
Romano 1992). The length of a block follows Politis and White (2004) with the correction of Patton, Politis and White
(2009), as in `arch.bootstrap.optimal_block_length`. Few blocks make the standard error uncertain too: limits use
Student's t. Several tests are adjusted together by Holm (1979).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from heliograph.monitor.errors import UserError

__all__ = [
    "MIN_BLOCKS",
    "MIN_TAIL",
    "RESAMPLES",
    "UNCALIBRATED",
    "Calibration",
    "Decision",
    "block_length",
    "block_weights",
    "calibration_of",
    "check_installed",
    "decide",
    "holm",
    "p_value",
    "t_limit",
]

RESAMPLES = 600
MIN_TAIL = 10
"""Fewest values that a figure depends on."""
MIN_BLOCKS = 5
MIN_WINDOWS = 8
"""Fewest pairs of neighbouring windows for a calibration."""
_SHORTEST = 10
"""Fewest intervals whose correlation is estimated; fewer count as blocks of their own."""
_POWER = 0.8

Floats = npt.NDArray[np.float64]


def check_installed() -> None:
    """Check that the libraries of comparisons are there.

    Raises:
        UserError: They are not installed.
    """
    try:
        import arch  # noqa: F401 - only whether it is there
    except ModuleNotFoundError as error:
        raise UserError("comparisons need arch and scipy: pip install 'heliograph[history]'") from error


# -- resamples --------------------------------------------------------------------------------------------------------


def block_length(influence: Floats) -> int:
    """Return the length of a block, in intervals.

    It is 1 where neighbours even out: a burst that crosses the border of two intervals raises one and lowers the other.
    The method wants long blocks there, to make the error as small as it is. Single intervals make it larger, which is
    safe, and there are enough of them.

    Args:
        influence: How much each interval moves the figure, in the order of time.
    """
    from arch.bootstrap import optimal_block_length

    if influence.size < _SHORTEST or not np.ptp(influence):
        return 1
    length = float(optimal_block_length(influence)["circular"].iloc[0])
    blocks = 1 if math.isnan(length) else max(1, math.ceil(length))
    return 1 if _even_out(influence, blocks) else blocks


def _even_out(influence: Floats, length: int) -> bool:
    """Whether neighbours differ more than intervals at random, and blocks of some length less."""
    apart = influence - influence.mean()
    if (apart[1:] * apart[:-1]).sum() >= 0:
        return False
    running = np.cumsum(np.concatenate([[0.0], apart, apart[: length - 1]]))
    return bool(np.mean((running[length:] - running[:-length]) ** 2) < length * np.mean(apart**2))


def block_weights(random: np.random.Generator, intervals: int, length: int, resamples: int) -> Floats:
    """Return how often each interval is in each resample, one row per resample."""
    blocks = -(-intervals // length)
    starts = random.integers(0, intervals, size=(resamples, blocks))
    chosen = ((starts[:, :, None] + np.arange(length)) % intervals).reshape(resamples, -1)[:, :intervals]
    cells = (np.arange(resamples)[:, None] * intervals + chosen).ravel()
    return np.bincount(cells, minlength=resamples * intervals).reshape(resamples, intervals).astype(float)


# -- calibration ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Calibration:
    """How much neighbouring windows of one process differ, against the standard error."""

    factor: float
    """Widens standard errors; at least 1."""
    pairs: int
    """Pairs compared; 0: not calibrated."""
    called_different: float
    """Share of the pairs that the limits without the factor would call different; 0.05 is right."""


UNCALIBRATED = Calibration(1.0, 0, math.nan)


def calibration_of(scores: Sequence[float], limits: Sequence[float]) -> Calibration:
    """Return the calibration that follows from pairs of windows of one process.

    Args:
        scores: Of each pair, the difference in standard errors, at least 0.
        limits: Of each pair, the score above which it would be called different.

    Returns:
        The calibration; `UNCALIBRATED` with fewer than `MIN_WINDOWS` pairs.
    """
    if len(scores) < MIN_WINDOWS:
        return UNCALIBRATED
    excess = np.array(scores) / np.array(limits)
    # The 95th percentile of few pairs is a guess; the root mean square, with one standard error of its own on top, uses
    # all of them. The larger one counts.
    spread = math.sqrt(float(np.mean(np.square(scores)))) * (1 + 1 / math.sqrt(2 * len(scores)))
    factor = max(1.0, spread, float(np.quantile(excess, 0.95)) if len(scores) >= 20 else 0.0)
    return Calibration(factor, len(scores), float(np.mean(excess > 1)))


# -- decisions --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Decision:
    """A change with its limits, on the scale on which it was given."""

    low: float
    """Lower end of the 95 % interval."""
    high: float
    detectable: float
    """Smallest change that is found with a probability of 80 %."""
    verdict: str
    """``slower``, ``not slower`` or ``cannot say``."""


def t_limit(freedom: float, probability: float = 0.975) -> float:
    """Return the quantile of Student's t."""
    from scipy import special  # scipy.stats, which has the same, takes a second to import

    return float(special.stdtrit(freedom, probability))


def p_value(change: float, error: float, freedom: float) -> float:
    """Return the two-sided probability of a change this large if there is none; NaN when the error is NaN."""
    from scipy import special

    if math.isnan(error):
        return math.nan
    if error == 0:
        return 1.0 if change == 0 else 0.0
    return float(2 * special.stdtr(freedom, -abs(change) / error))


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjust p-values for their number (Holm 1979); NaN, which stands for no test, stays."""
    tested = sorted((p, index) for index, p in enumerate(p_values) if not math.isnan(p))
    adjusted = list(p_values)
    highest = 0.0
    for rank, (p, index) in enumerate(tested):
        highest = max(highest, min(1.0, p * (len(tested) - rank)))
        adjusted[index] = highest
    return adjusted


def decide(change: float, error: float, freedom: float, p: float, margin: float) -> Decision:
    """Decide whether a change is an increase, none above the margin, or unknown.

    Args:
        change: B less A.
        error: Its standard error.
        freedom: Degrees of freedom of the error.
        p: `p_value`, adjusted by `holm`.
        margin: Largest increase that does not matter.
    """
    limit = t_limit(freedom)
    detectable = (limit + t_limit(freedom, _POWER)) * error
    verdict = "cannot say"
    # A one-sided test at 5 %: the margin is on one side only.
    if change + t_limit(freedom, 0.95) * error < margin:
        verdict = "not slower"
    elif p < 0.05 and change > 0:
        verdict = "slower"
    return Decision(change - limit * error, change + limit * error, detectable, verdict)
