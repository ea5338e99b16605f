"""Print orders, also those that were sent while it was away: ``python durable.py ENDPOINT STORE``, again and again."""

import sys

from heliograph.engine import Instance

ENDPOINT, STORE = sys.argv[1:]

with Instance(name="desk") as instance, instance.receiver(ENDPOINT, "ORDERS", durable="desk", stores=STORE) as orders:
    for order in orders:
        print(order.number, bytes(order).decode(), "recovered" if order.recovered else "", flush=True)
