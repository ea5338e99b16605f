"""Values that transmitters and receivers return: messages, losses, notices and acknowledgements."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from heliograph.engine._core import Message, Views

__all__ = ["Ack", "Action", "Loss", "Message", "Notice", "Reason", "Replay", "Views"]


class Action(StrEnum):
    """Action of a source on a slow receiver, or on all of its receivers."""

    NOTIFY = "notify"
    """The receiver is warned."""
    SHED = "shed"
    """The source repairs less for it."""
    SUSPEND_NAKS = "suspend_naks"
    """The source repairs nothing for it, and it sends no NAKs."""
    SUSPEND = "suspend"
    """As SUSPEND_NAKS, and the source does not wait for it."""
    RESUME = "resume"
    """Ends SHED, SUSPEND_NAKS, SUSPEND or CUT_OFF."""
    EXPEL = "expel"
    """The source ignores it, and it leaves the stream."""
    READMIT = "readmit"
    """Ends EXPEL."""
    CUT_OFF = "cut_off"
    """No receiver of the stream may send NAKs."""


class Reason(StrEnum):
    """Symptom that caused an action."""

    NONE = "none"
    """No symptom; see the text of the notice."""
    LOSS = "loss"
    """The receiver loses too many packets."""
    NAKS = "naks"
    """It sends too many requests."""
    LAG = "lag"
    """It is too far behind."""
    BUFFER = "buffer"
    """Its buffers are full."""
    STORM = "storm"
    """A storm: all receivers together send too many requests."""


@dataclass(frozen=True, slots=True)
class Ack:
    """Acknowledged position of a receiver in a topic; returned by `Transmitter.acks`."""

    number: int
    """Number of the newest message acknowledged, with all before it since the receiver joined."""
    receiver: str
    """Identity of the receiver: 16 hex digits, the same after a restart under the same name."""
    name: str
    """Name of the receiver's instance."""
    address: str
    """Source address of its acknowledgements."""
    kind: Literal["transport", "application"]
    """transport: the receiving engine has the message; application: the application acknowledged it."""


@dataclass(frozen=True, slots=True)
class Loss:
    """A range of lost messages; each range is reported once, in the order of the stream."""

    first: int
    """Number of the first message lost, within its topic and stream."""
    count: int
    """Number of messages lost, at least 1."""
    stream: str
    """Identity of the stream, as in `Message.stream`."""

    @property
    def last(self) -> int:
        """Number of the last message lost."""
        return self.first + self.count - 1


@dataclass(frozen=True, slots=True)
class Notice:
    """Notice of an action of a source on this receiver or on all receivers; returned by `Receiver.notices`."""

    action: Action
    reason: Reason
    by_hand: bool
    """True if a person decided, False if the source decided automatically."""
    seconds: float
    """Duration of the action, seconds; 0 if it has none."""
    text: str
    """The reason as text."""
    stream: str | None
    """Identity of the stream, as in `Message.stream`; None if the stream had no message for this receiver yet."""
    wall_ns: int
    """Time of its arrival, ns since 1970."""


@dataclass(frozen=True, slots=True)
class Replay:
    """Result of `Receiver.replay`: each number of the range is either in `messages` or in `losses`."""

    messages: list[Message]
    """In order; `recovered` is True in each."""
    losses: list[Loss]
    """Ranges that are not in the source's history: too old or not sent yet."""

    @property
    def complete(self) -> bool:
        """Whether `messages` has the whole range."""
        return not self.losses
