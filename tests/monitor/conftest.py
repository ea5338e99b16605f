"""The fleet on paper at its two moments, as a monitor reads it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from heliograph.monitor.model import Snapshot
from heliograph.monitor.sampler import Sampler
from tests.fleet import sample_fleet

NOW_NS = 1_800_000_000_000_000_000
SECOND = 1_000_000_000


def read_moments(folder: Path) -> tuple[Snapshot, Snapshot]:
    """The fleet, and the fleet a second later."""
    now = [NOW_NS]
    with Sampler(folder, clock=lambda: now[0], process_start=lambda pid: 0) as sampler:
        sample_fleet(folder, 0, NOW_NS)
        before = sampler.sample()
        sample_fleet(folder, 1, NOW_NS)
        now[0] += SECOND
        return before, sampler.sample()


@pytest.fixture
def zone() -> Iterator[Callable[[str], None]]:
    """Sets the local time zone, as TZ names it, for one test."""
    with pytest.MonkeyPatch.context() as patch:

        def choose(name: str) -> None:
            patch.setenv("TZ", name)
            time.tzset()

        yield choose
    time.tzset()


@pytest.fixture
def utc(zone: Callable[[str], None]) -> None:
    """Makes UTC the local time zone."""
    zone("UTC")


@pytest.fixture
def moments(tmp_path: Path) -> tuple[Snapshot, Snapshot]:
    """The fleet, and the fleet a second later."""
    return read_moments(tmp_path)


def changed(snapshot: Snapshot, scope: str, values: Mapping[str, int]) -> Snapshot:
    """The snapshot with other values in every object of a scope."""
    owners = [
        replace(
            owner,
            objects=tuple(
                replace(item, values={**item.values, **values}) if item.scope == scope else item
                for item in owner.objects
            ),
        )
        for owner in snapshot.instances
    ]
    return replace(snapshot, instances=tuple(owners))
