"""What the tests of the lab share: a small scenario that runs in a moment."""

from __future__ import annotations

import pytest

SMALL = """
title = "A bottleneck that narrows"
shows = "What a test needs to see."
duration = 2.0
interval = 0.05

[[mark]]
at = 1.5
text = "halfway <through>"

[[pipe]]
name = "bottleneck"
rate = 2_000_000
queue = 60_000
changes = [{ at = 1.0, rate = 1_000_000, queue = 30_000 }]

[[source]]
name = "source"
offered = 900_000
options = { send_window = 4096 }
changes = [{ at = 1.2, offered = 500_000 }]

[[receivers]]
name = "good"
count = 2

[[receivers]]
name = "slow & bad"
loss = 0.05
drain = 400
queue = 50_000
changes = [{ at = 0.5, loss = 0.01 }]

[[tcp]]
name = "tcp"
start = 0.5

[[criterion]]
name = "utilisation"
measure = "utilisation"
begin = 0.5
bound = 0.1

[[criterion]]
name = "loss"
measure = "loss_share"
begin = 0.2
end = 1.0
"""


@pytest.fixture
def small() -> str:
    """The text of a scenario with one of everything."""
    return SMALL
