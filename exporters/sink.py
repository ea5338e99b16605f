"""Connects an exporter to a lane of the monitor.

Lanes (`heliograph.monitor.modules.lane`) give each exporter its own thread, so that a slow or failing exporter does not
delay the others. The lane of an exporter holds at most one waiting snapshot.
"""

from __future__ import annotations

from heliograph.exporters import Exporter
from heliograph.monitor.modules.lane import Lane, Ledger, Portion, sentence

__all__ = ["ExporterSink", "exporter_lane"]


class ExporterSink:
    """Publishes each snapshot; a failure is counted, and the next snapshot is published too."""

    def __init__(self, exporter: Exporter) -> None:
        self._exporter = exporter

    def start(self, ledger: Ledger) -> None:
        """Nothing: exporters have the catalogue."""

    def take(self, portion: Portion, ledger: Ledger) -> None:
        """Publish the snapshot."""
        if portion.snapshot is not None:
            try:
                self._exporter.publish(portion.snapshot)
            except Exception as error:  # one exporter must not stop the others
                ledger.failed(sentence(error), "while publishing")

    def stop(self, within: float) -> None:
        """Do nothing: a thread cannot be interrupted."""

    def close(self, ledger: Ledger) -> None:
        """Close the exporter."""
        self._exporter.close()


def exporter_lane(name: str, exporter: Exporter) -> Lane:
    """Return a lane for an exporter: it receives only the newest snapshot, and no events."""
    return Lane(name, ExporterSink(exporter), depth=1, moments=0, kind="exporter")
