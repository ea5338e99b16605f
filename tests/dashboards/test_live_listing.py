"""The rows of a table of any size: filtered, sorted and cut on columns."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest

from heliograph.dashboards.live.listing import Lines, Wish, number_of_page, window
from heliograph.dashboards.live.pages.grid import Choice, parts
from heliograph.dashboards.live.store import View
from heliograph.monitor.fleet import receivers
from heliograph.monitor.joined import Receivers
from heliograph.monitor.model import Health, InstanceState, ObjectState, Snapshot

RECEIVERS, TOPICS = 1000, 100


def lines(*names: str, states: Any = None, lag: Any = None) -> Lines:
    index = np.arange(len(names))
    return Lines(
        len(names),
        {"name": (names, index)},
        lambda: np.array(states if states is not None else [0] * len(names), np.float64),
        lambda column: np.array({"lag": lag}[column], np.float64),
    )


def found(some: Lines, most: int = 25, **wish: Any) -> list[int]:
    return list(window(some, Wish(**wish), most).places)


def test_a_part_of_a_name_matches_in_any_case_and_a_pattern_matches_the_whole_name() -> None:
    some = lines("desk-1", "DESK-2", "feed", "a[b]c")
    assert found(some, pattern="esk") == [0, 1]
    assert found(some, pattern="desk-?") == [0, 1]
    assert found(some, pattern="esk*") == []
    assert found(some, pattern="*ee*") == [2]
    assert found(some, pattern="[b]") == [3]
    assert found(some, pattern="a[*") == [3]


def test_a_hostile_pattern_and_a_name_of_4_kb_take_no_time() -> None:
    some = lines("a" * 4096, "‮<script>alert(1)</script>")
    began = time.process_time()
    assert found(some, pattern="*a" * 99 + "b") == []
    assert time.process_time() - began < 2
    assert found(some, pattern="<SCRIPT>") == [1]


def test_an_order_is_stable_and_unknown_values_are_last() -> None:
    some = lines("a", "b", "c", "d", lag=[1, np.nan, 3, 1])
    assert found(some, column="lag") == [0, 3, 2, 1]
    assert found(some, column="lag", is_descending=True) == [2, 0, 3, 1]
    assert found(lines("b", "c", "a"), column="name", is_descending=True) == [1, 0, 2]


def test_states_and_pages_cut_the_rows() -> None:
    some = lines(*"abcdefg", states=[0, 1, 0, 1, 0, 1, 0])
    one = window(some, Wish(states=frozenset({0}), page=2), 3)
    assert (list(one.places), one.first, one.found, one.page, one.pages) == ([6], 4, 4, 2, 2)
    assert window(some, Wish(page=10**9), 3).page == 3
    nothing = window(some, Wish(pattern="x", page=4), 3)
    assert (list(nothing.places), nothing.first, nothing.found, nothing.page) == ([], 0, 0, 1)


@pytest.mark.parametrize("text", ["-1", "0", "1e3", "nonsense", "1000000000000", "", "٣"])
def test_what_is_no_number_of_a_page_is_refused(text: str) -> None:
    assert number_of_page(text) is None


def _large() -> Receivers:
    values = {"next_message": 9, "messages_delivered": 9}
    instances = tuple(
        InstanceState(
            f"reader-{n:03}",
            Health.LIVE,
            "",
            1,
            n + 1,
            1,
            1,
            "",
            tuple(
                ObjectState(
                    "receiver",
                    {"instance": f"reader-{n:03}", "topic": f"T.{topic:03}", "stream": "s.1"},
                    {},
                    {**values, "messages_lost": n} if topic == 7 else values,
                )
                for topic in range(TOPICS)
            ),
        )
        for n in range(RECEIVERS)
    )
    return receivers(None, Snapshot(2_000_000_000, instances))


def test_of_100000_rows_only_those_of_the_page_are_built() -> None:
    rows = _large()
    assert len(rows) == RECEIVERS * TOPICS
    began = time.process_time()
    drawn = parts(View(sequence=1, rows=rows), Choice("", "t.007", "", "-lost", "3"))
    took = time.process_time() - began
    assert drawn["gr-count"] == "Rows 51 to 75 of 1,000 that match, among 100,000"
    assert "reader-949" in str(drawn["gr-rows"])
    assert len(rows._rows) == 25
    assert took < 2, "a tenth of this on a quiet machine"
