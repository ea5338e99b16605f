"""A part of the soak: what a quorum of stores has called stable survives the loss of any one of them."""

from __future__ import annotations

import contextlib
import threading
import time
from pathlib import Path
from typing import Self

from heliograph.engine import Error, Instance, Receiver, TimeoutExpired, Transmitter

from .parts import RATE, TOPIC, Limits, endpoint_of, held_by, must, verify
from .processes import Commands, until
from .publishing import Publisher, body

__all__ = ["quorum"]

UNSTABLE_MESSAGES = 1024
"""Limit of the messages in flight: the source waits when no quorum confirms them."""
DRAIN_SECONDS = 120.0
_WAIT_SECONDS = 0.5


class _Observer(threading.Thread):
    """Knows how many messages the source has called stable."""

    def __init__(self, transmitter: Transmitter, publisher: Publisher) -> None:
        super().__init__(daemon=True)
        self.stable = 0
        self._transmitter, self._publisher = transmitter, publisher
        self._ends = threading.Event()
        self._failure: Error | None = None
        self.start()

    def run(self) -> None:
        """Wait for one message after the other to be stable."""
        try:
            while not self._ends.is_set():
                sent = self._publisher.sent
                if sent == self.stable:
                    time.sleep(0.001)
                    continue
                with contextlib.suppress(TimeoutExpired):
                    self._transmitter.wait_stable(sent - 1, timeout=_WAIT_SECONDS)
                    self.stable = sent
        except Error as error:
            self._failure = error

    def until_past(self, number: int, what: str) -> float:
        """Seconds until more than `number` messages are stable."""

        def is_past() -> bool:
            must(self._failure is None, f"waiting for stability failed: {self._failure}")
            return self.stable > number

        return until(is_past, what)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._ends.set()
        self.join()


class _Desk(threading.Thread):
    """A durable receiver that loses a fifth of the packets, and gets them from whichever store has them.

    Another receiver beside it acknowledges all messages.
    """

    def __init__(self, receiver: Receiver, other: Receiver) -> None:
        super().__init__(daemon=True)
        self.due = self.from_stores = 0
        self.wrong = ""
        self._receiver, self._other = receiver, other
        self._ends = threading.Event()
        self.start()

    def run(self) -> None:
        """Receive, and check that each message comes once and in order."""
        try:
            while not self._ends.is_set() and not self.wrong:
                for one in self._receiver.receive(timeout=_WAIT_SECONDS):
                    if (one.number, one.data) != (self.due, body(self.due)):
                        self.wrong = f"{one.number} comes instead of {self.due}"
                        return
                    self.due += 1
                    self.from_stores += one.recovered
                self._other.receive(timeout=0.0, limit=4096)
                if losses := self._receiver.losses():
                    self.wrong = f"it lost {losses[0]}"
        except Error as error:
            self.wrong = str(error)

    def check(self) -> None:
        """Raises:
        Failed: A message came twice, not in order, or was lost.
        """
        must(not self.wrong, f"the durable receiver: {self.wrong}")

    def until_has(self, count: int) -> None:
        """Wait until it has the first `count` messages, while more come."""
        while (before := self.due) < count:

            def has_more(before: int = before) -> bool:
                self.check()
                return self.due > before

            until(has_more, f"the durable receiver has {count} messages; it has {before}")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._ends.set()
        self.join()


def quorum(limits: Limits, folder: Path) -> str:
    """Three stores, ``acks=2`` and ``acks_from=stores``; one at a time is killed under load.

    Stability goes on. What was stable before a kill is read from the two survivors. A receiver that is no store
    acknowledges too and has no vote. A durable receiver (options ``durable`` and ``stores``) gets each message once.
    """
    endpoint = endpoint_of(limits.chance)
    folders = [folder / name for name in ("one", "two", "three")]
    checked, number, longest = 0, 0, 0.0
    with (
        Commands(folder) as commands,
        Instance(name="source") as source,
        Instance() as near,
        Instance() as far,
    ):
        transmitter = source.transmitter(
            endpoint, TOPIC, acks=2, acks_from="stores", unstable_messages=UNSTABLE_MESSAGES, linger=0.0
        )
        stores = [commands.serve(one, endpoint, TOPIC) for one in folders]
        receiver = near.receiver(
            endpoint, TOPIC, durable="desk", stores=folders, store_wait=DRAIN_SECONDS, inject_loss=0.2, nak="off"
        )
        with (
            _Desk(receiver, far.receiver(endpoint, TOPIC, ack="auto")) as desk,
            Publisher(transmitter, RATE) as publisher,
            _Observer(transmitter, publisher) as observer,
        ):
            observer.until_past(0, "a message is stable")
            for number in limits.rounds():
                time.sleep(limits.chance.uniform(0.0, 0.4))
                what, victim = f"loss {number}", limits.chance.randrange(3)
                stores[victim].kill()
                stable, sent = observer.stable, publisher.sent
                verify(folders[victim])
                survivors = [one for at, one in enumerate(folders) if at != victim]
                held_by(1, survivors, transmitter.stream, checked, stable, f"{what}, survivors")
                checked = held_by(2, folders, transmitter.stream, checked, stable, what)
                longest = max(longest, observer.until_past(sent, f"{what}: stability goes on"))
                desk.check()
                time.sleep(limits.chance.uniform(0.0, 0.2))
                commands.forget(stores[victim])
                stores[victim] = commands.serve(folders[victim], endpoint, TOPIC)
            publisher.stop()
            sent = publisher.sent
            observer.until_past(sent - 1, "everything is stable")
            desk.until_has(sent)
        receiver.close()
        for command in stores:
            command.kill()
        held_by(2, folders, transmitter.stream, 0, sent, "at the end")
        for lost in folders:
            verify(lost)
            survivors = [one for one in folders if one != lost]
            held_by(1, survivors, transmitter.stream, 0, sent, f"at the end, without {lost.name}")
    return (
        f"{number + 1} losses of a store, {sent:,} stable messages, each in two stores and in what survives any one; "
        f"the longest wait for a message from after the kill to be stable was {longest:.2f} s; a durable receiver got "
        f"each once, {desk.from_stores:,} of them from stores"
    )
