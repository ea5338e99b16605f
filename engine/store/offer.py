"""`heliograph store offer`: serves the messages of a store to subscribers on other hosts."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from heliograph.engine.commands import status_line
from heliograph.engine.store.arguments import size

if TYPE_CHECKING:
    from heliograph.engine.store.service import ServiceCounts, StoreService

__all__ = ["ServiceProcess", "add_listening", "add_offer", "address_of", "listening_socket"]

Actions: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"

_SHOW_SECONDS = 1.0
_RESTART_SECONDS = 1.0
_END_SECONDS = 5.0
_NICE = 5
"""The process that keeps messages has the processor first."""

_EPILOG = """\
Everybody who reaches the address can read all messages of the store and change positions of subscriptions: choose an
address that only subscribers reach. The directory may be that of a running `heliograph store serve`, a mount or a copy.

example:
  heliograph store offer /var/lib/heliograph/store --listen 10.0.0.5:7800 --rate 100M
  heliograph sub "rmm://239.192.77.1:7500?interface=eth0" PRICES.FX --store store://10.0.0.5:7800
"""


def add_offer(actions: Actions) -> None:
    """Add ``heliograph store offer``."""
    parser = actions.add_parser(
        "offer",
        help="serve the messages of a store to subscribers on other hosts",
        description="Serve the messages of a store to subscribers on other hosts, and keep the positions of durable "
        "subscriptions, until Ctrl-C or SIGTERM.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("dir", type=Path, metavar="DIR", help="directory of the store")
    add_listening(parser, required=True)
    parser.add_argument("--json", action="store_true", help="print the counts as one JSON object at the end")
    parser.set_defaults(run=_run)


def add_listening(parser: argparse.ArgumentParser, required: bool) -> None:
    """Add the options of a service."""
    parser.add_argument(
        "--listen",
        type=_host_and_port,
        required=required,
        metavar="HOST:PORT",
        help="serve subscribers on other hosts at this address",
    )
    parser.add_argument(
        "--rate",
        type=size,
        default=0,
        metavar="SIZE",
        help="send at most this many bytes per second, all together",
    )
    parser.add_argument(
        "--readers", type=_readers, default=64, metavar="N", help="serve this many at a time (default: 64); others wait"
    )


def listening_socket(address: tuple[str, int]) -> socket.socket:
    """A socket that listens.

    Raises:
        EndpointError: The address cannot be used.
    """
    from heliograph.engine.errors import EndpointError
    from heliograph.engine.store.service import listen

    try:
        return listen(*address)
    except OSError as error:
        raise EndpointError(f"cannot listen on {address[0]}:{address[1]}: {error}") from error


def address_of(listener: socket.socket) -> str:
    """Address of a listening socket: ``store://HOST:PORT``."""
    from heliograph.engine.store import service

    return service.address_of(listener)


class ServiceProcess:
    """The service of a store that this process writes, in a process of its own; it is started again when it ends."""

    def __init__(self, path: Path, listener: socket.socket, rate: int, readers: int) -> None:
        """Start it.

        Args:
            path: Directory of the store.
            listener: From `listening_socket`; subscribers can wait in it while the process starts again.
            rate: Limit on the bytes per second; 0: no limit.
            readers: Most subscribers at a time.
        """
        from heliograph.engine.store.service import ServiceCounts

        self._listener = listener
        self._command = [sys.executable, "-m", "heliograph.engine.store.offer", str(path), str(listener.fileno())]
        self._command += [str(rate), str(readers)]
        self.restarts = 0
        self._before = ServiceCounts()
        self._now = asdict(self._before)
        self._process = self._start()

    def _start(self) -> subprocess.Popen[bytes]:
        self._started = time.monotonic()
        self._text = b""
        # It reads the end of its standard input when this process ends, however it ends.
        process = subprocess.Popen(
            self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, pass_fds=[self._listener.fileno()]
        )
        os.set_blocking(_output(process), False)
        return process

    def tend(self) -> str:
        """Take its counts, and start it again when it has ended. Returns how it ended; empty while it runs."""
        self._take_counts()
        code = self._process.poll()
        if code is None or time.monotonic() - self._started < _RESTART_SECONDS:
            return ""
        self._end()
        self._before = replace(self.counts(), readers=0)
        self._now = dict.fromkeys(asdict(self._before), 0)
        self.restarts += 1
        self._process = self._start()
        return f"the service for subscribers ended with code {code}; it is started again"

    def counts(self) -> ServiceCounts:
        """Its counts, over all starts; at most a second old when `tend` is called as often."""
        return replace(self._before, **{name: self._now[name] + count for name, count in asdict(self._before).items()})

    def _take_counts(self) -> None:
        """The last whole line that it has written."""
        with contextlib.suppress(BlockingIOError):
            while data := os.read(_output(self._process), 1 << 16):
                *lines, self._text = (self._text + data).split(b"\n")
                if lines:
                    self._now = json.loads(lines[-1])

    def close(self) -> None:
        """End it."""
        self._end()
        self._listener.close()

    def _end(self) -> None:
        for stream in (self._process.stdin, self._process.stdout):
            if stream:
                stream.close()
        try:
            self._process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def _output(process: subprocess.Popen[bytes]) -> int:
    assert process.stdout
    return process.stdout.fileno()


def _host_and_port(text: str) -> tuple[str, int]:
    from heliograph.engine.errors import Error
    from heliograph.engine.store.protocol import host_and_port

    match = re.fullmatch(r"(.+):0", text)
    try:
        return (match[1], 0) if match else host_and_port(text)
    except Error as error:
        raise argparse.ArgumentTypeError(f"{text!r} is not an address such as 10.0.0.5:7800") from error


def _readers(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= 1024:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1 to 1024")
    return int(text)


def _run(arguments: argparse.Namespace) -> int:
    from heliograph.engine.store.service import StoreService

    listener = listening_socket(arguments.listen)
    service = StoreService(arguments.dir, listener, readers=arguments.readers, rate=arguments.rate)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: service.close())
    print(f"serving {arguments.dir} on {address_of(listener)}", file=sys.stderr, flush=True)
    _show(service, lambda counts: status_line(_text(counts)))
    status_line("")
    counts = service.counts()
    if arguments.json:
        print(json.dumps(asdict(counts)))
    else:
        print(_text(counts), file=sys.stderr)
    return 0


def _show(service: StoreService, show: Callable[[ServiceCounts], None]) -> None:
    """Serve until the service is closed, and show its counts each second."""
    ended = threading.Event()

    def shower() -> None:
        while not ended.wait(_SHOW_SECONDS):
            show(service.counts())

    thread = threading.Thread(target=shower, daemon=True)
    thread.start()
    service.run()
    ended.set()
    thread.join()


def _text(counts: ServiceCounts) -> str:
    parts = [f"{counts.requests:,} requests served", f"{counts.bytes_sent:,} bytes sent"]
    parts += [
        f"{number:,} {text}"
        for number, text in (
            (counts.readers, "being served"),
            (counts.refused, "refused"),
            (counts.aborted, "ended early"),
        )
        if number
    ]
    return ", ".join(parts)


def _main(path: str, descriptor: str, rate: str, readers: str) -> None:
    """Serve for the process that has started this one, until it ends."""
    from heliograph.engine.store.service import StoreService

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    os.nice(_NICE)
    listener = socket.socket(fileno=int(descriptor))
    service = StoreService(Path(path), listener, readers=int(readers), rate=int(rate))

    def until_parent_ends() -> None:
        while select.select([0], [], [])[0] and os.read(0, 1):
            pass
        service.close()

    threading.Thread(target=until_parent_ends, daemon=True).start()
    _show(service, _report)


def _report(counts: ServiceCounts) -> None:
    """Tell the process that has started this one."""
    with contextlib.suppress(OSError):  # it has ended
        os.write(1, json.dumps(asdict(counts)).encode() + b"\n")


if __name__ == "__main__":
    _main(*sys.argv[1:])
