"""How a receiver is judged by what it does."""

from __future__ import annotations

from dataclasses import replace

import pytest

from heliograph.monitor.behaviour import Behaviour, Evidence, judge_receiver
from heliograph.monitor.model import Health

WELL = Evidence(
    health=Health.LIVE,
    health_reason="heartbeat 0.0 s ago",
    live=True,
    delivered=4000,
    lost=0,
    lag_messages=3,
    lag_seconds=0.00075,
    lag_before=3,
    queue_fill=0.01,
    queue_full=0,
    missing_ratio=0.0,
    nak_share=None,
)


@pytest.mark.parametrize(
    ("changes", "behaviour", "said"),
    [
        ({}, Behaviour.OK, "keeps up"),
        ({"missing_ratio": 0.001, "nak_share": 0.02}, Behaviour.OK, "2.0 %"),
        (
            {"missing_ratio": 0.021, "nak_share": 0.97},
            Behaviour.LOSSY,
            "loses 2.1 % of packets; sends 97.0 % of all requests",
        ),
        ({"lost": 35}, Behaviour.LOSSY, "lost 35 messages"),
        ({"lost": 1}, Behaviour.LOSSY, "lost 1 message"),
        (
            {"queue_fill": 1.0, "lag_messages": 1200, "lag_seconds": 0.3, "lag_before": 1000},
            Behaviour.FALLING_BEHIND,
            "queue 100 % full; 1200 messages (0.3 s) behind",
        ),
        ({"queue_full": 4}, Behaviour.FALLING_BEHIND, "full 4 times"),
        ({"lag_messages": 9000, "lag_seconds": 2.0, "lag_before": 9000}, Behaviour.FALLING_BEHIND, "9000 messages"),
        ({"lag_messages": 9000, "lag_seconds": 2.0, "lag_before": None}, Behaviour.FALLING_BEHIND, "9000 messages"),
        (
            {"lag_messages": 5000, "lag_seconds": 1.2, "lag_before": 9000},
            Behaviour.RECOVERING,
            "5000 messages (1.2 s) behind, 9000 before",
        ),
        ({"delivered": 0, "lag_messages": 500, "lag_seconds": 0.5}, Behaviour.STALLED, "delivers nothing"),
        ({"delivered": 0, "lag_messages": 5, "lag_seconds": None, "lag_before": 5}, Behaviour.STALLED, "nothing"),
        ({"delivered": 0, "lag_messages": 0, "lag_seconds": None, "lag_before": 0}, Behaviour.OK, "keeps up"),
        ({"delivered": 0, "lag_messages": 1, "lag_seconds": 1.0, "lag_before": 0}, Behaviour.OK, "keeps up"),
        ({"health": Health.DEAD, "health_reason": "process 7 is gone"}, Behaviour.STOPPED, "process 7 is gone"),
        ({"health": Health.STALE, "health_reason": "hangs"}, Behaviour.STOPPED, "hangs"),
        ({"health": Health.CLOSED}, Behaviour.STOPPED, "closed"),
        ({"live": False}, Behaviour.STOPPED, "closed"),
    ],
)
def test_a_receiver_is_named_for_what_it_does(changes: dict[str, object], behaviour: Behaviour, said: str) -> None:
    judgement = judge_receiver(replace(WELL, **changes))  # type: ignore[arg-type]
    assert judgement.behaviour is behaviour
    assert said in judgement.reason


def test_classes_score_in_order_of_trouble() -> None:
    ladder = [
        WELL,
        replace(WELL, lag_messages=5000, lag_seconds=1.2, lag_before=9000),
        replace(WELL, missing_ratio=0.02),
        replace(WELL, queue_fill=1.0),
        replace(WELL, lost=1),
        replace(WELL, delivered=0, lag_messages=500, lag_seconds=0.5),
        replace(WELL, health=Health.DEAD),
    ]
    scores = [judge_receiver(evidence).badness for evidence in ladder]
    assert scores == sorted(scores)
    assert len(set(scores)) == len(scores)


def test_an_end_on_purpose_is_no_trouble() -> None:
    assert judge_receiver(replace(WELL, health=Health.CLOSED)).badness == 0


@pytest.mark.parametrize("field", ["missing_ratio", "queue_fill", "lag_seconds"])
def test_within_a_class_more_trouble_scores_higher(field: str) -> None:
    quiet = judge_receiver(replace(WELL, **{field: 0.001}))  # type: ignore[arg-type]
    strained = judge_receiver(replace(WELL, **{field: 0.004}))  # type: ignore[arg-type]
    assert strained.behaviour is quiet.behaviour is Behaviour.OK
    assert strained.badness >= quiet.badness
