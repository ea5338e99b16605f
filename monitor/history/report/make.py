"""Make the report of a history."""

from __future__ import annotations

from dataclasses import dataclass

from heliograph.monitor.errors import UserError
from heliograph.monitor.history.files import Broken
from heliograph.monitor.history.remote import Place
from heliograph.monitor.history.report.figures import figures_of
from heliograph.monitor.history.report.page import page
from heliograph.monitor.history.studies.objectives import Objective

__all__ = ["Reported", "report"]


@dataclass(frozen=True, slots=True)
class Reported:
    """A report and the files that could not be read."""

    html: str
    series: int
    broken: tuple[Broken, ...]


def report(history: Place, title: str = "Latency history", objective: Objective | None = None) -> Reported:
    """Make the report of a history, one self-contained HTML file.

    Args:
        history: Directory of the history.
        title: Title of the page.
        objective: The series of the first metric are judged against it; None: none is.

    Raises:
        UserError: There is no history, or it has no readable hours.
    """
    figures = figures_of(history, objective)
    if not figures.metrics:
        hint = f" ({len(figures.broken)} files could not be read)" if figures.broken else ""
        raise UserError(f"the history {history} has no hours{hint}; run `heliograph history rollup` first")
    return Reported(page(title, figures), sum(len(metric.series) for metric in figures.metrics), figures.broken)
