"""The application of one build of the demo with two builds: it takes one message at a time and works on it.

The work is a wait, like that for a disk or a database. Messages that come meanwhile wait in the receive queue, which is
the latency stage dispatch. A build whose work takes longer is slower in this stage.

Prints ``{"ready": ...}`` when it listens; reads "end" (or the end of standard input) and prints its count.

    python handler.py --build A --work 0.007 --endpoint "rmm://239.192.77.1:7500?interface=127.0.0.1"
"""

from __future__ import annotations

import argparse
import json
import sys
import threading
import time

from quoter import LEVEL, TOPIC

from heliograph.engine import Instance, Receiver


def take(receiver: Receiver, work: float, done: threading.Event, taken: list[int]) -> None:
    """Receive until done."""
    while not done.is_set():
        for _ in receiver.receive(timeout=0.1, limit=1):
            taken[0] += 1
            time.sleep(work)


def main() -> None:
    """Receive until ended."""
    parser = argparse.ArgumentParser(description="An application of one build.")
    parser.add_argument("--build", required=True)
    parser.add_argument("--endpoint", required=True)
    parser.add_argument("--work", type=float, required=True, help="seconds of work for each message")
    arguments = parser.parse_args()

    done, taken = threading.Event(), [0]
    with (
        Instance(name="handler", build=arguments.build, level=LEVEL) as instance,
        instance.receiver(arguments.endpoint, TOPIC) as receiver,
    ):
        worker = threading.Thread(target=take, args=(receiver, arguments.work, done, taken))
        worker.start()
        print(json.dumps({"ready": instance.name}), flush=True)
        for line in sys.stdin:
            if line.strip() == "end":
                break
        done.set()
        worker.join()
    print(json.dumps({"taken": taken[0]}), flush=True)


if __name__ == "__main__":
    main()
