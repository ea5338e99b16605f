"""Mistakes and mishaps that are told to people."""

from __future__ import annotations

__all__ = ["UserError"]


class UserError(Exception):
    """Something a person can put right.

    Its message is one sentence that says what is wrong and, where it helps, what to do. The front door prints it as
    ``heliograph: <message>`` and exits with 2; it is never shown as a traceback.
    """
