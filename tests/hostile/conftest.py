"""Fixtures of other rooms that attacks are made with."""

from __future__ import annotations

from tests.monitor.conftest import moments

__all__ = ["moments"]
