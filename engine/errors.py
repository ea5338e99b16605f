"""Errors: a common base class and one class for each kind that a caller can handle.

The catalogue assigns each error code to a class. An exception also has the name of its code, for callers that need more
detail: ``error.code == "PERMISSION"``.
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
    """Base class of the engine's errors. Its text states the cause in a sentence."""

    code: str = ""
    """Name of the error in the catalogue, such as ``"WOULD_BLOCK"``."""
    accepted: int = 0
    """Number of messages accepted before `Transmitter.send_many` failed."""


class EndpointError(Error):
    """An endpoint is malformed, or its address, interface or port cannot be used."""


class OptionError(Error, ValueError):
    """An option is unknown or its value invalid, or a topic name is invalid."""


class WouldBlock(Error):
    """The submit queue is full and the call may not wait; try again later."""


class TimeoutExpired(Error, TimeoutError):
    """The timeout of the call expired."""


class ClosedError(Error):
    """The instance, transmitter or receiver has been closed."""


class AckersError(Error):
    """Fewer receivers acknowledge than the option ``acks`` requires, and ``acks_missing`` is ``fail``."""


class MessageSizeError(Error):
    """A message is larger than the option ``max_message_bytes``."""


class UsageError(Error):
    """The call is not permitted here: in this mode, on this thread, in this state, or within a callback."""


class SystemCallError(Error):
    """A system call failed; the text names the call and the reason."""


class ResourceError(Error):
    """Memory or the stats segment could not be allocated."""


@cache
def _kinds() -> dict[int, tuple[type[Error], catalogue.Error]]:
    classes = {kind.__name__: kind for kind in Error.__subclasses__()}
    return {row.value: (classes[row.python], row) for row in catalogue.errors().values()}


def from_code(value: int, text: str = "") -> Error:
    """The exception for an error code of the C interface.

    Args:
        value: A ``HELIO_ERR_*`` value.
        text: The message; if empty, the catalogue's text of the code.
    """
    if value not in _kinds():
        return Error(text or f"error {value}")
    kind, row = _kinds()[value]
    error = kind(text or row.help)
    error.code = row.name
    return error
