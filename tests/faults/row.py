"""A row of the table."""

from __future__ import annotations

from dataclasses import dataclass, field

__all__ = ["Row", "Skipped"]


class Skipped(Exception):
    """A part that cannot be run here; the text says which and why."""


@dataclass(slots=True)
class Row:
    """What came of one fault at one component."""

    component: str
    fault: str
    runs: int = 0
    recovered: int = 0
    longest: float = 0.0
    """Seconds to recover."""
    lost: int | None = None
    """None: the component acknowledges nothing."""
    residual: int | None = None
    """None: no books are kept there."""
    notes: list[str] = field(default_factory=list)

    @property
    def is_good(self) -> bool:
        """There were runs, all recovered, nothing is lost or left open."""
        return 0 < self.runs == self.recovered and not self.lost and not self.residual and not self.notes
