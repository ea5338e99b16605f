"""``heliograph bench``: measures latency and throughput of the transport on this machine.

Two processes, a sender and a receiver, use one transport. Latency is open loop: every message has a planned sending
time, fixed before the run, and its latency counts from that time, so a stall counts for every message it delays. Each
rate is printed with losses, tail and maximum. Figures of a loopback do not apply to a network.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import mmap
import os
import signal
import socket
import struct
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any, TypeAlias

from heliograph.engine import bench_tables

__all__ = ["Result", "Run", "command", "measure"]

Subparsers: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"

_NOT_YET = 2**64 - 1
_GRACE_SECONDS = 30.0
"""Time after the end of the run until the two processes are killed, seconds."""
_STOP_SECONDS = 3.0
"""Time for an interrupted process to remove its files until it is killed, seconds."""
_GRID_SIZES = (50, 400)
_GRID_RATES = (500.0, 1000.0, 5000.0, 10000.0)
_WAITS = ("spin", "yield", "backoff", "block")


@dataclass(frozen=True, slots=True)
class Run:
    """Parameters of one measurement.

    rate: messages per second; 0: no limit. seconds: duration of sending; warmup: its first part that is not measured.
    loss: share of packets that the receiver drops unread, 0 to 1.
    """

    transport: str
    size: int
    rate: float
    seconds: float
    warmup: float
    mode: str
    loss: float = 0.0
    endpoint: str = ""
    level: int = 0
    feedback: str = "ack"
    """At full rate, ack: acknowledgements limit the sender, which is faster than the receiver; nak: no limit."""
    wait: str = ""
    """Wait strategy of the receiver (option `idle`), in its own thread. Empty: that of the mode."""


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a `Run`. Latencies are in ns."""

    transport: str
    size: int
    mode: str
    feedback: str
    offered_rate: float
    """Messages per second requested; 0: no limit."""
    sent: int
    received: int
    unrecoverable: int
    """Messages reported as lost."""
    recovered: int
    """Messages of recovered packets."""
    messages_per_second: float
    """At the receiver, after the warm-up."""
    megabytes_per_second: float
    latest_ns: int
    """Greatest delay of the sender behind a message's planned time."""
    latency_ns: dict[str, float]
    jitter_ns: float
    """p99.9 - p50."""
    seconds: float
    warmup_seconds: float
    receiver_cpu: float
    """Processor time of the receiving process over its duration: 1 is one core."""


# ---- endpoints ----


def _free_port(kind: socket.SocketKind) -> int:
    with socket.socket(socket.AF_INET, kind) as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


_ENDPOINTS: dict[str, Callable[[], str]] = {
    "rmm": lambda: f"rmm://239.192.77.200:{_free_port(socket.SOCK_DGRAM)}?interface=127.0.0.1&ttl=0",
    "rmm+unicast": lambda: f"rmm+unicast://127.0.0.1:{_free_port(socket.SOCK_DGRAM)}",
    "rum": lambda: f"rum://127.0.0.1:{_free_port(socket.SOCK_STREAM)}",
    "shm": lambda: f"shm://bench-{os.getpid()}?ring_wait=true",
}
_BARE_TCP = "tcp"
_MODES = {
    "spin": "mode=poll&idle=spin",
    "thread": "mode=thread&idle=backoff",
    "block": "mode=thread&idle=block",
}


# ---- two processes ----


def _pin(core: int) -> None:
    """Bind this process to one of its cores, if there are at least two."""
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) >= 2:
        os.sched_setaffinity(0, {cores[core]})


def _child(work: Callable[[], dict[str, Any]], out: int) -> int:
    """Fork a process that runs `work` and writes the result as JSON to `out`; return its process id."""
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if child:
        return child
    status = 130
    try:
        try:
            answer = work()
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}"}
        with os.fdopen(out, "w") as pipe:
            json.dump(answer, pipe)
        status = 0
    finally:  # also when Ctrl-C comes twice
        os._exit(status)


def _stop(children: list[int]) -> None:
    """Interrupt the processes, so that they remove their files; kill those that do not end."""
    for child in children:
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, signal.SIGINT)
    end = time.monotonic() + _STOP_SECONDS
    for child in children:
        with contextlib.suppress(ProcessLookupError, ChildProcessError):
            while os.waitpid(child, os.WNOHANG) == (0, 0):
                if time.monotonic() > end:
                    os.kill(child, signal.SIGKILL)
                time.sleep(0.01)


def _wait(children: list[int], seconds: float, tell: Callable[[float], None]) -> None:
    """Wait until all have ended and remove them from the list; a failure of one ends the others."""
    begin = time.monotonic()
    while children:
        for child in list(children):
            done, status = os.waitpid(child, os.WNOHANG)
            if done:
                children.remove(child)
                if status != 0:
                    _stop(children)
                    raise (
                        KeyboardInterrupt
                        if os.waitstatus_to_exitcode(status) == 130
                        else RuntimeError(f"a measuring process ended with status {os.waitstatus_to_exitcode(status)}")
                    )
        spent = time.monotonic() - begin
        tell(spent)
        if spent > seconds + _GRACE_SECONDS:
            _stop(children)
            raise RuntimeError("the measuring processes did not end in time")
        time.sleep(0.02)


def _both(
    send: Callable[[mmap.mmap], dict[str, Any]],
    receive: Callable[[mmap.mmap], dict[str, Any]],
    seconds: float,
    tell: Callable[[float], None],
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Run a sender and a receiver in parallel; return their results."""
    board = mmap.mmap(-1, mmap.PAGESIZE)
    board[:24] = struct.pack("=QQQ", 0, _NOT_YET, 0)
    pipes = [os.pipe(), os.pipe()]
    children: list[int] = []
    try:
        for core, work in enumerate((send, receive)):

            def run(core: int = core, work: Callable[[mmap.mmap], dict[str, Any]] = work) -> dict[str, Any]:
                _pin(core)
                begin, begin_cpu = time.monotonic(), time.process_time()
                try:
                    answer = work(board)
                    answer["cpu"] = (time.process_time() - begin_cpu) / (time.monotonic() - begin)
                    return answer
                except BaseException:
                    board[16:24] = struct.pack("=Q", 1)  # the other must not wait
                    raise

            children.append(_child(run, pipes[core][1]))
        for _, writing in pipes:
            os.close(writing)
        _wait(children, seconds, tell)
    finally:
        _stop(children)
    answers = []
    for reading, _ in pipes:
        with os.fdopen(reading) as pipe:
            answers.append(json.loads(pipe.read() or '{"error": "no answer"}'))
    errors = [answer["error"] for answer in answers if "error" in answer]
    if errors:
        raise RuntimeError("; ".join(errors))
    return answers[0], answers[1]


def _tcp_pair() -> tuple[socket.socket, socket.socket]:
    """The two ends of a TCP connection on the loopback."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        ends = socket.create_connection(listening.getsockname()), listening.accept()[0]
    for end in ends:
        end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return ends


def _joined(*options: str) -> str:
    return "&".join(filter(None, options))


def measure(run: Run, tell: Callable[[float], None] = lambda spent: None) -> Result:
    """Run one measurement.

    Args:
        run: Its parameters.
        tell: Called with the elapsed time, seconds.

    Raises:
        RuntimeError: The transport could not be opened, or one process failed; the text states the reason.
    """
    bare = _tcp_pair() if run.transport == _BARE_TCP else ()
    endpoint = "" if bare else run.endpoint or _ENDPOINTS[run.transport]()
    common = f"&level={run.level}&profile=lan-throughput"
    poured = run.rate == 0
    profile = "profile=lan-throughput" if poured else ""
    holds = poured and run.feedback == "ack"
    lossy = f"inject_loss={run.loss}" if run.loss > 0 else ""

    def arguments(options: str, board: mmap.mmap, end: int, wait: str = "") -> dict[str, Any]:
        return {
            "instance_options": (f"mode=poll&idle={wait}" if wait else _MODES[run.mode]) + common,
            "endpoint": endpoint,
            "topic": "BENCH",
            "options": options,
            "size": run.size,
            "rate": run.rate,
            "seconds": run.seconds,
            "warmup": run.warmup,
            "spin": run.mode == "spin" and not wait,
            "board": board,
            "fd": bare[end].fileno() if bare else -1,
        }

    def send(board: mmap.mmap) -> dict[str, Any]:
        from heliograph.engine import _bench

        return _bench.send(**arguments(_joined(profile, "acks=1&send_window=2048" if holds else ""), board, 0))

    def receive(board: mmap.mmap) -> dict[str, Any]:
        from heliograph.engine import _bench

        return _bench.receive(**arguments(_joined(profile, "ack=auto" if holds else "", lossy), board, 1, run.wait))

    try:
        sent, came = _both(send, receive, run.seconds, tell)
    finally:
        for end in bare:
            end.close()
    rate = came["measured"] / came["seconds"] if came["seconds"] > 0 else 0.0
    latency = came["latency_ns"]
    return Result(
        transport=run.transport,
        size=run.size,
        mode=run.mode,
        feedback=run.feedback,
        offered_rate=run.rate,
        sent=sent["sent"],
        received=came["received"],
        unrecoverable=max(came["lost"], sent["sent"] - came["received"]),
        recovered=came["recovered"],
        messages_per_second=rate,
        megabytes_per_second=rate * run.size / 1e6,
        latest_ns=sent["latest_ns"],
        latency_ns=latency,
        jitter_ns=latency["p99.9"] - latency["p50"],
        seconds=sent["seconds"],
        warmup_seconds=run.warmup,
        receiver_cpu=came["cpu"],
    )


# ---- Python ----


def _python_send(way: str, endpoint: str, size: int, seconds: float, board: mmap.mmap) -> dict[str, Any]:
    from heliograph.engine import Instance

    body = bytes(size)
    many = [body] * 256
    packed = bytes(size * 1024)
    while board[:8] == bytes(8):
        time.sleep(0.001)
    with (
        Instance(mode="poll", idle="spin", level=0, stats="memory") as instance,
        instance.transmitter(endpoint, "BENCH", profile="lan-throughput", acks=1, send_window=2048) as transmitter,
    ):
        ready = time.monotonic() + 0.2
        while time.monotonic() < ready:
            instance.poll()
        sent, begin = 0, time.monotonic()
        end = begin + seconds
        if way == "one":
            send = transmitter.send
            while time.monotonic() < end:
                for _ in range(256):
                    send(body)
                sent += 256
        elif way == "list":
            while time.monotonic() < end:
                sent += transmitter.send_many(many)
        else:
            while time.monotonic() < end:
                sent += transmitter.send_packed(packed, size=size)
        spent = time.monotonic() - begin
        board[8:16] = struct.pack("=Q", sent)
        while board[16:24] == bytes(8):
            instance.poll()
    return {"sent": sent, "seconds": spent}


def _python_receive(way: str, endpoint: str, board: mmap.mmap) -> dict[str, Any]:
    from heliograph.engine import Instance

    with (
        Instance(mode="poll", idle="spin", level=0, stats="memory") as instance,
        instance.receiver(endpoint, "BENCH", profile="lan-throughput", ack="auto") as receiver,
    ):
        board[:8] = struct.pack("=Q", 1)
        take: dict[str, Callable[[], int]] = {
            "one": lambda: sum(1 for _ in receiver.receive(timeout=0)),
            "list": lambda: len(receiver.receive_bytes(timeout=0, limit=4096)),
            "batch": lambda: len(receiver.receive_batch(timeout=0, limit=4096)),
        }
        count, received, lost = take[way], 0, 0
        first = last = news = time.monotonic()
        while True:
            for _ in range(64):
                got = count()
                if got:
                    first = time.monotonic() if received == 0 else first
                    received += got
                    news = 0.0
            last = time.monotonic()
            news = news or last
            lost += sum(loss.count for loss in receiver.losses())
            total = struct.unpack("=Q", board[8:16])[0]
            if total != _NOT_YET and (received + lost >= total or last - news > 3):
                break
        board[16:24] = struct.pack("=Q", 1)
    return {"received": received, "lost": lost, "seconds": last - first}


def _measure_python(run: Run, way: str, tell: Callable[[float], None]) -> dict[str, Any]:
    endpoint = run.endpoint or _ENDPOINTS[run.transport]()
    sent, came = _both(
        lambda board: _python_send(way, endpoint, run.size, run.seconds, board),
        lambda board: _python_receive(way, endpoint, board),
        run.seconds,
        tell,
    )
    return {
        "transport": run.transport,
        "way": way,
        "size": run.size,
        "sent": sent["sent"],
        "received": came["received"],
        "unrecoverable": max(came["lost"], sent["sent"] - came["received"]),
        "messages_per_second": came["received"] / came["seconds"] if came["seconds"] > 0 else 0.0,
        "sender_ns_per_message": sent["seconds"] * 1e9 / sent["sent"] if sent["sent"] else 0.0,
    }


# ---- the command ----

_DESCRIPTION = """Measure the transport on this machine, over the loopback or shared memory.

  latency     messages at a fixed rate, each timed from its planned sending time
  throughput  messages at the highest rate (or --rate), with losses and latencies
  loss        throughput with and without dropped packets: the cost of repairs
  python      messages per second through the Python interface: singly, in lists, in batches
  grid        50 and 400 bytes at 500, 1,000, 5,000 and 10,000 messages/s, each beside a bare TCP connection
  waits       one rate, four wait strategies of the receiver: latency against processor time

Every message has a planned sending time. A message that leaves late counts from that time, so a stall is in the
latency of all messages it delays. Percentiles are from an HdrHistogram; jitter is p99.9 - p50.
A loopback is not a network: compare these figures only with others of the same machine."""

_EPILOG = """examples:
  heliograph bench latency --transport rmm --size 64 1024 --rate 20000
  heliograph bench throughput --transport shm --size 64 --seconds 3 --json
  heliograph bench grid --seconds 30            16 runs of 30 s: the grid of published comparisons
  heliograph bench waits --transport rmm        spin is fastest and takes a core; block is slowest and takes none"""


def command(subparsers: Subparsers) -> None:
    """Add ``heliograph bench``."""
    parser = subparsers.add_parser(
        "bench",
        help="measure latency, throughput, loss, wait strategies and the Python interface",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("what", choices=["latency", "throughput", "loss", "python", "grid", "waits"], help="see above")
    parser.add_argument(
        "--transport", choices=list(_ENDPOINTS), default="rmm", help="transport to measure (default: rmm)"
    )
    parser.add_argument("--endpoint", default="", metavar="URL", help="endpoint for both ends instead of the default")
    parser.add_argument(
        "--size",
        type=_size,
        nargs="+",
        default=None,
        metavar="BYTES",
        help="message sizes (default: 64; grid: 50 400)",
    )
    parser.add_argument(
        "--rate",
        type=_rate,
        default=None,
        metavar="N",
        help="messages per second (latency: 10000, waits: 1000, grid: see above, else no limit)",
    )
    parser.add_argument(
        "--mode",
        choices=list(_MODES),
        default="spin",
        help="spin: both processes run the engine and never sleep; thread: the engine has its own thread; block: that "
        "thread sleeps when idle (default: spin)",
    )
    parser.add_argument("--seconds", type=_seconds, default=3.0, metavar="S", help="duration of each run (default: 3)")
    parser.add_argument(
        "--loss", type=_share, default=0.01, metavar="SHARE", help="share of packets to drop for loss (default: 0.01)"
    )
    parser.add_argument(
        "--feedback",
        choices=["ack", "nak"],
        default="ack",
        help="at full rate, ack: the receiver's acknowledgements limit the sender; nak: no limit, so packets the "
        "receiver is too slow for are repaired or lost (default: ack)",
    )
    parser.add_argument("--level", type=int, choices=range(4), default=0, help="level of detail of the statistics")
    parser.add_argument("--json", action="store_true", help="print one JSON object, latencies in ns")
    parser.set_defaults(run=_run)


def _number(text: str, low: float, high: float, what: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not low <= value <= high:
        raise argparse.ArgumentTypeError(f'"{text}" is not {what} from {low:g} to {high:g}')
    return value


def _size(text: str) -> int:
    value = _number(text, 16, 1 << 24, "a whole number of bytes")
    if value != int(value):
        raise argparse.ArgumentTypeError(f'"{text}" is not a whole number')
    return int(value)


def _rate(text: str) -> float:
    return _number(text, 1, 1e8, "a number of messages per second")


def _seconds(text: str) -> float:
    return _number(text, 0.1, 86400, "a number of seconds")


def _share(text: str) -> float:
    return _number(text, 0.0001, 0.9, "a share")


def _progress(what: str, seconds: float) -> Callable[[float], None]:
    """A progress bar of a run on a terminal."""
    if not sys.stderr.isatty():
        return lambda spent: None

    def tell(spent: float) -> None:
        done = min(1.0, spent / seconds)
        bar = "#" * round(30 * done)
        print(
            f"\r{what} [{bar:<30}] {min(spent, seconds):.1f} of {seconds:.1f} s ", end="", file=sys.stderr, flush=True
        )

    return tell


def _clear() -> None:
    if sys.stderr.isatty():
        print("\r\x1b[K", end="", file=sys.stderr, flush=True)


def _runs(arguments: argparse.Namespace) -> Iterator[Run]:
    is_grid = arguments.what == "grid"
    rates = _GRID_RATES if is_grid else ({"latency": 10000.0, "waits": 1000.0}.get(arguments.what, 0.0),)
    rates = rates if arguments.rate is None else (arguments.rate,)
    for size, rate in itertools.product(arguments.size or (_GRID_SIZES if is_grid else (64,)), rates):
        run = Run(
            transport=arguments.transport,
            size=size,
            rate=rate,
            seconds=arguments.seconds,
            warmup=arguments.seconds * 0.1,
            mode=arguments.mode,
            endpoint=arguments.endpoint,
            level=arguments.level,
            feedback=arguments.feedback,
        )
        if arguments.what == "waits":
            yield from (replace(run, wait=wait) for wait in _WAITS)
            continue
        yield run
        if arguments.what == "loss":
            yield replace(run, loss=arguments.loss)
        elif is_grid:
            yield replace(run, transport=_BARE_TCP)


def _run(arguments: argparse.Namespace) -> int:
    rows: list[dict[str, Any]] = []
    try:
        if arguments.what == "python":
            for run in _runs(arguments):
                for way in ("one", "list", "batch"):
                    rows.append(_measure_python(run, way, _progress(f"python {way}", run.seconds)))
        else:
            runs = list(_runs(arguments))
            for number, run in enumerate(runs, 1):
                name = f"{arguments.what} {number} of {len(runs)}: {run.wait or run.transport} {run.size} B"
                rows.append({**asdict(measure(run, _progress(name, run.seconds))), "loss": run.loss, "wait": run.wait})
    except RuntimeError as error:
        _clear()
        print(f"heliograph: bench {arguments.what}: {error}", file=sys.stderr)
        return 1
    _clear()
    if arguments.what == "loss":
        for clean, lossy in zip(rows[::2], rows[1::2], strict=True):
            lossy["goodput_ratio"] = lossy["messages_per_second"] / (clean["messages_per_second"] or 1.0)
    if arguments.what == "grid":
        for ours, bare in zip(rows[::2], rows[1::2], strict=True):
            ours["mean_ratio"] = ours["latency_ns"]["mean"] / (bare["latency_ns"]["mean"] or 1.0)
    if arguments.json:
        print(json.dumps({"benchmark": arguments.what, "rows": rows}, indent=1))
    else:
        print(bench_tables.table(arguments.what, rows))
    return 0
