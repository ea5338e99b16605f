"""Push to a Prometheus Pushgateway, for hosts a Prometheus cannot reach.

What is pushed replaces what this group (job and grouping key) pushed before. When the gateway does not answer, pushing
rests for a time that doubles with each failure up to a limit, so that a gateway in trouble is not hammered; snapshots
that come meanwhile are let go, since the next push carries all totals anyway. The last state is pushed on closing.
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
    """Pushes each snapshot, and rests after failures."""

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
        """Prepare the exporter; nothing is sent yet.

        Args:
            url: Address of the gateway, ``http://HOST:PORT`` or ``HOST:PORT``.
            job: Value of the label `job` of all that is pushed.
            grouping: Further labels of the group, such as the host's name; two hosts that push the same group
                overwrite each other.
            timeout: Longest wait for the gateway, seconds.
            max_series: Most series of statistics in a push.
            window: Length of the percentile window, seconds.
            lanes: Tells how the exporters and modules of this process fare.
            account: Tells what a collector misses, where snapshots come from one.
            clock: Seconds that never go back.

        Raises:
            UserError: The address or the grouping key cannot be used.
        """
        if not url.removeprefix("http://").removeprefix("https://").strip("/"):
            raise UserError("a Pushgateway needs an address; write --gateway http://HOST:9091")
        if taken := {"job", "node"} & set(grouping or {}):
            raise UserError(f"a grouping key cannot be called {', '.join(sorted(taken))}: the metrics use that label")
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
        """Push this snapshot, unless the gateway is given a rest.

        Raises:
            OSError: The gateway did not take it.
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
        """Push what the gateway has not seen yet.

        Raises:
            OSError: The gateway did not take it.
        """
        if self._unsent:
            self._push()

    def _push(self) -> None:
        push_to_gateway(self._url, self._job, self._registry, self._grouping, self._timeout, default_handler)
        self._unsent = False
