"""Print prices as they come, until Ctrl-C: ``python subscriber.py [ENDPOINT]``."""

import sys

from heliograph.engine import Instance

ENDPOINT = sys.argv[1] if len(sys.argv) > 1 else "rmm://239.192.77.1:7500?interface=127.0.0.1"

with Instance(name="desk") as instance, instance.receiver(ENDPOINT, "PRICES.FX") as prices:
    for message in prices:
        print(message.number, bytes(message).decode(), "recovered" if message.recovered else "", flush=True)
