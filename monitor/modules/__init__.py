"""Modules: other people's code that is given every snapshot and event, without a way to hold anything up.

A module is Python (`protocol.Module`, an entry point of the group ``heliograph.modules``) or C (a shared object that
exports what ``heliograph/module.h`` says). Both are fed the same stream: the schema, then snapshots, and after each the
events and the topics that came and went since the one before, in the order in which they happened.

Whatever runs foreign code stands behind a `Lane`, a thread with a bounded queue: `host.PythonSink` calls a module in
this process, `process.ProcessSink` one in a child process of ours, and the exporters have a sink of their own.
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
