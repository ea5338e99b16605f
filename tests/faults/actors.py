"""The programs that are killed: `python -m tests.faults.actors ROLE FOLDER LIFE URL`.

What counts as acknowledged is what an actor has written to its file before it said so to anybody: a killed process
keeps what it wrote. Files are records of 16 bytes (life of the publisher, number of the message).

    publisher   sends, waits for the acknowledgements, then writes down what is acknowledged (acked.bin)
    subscriber  writes down what it got (received.bin), then acknowledges it (ack=app)
    history     records the histograms of all instances to a spool and an HDR log; tells what is written (told.bin)

All end in order at SIGTERM. The publisher rests at SIGUSR1, so that the books can be closed.
"""

from __future__ import annotations

import os
import signal
import struct
import sys
import time
from pathlib import Path
from types import FrameType

TOPIC = "FAULTS"
RECORD = struct.Struct("<QQ")
PARTS = 20
"""Messages a batch."""
PAUSE_SECONDS = 0.01
RECORD_SECONDS = 0.1


class _Flags:
    ends = False
    rests = False


def _end(number: int, frame: FrameType | None) -> None:
    _Flags.ends = True


def _rest(number: int, frame: FrameType | None) -> None:
    _Flags.rests = True


def _appended(path: Path) -> int:
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)


def publish(folder: Path, life: int, url: str) -> None:
    """Send and write down what is acknowledged."""
    from heliograph.engine import Instance, TimeoutExpired

    file = _appended(folder / "acked.bin")
    body = bytes(200)
    number = 0
    with Instance(name="publisher", idle="block") as instance:
        transmitter = instance.transmitter(url, TOPIC, acks=1, linger=0.2, heartbeat_min=0.005, send_window=256)
        while not _Flags.ends:
            if _Flags.rests:
                time.sleep(PAUSE_SECONDS)
                continue
            transmitter.send_many([RECORD.pack(life, one) + body for one in range(number, number + PARTS)])
            while not _Flags.ends:
                try:
                    transmitter.wait_acked(timeout=0.5)
                except TimeoutExpired:
                    continue
                os.write(file, b"".join(RECORD.pack(life, one) for one in range(number, number + PARTS)))
                number += PARTS
                break
            time.sleep(PAUSE_SECONDS)


def subscribe(folder: Path, life: int, url: str) -> None:
    """Write down what comes, then acknowledge it."""
    from heliograph.engine import Instance

    file = _appended(folder / "received.bin")
    with Instance(name="subscriber", idle="block") as instance:
        # A life before this one may have taken messages that it did not acknowledge any more: nobody else can.
        receiver = instance.receiver(url, TOPIC, ack="app", join="history")
        while not _Flags.ends:
            messages = receiver.receive(timeout=0.2)
            if not messages:
                continue
            os.write(file, b"".join(bytes(message.data[: RECORD.size]) for message in messages))
            last = {message.stream: message for message in messages}
            for message in last.values():
                receiver.acknowledge(message)


def record(folder: Path, life: int, url: str) -> None:
    """Record histograms; tell the rows and lines that are written."""
    from heliograph.exporters.hdrlog import HdrLogExporter
    from heliograph.exporters.spool import SpoolExporter
    from heliograph.monitor.errors import UserError
    from heliograph.monitor.sampler import Sampler

    file = _appended(folder / "told.bin")
    spool = SpoolExporter(folder / "spool", interval=RECORD_SECONDS, flush=2 * RECORD_SECONDS)
    lines = HdrLogExporter(folder / "latency.hlog", interval=RECORD_SECONDS)
    with Sampler(Path(url)) as sampler:
        while not _Flags.ends:
            snapshot = sampler.sample()
            try:
                spool.publish(snapshot)
                lines.publish(snapshot)
            except UserError as error:
                print(error, flush=True)
            os.write(file, RECORD.pack(life, spool.rows_written))
            time.sleep(RECORD_SECONDS / 2)
    spool.close()
    lines.close()


ROLES = {"publisher": publish, "subscriber": subscribe, "history": record}


def main() -> None:
    """Play a role until SIGTERM."""
    role, folder, life, url = sys.argv[1:5]
    signal.signal(signal.SIGTERM, _end)
    signal.signal(signal.SIGUSR1, _rest)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    ROLES[role](Path(folder), int(life), url)


if __name__ == "__main__":
    main()
