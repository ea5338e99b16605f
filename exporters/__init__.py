"""What leaves: everything that carries snapshots of the monitor to somewhere else.

An exporter is a class with two methods. The bundled ones are in `EXPORTERS` and are loaded only when named, because
some of them need heavy libraries; others come from installed packages through the entry point group
``heliograph.exporters``. `lane` and `loop` call them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Protocol, cast

from heliograph.monitor.errors import UserError

if TYPE_CHECKING:  # the model brings numpy, which the front door's help has no use for
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
    """Takes snapshots somewhere. Both methods are called from one thread, one call at a time."""

    def publish(self, snapshot: Snapshot) -> None:
        """Take one snapshot. Having nothing to say is fine; an exception is counted as a failure and told."""

    def close(self) -> None:
        """Write out what is still held and let go of every resource. Called once, after the last `publish`."""


def available() -> list[str]:
    """Names of all exporters, bundled and installed."""
    return sorted({*EXPORTERS, *(point.name for point in entry_points(group=GROUP))})


def load(name: str) -> Callable[..., Exporter]:
    """The class of an exporter.

    A bundled name cannot be taken by another package.

    Raises:
        UserError: There is no such exporter, or what it needs is not installed.
    """
    if (target := EXPORTERS.get(name)) is None:
        points = entry_points(group=GROUP, name=name)
        if not points:
            raise UserError(f"there is no exporter {name!r}; there are {', '.join(available())}")
        target = next(iter(points)).value
    module, _, attribute = target.partition(":")
    try:
        return cast(Callable[..., Exporter], getattr(import_module(module), attribute))
    except ModuleNotFoundError as error:
        if error.name is not None and error.name.startswith("heliograph."):
            raise
        raise UserError(
            f"exporter {name!r} needs the package {error.name!r}: install heliograph with the extra that brings it "
            "(heliograph[history] for spool and hdrlog), or with heliograph[all]"
        ) from error
