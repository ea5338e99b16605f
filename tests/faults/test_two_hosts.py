"""Multicast between two hosts, network namespaces with a cable between them: it is cut, and either end is killed."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.house import House
from tests.interop.cable import ADDRESSES, Cable, End, lay

ENDS: dict[str, End] = {"publisher": "near", "subscriber": "far"}


@pytest.fixture
def cable() -> Iterator[Cable]:
    """A cable of this test's own."""
    with lay() as laid:
        yield laid


def _start(house: House, cable: Cable, role: str) -> None:
    house.prefix = list(cable.at(ENDS[role]))
    house.actor(role, f"rmm://239.192.78.7:7578?interface={ADDRESSES[ENDS[role]]}")


def _goes_on(house: House) -> bool:
    before = house.count("acked.bin")
    return house.until(lambda: house.count("acked.bin") >= before + 60) is not None


def test_nothing_acknowledged_is_lost_between_two_hosts(cable: Cable, tmp_path: Path) -> None:
    with House(tmp_path / "house") as house:
        for role in ENDS:
            _start(house, cable, role)
        assert _goes_on(house), house.last_words("subscriber")
        cable.lose("far", 0.05)
        assert _goes_on(house)
        for end in ("far", "near"):
            cable.lose(end, 1.0)
            time.sleep(0.5)
            cable.lose(end, 0.0)
            assert _goes_on(house), f"after a cut at the {end} end"
        for role in ENDS:
            house.end(role, signal.SIGKILL)
            _start(house, cable, role)
            assert _goes_on(house), f"after the end of the {role}"
        acked = set(house.records("acked.bin"))
        assert acked <= set(house.records("received.bin"))
