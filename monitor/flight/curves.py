"""Curves of a recording: load, queues, recovery, loss, and the state of the rate controllers.

A curve has one value for each tick, over all objects of its scope: the rate since the previous tick for counters, the
value itself for gauges.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from heliograph.monitor.flight.reader import Recording, Series, Track

__all__ = ["CURVES", "Curve", "Spec", "cells_of", "counted", "curves", "rate_of"]


@dataclass(frozen=True, slots=True)
class Spec:
    """Definition of a curve."""

    key: str
    title: str
    group: str
    unit: str
    scope: str
    cells: tuple[str, ...]
    """Cell names; a name that ends with * matches all names with that prefix."""
    how: str
    """rate: of counters, per second; sum, max or least (of values above 0): of gauges; mean: ns per message."""


@dataclass(frozen=True, slots=True)
class Curve:
    """One curve."""

    spec: Spec
    values: Series
    """One value for each tick; NaN where the value is unknown."""

    @property
    def is_flat(self) -> bool:
        """Whether all known values are 0."""
        return not np.any(np.nan_to_num(self.values))


def _spec(key: str, title: str, group: str, unit: str, scope: str, cells: str, how: str) -> Spec:
    return Spec(key, title, group, unit, scope, tuple(cells.split()), how)


CURVES = (
    _spec("messages_sent", "messages sent", "Load", "messages/s", "instance", "messages_sent", "rate"),
    _spec("messages_received", "messages received", "Load", "messages/s", "instance", "messages_received", "rate"),
    _spec("bytes_sent", "bytes on the wire out", "Throughput", "B/s", "instance", "packet_bytes_sent", "rate"),
    _spec("bytes_received", "bytes on the wire in", "Throughput", "B/s", "instance", "packet_bytes_received", "rate"),
    _spec("send_queue", "submit queue", "Queues", "B", "transmitter", "queue_bytes", "sum"),
    _spec("receive_queue", "receive queue", "Queues", "B", "receiver", "queue_bytes", "sum"),
    _spec("backlog", "backlog of connections", "Queues", "B", "instance", "backlog_bytes kernel_backlog_bytes", "sum"),
    _spec("naks_sent", "NAKs sent", "Recovery", "packets/s", "instance", "naks_sent", "rate"),
    _spec("naks_received", "NAKs received", "Recovery", "packets/s", "instance", "naks_received", "rate"),
    _spec("repairs_sent", "repairs sent", "Recovery", "packets/s", "instance", "repair_packets", "rate"),
    _spec("gaps", "packets missing at first", "Recovery", "packets/s", "rx_stream", "packets_missed", "rate"),
    _spec("recovered", "packets recovered", "Recovery", "packets/s", "rx_stream", "packets_recovered", "rate"),
    _spec("missing", "packets missing now", "Waiting", "packets", "rx_stream", "outstanding_naks", "sum"),
    _spec("held", "packets held for an older one", "Waiting", "packets", "rx_stream", "held_packets", "sum"),
    _spec("repair_queue", "repairs waiting", "Waiting", "packets", "tx_stream", "repair_queue", "sum"),
    _spec("packets_lost", "packets lost", "Loss", "packets/s", "rx_stream", "packets_lost_*", "rate"),
    _spec("messages_lost", "messages lost", "Loss", "messages/s", "receiver", "messages_lost", "rate"),
    _spec("socket_drops", "dropped by the kernel", "Loss", "packets/s", "instance", "socket_drops", "rate"),
    _spec("send_errors", "send errors", "Loss", "packets/s", "instance", "send_errors", "rate"),
    _spec("dropped", "dropped from submit queues", "Loss", "messages/s", "transmitter", "messages_dropped_*", "rate"),
    _spec("rate_limit", "rate limit", "Rate", "B/s", "tx_stream", "rate_limit", "least"),
    _spec("rate_decided", "rate chosen by the policy", "Rate", "B/s", "tx_stream", "rate_decided", "least"),
    _spec("slow_rate_limit", "ceiling for slow receivers", "Rate", "B/s", "tx_stream", "slow_rate_limit", "least"),
    _spec("rate_loss", "loss used by the policy", "Loss seen", "millionths", "tx_stream", "rate_loss", "max"),
    _spec("send_room", "packets that may be sent", "Window", "packets", "tx_stream", "send_room", "least"),
    _spec("pgmcc_window", "PGMCC window", "Window", "packets", "tx_stream", "pgmcc_window", "least"),
    _spec("lag", "worst receiver's lag", "Lag", "packets", "tx_receiver", "lag", "max"),
    _spec("latency", "mean latency", "Latency", "ns", "receiver", "total_latency messages_delivered", "mean"),
    _spec("memory", "memory in use", "Memory", "B", "instance", "memory_used", "max"),
)  # fmt: skip


def cells_of(track: Track, pattern: str) -> list[str]:
    """The recorded cells of an object that a name of `Spec.cells` stands for."""
    return [cell for cell in track.changes if cell.startswith(pattern[:-1])] if pattern.endswith("*") else [pattern]


def _grown(recording: Recording, track: Track, cell: str) -> Series:
    """Growth of a counter at each tick; an object created during the recording starts at 0."""
    ticks = len(recording.numbers)
    values = track.values(cell, ticks)
    out = np.zeros(ticks)
    span = slice(track.first + 1, track.last + 1)
    out[span] = np.diff(values[track.first : track.last + 1])
    if track.first > 0 and track.created_ns >= recording.wall_ns[track.first - 1]:
        out[track.first] = values[track.first]
    return np.nan_to_num(np.maximum(out, 0.0))


def counted(recording: Recording, scope: str, cells: Sequence[str]) -> Series:
    """Total growth of the counters of a scope at each tick."""
    total = np.zeros(len(recording.numbers))
    for track in recording.of(scope):
        for pattern in cells:
            for cell in cells_of(track, pattern):
                if cell in track.changes:
                    total += _grown(recording, track, cell)
    return total


def rate_of(recording: Recording, grown: Series) -> Series:
    """Convert growth to a rate per second; NaN at the first tick."""
    passed = np.diff(recording.times)
    rates = np.full(len(grown), np.nan)
    np.divide(grown[1:], passed, out=rates[1:], where=passed > 0)
    return rates


def _gauge(recording: Recording, spec: Spec) -> Series:
    """Sum, greatest or least value above 0 over all objects; one object at a time, so memory is that of a curve."""
    ticks = len(recording.numbers)
    known = np.zeros(ticks, dtype=bool)
    out = np.full(ticks, np.inf if spec.how == "least" else 0.0)
    for track in recording.of(spec.scope):
        for pattern in spec.cells:
            for cell in cells_of(track, pattern):
                if cell not in track.changes:
                    continue
                values = track.values(cell, ticks)
                known |= ~np.isnan(values)
                if spec.how == "sum":
                    out += np.nan_to_num(values)
                elif spec.how == "max":
                    np.fmax(out, values, out=out)
                else:
                    np.fmin(out, np.where(values > 0, values, np.inf), out=out)
    return np.where(known, np.where(np.isinf(out), 0.0, out), np.nan)


def _mean(recording: Recording, spec: Spec) -> Series:
    """The growth of a sum of times divided by the growth of its count."""
    times, counts = (counted(recording, spec.scope, (cell,)) for cell in spec.cells)
    out = np.full(len(times), np.nan)
    np.divide(times, counts, out=out, where=(counts > 0) & (times > 0))
    return out


def curves(recording: Recording, specs: Sequence[Spec] = CURVES) -> list[Curve]:
    """All curves, including flat ones."""
    found = []
    for spec in specs:
        if spec.how == "rate":
            values = rate_of(recording, counted(recording, spec.scope, spec.cells))
        elif spec.how == "mean":
            values = _mean(recording, spec)
        else:
            values = _gauge(recording, spec)
        found.append(Curve(spec, values))
    return found
