"""One fleet out of many hosts: snapshots published over the transport itself, and collected.

Each host runs a `Publisher`, which samples its segments and sends what it finds as frames (`monitor.packing`). A
`Collector` hears any number of them and hands out one `Snapshot`, as a `Sampler` does of one host, so every door works
on either. A `Relay` passes on what a collector hears. This package and no other of the monitor uses the engine, and
only `link` imports it, when a link is opened.
"""

from __future__ import annotations

from heliograph.monitor.collector.collector import Collector
from heliograph.monitor.collector.publisher import Publisher
from heliograph.monitor.collector.relay import Relay

__all__ = ["Collector", "Publisher", "Relay"]
