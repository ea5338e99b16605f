"""Exporters carry snapshots of the monitor to other systems.

An exporter is a class with two methods. The bundled exporters are in `EXPORTERS`; each is imported only when it is
named, because some need heavy libraries. Installed packages add exporters through the entry point group
``heliograph.exporters``. `loop` feeds them, each on a lane.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Protocol, cast

from heliograph.monitor.errors import UserError

if TYPE_CHECKING:  # the model imports numpy, which the help of the command does not need
    from heliograph.monitor.model import Snapshot

__all__ = ["EXPORTERS", "GROUP", "Exporter", "available", "load"]

GROUP = "heliograph.exporters"

EXPORTERS: Mapping[str, str] = {
    "console": "heliograph.exporters.console:ConsoleExporter",
    "hdrlog": "heliograph.exporters.hdrlog:HdrLogExporter",
    "prometheus": "heliograph.exporters.prometheus:PrometheusExporter",
    "pushgateway": "heliograph.exporters.pushgateway:PushgatewayExporter",
    "spool": "heliograph.exporters.spool:SpoolExporter",
}


class Exporter(Protocol):
    """Carries snapshots to another system. Both methods are called from one thread, one call at a time."""

    def publish(self, snapshot: Snapshot) -> None:
        """Export one snapshot. An exception counts as a failure and is reported."""

    def close(self) -> None:
        """Write the remaining data and release every resource. Called once, after the last `publish`."""


def available() -> list[str]:
    """Return the names of all exporters, bundled and installed."""
    return sorted({*EXPORTERS, *(point.name for point in entry_points(group=GROUP))})


def load(name: str) -> Callable[..., Exporter]:
    """Return the class of an exporter.

    Another package cannot replace a bundled name.

    Raises:
        UserError: The exporter is unknown, or a package it needs is not installed.
    """
    if (target := EXPORTERS.get(name)) is None:
        points = entry_points(group=GROUP, name=name)
        if not points:
            raise UserError(f"unknown exporter {name!r}; available: {', '.join(available())}")
        target = next(iter(points)).value
    module, _, attribute = target.partition(":")
    try:
        return cast(Callable[..., Exporter], getattr(import_module(module), attribute))
    except ModuleNotFoundError as error:
        if error.name is not None and error.name.startswith("heliograph."):
            raise
        raise UserError(
            f"exporter {name!r} needs the package {error.name!r}: install heliograph with the extra that provides it "
            "(heliograph[history] for spool and hdrlog), or with heliograph[all]"
        ) from error
