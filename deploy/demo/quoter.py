"""The sender of one build of the demo with two builds: bursts of quotes in its turns, silence between them.

Prints ``{"ready": ...}`` when it can send. Reads "go", "rest" and "end" (or the end of standard input).

    python quoter.py --build A --endpoint "rmm://239.192.77.1:7500?interface=127.0.0.1"
"""

from __future__ import annotations

import argparse
import json
import random
import time

from feed import heard, quotes

from heliograph.engine import Instance

TOPIC = "PRICES.FX"
BURST = 6
"""Messages of a burst: the handler takes them one after the other, so the later ones wait."""
BURST_EVERY = 0.1
LEVEL = 3
"""Level of detail with the histograms of all stages."""


def main() -> None:
    """Send until ended."""
    parser = argparse.ArgumentParser(description="A feed of one build.")
    parser.add_argument("--build", required=True)
    parser.add_argument("--endpoint", required=True)
    arguments = parser.parse_args()

    with (
        Instance(name="quoter", build=arguments.build, level=LEVEL) as instance,
        instance.transmitter(arguments.endpoint, TOPIC) as transmitter,
    ):
        series = quotes(TOPIC, random.Random(7))
        print(json.dumps({"ready": instance.name}), flush=True)
        word = heard(60.0) or "rest"
        due = time.monotonic()
        while word != "end":
            if word == "rest":
                word = heard(60.0) or word
                due = time.monotonic()
                continue
            transmitter.send_many([next(series) for _ in range(BURST)])
            # A late burst moves the next one too, so that bursts never meet in the handler.
            due = max(due + BURST_EVERY, time.monotonic() + BURST_EVERY / 2)
            word = heard(max(0.0, due - time.monotonic())) or word


if __name__ == "__main__":
    main()
