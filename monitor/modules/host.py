"""A module in this process: what a lane calls for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from heliograph.engine import catalogue
from heliograph.monitor.model import Event
from heliograph.monitor.modules.lane import Ledger, Portion, sentence
from heliograph.monitor.modules.protocol import Module, Moment

__all__ = ["PythonSink", "method_for"]


def method_for(module: Module, moment: Moment) -> tuple[Callable[[Any], None] | None, Any]:
    """The method of a module that a moment goes to, None where it has none; and what it is told."""
    if isinstance(moment, Event):
        return module.event, moment
    name = "topic_created" if moment.created else "topic_destroyed"
    return getattr(module, name, None), moment.topic


class PythonSink:
    """Calls a module's methods. One that raises is counted, and the next is called all the same."""

    def __init__(self, module: Module) -> None:
        self._module = module
        self._lost = 0

    def start(self, ledger: Ledger) -> None:
        """Tell the module the schema."""
        self._call(ledger, "describe", self._module.describe, catalogue.scopes())

    def take(self, portion: Portion, ledger: Ledger) -> None:
        """The snapshot first, then what happened."""
        if portion.snapshot is not None:
            self._call(ledger, "snapshot", self._module.snapshot, portion.snapshot)
        for moment in portion.moments:
            method, told = method_for(self._module, moment)
            if method is not None:
                self._call(ledger, method.__name__, method, told)
        self._count_lost(ledger)

    def stop(self, within: float) -> None:
        """Nothing: a thread cannot be hurried."""

    def close(self, ledger: Ledger) -> None:
        """Tell the module that this is the end."""
        try:
            self._module.close()
        except Exception as error:
            ledger.failed(sentence(error), "in close")
        self._count_lost(ledger)

    def _count_lost(self, ledger: Ledger) -> None:
        """Count what the module gave up since the last time."""
        lost = getattr(self._module, "lost", 0)
        if isinstance(lost, int) and lost > self._lost:
            ledger.count(lost=lost - self._lost)
            self._lost = lost

    def _call(self, ledger: Ledger, name: str, method: Callable[[Any], None], told: Any) -> None:
        try:
            method(told)
        except Exception as error:  # isolation is the purpose: a module's mistake is its own
            ledger.failed(sentence(error), f"in {name}")
