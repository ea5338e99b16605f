"""When messages were sent, as seen from outside."""

from __future__ import annotations

import random
from bisect import bisect_right

import pytest

from heliograph.monitor.timeline import POINTS, Timeline

SECOND = 1_000_000_000


def test_an_age_is_that_of_the_message_also_when_nothing_is_sent_any_more() -> None:
    line = Timeline()
    for second in range(11):
        line.add(second * SECOND, 1000 * min(second, 4), 8000 * min(second, 4))
    behind = line.behind(2500)
    assert behind is not None
    assert (behind.age_ns, behind.size, behind.is_bounded) == (7_500_000_000, 12_000, True)
    assert line.behind(4000) is None, "it has not been sent"
    assert len(line) == 6, "a rest needs two points"


def test_what_was_sent_before_the_first_look_is_at_least_as_old() -> None:
    line = Timeline()
    assert line.behind(0) is None
    line.add(10 * SECOND, 500, 5000)
    line.add(12 * SECOND, 600, 6000)
    behind = line.behind(3)
    assert behind is not None
    assert (behind.age_ns, behind.size, behind.is_bounded) == (2 * SECOND, 1000, False)


@pytest.mark.parametrize("seed", range(10))
def test_ages_are_right_to_within_the_looks_around_and_the_memory_is_bounded(seed: int) -> None:
    chance = random.Random(seed)
    line = Timeline()
    times, sent = [0], [0]
    for _ in range(5000):
        times.append(times[-1] + chance.randint(1, 2 * SECOND))
        sent.append(sent[-1] + chance.choice((0, 0, 7, 100, 5000)))
        line.add(times[-1], sent[-1], 10 * sent[-1])
        assert len(line) <= POINTS
    for back in (1, 2, 5, 20):
        message = max(0, sent[-1 - back] - 1)
        behind = line.behind(message)
        assert behind is not None
        after = bisect_right(sent, message)
        assert times[-1] - times[after] <= behind.age_ns <= times[-1] - times[after - 1]
    oldest = line.behind(0)
    assert oldest is not None
    assert oldest.age_ns <= times[-1]


def test_a_sender_begun_anew_a_late_look_and_a_clock_set_back_do_no_harm() -> None:
    line = Timeline()
    line.add(10 * SECOND, 100, 1000)
    line.add(11 * SECOND, 200, 2000)
    line.add(10 * SECOND, 150, 1500)  # late
    line.add(11 * SECOND, 200, 2000)  # again
    assert len(line) == 2
    line.add(5 * SECOND, 300, 3000)  # the clock was set back
    line.add(6 * SECOND, 400, 4000)
    behind = line.behind(350)
    assert behind is not None
    assert behind.age_ns == SECOND // 2
    line.add(7 * SECOND, 10, 100)  # begun anew
    assert len(line) == 1
    assert line.behind(50) is None
