"""What a lane of the monitor calls for an exporter.

Lanes (`heliograph.monitor.modules.lane`) give each exporter a thread of its own, so that a slow or failing one holds up
nobody else. An exporter's lane holds at most one snapshot that waits.
"""

from __future__ import annotations

from heliograph.exporters import Exporter
from heliograph.monitor.modules.lane import Lane, Ledger, Portion, sentence

__all__ = ["ExporterSink", "exporter_lane"]


class ExporterSink:
    """Publishes each snapshot; a failure is counted and the next one published all the same."""

    def __init__(self, exporter: Exporter) -> None:
        self._exporter = exporter

    def start(self, ledger: Ledger) -> None:
        """Nothing: exporters have the catalogue."""

    def take(self, portion: Portion, ledger: Ledger) -> None:
        """Publish the snapshot."""
        if portion.snapshot is not None:
            try:
                self._exporter.publish(portion.snapshot)
            except Exception as error:  # isolation is the purpose
                ledger.failed(sentence(error), "while publishing")

    def stop(self, within: float) -> None:
        """Nothing: a thread cannot be hurried."""

    def close(self, ledger: Ledger) -> None:
        """Close the exporter."""
        self._exporter.close()


def exporter_lane(name: str, exporter: Exporter) -> Lane:
    """A lane for an exporter: it wants the newest snapshot only, and no events."""
    return Lane(name, ExporterSink(exporter), depth=1, moments=0, kind="exporter")
