"""Errors with a message for the user."""

from __future__ import annotations

__all__ = ["UserError"]


class UserError(Exception):
    """An error that the user can correct.

    Its message is one sentence with the fault and, where it helps, the remedy. The command prints it as
    ``heliograph: <message>`` and exits with 2; it never appears as a traceback.
    """
