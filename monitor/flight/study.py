"""A recording and its evaluation: curves, the unusual stretch, and the tick to look at first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from heliograph.monitor.errors import UserError
from heliograph.monitor.flight.curves import Curve, curves
from heliograph.monitor.flight.detect import Stretch, unusual
from heliograph.monitor.flight.deviations import Findings, findings
from heliograph.monitor.flight.reader import Recording

__all__ = ["Study", "study_of"]


@dataclass(frozen=True, slots=True)
class Study:
    """A recording, or a span of it, and its evaluation."""

    recording: Recording
    curves: Sequence[Curve]
    burst: Stretch | None
    """The most unusual load."""
    findings: Findings | None
    """The stretch in which most curves deviate from their usual values; None if none does."""
    first: int
    """Position of the first tick of the span."""
    last: int
    focus: int
    """Position of the most relevant tick."""
    focus_is: str
    """Reason for this focus, as text."""


def study_of(
    recording: Recording,
    *,
    first: int = 0,
    last: int | None = None,
    at: int | None = None,
    around: str | None = None,
) -> Study:
    """Evaluate a recording.

    Args:
        recording: The recording; curves and findings are those of all its ticks.
        first: Position of the first tick of the span.
        last: Position of the last tick of the span; None: of the recording.
        at: Position of the focus; None: as `around` says.
        around: "trigger", "burst", or None: the trigger if an event was one, else the unusual load.

    Raises:
        UserError: The recording has no such trigger or burst.
    """
    end = len(recording.numbers) - 1 if last is None else last
    drawn = curves(recording)
    burst = unusual(recording)
    focus, why = (at, "as requested") if at is not None else _focus(recording, around, burst, (first, end))
    return Study(recording, drawn, burst, findings(recording, drawn), first, end, min(max(focus, first), end), why)


def _focus(recording: Recording, around: str | None, burst: Stretch | None, bounds: tuple[int, int]) -> tuple[int, str]:
    """Return the position of the tick of interest, and the reason for the choice."""
    trigger = recording.trigger
    wants_trigger = around == "trigger" or (around is None and trigger is not None and trigger.event is not None)
    if wants_trigger and trigger is not None:
        return trigger.position, "the trigger"
    if burst is not None and (burst.is_notable or around == "burst"):
        burst_at = int(np.searchsorted(recording.times, (burst.start + burst.end) / 2))
        if bounds[0] <= burst_at <= bounds[1]:
            return burst_at, "the most unusual period"
    if around is not None:
        raise UserError(f"there is no {around} in this recording")
    return (trigger.position, "the request to keep the recording") if trigger is not None else (bounds[1], "the end")
