"""One of the demo's receivers: takes all four topics, counts, and checks that nothing comes twice or out of order.

With ``--pause`` it sleeps after each batch, as an application that does too much in its handler: it keeps up when the
feed is calm and falls behind in bursts. A line "pause SECONDS" on standard input changes that while it runs. What the
feed tells it (it is slow, it is suspended, it may go on) goes to standard error as it comes, and is counted.

Prints ``{"ready": ...}`` once it listens; reads "end" (or the end of standard input) and prints what it got.

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
    """What one topic brought; written by its thread only."""

    delivered: int = 0
    recovered: int = 0
    skipped: int = 0
    """Message numbers jumped over after the first message: reported losses."""
    disorder: int = 0
    """Messages that came again or after a newer one: must stay 0."""
    following: int = -1
    """Number the next message should have."""
    notices: dict[str, int] = field(default_factory=dict)
    """What the feed told this receiver, by what it did; a stream tells it to each topic's receiver."""


@dataclass(slots=True)
class Habit:
    """How the application behaves; may change at any time."""

    pause: float
    """Seconds it sleeps after each batch."""


def hear_notices(receiver: Receiver, tally: Tally, aloud: bool) -> None:
    """Count what the feed told this receiver, and say it if this is the topic that speaks for all."""
    for notice in receiver.notices():
        tally.notices[notice.action.name.lower()] = tally.notices.get(notice.action.name.lower(), 0) + 1
        if aloud:
            moment = datetime.fromtimestamp(notice.wall_ns / 1e9)
            lasts = f" for {notice.seconds:.3g} s" if notice.seconds else ""
            told = f"{moment:%H:%M:%S.%f}  told: {notice.action.name.lower()}{lasts} ({notice.text})"
            print(told, file=sys.stderr, flush=True)


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
    """Do what standard input says until it says "end" or ends itself."""
    for line in sys.stdin:
        word, _, value = line.strip().partition(" ")
        if word == "end":
            return
        if word == "pause":
            habit.pause = float(value)


def main() -> None:
    """Receive until told to end."""
    parser = argparse.ArgumentParser(description="A receiver of the demo's feed.")
    parser.add_argument("--name", required=True)
    parser.add_argument("--endpoint", required=True)
    parser.add_argument("--pause", type=float, default=0.0, help="seconds to sleep after each batch")
    parser.add_argument("--receive-queue", type=int, default=8 << 20, help="bytes")
    parser.add_argument("--inject-loss", type=float, default=0.0, help="share of packets thrown away on arrival")
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
