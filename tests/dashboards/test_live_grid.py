"""The page of all rows: its address, its update, and its use by keyboard in a browser."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from heliograph.dashboards.live.app import create, page_at
from heliograph.dashboards.live.store import Store
from heliograph.dashboards.live.uploads import Uploads
from heliograph.monitor.sampler import Sampler
from tests.bench.bench_scrape import Engines
from tests.bench.bench_scrape import Fleet as Size
from tests.dashboards.browsing import addresses, live, seen, until
from tests.dashboards.views import Fleet, message
from tests.segments import SegmentObject, write_segment

LARGEST_UPDATE = 20_000
"""Bytes of an update in which every row of a page changes."""


def text(page: Any) -> str:
    return json.dumps(page.to_plotly_json(), default=lambda item: item.to_plotly_json(), ensure_ascii=False)


def at(fleet: Fleet, search: str) -> str:
    return text(page_at("/grid", search, fleet.store, Uploads(), lambda: fleet.now_ns))


@pytest.mark.parametrize(
    ("search", "said"),
    [
        ("?page=-1", 'Page \\"-1\\" is not a number from 1'),
        ("?page=1000000000000", 'Page \\"1000000000000\\" is not a number from 1'),
        ("?page=7", 'Page \\"7\\" is after the last one, which is 1'),
        ("?sort=nonsense", 'Order \\"nonsense\\" is not that of a column'),
        ("?sort=-p50", 'Order \\"-p50\\" is not that of a column'),
        ("?state=sad", 'State \\"sad\\" is not known'),
        ("?of=planets", 'Rows \\"planets\\" are not known'),
        (f"?name={'x' * 4096}", "is longer than 200 characters"),
    ],
)
def test_an_impossible_address_shows_rows_and_says_what_is_wrong(search: str, said: str, fleet: Fleet) -> None:
    fleet.at(0)
    fleet.at(1)
    shown = at(fleet, search)
    assert said in shown
    assert "Rows 1 to 16 of 16" in shown


@pytest.mark.parametrize(
    ("search", "count"),
    [
        ("?name=lossy", "Rows 1 to 4 of 4 that match, among 16"),
        ("?name=*.A&sort=instance", "Rows 1 to 4 of 4 that match, among 16"),
        ("?state=trouble", "that match, among 16"),
        ("?of=receivers&sort=-lag_seconds", "Rows 1 to 4 of 4"),
        ("?of=topics&sort=topic", "Rows 1 to 4 of 4"),
        ("?of=instances&sort=-memory&state=live", "Rows 1 to 5 of 5 that match, among 5"),
        ("?name=nobody", "None of 16 rows matches."),
    ],
)
def test_rows_are_chosen_by_name_and_state(search: str, count: str, fleet: Fleet) -> None:
    fleet.at(0)
    fleet.at(1)
    assert count in at(fleet, search)


def test_every_column_with_an_order_sorts(fleet: Fleet) -> None:
    fleet.at(0)
    fleet.at(1)
    client = create(fleet.store, lambda: fleet.now_ns).server.test_client()
    for of in ("", "receivers", "topics", "instances"):
        rows = message(client, "/grid", of=of)["parts"]["gr-rows.children"]["set"]
        sorts = {value for head in find(rows, "data-value") if (value := head)}
        assert len(sorts) >= 8
        for sort in sorts:
            drawn = message(client, "/grid", of=of, sort=sort)["parts"]["gr-rows.children"]["set"]
            assert find(drawn, "aria-sort") == ["descending" if sort.startswith("-") else "ascending"]


def find(part: Any, name: str) -> list[str]:
    """Return the values of a property below a part."""
    if isinstance(part, dict):
        return [
            *([part[name]] if name in part else []),
            *(found for item in part.values() for found in find(item, name)),
        ]
    return [found for item in part for found in find(item, name)] if isinstance(part, list) else []


def test_names_from_outside_are_made_harmless(tmp_path: Path) -> None:
    name = "<script>‮x" + "y" * 40
    topic = "T" * 60 + "<img src=x>"
    labels = {"instance": name, "topic": topic, "stream": "0a0b0c0d0e0f.1"}
    write_segment(
        tmp_path / "x.1.helio",
        name=name,
        objects=[SegmentObject("instance", {"instance": name}), SegmentObject("receiver", labels)],
    )
    with Sampler(tmp_path, process_start=lambda pid: 0) as sampler:
        store = Store(lambda: sampler.sample(histograms=False))
        store.take()
        shown = text(page_at("/grid", "?name=<SCRIPT>", store, Uploads()))
    assert "Rows 1 to 1 of 1 that match" in shown
    assert "‮" not in shown.replace("\\u202e", "")


@contextmanager
def large(folder: Path) -> Iterator[tuple[Store, Engines]]:
    """A store over 3 receivers of 20 topics."""
    engines = Engines(folder, Size(20, 3), histograms=False)
    with Sampler(folder, process_start=lambda pid: 0) as sampler:
        store = Store(lambda: sampler.sample(histograms=store.histograms))
        store.take()
        engines.move()
        store.take()
        yield store, engines


def test_an_update_in_which_every_row_changes_is_small(tmp_path: Path) -> None:
    with large(tmp_path) as (store, engines):
        client = create(store).server.test_client()
        for of in ("", "receivers", "topics", "instances"):
            shown = message(client, "/grid", of=of, sort="-delivered_per_s" if of != "instances" else "-received")
            engines.move()
            store.take()
            answer = message(client, "/grid", shown["drawing"], of=of, sort="instance" if not of else "")
            assert len(json.dumps(answer)) < LARGEST_UPDATE


FOCUS = "return document.activeElement.textContent"


def test_the_keyboard_filters_sorts_and_turns_pages_and_a_link_shows_the_same(tmp_path: Path, driver: Any) -> None:
    from selenium.webdriver import ActionChains, Keys

    def press(words: str) -> None:
        """Press the tabulator until a button with these words has the focus, then enter."""
        until(
            lambda: (
                str(driver.execute_script(FOCUS)).strip().startswith(words)
                or ActionChains(driver).send_keys(Keys.TAB).perform()
            ),
            f"the focus on {words}",
            60,
        )
        ActionChains(driver).send_keys(Keys.ENTER).perform()

    def enter(words: str) -> None:
        """Type into the filter by name, once more when Dash lost letters because it was still building the page."""

        def typed() -> bool:
            driver.execute_script("const box = document.getElementById('gr-name'); box.focus(); box.select()")
            ActionChains(driver).send_keys(words).pause(0.5).send_keys(Keys.ENTER).pause(0.5).perform()
            return f"name={words}&" in driver.current_url

        until(typed, f"{words} in the address")

    with large(tmp_path) as (store, _), live(create(store).server, store) as url:
        driver.get(f"{url}grid")
        until(lambda: "Rows 1 to 25 of 60" in seen(driver, "gr-count"), "the first rows", 60)
        enter("reader-00")
        until(lambda: "Rows 1 to 25 of 60 that match" in seen(driver, "gr-count"), "the filtered rows")
        press("Topic")
        until(lambda: "sort=topic" in driver.current_url, "the order in the address")
        until(lambda: seen(driver, "gr-rows").count("PRICES.000") == 3, "the first topic on top")
        press("Next")
        until(lambda: "Rows 26 to 50 of 60" in seen(driver, "gr-count"), "the second page")
        assert driver.execute_script(FOCUS) == "Next"
        ActionChains(driver).send_keys(Keys.ENTER).perform()
        until(lambda: "Rows 51 to 60 of 60" in seen(driver, "gr-count"), "the last page")
        until(lambda: "page=3" in driver.current_url, "the page in the address")
        address, shown = driver.current_url, seen(driver, "gr-rows")
        driver.get("about:blank")
        driver.get(address)
        until(lambda: "Rows 51 to 60 of 60" in seen(driver, "gr-count"), "the same rows by the link", 60)
        assert seen(driver, "gr-rows") == shown
        enter("reader-001")
        until(lambda: "Rows 1 to 20 of 20 that match" in seen(driver, "gr-count"), "the first page of other rows")
        assert {found for found in addresses(driver) if not found.startswith(url)} == set()
        assert [entry for entry in driver.get_log("browser") if entry["level"] == "SEVERE"] == []
