"""A source or a receiver of the live-fire fleet: `python live_actor.py JSON`; runs until its standard input ends.

The JSON names the instance, its role, the endpoint, the topics, and the options of the instance and of its transmitters
or receivers. Roles:

    feed      sends `rate` messages of `size` bytes a second on each topic, evenly or in bursts of a second
    receiver  takes messages, with a pause after each list; a number on standard input changes the pause
    callback  a listener that takes `pause` for each list of messages
    greedy    opens a receiver whose queue needs `bytes`, again and again
    restless  changes its level of detail `times` a second, an event each
    link      forwards the datagrams of a port to another one; it has no instance
"""

from __future__ import annotations

import json
import select
import socket
import sys
import threading
import time
from typing import Any

from heliograph.engine import Instance, ResourceError, Transmitter, WouldBlock

BATCH = 64


def _has_ended(seconds: float) -> bool:
    """Wait, at most until standard input ends."""
    return bool(select.select([sys.stdin], [], [], seconds)[0]) and not sys.stdin.readline()


def send(transmitter: Transmitter, wanted: dict[str, Any], done: threading.Event) -> None:
    """Send evenly, or one second's messages at once every second."""
    pause = 1.0 if wanted.get("bursts") else 0.01
    body = bytes(wanted.get("size", 200))
    owed = 0.0
    while not done.wait(pause):
        owed += wanted["rate"] * pause
        for _ in range(int(owed)):
            try:
                transmitter.send(body)
            except WouldBlock:
                break
        owed %= 1.0


def feed(instance: Instance, wanted: dict[str, Any]) -> None:
    done = threading.Event()
    for topic in wanted["topics"]:
        transmitter = instance.transmitter(wanted["endpoint"], topic, **wanted.get("options", {}))
        threading.Thread(target=send, args=(transmitter, wanted, done), daemon=True).start()
    print("ready", flush=True)
    sys.stdin.read()
    done.set()
    time.sleep(0.1)


def receive(instance: Instance, wanted: dict[str, Any]) -> None:
    pause = float(wanted.get("pause", 0))
    options = wanted.get("options", {})
    receivers = [instance.receiver(wanted["endpoint"], topic, **options) for topic in wanted["topics"]]
    print("ready", flush=True)
    until = 0.0
    while True:
        if select.select([sys.stdin], [], [], max(0.0, until - time.monotonic()))[0]:
            line = sys.stdin.readline()
            if not line:
                return
            pause = float(line)
        got = [message for receiver in receivers for message in receiver.receive(timeout=0.01, limit=BATCH)]
        until = time.monotonic() + pause if got else 0.0


def listen(instance: Instance, wanted: dict[str, Any]) -> None:
    for topic in wanted["topics"]:
        options = wanted.get("options", {})
        instance.receiver(
            wanted["endpoint"], topic, on_messages=lambda _: time.sleep(wanted.get("pause", 0)), **options
        )
    print("ready", flush=True)
    sys.stdin.read()


def ask_for_memory(instance: Instance, wanted: dict[str, Any]) -> None:
    print("ready", flush=True)
    while not _has_ended(1.0):
        try:
            instance.receiver(wanted["endpoint"], "GREEDY", receive_queue=wanted["bytes"]).close()
        except ResourceError as error:
            print(error, flush=True)


def change_levels(instance: Instance, wanted: dict[str, Any]) -> None:
    print("ready", flush=True)
    while not _has_ended(1.0):
        for number in range(wanted["times"]):
            instance.set_level(1 + number % 2, seconds=60.0)


def forward(wanted: dict[str, Any]) -> None:
    """Forward until standard input ends."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as link:
        link.bind(("127.0.0.1", wanted["from"]))
        print("ready", flush=True)
        while True:
            if sys.stdin in (ready := select.select([sys.stdin, link], [], [])[0]):
                return
            if link in ready:
                link.sendto(link.recv(65536), ("127.0.0.1", wanted["to"]))


ROLES = {"feed": feed, "receiver": receive, "callback": listen, "greedy": ask_for_memory, "restless": change_levels}


def main() -> None:
    """Run until standard input ends."""
    wanted: dict[str, Any] = json.loads(sys.argv[1])
    if wanted["role"] == "link":
        forward(wanted)
        return
    with Instance(name=wanted["name"], **wanted.get("instance", {})) as instance:
        ROLES[wanted["role"]](instance, wanted)


if __name__ == "__main__":
    main()
