"""A module in this process: the calls that its lane makes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from heliograph.engine import catalogue
from heliograph.monitor.model import Event
from heliograph.monitor.modules.lane import Ledger, Portion, sentence
from heliograph.monitor.modules.protocol import Module, Moment

__all__ = ["PythonSink", "method_for"]


def method_for(module: Module, moment: Moment) -> tuple[Callable[[Any], None] | None, Any]:
    """Return the method of a module for a moment (None: not defined) and its argument."""
    if isinstance(moment, Event):
        return module.event, moment
    name = "topic_created" if moment.created else "topic_destroyed"
    return getattr(module, name, None), moment.topic


class PythonSink:
    """Calls the methods of a module. A call that raises is counted, and the next call follows."""

    def __init__(self, module: Module) -> None:
        self._module = module
        self._lost = 0

    def start(self, ledger: Ledger) -> None:
        """Pass the schema to the module."""
        self._call(ledger, "describe", self._module.describe, catalogue.scopes())

    def take(self, portion: Portion, ledger: Ledger) -> None:
        """Pass the snapshot, then its moments."""
        if portion.snapshot is not None:
            self._call(ledger, "snapshot", self._module.snapshot, portion.snapshot)
        for moment in portion.moments:
            method, told = method_for(self._module, moment)
            if method is not None:
                self._call(ledger, method.__name__, method, told)
        self._count_lost(ledger)

    def stop(self, within: float) -> None:
        """Do nothing: a thread cannot be interrupted."""

    def close(self, ledger: Ledger) -> None:
        """Notify the module of the end."""
        try:
            self._module.close()
        except Exception as error:
            ledger.failed(sentence(error), "in close")
        self._count_lost(ledger)

    def _count_lost(self, ledger: Ledger) -> None:
        """Count the lines that the module dropped since the last call."""
        lost = getattr(self._module, "lost", 0)
        if isinstance(lost, int) and lost > self._lost:
            ledger.count(lost=lost - self._lost)
            self._lost = lost

    def _call(self, ledger: Ledger, name: str, method: Callable[[Any], None], told: Any) -> None:
        try:
            method(told)
        except Exception as error:  # an error of one module must not affect others
            ledger.failed(sentence(error), f"in {name}")
