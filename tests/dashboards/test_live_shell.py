"""The shell of a page: whole without a message of the server, and without components that Dash does not draw."""

from __future__ import annotations

import json
from typing import Any

import pytest
from dash import html

from heliograph.dashboards.live.app import create, followed, page_at
from heliograph.dashboards.live.differences import plain
from heliograph.dashboards.live.pages.parts import as_sent, harmless
from heliograph.dashboards.live.pages.shell import shell
from heliograph.dashboards.live.recordings import Shelf
from heliograph.dashboards.live.updates import Message, Updates
from heliograph.dashboards.live.uploads import Uploads
from tests.dashboards.browsing import live, seen, until
from tests.dashboards.views import Fleet

PAGES = followed(Uploads(), None, Shelf())


@pytest.fixture
def full(fleet: Fleet) -> Fleet:
    for moment in range(4):
        fleet.at(moment)
    return fleet


@pytest.mark.parametrize("path", PAGES)
def test_a_shell_and_its_data_are_the_whole_page(full: Fleet, path: str) -> None:
    def made() -> Any:
        return page_at(path, "", full.store, Uploads(), lambda: full.now_ns)

    page = PAGES[path]
    whole = {found.id: found for found in made()._traverse() if getattr(found, "id", None)}
    found = shell(made(), page.prefix, page.drawn_by_browser)
    left = {item.id: item for item in found._traverse() if getattr(item, "id", None)}
    parts = json.loads(getattr(left[f"{page.prefix}stamp"], "data-parts"))
    own = {name: kind for name, kind in page.drawn_by_browser.items() if name in whole}
    assert parts == {f"{name}.{kind}": plain(getattr(whole[name], kind)) for name, kind in own.items()}
    for name in left:
        assert getattr(left[name], "children", None) is None or name not in own
        assert not hasattr(left[name], "figure") or name not in own
    assert whole.keys() - left.keys() <= {inner.id for name in own for inner in _below(whole[name])}


def _below(part: Any) -> list[Any]:
    return [item for item in part._traverse() if getattr(item, "id", None)]


@pytest.mark.parametrize("path", PAGES)
def test_what_is_sent_is_the_harmless_page_in_plain(full: Fleet, path: str) -> None:
    def parts() -> Any:
        page = PAGES[path]
        return page.draw(full.store.view, page.choose(full.store.view, {}))

    before = plain(parts())
    found = as_sent(given := parts())
    assert plain(given) == before, "the parts were changed"
    assert json.dumps(found) == json.dumps(plain(harmless(parts())))
    hostile = html.Div(["a\u202eb", {"label": "c\u200bd", "value": "e\u200bf"}], title="g\x1bh", id="i\u200bj")
    assert as_sent(hostile) == plain(harmless(hostile)) != plain(html.Div(["a\u202eb"]))


def test_a_page_shows_its_tables_before_any_message(full: Fleet, driver: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*arguments: Any) -> Message:
        raise OSError("no message")

    monkeypatch.setattr(Updates, "message", fails)
    with live(create(full.store, lambda: full.now_ns).server, full.store) as url:
        for path, part, words in (("", "receivers", "slow"), ("grid", "gr-rows", "slow")):
            driver.get(url + path)
            until(lambda part=part, words=words: words in seen(driver, part), f"{part} of the page {path}")
        driver.get("about:blank")  # ends its requests
