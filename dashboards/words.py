"""Display of states: a word, a shape, a tone and a rank, the same on the live page and in Grafana.

A tone selects the colour. Word and shape carry the same information for readers who cannot see it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from heliograph.monitor.alerts import State
from heliograph.monitor.behaviour import BY_STATE, Behaviour
from heliograph.monitor.faults import Kind
from heliograph.monitor.model import Health
from heliograph.monitor.sources import ACTIONS, OTHER_ACTION

__all__ = ["ACTION", "ALERT", "BEHAVIOUR", "CALM", "DETAIL", "FAULT", "HEALTH", "STATE", "STORE", "Tone", "Word"]

Tone = Literal["good", "watch", "bad", "idle"]


@dataclass(frozen=True, slots=True)
class Word:
    """Display of one state."""

    text: str
    shape: str
    tone: Tone
    rank: int
    """Its number in a chart; within a table of states the worse has the higher."""


BEHAVIOUR: Mapping[Behaviour, Word] = {
    Behaviour.OK: Word("keeps up", "●", "good", 0),
    Behaviour.RECOVERING: Word("catching up", "◐", "watch", 1),
    Behaviour.LOSSY: Word("lossy", "◆", "watch", 2),
    Behaviour.FALLING_BEHIND: Word("falling behind", "▲", "bad", 3),
    Behaviour.STALLED: Word("stalled", "■", "bad", 4),
    Behaviour.STOPPED: Word("stopped", "✕", "bad", 5),
    Behaviour.UNKNOWN: Word("not known", "○", "idle", 6),
}

HEALTH: Mapping[Health, Word] = {
    Health.LIVE: Word("live", "●", "good", 0),
    Health.CLOSED: Word("closed", "○", "idle", 1),
    Health.STALE: Word("stale", "◑", "watch", 2),
    Health.DAMAGED: Word("damaged", "◆", "bad", 3),
    Health.DEAD: Word("dead", "✕", "bad", 4),
}

STATE: Mapping[Behaviour, Word] = {item: replace(BEHAVIOUR[item], rank=state) for state, item in enumerate(BY_STATE)}
"""The same for a receiver as its source judges it; ranks are the values of the statistic."""

STORE: Mapping[str, Word] = {
    "keeping": Word("keeping", "●", "good", 0),
    "catching_up": Word("catching up", "◐", "watch", 1),
    "restarted": Word("service restarted", "◑", "watch", 2),
    "gap": Word("lost messages", "◆", "watch", 3),
    "filling": Word("disk filling", "◭", "watch", 4),
    "behind": Word("behind", "▲", "bad", 5),
    "full": Word("disk full", "◼", "bad", 6),
    "blocked": Word("blocked", "■", "bad", 7),
    **{f"health:{item.value}": replace(word, rank=7 + word.rank) for item, word in HEALTH.items() if word.rank},
}
"""State of a message store; that of its instance when it is not live."""

_ACTION_SHAPES: Mapping[str, tuple[str, Tone]] = {
    "": ("·", "good"),
    "shed": ("◑", "watch"),
    "suspend_naks": ("◆", "watch"),
    "suspend": ("▲", "bad"),
    "expel": ("✕", "bad"),
}
ACTION: Mapping[str, Word] = {
    OTHER_ACTION: Word(OTHER_ACTION, "◇", "watch", 1),
    **{name: Word(name.replace("_", " ") or "none", *_ACTION_SHAPES[name], number) for number, name in ACTIONS.items()},
}
"""Action of a source on a receiver; ranks are the numbers of the statistic."""

ALERT: Mapping[State, Word] = {
    State.QUIET: Word("quiet", "●", "good", 0),
    State.EMPTY: Word("no value", "○", "idle", 1),
    State.UNKNOWN: Word("not computed", "◌", "idle", 2),
    State.PENDING: Word("pending", "◐", "watch", 3),
    State.FIRING: Word("firing", "▲", "bad", 4),
}

DETAIL: Mapping[bool, Word] = {False: Word("raised", "●", "good", 0), True: Word("left on", "◆", "watch", 1)}
"""A level of detail, by whether it stays for long."""

FAULT: Mapping[Kind, Word] = {
    Kind.CLOCK: Word("clock set", "◷", "watch", 1),
    Kind.PAUSE: Word("stood still", "◫", "watch", 2),
    Kind.WAIT: Word("data waits", "◔", "watch", 3),
    Kind.QUEUE: Word("queue full", "▣", "bad", 4),
    Kind.STORM: Word("NAK storm", "■", "bad", 9),
}
"""Faults of senders, hosts and clocks."""

CALM = frozenset({Behaviour.OK, Behaviour.RECOVERING})
"""Classes that need no attention."""
