"""Whether two snapshots are the same; `==` cannot tell, for histograms hold arrays."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np

from heliograph.monitor.model import Histogram, Snapshot

__all__ = ["assert_same", "same"]


def same(one: Snapshot, other: Snapshot) -> bool:
    """Whether they are."""
    try:
        assert_same(one, other)
    except AssertionError:
        return False
    return True


def assert_same(one: Snapshot, other: Snapshot) -> None:
    """All of it, histograms bit by bit."""
    assert (one.time_ns, one.events, one.events_missed) == (other.time_ns, other.events, other.events_missed)
    assert len(one.instances) == len(other.instances)
    for mine, theirs in zip(one.instances, other.instances, strict=True):
        assert replace(mine, objects=()) == replace(theirs, objects=())
        assert len(mine.objects) == len(theirs.objects)
        for left, right in zip(mine.objects, theirs.objects, strict=True):
            assert replace(left, histograms={}) == replace(right, histograms={})
            assert list(left.labels.items()) == list(right.labels.items())
            assert left.histograms.keys() == right.histograms.keys()
            for name, histogram in left.histograms.items():
                _assert_same_histogram(histogram, right.histograms[name])


def _assert_same_histogram(one: Histogram, other: Histogram) -> None:
    for item in fields(Histogram):
        if item.name != "counts":
            assert getattr(one, item.name) == getattr(other, item.name), item.name
    assert one.counts.dtype == other.counts.dtype
    assert np.array_equal(one.counts, other.counts)
    assert one.count == other.count
