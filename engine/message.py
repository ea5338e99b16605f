"""The values of a receiver: messages, reports of unrecoverable loss, notices of its sources; and, to the source:
acknowledgements."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from heliograph.engine._core import Message

__all__ = ["Ack", "Action", "Loss", "Message", "Notice", "Reason", "Replay"]


class Action(StrEnum):
    """Action of a source on a slow receiver, or on all of its receivers."""

    NOTIFY = "notify"
    """It is warned."""
    SHED = "shed"
    """Less is repaired for it."""
    SUSPEND_NAKS = "suspend_naks"
    """Nothing is repaired for it, and it asks for nothing."""
    SUSPEND = "suspend"
    """The same, and nobody waits for it."""
    RESUME = "resume"
    """One of these, or a cut-off, is over."""
    EXPEL = "expel"
    """It does not follow the stream any more."""
    READMIT = "readmit"
    """It does again."""
    CUT_OFF = "cut_off"
    """No receiver of the stream asks for anything."""


class Reason(StrEnum):
    """Why a source did something to a receiver."""

    NONE = "none"
    """The text says it."""
    LOSS = "loss"
    NAKS = "naks"
    """It asks for too much."""
    LAG = "lag"
    BUFFER = "buffer"
    """Its buffers are full."""
    STORM = "storm"
    """Too many ask for too much."""


@dataclass(frozen=True, slots=True)
class Ack:
    """How far a receiver has acknowledged a topic; taken from `Transmitter.acks`."""

    number: int
    """Of the newest message acknowledged, and with it all before it since the receiver joined."""
    receiver: str
    """Identity: 16 hex digits, the same after a restart under the same name."""
    name: str
    """Of the receiver's instance."""
    address: str
    """Where its acknowledgements come from."""
    kind: Literal["transport", "application"]
    """Whether it is in the receiver's memory, or acknowledged by its application."""


@dataclass(frozen=True, slots=True)
class Loss:
    """Messages that could not be had any more; each range is told once, in the order of the stream."""

    first: int
    """Number of the first message lost, within its topic and stream."""
    count: int
    """Messages lost."""
    stream: str
    """Identity of the stream, as in `Message.stream`."""

    @property
    def last(self) -> int:
        """Number of the last message lost."""
        return self.first + self.count - 1


@dataclass(frozen=True, slots=True)
class Notice:
    """Notice of an action of a stream's source on this receiver, or on all; taken from `Receiver.notices`."""

    action: Action
    reason: Reason
    by_hand: bool
    """A person decided, and not the source by itself."""
    seconds: float
    """How long it is to last; 0: it is something that happened."""
    text: str
    """Why, for people."""
    stream: str | None
    """Identity of the stream, as in `Message.stream`; None: one that had nothing for this receiver yet."""
    wall_ns: int
    """When it was heard, ns since 1970."""


@dataclass(frozen=True, slots=True)
class Replay:
    """Result of `Receiver.replay`: every number of the range is in one of the two."""

    messages: list[Message]
    """In order; each says `recovered`."""
    losses: list[Loss]
    """Ranges the source's history does not have any more, or not yet."""

    @property
    def complete(self) -> bool:
        """Whether the whole range is there."""
        return not self.losses
