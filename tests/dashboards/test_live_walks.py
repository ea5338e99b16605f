"""Walks from Fleet to the cause of a fault: what a reader sees first, the links to click, the sentence at the end.

The fleet is the sample fleet. The links are followed on the pages as the server makes them; `test_live_browser.py`
clicks such links in Chromium.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlsplit

import pytest
from dash import dcc, html

from heliograph.dashboards.live.app import page_at
from heliograph.dashboards.live.uploads import Uploads
from heliograph.monitor.model import ObjectState, Snapshot
from tests.dashboards.test_live_page import text
from tests.dashboards.views import NOW_NS, SECOND, Fleet

MOST_CLICKS = 3


@dataclass(frozen=True)
class Walk:
    """One fault: the words on Fleet, the links to click, and the words and the chart at the end."""

    first: str
    clicks: tuple[str, ...]
    """Texts of the links."""
    page: str
    cause: tuple[str, ...]
    chart: str = ""
    """Id of the chart; empty: the page has none."""


WALKS = {
    "a slow consumer": Walk(
        "slow is falling behind on PRICES.D and 3 other topics: queue 100 % full",
        ("slow",),
        "/receiver",
        (
            "queue 100 % full",
            "feed sees: action suspend; falling behind",
            "packets it needs leave the history in 42.0 s",
        ),
        "rx-queue",
    ),
    "one lossy link": Walk(
        "lossy is lossy on PRICES.A",
        ("lossy",),
        "/receiver",
        ("loses 2.1 % of packets", "Most missing packets: the network lost them", "requests 87 % of all repairs"),
        "rx-lost",
    ),
    "late detail left on": Walk(
        "level raised, 1 left on",
        ("1",),
        "/detail",
        ("Detail was left on: level 3 of topic=PRICES.* at feed, which ends in", "End now, below, ends it."),
    ),
}


def links(component: Any) -> Iterator[tuple[str, str]]:
    """Text and address of each link of a component, in the order in which they are read."""
    if isinstance(component, list | tuple):
        for item in component:
            yield from links(item)
    elif isinstance(component, dcc.Link | html.A):
        yield text(component), str(component.href)
    elif component is not None and not isinstance(component, str | int | float):
        yield from links(getattr(component, "children", None))


def ids(component: Any) -> Iterator[str]:
    """Every id of a component."""
    if isinstance(component, list | tuple):
        for item in component:
            yield from ids(item)
    elif component is not None and not isinstance(component, str | int | float):
        yield str(getattr(component, "id", ""))
        yield from ids(getattr(component, "children", None))


@pytest.mark.parametrize("fault", WALKS)
def test_a_fault_is_traced_from_fleet_to_its_cause_in_three_clicks(fault: str, fleet: Fleet) -> None:
    walk = WALKS[fault]
    for moment in range(4):
        fleet.at(moment)
    if fault == "late detail left on":
        left_on(fleet)
    page, address = opened(fleet, "/"), "/"
    assert walk.first in text(page)
    assert len(walk.clicks) <= MOST_CLICKS
    for shown in walk.clicks:
        address = next(href for words, href in links(page) if words == shown)
        page = opened(fleet, address)
    assert urlsplit(address).path == walk.page
    for sentence in walk.cause:
        assert sentence in text(page)
    assert not walk.chart or walk.chart in set(ids(page))


def opened(fleet: Fleet, address: str) -> Any:
    found = urlsplit(address)
    return page_at(found.path, f"?{found.query}", fleet.store, Uploads(), lambda: fleet.now_ns)


def left_on(fleet: Fleet) -> None:
    """Let the level of the sample fleet end in nine hours."""
    taken = fleet.store._sample

    def later(item: ObjectState) -> ObjectState:
        return replace(item, values={**item.values, "until": NOW_NS + 9 * 3600 * SECOND})

    def sample() -> Snapshot:
        found = taken()
        instances = (
            replace(one, objects=tuple(later(item) if item.scope == "detail" else item for item in one.objects))
            for one in found.instances
        )
        return replace(found, instances=tuple(instances))

    fleet.store._sample = sample
    fleet.store.take()
