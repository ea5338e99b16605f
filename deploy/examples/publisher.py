"""Publish ten thousand prices: ``python publisher.py [ENDPOINT]``."""

import sys

from heliograph.engine import Instance

ENDPOINT = sys.argv[1] if len(sys.argv) > 1 else "rmm://239.192.77.1:7500?interface=127.0.0.1"

with Instance(name="prices") as instance, instance.transmitter(ENDPOINT, "PRICES.FX") as prices:
    for number in range(10_000):
        prices.send(f"EURUSD {1.08 + number / 1e6:.6f}".encode())
    prices.flush(timeout=5.0)
