"""Latency history: interval histograms at rest, merged exactly, read last.

    recorder (exporters) -> spool: one row per interval and series -> roll-up -> history: one row per hour and series

`schema` says what a row is, `intervals` cuts them, `files` keeps them, `merge` adds them (C kernel, no Spark),
`rollup` adds very many (Spark), `importer` brings foreign HDR logs, `report` shows the result. Importing this package
loads none of them. In a notebook, `open` is the way in.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from heliograph.monitor.history.notebook import History

__all__ = ["open"]


def open(place: str | Path) -> History:
    """Open a history for questions: see `heliograph.monitor.history.notebook`.

    Args:
        place: Its directory, or ``s3://BUCKET/PREFIX``.

    Raises:
        ValueError: The address is of no known kind of store.
    """
    from heliograph.monitor.history.notebook import History
    from heliograph.monitor.history.remote import place_of

    return History(place_of(place) if isinstance(place, str) and "://" in place else Path(place))
