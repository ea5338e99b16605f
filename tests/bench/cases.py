"""What is measured: the rows of the table, what each compares, its gate and what we want.

Options that only some versions of the engine know (segmentation off-load) are given where the catalogue has them, so
that the same rows measure an engine without them too.
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from tests.bench.pairing import Better, Contest, Row

__all__ = ["LOSS", "SIZES", "contests", "quick"]

HERE = Path(__file__).resolve().parent
SIZES = (64, 1024)
LOSS = 0.01
"""Share of the packets thrown away in the rows about goodput."""
REPAIR_LOSS = 0.03
"""And in those about repair: enough for a few hundred repairs in a run."""

FULL_LIST = 924
"""Messages of 64 bytes in a list that fills one write of the bare sockets, 64 KiB: 44 packets of 21 messages."""

Command = tuple[str, ...]

# C programs are named as in <build>/bench, Python programs as in this folder.
OURS = "heliograph"
NO_STATS = "heliograph_no_stats"
PYTHON = str(HERE / "python_heliograph.py")
PYZMQ = str(HERE / "python_zmq.py")


def contests(options: Collection[str]) -> list[Contest]:
    """Every row of the table, for an engine that knows these options of transmitters and receivers."""
    return [*_latencies(), *_throughputs(options), *_repairs(), *_pythons(), _counting()]


def quick(options: Collection[str]) -> list[Contest]:
    """The rows that tell most about a change to the engine."""
    names = ("UDP unicast", "multicast p", "multicast msgs/s, no GSO", "shm")
    return [c for c in contests(options) if any(c.rows[0].name.startswith(name) for name in names)]


def _ours(what: str, transport: str, *more: str) -> Command:
    return (OURS, what, "--transport", transport, *more)


def _percentile(name: str, percentile: str, gate: float, want: float) -> Row:
    figure = f"{percentile}_ns"
    return Row(name.replace("*", percentile), figure, figure, "lower", gate, want)


def _rate(name: str, gate: float, want: float, figure: str = "messages_per_second") -> Row:
    return Row(name, figure, figure, "higher", gate, want)


def _latencies() -> list[Contest]:
    multicast = ("raw_udp", "latency", "--path", "multicast")
    kinds: tuple[tuple[str, Command, str, tuple[tuple[str, float, float], ...]], ...] = (
        (
            "rmm+unicast",
            ("raw_udp", "latency"),
            "UDP unicast * / raw UDP spin",
            (("p50", 1.12, 1.06), ("p99", 1.4, 1.15)),
        ),
        ("rmm", multicast, "multicast * / raw multicast spin", (("p50", 1.15, 1.07), ("p99", 1.5, 1.2))),
        ("rum", ("raw_tcp", "latency"), "TCP * / raw TCP spin", (("p50", 1.12, 1.06),)),
        ("shm", ("ring", "latency", "--kind", "slot"), "shm * / slot ring", (("p50", 1.3, 1.1), ("p99", 2.0, 1.3))),
    )
    return [
        Contest(
            size,
            _ours("latency", transport),
            (reference,),
            tuple(_percentile(name, *figures) for figures in percentiles),
        )
        for transport, reference, name, percentiles in kinds
        for size in SIZES
    ]


def _offload(options: Collection[str], setting: str) -> Command:
    """Arguments that turn segmentation off-load `auto` or `off` at both ends."""
    given: list[str] = []
    for option, end in (("gso", "--tx"), ("gro", "--rx")):
        if option in options:
            given += [end, f"{option}={setting}"]
    return tuple(given)


def _throughputs(options: Collection[str]) -> list[Contest]:
    packed = ("raw_udp", "throughput", "--path", "multicast")
    plain = _ours("throughput", "rmm", *_offload(options, "off"))
    fast = _ours("throughput", "rmm", *_offload(options, "auto"))
    full = ("--list", str(FULL_LIST))
    megabytes = _rate("multicast MB/s, GSO / raw packed with GSO", 0.7, 0.85, "megabytes_per_second")
    rings = tuple(("ring", "throughput", "--kind", kind) for kind in ("slot", "byte", "batch"))
    return [
        Contest(64, plain, (packed,), (_rate("multicast msgs/s, no GSO / raw packed sendmmsg", 0.85, 0.95),)),
        Contest(
            64,
            (*fast, *full),
            ((*packed, "--segments", "yes"),),
            (_rate("multicast msgs/s, GSO / raw packed with GSO", 0.5, 0.65),),
        ),
        Contest(1024, fast, ((*packed, "--segments", "yes"),), (megabytes,)),
        Contest(64, fast, (("zmq", "throughput"),), (_rate("multicast msgs/s / libzmq tcp", 3, 6),)),
        Contest(
            64,
            fast,
            (("zmq", "throughput", "--transport", "epgm"),),
            (_rate("multicast msgs/s / libzmq epgm", 15, 30),),
        ),
        Contest(
            64,
            _ours("throughput", "rum", *full),
            (("raw_tcp", "throughput"),),
            (_rate("TCP msgs/s / raw TCP packed", 0.6, 0.8),),
        ),
        Contest(64, _ours("throughput", "shm"), rings, (_rate("shm msgs/s / best raw ring", 0.9, 1.0),)),
    ]


def _repairs() -> list[Contest]:
    lossless = _ours("throughput", "rmm")
    lossy = (*lossless, "--rx", f"inject_loss={LOSS}")
    # One receiver on a path that keeps order: nobody to leave the asking to, nothing to wait for.
    eager = ("--rx", f"nak_backoff=0&reorder_packets=0&reorder_time=0&inject_loss={REPAIR_LOSS}")
    repair = Row("repair latency p50 / raw round trip", "p50_ns", "round_trip_p50_ns", "lower", 2.5, 1.8)
    raw = ("raw_udp", "latency", "--path", "multicast")
    return [
        *(
            Contest(size, lossy, (lossless,), (_rate("goodput at 1 % loss / without loss", gate, want),))
            for size, gate, want in zip(SIZES, (0.95, 0.9), (0.98, 0.95), strict=True)
        ),
        *(Contest(size, _ours("repair", "rmm", *eager), (raw,), (repair,)) for size in SIZES),
    ]


def _pythons() -> list[Contest]:
    spin = _percentile("Python spin * / raw C UDP spin", "p50", 1.2, 1.1)
    ways: tuple[tuple[str, str, float, float], ...] = (
        ("call", "one call per message", 10, 15),
        ("list", "list", 15, 25),
        ("views", "views", 30, 50),
    )
    return [
        *(
            Contest(size, (PYTHON, "latency", "--transport", "rmm+unicast"), (("raw_udp", "latency"),), (spin,))
            for size in SIZES
        ),
        *(
            Contest(
                64,
                (PYTHON, "throughput", "--way", way),
                ((PYZMQ, "throughput"),),
                (_rate(f"Python msgs/s / pyzmq tcp, {text}", gate, want),),
            )
            for way, text, gate, want in ways
        ),
    ]


def _counting() -> Contest:
    better: Better = "higher"
    figure = "messages_per_second"
    row = Row("multicast msgs/s, level 0 on / compiled out", figure, figure, better, 0.98, 1.0)
    return Contest(64, _ours("throughput", "rmm"), ((NO_STATS, *_ours("throughput", "rmm")[1:]),), (row,))
