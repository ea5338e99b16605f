"""Totals of receivers by instance and by topic: from columns they are those of the rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from heliograph.monitor.fleet import receivers, worst_instances
from heliograph.monitor.groups import Kind, groups_of, rows_of_instance, rows_of_topic, vector_of
from heliograph.monitor.joined import VECTORS, Receivers
from heliograph.monitor.rows import ReceiverRow
from heliograph.monitor.sampler import Sampler
from tests.fleet import STREAM, sample_fleet

NOW_NS = 1_800_000_000_000_000_000


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Receivers]:
    folder: Path = tmp_path_factory.mktemp("segments")
    now = NOW_NS
    with Sampler(folder, clock=lambda: now, process_start=lambda pid: 0) as sampler:
        sample_fleet(folder, 0, NOW_NS)
        before = sampler.sample()
        sample_fleet(folder, 1, NOW_NS)
        now += 1_000_000_000
        yield receivers(before, sampler.sample())


@pytest.mark.parametrize("kind", ["instance", "topic"])
def test_totals_from_columns_are_those_of_the_rows(kind: Kind, rows: Receivers) -> None:
    plain: Sequence[ReceiverRow] = list(rows)
    found = groups_of(rows, kind)
    assert list(found) == list(groups_of(plain, kind))
    assert sum(group.count for group in found) == len(plain)
    for group in found:
        own = [
            row for row in plain if group.name == ((row.instance,) if kind == "instance" else (row.topic, row.stream))
        ]
        assert (group.worst, group.count) == (own[0], len(own))
        assert list(found.members(group.name)) == own
        assert group.delivered_per_s == pytest.approx(sum(row.delivered_per_s for row in own))
        assert group.lost == sum(row.lost for row in own)
        assert group.queue_fill == max(row.queue_fill for row in own)
        assert group.lag_seconds == max((row.lag_seconds for row in own if row.lag_seconds is not None), default=None)
        streams = {(row.instance, row.stream): row.naks_per_s for row in own}
        assert group.naks_per_s == pytest.approx(sum(streams.values()))


def test_every_column_is_that_of_the_rows(rows: Receivers) -> None:
    plain: Sequence[ReceiverRow] = list(rows)
    for name in VECTORS:
        if not name.startswith("is_"):
            assert vector_of(rows, name) == pytest.approx(vector_of(plain, name), nan_ok=True), name
    assert not vector_of(rows, "is_new").any()
    assert vector_of(rows, "is_live").all()


def test_a_group_that_does_not_exist_has_no_rows(rows: Receivers) -> None:
    assert len(rows_of_instance(rows, "nobody")) == 0
    assert len(rows_of_topic(rows, "PRICES.A", "other")) == 0
    assert len(rows_of_topic(rows, "PRICES.A", STREAM)) == 4
    assert groups_of(rows, "instance").find(("nobody",)) is None
    assert list(groups_of([], "instance")) == []
    assert worst_instances(iter(())) == []
