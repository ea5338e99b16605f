"""What comes out of a receiver: messages and reports of loss for good; and what goes back: acknowledgements."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from heliograph.engine._core import Message

__all__ = ["Ack", "Loss", "Message", "Replay"]


@dataclass(frozen=True, slots=True)
class Ack:
    """How far a receiver has acknowledged a topic; taken from `Transmitter.acks`."""

    number: int
    """Of the newest message acknowledged, and with it all before it since the receiver joined."""
    receiver: str
    """Who: 16 hex digits, the same again when it is started anew under the same name."""
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
class Replay:
    """What `Receiver.replay` brought: every number of the range is in one of the two."""

    messages: list[Message]
    """In order; each says `recovered`."""
    losses: list[Loss]
    """Ranges the source's history does not have any more, or not yet."""

    @property
    def complete(self) -> bool:
        """Whether the whole range is there."""
        return not self.losses
