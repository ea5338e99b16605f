"""The class of a receiver over its last observations: scripted series, noise, and observations that are none."""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import replace
from itertools import pairwise

import pytest

from heliograph.monitor.behaviour import Behaviour, Evidence, Judgement
from heliograph.monitor.model import Health
from heliograph.monitor.window import LOOKS, Look, Watcher, Window

SECOND = 1_000_000_000
START = Look(
    time_ns=1_800_000_000 * SECOND,
    expected=100_000,
    delivered=90_000,
    lost=0,
    queue_full=0,
    gaps=0,
    packets=50_000,
    lag=3,
    queue_fill=0.0,
)
RATE = 4_000


class Script:
    """A receiver whose observations are made up step by step, and the judge that sees them."""

    def __init__(self, pace_ns: int = SECOND) -> None:
        self.window = Window()
        self.look = START
        self.pace_ns = pace_ns
        self.judgement = self.judge()

    def judge(self, health: Health = Health.LIVE, look: Look | None = None) -> Judgement:
        shown = look or self.look
        evidence = Evidence(
            health=health, health_reason="process 7 is gone", live=True, delivered=RATE, lost=0,
            lag_messages=shown.lag, lag_seconds=shown.lag / RATE, lag_before=None, queue_fill=shown.queue_fill,
            queue_full=0, missing_ratio=0.0, nak_share=None,
        )  # fmt: skip
        self.judgement = self.window.judge(shown, evidence)
        return self.judgement

    def step(
        self, delivered: int | None = None, lag: int = 0, lost: int = 0, gaps: int = 0, full: int = 0, fill: float = 0.0
    ) -> Behaviour:
        """The next observation: messages delivered, change of lag, and so on."""
        sent = RATE * self.pace_ns // SECOND
        came = sent - lag if delivered is None else delivered
        self.look = replace(
            self.look,
            time_ns=self.look.time_ns + self.pace_ns,
            expected=self.look.expected + came,
            delivered=self.look.delivered + came - lost,
            lost=self.look.lost + lost,
            queue_full=self.look.queue_full + full,
            gaps=self.look.gaps + gaps,
            packets=self.look.packets + sent,
            lag=max(0, self.look.lag + lag),
            queue_fill=fill,
        )
        return self.judge().behaviour

    def steps(self, count: int, **how: float) -> list[Behaviour]:
        return [self.step(**how) for _ in range(count)]  # type: ignore[arg-type]


def settled(pace_ns: int = SECOND) -> Script:
    script = Script(pace_ns)
    assert set(script.steps(LOOKS + 2)) == {Behaviour.OK}
    return script


PACES = (50_000_000, SECOND, 30 * SECOND)


@pytest.mark.parametrize("pace_ns", PACES)
@pytest.mark.parametrize(
    ("how", "behaviour"),
    [
        ({"lag": 200}, Behaviour.FALLING_BEHIND),
        ({"delivered": 0, "lag": 300}, Behaviour.STALLED),
        ({"full": 1, "fill": 1.0}, Behaviour.FALLING_BEHIND),
        ({"lost": 5}, Behaviour.LOSSY),
        ({"gaps": 3000}, Behaviour.LOSSY),
    ],
)
def test_each_class_is_reached_within_a_window_at_any_pace_and_left_within_two(
    pace_ns: int, how: dict[str, float], behaviour: Behaviour
) -> None:
    script = settled(pace_ns)
    if how == {"lag": 200}:  # a twentieth of what is sent
        how = {"lag": RATE * pace_ns // SECOND // 20}
    found = script.steps(LOOKS, **how)
    assert behaviour in found
    first = found.index(behaviour)
    assert set(found[first:]) == {behaviour}, "once reached it stays"
    assert script.judgement.looks == LOOKS + 1
    script.look = replace(script.look, lag=3)
    after = script.steps(2 * LOOKS + 3)
    assert after[-1] is Behaviour.OK


def test_who_was_behind_and_gains_is_recovering_and_then_well() -> None:
    script = settled()
    script.steps(LOOKS, lag=1000)
    assert script.judgement.behaviour is Behaviour.FALLING_BEHIND
    found = [script.step(lag=-900) for _ in range(11)]
    assert Behaviour.RECOVERING in found
    assert "catching up" in script.judgement.reason
    assert script.steps(2 * LOOKS)[-1] is Behaviour.OK


def test_the_end_of_a_receiver_is_told_at_once_and_so_is_its_return() -> None:
    script = settled()
    assert script.judge(Health.DEAD).behaviour is Behaviour.STOPPED
    assert script.judgement.reason == "process 7 is gone"
    assert script.step() is Behaviour.OK


def test_a_class_says_since_when_and_by_how_many_looks() -> None:
    script = settled()
    before_ns = script.look.time_ns
    script.steps(LOOKS, delivered=0, lag=300)
    assert script.judgement.looks == LOOKS + 1
    assert before_ns < script.judgement.since_ns <= before_ns + 4 * SECOND
    assert "delivers nothing" in script.judgement.reason
    since_ns = script.judgement.since_ns
    script.steps(5, delivered=0, lag=300)
    assert script.judgement.since_ns == since_ns


def _changes(found: Iterable[Behaviour]) -> int:
    listed = list(found)
    return sum(newer is not older for older, newer in pairwise(listed))


@pytest.mark.parametrize("seed", range(30))
def test_noise_makes_no_class_flap(seed: int) -> None:
    chance = random.Random(seed)
    script = settled()
    found = []
    for _ in range(300):
        lag = chance.randint(0, 40)
        found.append(script.step(lag=lag - script.look.lag, gaps=chance.choice((0, 0, 0, 1, 4))))
    assert set(found) == {Behaviour.OK}


@pytest.mark.parametrize("seed", range(30))
def test_one_at_the_threshold_of_loss_does_not_flap(seed: int) -> None:
    chance = random.Random(seed)
    script = settled()
    found = [script.step(gaps=round(chance.gauss(20, 6))) for _ in range(300)]  # half a percent of 4 000
    assert _changes(found) <= 3


@pytest.mark.parametrize("seed", range(20))
def test_one_who_falls_behind_with_pauses_keeps_its_class(seed: int) -> None:
    chance = random.Random(seed)
    script = settled()
    found = [script.step(lag=chance.choice((150, 200, 250, 400))) for _ in range(60)]
    assert found[-1] is Behaviour.FALLING_BEHIND
    assert _changes(found) == 1


def test_a_receiver_begun_anew_is_judged_anew() -> None:
    script = settled()
    script.steps(LOOKS, delivered=0, lag=300)
    assert script.judgement.behaviour is Behaviour.STALLED
    script.look = replace(START, time_ns=script.look.time_ns + SECOND, expected=10, delivered=10, packets=5, lag=0)
    script.judge()
    assert script.window.looks == 1
    assert script.steps(LOOKS)[-1] is Behaviour.OK


def test_the_same_snapshot_again_and_late_ones_change_nothing() -> None:
    script = settled()
    late = script.look
    script.steps(LOOKS, lag=200)
    judged = script.judgement
    for _ in range(5):
        assert script.judge() == judged
    assert script.judge(look=late).behaviour is judged.behaviour
    assert script.window.looks == LOOKS + 1
    assert script.step(lag=200) is Behaviour.FALLING_BEHIND
    assert script.window.looks == LOOKS + 1


@pytest.mark.parametrize("back_ns", [10 * SECOND, 3600 * SECOND, 86_400 * SECOND])
@pytest.mark.parametrize("how", [{"lag": 200}, {"delivered": 0, "lag": 300}, {}])
def test_a_clock_set_back_costs_a_window_and_no_more(back_ns: int, how: dict[str, float]) -> None:
    script = settled()
    expected = script.steps(LOOKS, **how)[-1]
    script.look = replace(script.look, time_ns=script.look.time_ns - back_ns)
    found = script.steps(2 * LOOKS, **how)
    assert found[-1] is expected
    assert script.window.looks == LOOKS + 1


def test_a_clock_set_back_is_found_also_while_nothing_happens() -> None:
    script = settled()
    script.look = replace(script.look, time_ns=script.look.time_ns - 3600 * SECOND)
    for _ in range(5):
        script.look = replace(script.look, time_ns=script.look.time_ns + SECOND)
        script.judge()
    assert script.window.looks == 3


def test_what_was_before_a_gap_does_not_count() -> None:
    script = settled()
    script.steps(LOOKS, lost=5)
    assert script.judgement.behaviour is Behaviour.LOSSY
    script.look = replace(script.look, time_ns=script.look.time_ns + 600 * SECOND)
    script.step()
    assert script.window.looks == 2
    assert script.steps(6)[-1] is Behaviour.OK


def test_a_watcher_forgets_who_is_gone_and_no_window_grows() -> None:
    watcher = Watcher()
    script = settled()
    evidence = Evidence(Health.LIVE, "", True, 0, 0, 0, None, None, 0.0, 0, 0.0, None)
    for number in range(100):
        for receiver in range(5):
            look = replace(script.look, time_ns=number * SECOND)
            judged = watcher.judge((receiver, ("receiver",)), look, evidence)
            assert judged.looks <= LOOKS + 1
    watcher.forget_but({(3, ("receiver",)): None}, {})
    assert watcher.judge((3, ("receiver",)), replace(script.look, time_ns=101 * SECOND), evidence).looks == LOOKS + 1
    assert watcher.judge((4, ("receiver",)), replace(script.look, time_ns=101 * SECOND), evidence).looks == 1
