"""The feed of the demo: quotes on four topics at a low rate, with a burst every other second.

Prints ``{"ready": ...}`` when it can send. Sends until it reads "stop" (or the end of standard input), then flushes and
prints the number of sent messages. It answers repair requests until it reads "end".

    python feed.py --endpoint "rmm://239.192.77.1:7500?interface=127.0.0.1" --seed 7
"""

from __future__ import annotations

import argparse
import json
import random
import select
import struct
import sys
import time
from collections.abc import Iterator, Mapping
from itertools import count

from heliograph.engine import Instance
from heliograph.engine.options import OptionValue

TOPICS = {"PRICES.EQUITY": 0.5, "PRICES.FX": 0.3, "PRICES.RATES": 0.15, "PRICES.CREDIT": 0.05}
"""Topics and their share of the messages."""

CALM_PER_SECOND = 2_000
BURST_PER_SECOND = 20_000
BURST_SECONDS = 0.3
BURST_EVERY = 2.0
TICK = 0.005
BOOK_EVERY = 200
"""After this number of messages an equity order book is sent, larger than a packet."""
SLOW_CONSUMERS: Mapping[str, OptionValue] = {"slow_action": "suspend", "slow_dwell": 0.3, "suspend_time": 8.0}
"""Options for slow receivers with ``--slow``: a receiver is suspended after about a second in trouble."""

QUOTE = struct.Struct(">8sQddIIQ")


def rate(elapsed: float) -> int:
    """Return the messages per second at a moment: a burst at the end of each period."""
    return BURST_PER_SECOND if elapsed % BURST_EVERY >= BURST_EVERY - BURST_SECONDS else CALM_PER_SECOND


def quotes(topic: str, dice: random.Random) -> Iterator[bytes]:
    """Yield an endless series of quotes: symbol, number, bid, ask, sizes, time."""
    symbols = [f"{topic[7:10]}{index:03d}".encode() for index in range(50)]
    price = dict.fromkeys(symbols, 100.0)
    for number in count():
        symbol = dice.choice(symbols)
        price[symbol] *= 1.0 + dice.gauss(0.0, 1e-4)
        bid, ask = price[symbol] * 0.9999, price[symbol] * 1.0001
        sizes = dice.randrange(1, 500), dice.randrange(1, 500)
        quote = QUOTE.pack(symbol, number, bid, ask, *sizes, time.time_ns())
        yield quote * 40 if topic == "PRICES.EQUITY" and number % BOOK_EVERY == 0 else quote


def heard(wait: float) -> str | None:
    """Return a line from standard input that arrives within `wait` seconds; end of file counts as "end"."""
    if not select.select([sys.stdin], [], [], wait)[0]:
        return None
    return sys.stdin.readline().strip() or "end"


def main() -> None:
    """Send until stopped."""
    parser = argparse.ArgumentParser(description="A bursty market-data-like feed.")
    parser.add_argument("--endpoint", required=True)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--slow", choices=("observe", "advise", "enforce"), help="what is done about slow consumers")
    parser.add_argument("--decision-log", help="folder for what is decided about rates and receivers, and from what")
    arguments = parser.parse_args()
    dice = random.Random(arguments.seed)
    options = {**SLOW_CONSUMERS, "slow_mode": arguments.slow} if arguments.slow else {}

    with Instance(name="feed", decision_log=arguments.decision_log) as instance:
        transmitters = {topic: instance.transmitter(arguments.endpoint, topic, **options) for topic in TOPICS}
        series = {topic: quotes(topic, dice) for topic in TOPICS}
        sent = dict.fromkeys(TOPICS, 0)
        owed = dict.fromkeys(TOPICS, 0.0)
        stream = next(iter(transmitters.values())).stream
        print(json.dumps({"ready": instance.name, "stream": stream}), flush=True)

        start = before = time.monotonic()
        while (word := heard(TICK)) is None:
            now = time.monotonic()
            for topic, share in TOPICS.items():
                owed[topic] += (now - before) * rate(now - start) * share
                batch = [next(series[topic]) for _ in range(int(owed[topic]))]
                owed[topic] -= len(batch)
                if batch:
                    transmitters[topic].send_many(batch)
                    sent[topic] += len(batch)
            before = now

        for transmitter in transmitters.values():
            transmitter.flush()
        print(json.dumps({"sent": sent}), flush=True)
        while word != "end":
            word = heard(60.0) or word


if __name__ == "__main__":
    main()
