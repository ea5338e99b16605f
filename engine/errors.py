"""Errors: one small family, one class per kind that a caller can handle.

The catalogue says which error code is carried by which class; each exception keeps the code's name, for the few callers
who tell the kinds apart more finely: ``error.code == "PERMISSION"``.
"""

from __future__ import annotations

from functools import cache

from heliograph.engine import catalogue

__all__ = [
    "AckersError",
    "ClosedError",
    "EndpointError",
    "Error",
    "MessageSizeError",
    "OptionError",
    "ResourceError",
    "SystemCallError",
    "TimeoutExpired",
    "UsageError",
    "WouldBlock",
    "from_code",
]


class Error(Exception):
    """Anything the engine refuses or fails at. Its text is a sentence for people."""

    code: str = ""
    """Name of the error in the catalogue, such as ``"WOULD_BLOCK"``."""
    accepted: int = 0
    """Of a failed `Transmitter.send_many`: how many messages had been taken before."""


class EndpointError(Error):
    """An endpoint cannot be understood, or its address, interface or port cannot be used."""


class OptionError(Error, ValueError):
    """An option or a topic name is unknown, unfit or outside its range."""


class WouldBlock(Error):
    """The submit queue is full and waiting was not allowed; try again later."""


class TimeoutExpired(Error, TimeoutError):
    """The time given passed first."""


class ClosedError(Error):
    """The instance, transmitter or receiver has been closed."""


class AckersError(Error):
    """Fewer receivers acknowledge than the option ``acks`` wants, and ``acks_missing`` says fail."""


class MessageSizeError(Error):
    """A message is larger than the option ``max_message_bytes``."""


class UsageError(Error):
    """The call does not fit: the wrong mode, the wrong thread, or within a callback."""


class SystemCallError(Error):
    """The operating system refused; the text says what and why."""


class ResourceError(Error):
    """Memory or the stats segment could not be had."""


@cache
def _kinds() -> dict[int, tuple[type[Error], catalogue.Error]]:
    classes = {kind.__name__: kind for kind in Error.__subclasses__()}
    return {row.value: (classes[row.python], row) for row in catalogue.errors().values()}


def from_code(value: int, text: str = "") -> Error:
    """The exception for an error code of the C interface.

    Args:
        value: a ``HELIO_ERR_*``.
        text: what happened, for people; "" for what the catalogue says of the code.
    """
    if value not in _kinds():
        return Error(text or f"error {value}")
    kind, row = _kinds()[value]
    error = kind(text or row.help)
    error.code = row.name
    return error
