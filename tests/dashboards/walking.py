"""A walk of a reader from Fleet to the cause of a fault, by the links of the pages as the server makes them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import plotly.graph_objects as go
from dash import dcc, html

from heliograph.dashboards.live.app import page_at
from heliograph.dashboards.live.store import Store
from heliograph.dashboards.live.uploads import Uploads

__all__ = ["MOST_CLICKS", "Walk", "arrived", "links", "opened", "said", "walk"]

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


def said(component: Any) -> str:
    """The text of a page as it is read: links are a part of their sentence."""
    return re.sub(r"\s+", " ", "".join(_pieces(component)))


def _pieces(component: Any) -> Iterator[str]:
    if isinstance(component, str | int | float):
        yield str(component)
    elif isinstance(component, list | tuple):
        for item in component:
            yield from _pieces(item)
    elif component is not None:
        is_inline = isinstance(component, dcc.Link | html.A | html.Span | html.Strong)
        yield from ([] if is_inline else [" "])
        yield from _pieces(getattr(component, "children", None))
        yield from ([] if is_inline else [" "])


def links(component: Any) -> Iterator[tuple[str, str]]:
    """Text and address of each link of a component, in the order in which they are read."""
    if isinstance(component, list | tuple):
        for item in component:
            yield from links(item)
    elif isinstance(component, dcc.Link | html.A):
        yield said(component), str(component.href)
    elif component is not None and not isinstance(component, str | int | float):
        yield from links(getattr(component, "children", None))


def opened(store: Store, clock: Callable[[], int], address: str) -> Any:
    """The page of an address, as the server makes it."""
    found = urlsplit(address)
    return page_at(found.path, f"?{found.query}", store, Uploads(), clock)


def walk(store: Store, clock: Callable[[], int], wanted: Walk) -> tuple[str, Any]:
    """Click the links of a walk; return the address where it ends, and the page."""
    page, address = opened(store, clock, "/"), "/"
    assert wanted.first in said(page)
    assert len(wanted.clicks) <= MOST_CLICKS
    for words in wanted.clicks:
        found = dict(reversed(list(links(page))))  # the first of equal texts
        assert words in found, f"{address} has no link {words!r}"
        address = found[words]
        page = opened(store, clock, address)
    return address, page


def arrived(store: Store, clock: Callable[[], int], wanted: Walk) -> None:
    """Check that a walk leads to its page, its sentences and its chart, and that the chart has values."""
    address, page = walk(store, clock, wanted)
    assert urlsplit(address).path == wanted.page
    text = said(page)
    for sentence in wanted.cause:
        assert sentence in text
    if wanted.chart:
        chart = next(item for item in page._traverse() if getattr(item, "id", "") == wanted.chart)
        drawn = go.Figure(chart.figure.to_plotly_json())  # which rejects what its format does not have
        assert any(value is not None for trace in drawn.data for value in trace.y), "the chart is empty"
