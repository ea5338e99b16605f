"""A source or a receiver of the live-fire fleet: `python live_actor.py JSON`; runs until its standard input ends.

The JSON names the instance, its role ("feed" or "receiver"), the endpoint, the topics, options, and for a feed the
messages a second and whether they come in bursts, for a receiver the pause after each batch. A line on standard input
changes the pause.
"""

from __future__ import annotations

import json
import select
import sys
import threading
import time
from typing import Any

from heliograph.engine import Instance, Transmitter, WouldBlock

BATCH = 64


def send(transmitter: Transmitter, per_second: float, bursts: bool, done: threading.Event) -> None:
    """Send evenly, or one second's messages at once every second."""
    pause = 1.0 if bursts else 0.01
    body = bytes(200)
    while not done.wait(pause):
        for _ in range(max(1, round(per_second * pause))):
            try:
                transmitter.send(body)
            except WouldBlock:
                break


def main() -> None:
    """Run until standard input ends."""
    wanted: dict[str, Any] = json.loads(sys.argv[1])
    done = threading.Event()
    options: dict[str, Any] = wanted.get("options", {})
    with Instance(name=wanted["name"], **wanted.get("instance", {})) as instance:
        if wanted["role"] == "feed":
            for topic in wanted["topics"]:
                transmitter = instance.transmitter(wanted["endpoint"], topic, **options)
                work = (transmitter, wanted["rate"], wanted.get("bursts", False), done)
                threading.Thread(target=send, args=work, daemon=True).start()
            print("ready", flush=True)
            sys.stdin.read()
            done.set()
            time.sleep(0.1)
            return
        pause = float(wanted.get("pause", 0))
        receivers = [instance.receiver(wanted["endpoint"], topic, **options) for topic in wanted["topics"]]
        print("ready", flush=True)
        while True:
            if select.select([sys.stdin], [], [], 0)[0]:
                line = sys.stdin.readline()
                if not line:
                    return
                pause = float(line)
            got = [message for receiver in receivers for message in receiver.receive(timeout=0.01, limit=BATCH)]
            if got and pause:
                time.sleep(pause)


if __name__ == "__main__":
    main()
