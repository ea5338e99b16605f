"""A receiver of the demo: takes all four topics, counts messages, and checks for duplicates and disorder.

With ``--pause`` it sleeps after each batch, like an application with too much work in its handler. It keeps up at the
low rate and falls behind in bursts. A line "pause SECONDS" on standard input changes the pause. Notices of the feed
(slow, suspended, resumed) are counted and printed to standard error.

Prints ``{"ready": ...}`` when it listens; reads "end" (or the end of standard input) and prints its counts.

    python receiver.py --name slow --endpoint "rmm://239.192.77.1:7500?interface=127.0.0.1" --pause 0.02
"""

from __future__ import annotations

import argparse
import json
import sys
import threading
import time
from dataclasses import asdict, dataclass, field
from datetime import datetime

from heliograph.engine import Instance, Receiver

TOPICS = ("PRICES.EQUITY", "PRICES.FX", "PRICES.RATES", "PRICES.CREDIT")
BATCH = 64


@dataclass(slots=True)
class Tally:
    """The counts of one topic; only its thread writes them."""

    delivered: int = 0
    recovered: int = 0
    skipped: int = 0
    """Message numbers skipped after the first message: reported losses."""
    disorder: int = 0
    """Messages that arrived twice or after a newer one: must stay 0."""
    following: int = -1
    """Number of the next expected message."""
    notices: dict[str, int] = field(default_factory=dict)
    """Notices of the feed by action; every topic's receiver of a stream gets them."""


@dataclass(slots=True)
class Habit:
    """Behaviour of the application; may change at any time."""

    pause: float
    """Seconds it sleeps after each batch."""


def hear_notices(receiver: Receiver, tally: Tally, aloud: bool) -> None:
    """Count the notices of the feed; print them for one topic only."""
    for notice in receiver.notices():
        tally.notices[notice.action.name.lower()] = tally.notices.get(notice.action.name.lower(), 0) + 1
        if aloud:
            moment = datetime.fromtimestamp(notice.wall_ns / 1e9)
            lasts = f" for {notice.seconds:.3g} s" if notice.seconds else ""
            line = f"{moment:%H:%M:%S.%f}  told: {notice.action.name.lower()}{lasts} ({notice.text})"
            print(line, file=sys.stderr, flush=True)


def take(receiver: Receiver, tally: Tally, habit: Habit, done: threading.Event, aloud: bool) -> None:
    """Receive batches until done."""
    while not done.is_set():
        batch = receiver.receive(timeout=0.2, limit=BATCH)
        for message in batch:
            if tally.following >= 0:
                tally.disorder += message.number < tally.following
                tally.skipped += max(0, message.number - tally.following)
            tally.following = message.number + 1
            tally.delivered += 1
            tally.recovered += message.recovered
        hear_notices(receiver, tally, aloud)
        if batch and habit.pause:
            time.sleep(habit.pause)


def obey(habit: Habit) -> None:
    """Execute the commands on standard input until "end" or end of file."""
    for line in sys.stdin:
        word, _, value = line.strip().partition(" ")
        if word == "end":
            return
        if word == "pause":
            habit.pause = float(value)


def main() -> None:
    """Receive until ended."""
    parser = argparse.ArgumentParser(description="A receiver of the demo's feed.")
    parser.add_argument("--name", required=True)
    parser.add_argument("--endpoint", required=True)
    parser.add_argument("--pause", type=float, default=0.0, help="seconds to sleep after each batch")
    parser.add_argument("--receive-queue", type=int, default=8 << 20, help="bytes")
    parser.add_argument("--inject-loss", type=float, default=0.0, help="share of packets dropped on arrival, 0 to 1")
    arguments = parser.parse_args()

    done = threading.Event()
    habit = Habit(arguments.pause)
    tallies = {topic: Tally() for topic in TOPICS}
    with Instance(name=arguments.name) as instance:
        receivers = {
            topic: instance.receiver(
                arguments.endpoint,
                topic,
                receive_queue=arguments.receive_queue,
                inject_loss=arguments.inject_loss,
            )
            for topic in TOPICS
        }
        threads = [
            threading.Thread(target=take, args=(receivers[topic], tallies[topic], habit, done, topic == TOPICS[0]))
            for topic in TOPICS
        ]
        for thread in threads:
            thread.start()
        print(json.dumps({"ready": arguments.name}), flush=True)
        obey(habit)
        done.set()
        for thread in threads:
            thread.join()
    print(json.dumps({topic: asdict(tally) for topic, tally in tallies.items()}), flush=True)


if __name__ == "__main__":
    main()
