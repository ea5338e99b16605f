"""A subscriber of the demo's store: takes one topic, first from the store, then live, and checks for gaps.

The check is by the numbers that the feed writes into its quotes, so it does not depend on the numbers of the transport.
With ``--subscription`` the store keeps its position, and the next process with that name continues there.

Prints its totals as one JSON object per line: when it has caught up with the store, after a line "until NUMBER" on
standard input when it has all messages before NUMBER, and after "end" (or the end of standard input).

    python subscriber.py --name late --endpoint "rmm://239.192.77.1:7500?interface=127.0.0.1" --topic PRICES.FX \
        --store store://127.0.0.1:7800
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from feed import QUOTE, heard

from heliograph.engine import Instance, Message
from heliograph.engine.store.follower import StoreFollower
from heliograph.engine.store.reader import StoredMessage
from heliograph.engine.store.subscriptions import Subscription

__all__ = ["Totals"]

_SAVE_SECONDS = 0.2
"""Time between two saves of the position. The last one is at the end, so an orderly stop repeats nothing."""


@dataclass(slots=True)
class Totals:
    """The counts of one process."""

    messages: int = 0
    from_store: int = 0
    first: int = 0
    """Number of its first quote."""
    following: int = 0
    """Number of the next expected quote."""
    missing: int = 0
    """Quotes skipped after the first: must stay 0."""
    repeated: int = 0
    """Quotes that came twice or after a newer one: must stay 0."""
    catch_up_s: float | None = None
    """Time from the start to the first live message, seconds; None: it is still reading from the store."""

    def add(self, batch: Sequence[Message | StoredMessage]) -> None:
        """Count messages in the order of their arrival."""
        for message in batch:
            number: int = QUOTE.unpack_from(message.data)[1]
            if not self.messages:
                self.first = self.following = number
            self.messages += 1
            self.from_store += isinstance(message, StoredMessage)
            self.missing += max(0, number - self.following)
            self.repeated += number < self.following
            self.following = max(self.following, number + 1)

    def report(self) -> None:
        """Print them."""
        print(json.dumps(asdict(self)), flush=True)


def take(follower: StoreFollower, subscription: Subscription | None, totals: Totals) -> None:
    """Receive until ended, and save the position now and then."""
    begun = saved = time.monotonic()
    until: int | None = None
    while (word := heard(0.0)) != "end":
        if word is not None:
            until = int(word.removeprefix("until "))
        batch = follower.receive(timeout=0.05)
        totals.add(batch)
        now = time.monotonic()
        if totals.catch_up_s is None and (not batch or any(isinstance(message, Message) for message in batch)):
            totals.catch_up_s = now - begun
            totals.report()
        if until is not None and totals.catch_up_s is not None and totals.following >= until:
            totals.report()
            until = None
        if subscription is not None and now - saved >= _SAVE_SECONDS:
            subscription.save(follower.positions())
            saved = now
    if subscription is not None:
        subscription.save(follower.positions())


def main() -> None:
    """Subscribe until ended."""
    parser = argparse.ArgumentParser(description="A subscriber of the demo's store.")
    parser.add_argument("--name", required=True)
    parser.add_argument("--endpoint", required=True)
    parser.add_argument("--topic", required=True)
    parser.add_argument("--store", required=True, help="directory or address of the store")
    parser.add_argument("--subscription", help="name of the durable subscription")
    arguments = parser.parse_args()

    totals = Totals()
    with (
        Instance(name=arguments.name) as instance,
        instance.receiver(arguments.endpoint, arguments.topic) as receiver,
    ):
        subscription = None
        if arguments.subscription:
            subscription = Subscription(arguments.subscription, arguments.topic, [arguments.store])
        positions = subscription.positions if subscription is not None else None
        take(StoreFollower(arguments.store, receiver, positions=positions), subscription, totals)
    totals.report()


if __name__ == "__main__":
    main()
