"""A recording of an incident, always the same: a burst, then requests of one receiver, a queue, losses, recovery.

A sender with two receivers runs steadily for 6 s at 10 ms. At 3.00 s it sends a burst of 40 ms. Its submit queue grows
in the same tick. From 3.08 s on, receiver ``slow`` requests what it missed, and the repairs wait. The rate is lowered
at 3.20 s. All is usual again at 4.20 s. `TICK` is the position of the burst.
"""

from __future__ import annotations

import os
import random
from pathlib import Path

from tests.flights import START_NS, FlightObject, FlightWriter
from tests.segments import SegmentEvent

__all__ = ["KEPT", "TICK", "TICKS", "incident", "keep_incident"]

TICK = 300
TICKS = 600
KEPT = "feed.4711.1.flight"
"""Name of the kept recording."""
WHY = "receiver_slow: slow is slow"
STREAM = "0a0b0c0d0e0f.1"
_OWN = {"instance": "feed"}
_OBJECTS = {
    0: FlightObject("instance", _OWN),
    1: FlightObject("tx_stream", {**_OWN, "stream": STREAM}, {"rate_limit": 4_000_000}),
    2: FlightObject("transmitter", {**_OWN, "topic": "PRICES.A", "stream": STREAM}),
    3: FlightObject("transmitter", {**_OWN, "topic": "PRICES.B", "stream": STREAM}),
    4: FlightObject("tx_receiver", {**_OWN, "stream": STREAM, "receiver": "10.0.0.7:1"}, {}, {"name": "alpha"}),
    5: FlightObject("tx_receiver", {**_OWN, "stream": STREAM, "receiver": "10.0.0.8:1"}, {}, {"name": "slow"}),
}


def incident(name: str = "feed", pid: int | None = 4711, why: str = WHY) -> FlightWriter:
    """The recording.

    Args:
        name: Of the instance.
        pid: Its process; None: this one.
        why: Reason of its trigger.
    """
    draw = random.Random(61)
    flight = FlightWriter(name=name, pid=pid)
    flight.tick(new=_OBJECTS)
    sent = {2: 0, 3: 0}
    requested = {4: 0, 5: 0}
    queue = 0
    for tick in range(1, TICKS):
        is_burst = TICK <= tick < TICK + 4
        is_repaired = TICK + 8 <= tick < TICK + 120
        load = {topic: draw.randrange(8, 13) for topic in sent}
        load[2] += 390 if is_burst else 0
        for topic, count in load.items():
            sent[topic] += count
        requested[4] += draw.random() < 0.1
        requested[5] += 60 if is_repaired else draw.random() < 0.1
        queue = 80_000 if is_burst else queue * 3 // 4
        naks, messages = sum(requested.values()), sum(sent.values())
        events = []
        if tick == TICK + 20:
            events.append(SegmentEvent("rate_changed", "rate lowered for slow", slot=1))
        if tick == TICK + 30:
            events.append(SegmentEvent("receiver_slow", "slow is slow: its buffer is full", slot=1))
        flight.tick(
            changed={
                0: {
                    "messages_sent": messages,
                    "packet_bytes_sent": 220 * messages,
                    "naks_received": naks,
                    "repair_packets": naks,
                },
                1: {
                    "rate_limit": 3_000_000 if TICK + 20 <= tick < TICK + 120 else 4_000_000,
                    "repair_queue": 40 if is_repaired else 0,
                },
                2: {"messages_sent": sent[2], "queue_bytes": queue},
                3: {"messages_sent": sent[3]},
                4: {"naks_received": requested[4], "lag": draw.randrange(4)},
                5: {"naks_received": requested[5], "lag": 900 if is_repaired else draw.randrange(4)},
            },
            events=events,
            why=why if tick == TICK + 30 else None,
            missed=3 if tick == 450 else 0,
        )
    return flight


def keep_incident(folder: Path) -> Path:
    """Write the recording as a kept one, with the time of its trigger; return the file."""
    trigger_ns = START_NS + (TICK + 30) * 10_000_000
    path = incident().write(folder / KEPT, state=3, kept=1, trigger_ns=trigger_ns, why=WHY)
    os.utime(path, ns=(trigger_ns, trigger_ns))
    return path
