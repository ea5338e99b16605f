"""The charts of one message store: what it keeps, how far it is behind, how long its files take, and its disk."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from heliograph.dashboards.live import theme
from heliograph.dashboards.live.figure import Figure
from heliograph.dashboards.live.figures.lines import MOST_LINES, add_line, times
from heliograph.dashboards.live.keeping import Keeping, KeptStream, Times
from heliograph.dashboards.live.series import Point

__all__ = ["behind", "disk", "file_times", "kept"]

_BY_P99 = "p99"
_GIB = 1 << 30


def _found(points: Sequence[Point], name: str) -> list[Keeping | None]:
    return [point.keeping.get(name) for point in points]


def _streams(found: Sequence[Keeping | None]) -> dict[str, str]:
    """The busiest streams with their colours, the same in every chart of a store."""
    most: dict[str, float] = {}
    for item in found:
        for stream, one in item.streams.items() if item is not None else ():
            most[stream] = max(most.get(stream, 0.0), one.kept)
    return theme.colours(sorted(most, key=lambda stream: (-most[stream], stream))[:MOST_LINES])


def _of(found: Sequence[Keeping | None], stream: str) -> list[KeptStream | None]:
    return [item.streams.get(stream) if item is not None else None for item in found]


def kept(points: Sequence[Point], name: str) -> Figure:
    """Messages taken per second, by stream."""
    x, found = times(points), _found(points, name)
    figure = theme.figure("messages/s", x=x)
    for stream, colour in _streams(found).items():
        values = [one.kept if one is not None else None for one in _of(found, stream)]
        add_line(figure, x, values, stream, colour, unit=",.0f messages/s", width=2)
    return figure


def behind(points: Sequence[Point], name: str) -> Figure:
    """Messages behind the source, by stream; dotted: taken and not yet in the files."""
    x, found = times(points), _found(points, name)
    figure = theme.figure("messages", x=x)
    for stream, colour in _streams(found).items():
        own = _of(found, stream)
        late = [one.behind if one is not None else None for one in own]
        if any(value is not None for value in late):
            add_line(figure, x, late, stream, colour, unit=",.0f messages behind", width=2)
        waiting = [max(0, one.last - one.written) if one is not None else None for one in own]
        add_line(figure, x, waiting, f"{stream}, not written", colour, unit=",.0f messages", dash="dot")
    return figure


def file_times(points: Sequence[Point], name: str) -> Figure:
    """The 99th percentile of writes, of syncs, and of the time until messages are durable, in ms."""
    x, found = times(points), _found(points, name)
    figure = theme.figure("ms", x=x)
    lines: Mapping[str, Sequence[Times]] = {
        "write": [item.write_times if item is not None else {} for item in found],
        "fsync": [item.sync_times if item is not None else {} for item in found],
        "durable": [_worst(item) if item is not None else {} for item in found],
    }
    for (label, values), colour in zip(lines.items(), theme.SERIES, strict=False):
        shown = [one[_BY_P99] / 1e6 if one else None for one in values]
        if any(value is not None for value in shown):
            add_line(figure, x, shown, f"{label}, p99", colour, unit=",.3f ms", width=2)
    return figure


def disk(points: Sequence[Point], name: str) -> Figure:
    """Bytes of the disk that are free, and bytes of the segments of open streams, in GiB."""
    x, found = times(points), _found(points, name)
    figure = theme.figure("GiB", x=x)
    lines = {
        "free": [item.disk_free / _GIB if item is not None and item.disk_bytes else None for item in found],
        "segments": [item.segment_bytes / _GIB if item is not None else None for item in found],
    }
    for (label, values), colour in zip(lines.items(), theme.SERIES, strict=False):
        if any(value is not None for value in values):
            add_line(figure, x, values, label, colour, unit=",.3f GiB", width=2)
    return figure


def _worst(item: Keeping) -> dict[str, int]:
    """The stream whose messages take longest."""
    known = [dict(one.durable_times) for one in item.streams.values() if one.durable_times]
    return max(known, key=lambda one: one[_BY_P99], default={})
