"""Views of the sample fleet, for tests of what the live page makes of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ParamSpec
from urllib.parse import urlencode

import plotly.graph_objects as go

from heliograph.dashboards.live.figure import Figure
from heliograph.dashboards.live.store import Store, View
from heliograph.monitor.model import Snapshot
from heliograph.monitor.sampler import Sampler
from tests.fleet import sample_fleet

__all__ = ["NOW_NS", "Fleet", "checked", "message"]

NOW_NS = 1_800_000_000_000_000_000
SECOND = 1_000_000_000

_Arguments = ParamSpec("_Arguments")


def checked(draw: Callable[_Arguments, Figure]) -> Callable[_Arguments, go.Figure]:
    """Give each chart of a function to Plotly, which rejects what its format does not have."""

    def drawn(*args: _Arguments.args, **kwargs: _Arguments.kwargs) -> go.Figure:
        return go.Figure(draw(*args, **kwargs).to_plotly_json())

    return drawn


@dataclass
class Fleet:
    """The sample fleet in a folder, a clock of its own, and a store that looks at it."""

    folder: Path
    now_ns: int = NOW_NS
    store: Store = field(init=False)

    def __post_init__(self) -> None:
        # Processes that run and started long ago, whatever the test's clock says.
        self._sampler = Sampler(self.folder, clock=lambda: self.now_ns, process_start=lambda pid: 0)
        self.store = Store(self.sample, place=str(self.folder))

    def sample(self) -> Snapshot:
        return self._sampler.sample(histograms=self.store.histograms)

    def at(self, moment: int) -> View:
        """Let the fleet and the clock come to a moment, and take a sample there."""
        sample_fleet(self.folder, moment, NOW_NS)
        self.now_ns = NOW_NS + moment * SECOND
        return self.store.take()

    def close(self) -> None:
        self._sampler.close()


def message(client: Any, path: str, shown: object = "", **values: str | list[str]) -> Any:
    """Get one message of a page as a browser without a stream does.

    Args:
        client: A client of the server.
        path: Address of the page.
        shown: Number of the drawing that the browser holds.
        values: The selections, by their names in the address.
    """
    query = urlencode({"path": path, "search": urlencode(values, doseq=True), "shown": shown})
    answer = client.get(f"/live/view?{query}")
    assert answer.status_code == 200, answer.get_data(as_text=True)
    return answer.get_json()
