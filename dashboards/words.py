"""States as people read them: a word, a shape, a tone and a rank, the same on the live page and in Grafana.

A tone picks the colour, never alone: the word and the shape say the same to who cannot see it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from heliograph.monitor.behaviour import Behaviour
from heliograph.monitor.model import Health

__all__ = ["BEHAVIOUR", "CALM", "HEALTH", "Tone", "Word"]

Tone = Literal["good", "watch", "bad", "idle"]


@dataclass(frozen=True, slots=True)
class Word:
    """How one state is shown."""

    text: str
    shape: str
    tone: Tone
    rank: int
    """Its number where a picture needs one; within a table of states the worse has the higher."""


BEHAVIOUR: Mapping[Behaviour, Word] = {
    Behaviour.OK: Word("keeps up", "●", "good", 0),
    Behaviour.RECOVERING: Word("catching up", "◐", "watch", 1),
    Behaviour.LOSSY: Word("lossy", "◆", "watch", 2),
    Behaviour.FALLING_BEHIND: Word("falling behind", "▲", "bad", 3),
    Behaviour.STALLED: Word("stalled", "■", "bad", 4),
    Behaviour.STOPPED: Word("stopped", "✕", "bad", 5),
}

HEALTH: Mapping[Health, Word] = {
    Health.LIVE: Word("live", "●", "good", 0),
    Health.CLOSED: Word("closed", "○", "idle", 1),
    Health.STALE: Word("stale", "◑", "watch", 2),
    Health.DAMAGED: Word("damaged", "◆", "bad", 3),
    Health.DEAD: Word("dead", "✕", "bad", 4),
}

CALM = frozenset({Behaviour.OK, Behaviour.RECOVERING})
"""What nobody need be called for."""
