"""Statistics of many hosts in one snapshot: published over Heliograph's own transport, and collected.

Each host runs a `Publisher`, which samples its segments and sends the snapshots as frames (`monitor.packing`). A
`Collector` receives from any number of publishers and returns one `Snapshot`, as a `Sampler` does for one host, so
every output works with both. A `Relay` forwards the reports of a collector. Of the monitor, only this package uses the
engine, and only `link` imports it, when a link is opened.
"""

from __future__ import annotations

from heliograph.monitor.collector.collector import Collector
from heliograph.monitor.collector.publisher import Publisher
from heliograph.monitor.collector.relay import Relay

__all__ = ["Collector", "Publisher", "Relay"]
