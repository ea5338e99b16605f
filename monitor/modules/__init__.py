"""Modules: external code that gets every snapshot and event, and cannot delay the monitor.

A module is in Python (`protocol.Module`, an entry point of the group ``heliograph.modules``) or in C (a shared object
with the interface of ``heliograph/module.h``). Both get the same stream: the schema, then snapshots, and after each
snapshot its events and its created and destroyed topics, in the order in which they happened.

External code always runs behind a `Lane`, a thread with a bounded queue. `host.PythonSink` calls a module in this
process, `process.ProcessSink` one in a child process. The exporters have their own sink.
"""

from __future__ import annotations

from heliograph.monitor.modules.feed import Feed, Portion
from heliograph.monitor.modules.finding import GROUP, available, load, open_module
from heliograph.monitor.modules.host import PythonSink
from heliograph.monitor.modules.lane import Lane, LaneStats, Ledger, Sink
from heliograph.monitor.modules.protocol import Direction, Module, Moment, Topic, TopicChange

__all__ = [
    "GROUP",
    "Direction",
    "Feed",
    "Lane",
    "LaneStats",
    "Ledger",
    "Module",
    "Moment",
    "Portion",
    "PythonSink",
    "Sink",
    "Topic",
    "TopicChange",
    "available",
    "load",
    "open_module",
]
