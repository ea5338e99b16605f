"""Pushes to a Prometheus Pushgateway, for hosts that Prometheus cannot reach.

A push replaces the previous push of the same group (job and grouping key). After a failure, pushing pauses for a time
that doubles with each failure up to a limit. Snapshots during the pause are dropped, because the next push carries all
totals. The last state is pushed on close.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping

from prometheus_client import push_to_gateway
from prometheus_client.exposition import default_handler

from heliograph.exporters.collector import MAX_SERIES, WINDOW, SnapshotCollector
from heliograph.monitor.collector.account import Account
from heliograph.monitor.errors import UserError
from heliograph.monitor.model import Snapshot
from heliograph.monitor.modules.lane import LaneStats

__all__ = ["PushgatewayExporter"]

_FIRST_REST = 1.0
_LONGEST_REST = 60.0


class PushgatewayExporter:
    """Pushes each snapshot, and pauses after a failure."""

    def __init__(
        self,
        url: str,
        *,
        job: str = "heliograph",
        grouping: Mapping[str, str] | None = None,
        timeout: float = 5.0,
        max_series: int = MAX_SERIES,
        window: float = WINDOW,
        lanes: Callable[[], Iterable[LaneStats]] = tuple,
        account: Callable[[], Account | None] = lambda: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Create the exporter; sends nothing.

        Args:
            url: Address of the gateway, ``http://HOST:PORT`` or ``HOST:PORT``.
            job: Value of the label `job` of all pushed metrics.
            grouping: Further labels of the group, such as the host name; two hosts with the same group overwrite each
                other.
            timeout: Longest wait for the gateway in seconds.
            max_series: Largest number of series of statistics in a push.
            window: Length of the percentile window in seconds.
            lanes: Returns the state of the exporters and modules of this process.
            account: Returns the account of missing data, when snapshots come from a collector.
            clock: Monotonic seconds.

        Raises:
            UserError: The address or the grouping key is invalid.
        """
        if not url.removeprefix("http://").removeprefix("https://").strip("/"):
            raise UserError("a Pushgateway needs an address; write --gateway http://HOST:9091")
        if taken := {"job", "node"} & set(grouping or {}):
            raise UserError(f"the grouping key cannot use {', '.join(sorted(taken))}: the metrics have that label")
        self._url = url
        self._job = job
        self._grouping = dict(grouping or {})
        self._timeout = timeout
        self._collector = SnapshotCollector(max_series=max_series, window=window, lanes=lanes, account=account)
        self._registry = self._collector.registry()
        self._clock = clock
        self._rest = 0.0
        self._rests_until = 0.0
        self._unsent = False

    def publish(self, snapshot: Snapshot) -> None:
        """Push this snapshot, except during a pause.

        Raises:
            OSError: The gateway did not accept it.
        """
        self._collector.update(snapshot)
        self._unsent = True
        if self._rest and self._clock() < self._rests_until:
            return
        try:
            self._push()
        except OSError:
            self._rest = min(_LONGEST_REST, self._rest * 2 or _FIRST_REST)
            self._rests_until = self._clock() + self._rest
            raise
        self._rest = 0.0

    def close(self) -> None:
        """Push the last state, when the gateway does not have it yet.

        Raises:
            OSError: The gateway did not accept it.
        """
        if self._unsent:
            self._push()

    def _push(self) -> None:
        push_to_gateway(self._url, self._job, self._registry, self._grouping, self._timeout, default_handler)
        self._unsent = False
