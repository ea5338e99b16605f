"""Families as columns: the text of labels is built once, and the samples are the lines."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.exposition import generate_latest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics

from heliograph.exporters import _lines, tables
from heliograph.exporters.collector import SnapshotCollector
from heliograph.exporters.rendering import Format, Renderer
from heliograph.exporters.tables import Column, Form, Labels, Table, Tables, number_text
from tests.exporters.making import START, at, histogram, instance, receiver

HARD = ("", "plain", 'a "quoted" name', "back\\slash", "line\nbreak", "é 信号 \U0001f4a1", '{a="b"} 1', "x" * 3000)
NUMBERS = (0, 1, -1, 0.1, 999_999, 1_000_000, -1_000_000, 123_456_789, 2**64 - 1, True, float("inf"), float("nan"))


def test_hard_labels_and_numbers_are_written_as_prometheus_client_does() -> None:
    labels = Labels(("zone", "node"), [(text, "n") for text in HARD])
    numbers = Labels(("place",), [(str(place),) for place in range(len(NUMBERS))])
    families = [
        Table(Form("hard", "gauge", 'A "help"\nof two \\ lines.'), [Column(labels, range(len(HARD)), ("only", 'a"b'))]),
        Table(Form("numbers_total", "counter", ""), [Column(numbers, NUMBERS)]),
        Table(Form("scaled_seconds", "gauge", "", 10**9), [Column(numbers, (None, *NUMBERS[1:10], 5, 6))]),
        Table(Form("bare", "gauge", "No labels."), [Column(Labels((), [()]), [7])]),
    ]
    for family in families:

        class One:
            def collect(self, family: Table = family) -> list[Table]:
                return [family]

        assert Renderer(1).render([family], Format.TEXT) == generate_latest(One())  # type: ignore[arg-type]
        assert len(family) == len(family.samples)
        assert family


@given(st.lists(st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats()), st.sampled_from([1, 10**9]))
def test_lines_have_the_numbers_of_prometheus_client(values: list[float | None], divisor: int) -> None:
    blocks = [f'{{n="{row}"}}' for row in range(len(values))]
    wanted = [
        f"{name}{block} {number_text(value / by)}{ending}\n"
        for block, value in zip(blocks, values, strict=True)
        if value is not None
        for name, by, ending in (("a", divisor, " #" if block == '{n="1"}' else ""), ("é", 1, ""))
    ]
    found = _lines.lines([("a", blocks, values, divisor, {1: " #"}), ("é", blocks, tuple(values), 1, {})])
    assert found == "".join(wanted).encode()


@pytest.mark.parametrize(
    ("columns", "error"),
    [
        ([("a", ["{}"], [], 1, {})], ValueError),
        ([("a", [""], [1], 1, {}), ("b", [], [], 1, {})], ValueError),
        ([("a", [], [], 0, {})], ValueError),
        ([("a", ["\ud800"], [1], 1, {})], UnicodeEncodeError),
        ([("a", [""], ["1"], 1, {})], TypeError),
        ([("a", [""], [1], 1)], TypeError),
    ],
)
def test_columns_that_do_not_fit_are_refused(columns: list[Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        _lines.lines(columns)


def test_openmetrics_has_the_time_at_which_counts_began_by_option() -> None:
    made = {"total_latency": histogram({10_000: 5})}
    topics = [receiver("alpha", topic, messages_delivered=5, histograms=made) for topic in "AB"]
    twins = [replace(topics[0], created_ns=START + 1), replace(topics[0], created_ns=START + 2)]
    for objects, several in ((topics, False), (twins, True)):
        collector = SnapshotCollector(monotonic_ns=lambda: 0)
        collector.update(at(1, instance("alpha", *objects)))
        found = {
            has_created: Renderer(1, has_created=has_created).render(collector.collect(), Format.OPENMETRICS).decode()
            for has_created in (False, True)
        }
        without = [line for line in found[True].splitlines() if "_created{" not in line]
        assert without == found[False].splitlines()
        families = {family.name: family for family in openmetrics(found[True])}  # type: ignore[no-untyped-call]
        for name in ("heliograph_receiver_messages_delivered", "heliograph_receiver_total_latency_seconds"):
            created = [sample for sample in families[name].samples if sample.name == f"{name}_created"]
            assert [(sample.labels["topic"], sample.value) for sample in created] == (
                [] if several else [("A", START / 1e9), ("B", START / 1e9)]
            ), "several objects under one name began at no one time"
        assert "_created" not in Renderer(1, has_created=True).render(collector.collect(), Format.TEXT).decode()


def test_label_text_is_built_for_new_objects_only(monkeypatch: pytest.MonkeyPatch) -> None:
    built: list[tuple[str, ...]] = []
    pairs = Labels._pairs

    def counted(labels: Labels, key: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
        built.append(key)
        return pairs(labels, key)

    monkeypatch.setattr(Labels, "_pairs", counted)
    kept = Tables()
    first = kept.labels("scope", ("node",), [("a",), ("b",)])
    assert kept.labels("scope", ("node",), [("a",), ("b",)]) is first
    second = kept.labels("scope", ("node",), [("c",), ("b",)])
    assert built == [("a",), ("b",), ("c",)]
    assert second.blocks() == ['{node="c"}', '{node="b"}']
    assert second.blocks(("le", "+Inf")) == ['{le="+Inf",node="c"}', '{le="+Inf",node="b"}']


def test_the_labels_of_a_fleet_outlive_a_snapshot(monkeypatch: pytest.MonkeyPatch) -> None:
    def fleet(second: int) -> None:
        counts = histogram({10_000: second})
        topics = [receiver("alpha", topic, histograms={"total_latency": counts}) for topic in "AB"]
        collector.update(at(second, instance("alpha", *topics)))

    collector = SnapshotCollector()
    fleet(1)
    before = {family.name: family.text for family in collector.collect()}
    monkeypatch.setattr(tables, "_escaped", None)  # a label that is escaped now fails
    fleet(2)
    after = {family.name: family for family in collector.collect() if family.name.startswith("heliograph_receiver_")}
    assert set(after) <= set(before)
    assert after["heliograph_receiver_total_latency_seconds"].text.count(b'_count{node="alpha"') == 2


def test_a_part_of_a_family_is_chosen_by_the_name_of_its_samples() -> None:
    labels = Labels(("node",), [("a",)])
    columns = [Column(labels, [3], suffix="_count"), Column(labels, [5], suffix="_sum")]
    table = Table(Form("t_seconds", "histogram", ""), columns)
    assert table.named(frozenset({"t_seconds"})) is table
    assert table.named(frozenset()) is table
    part = table.named(frozenset({"t_seconds_sum"}))
    assert part.text == b't_seconds_sum{node="a"} 5.0\n'
    assert not table.named(frozenset({"other"}))
