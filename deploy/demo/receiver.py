"""One of the demo's receivers: takes all four topics, counts, and checks that nothing comes twice or out of order.

With ``--pause`` it sleeps after each batch, as an application that does too much in its handler: it keeps up when the
feed is calm and falls behind in bursts. Prints ``{"ready": ...}`` once it listens; reads "end" (or the end of standard
input) and prints what it got.

    python receiver.py --name slow --endpoint "rmm://239.192.77.1:7500?interface=127.0.0.1" --pause 0.02
"""

from __future__ import annotations

import argparse
import json
import sys
import threading
import time
from dataclasses import asdict, dataclass

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


def take(receiver: Receiver, tally: Tally, pause: float, done: threading.Event) -> None:
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
        if batch and pause:
            time.sleep(pause)


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
            threading.Thread(target=take, args=(receivers[topic], tallies[topic], arguments.pause, done))
            for topic in TOPICS
        ]
        for thread in threads:
            thread.start()
        print(json.dumps({"ready": arguments.name}), flush=True)
        while (sys.stdin.readline().strip() or "end") != "end":
            pass
        done.set()
        for thread in threads:
            thread.join()
    print(json.dumps({topic: asdict(tally) for topic, tally in tallies.items()}), flush=True)


if __name__ == "__main__":
    main()
