"""What the benchmarks say to people: the table on the terminal and the sections of RESULTS.md.

RESULTS.md holds sections between marks; each command rewrites its own and leaves the others, so that the table of one
day can stand beside the instruction counts of another.
"""

from __future__ import annotations

import os
import platform
import re
import subprocess
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from tests.bench.pairing import Result, Tail

__all__ = [
    "FIELD",
    "RESULTS",
    "Published",
    "field_lines",
    "machine",
    "peers_section",
    "put_section",
    "reasons",
    "table",
]

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "RESULTS.md"
WHY = HERE / "why.toml"
TAIL = "p50 / p99 / p99.9 / max / jitter"
_HEAD = """# Speed, as measured

Written by `make bench-peers`, `make bench-scrape`, `make bench-live`, `make bench-history`, `make instructions`,
`make soak`, `make soak-store` and `make faults`; how: [README.md](README.md).
"""


def reasons(path: Path = WHY) -> dict[str, str]:
    """Why a row misses its gate, as people wrote it down: name of the row -> reason."""
    found: dict[str, str] = tomllib.loads(path.read_text(encoding="utf-8"))["why"]
    return found


def machine() -> dict[str, str]:
    """What the figures were measured on."""
    facts = {
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "processor": f"{_processor()}, {os.cpu_count()} cores{_host()}",
        "kernel": f"{platform.system()} {platform.release()}",
        "compiler": _said("cc", "--version"),
        "Python": platform.python_version(),
        "libzmq": _said("pkg-config", "--modversion", "libzmq"),
    }
    try:
        import zmq

        facts["pyzmq"] = f"{zmq.__version__} (libzmq {zmq.zmq_version()})"
    except ImportError:
        facts["pyzmq"] = "none"
    return facts


def _cpuinfo() -> str:
    try:
        return Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return ""


def _processor() -> str:
    match = re.search(r"^model name\s*:\s*(.+)$", _cpuinfo(), re.MULTILINE)
    return match[1].strip() if match else platform.machine()


def _host() -> str:
    return ", a virtual machine" if re.search(r"^flags\s*:.*\bhypervisor\b", _cpuinfo(), re.MULTILINE) else ""


def _said(*command: str) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=10)
    except (OSError, subprocess.TimeoutExpired):
        return "none"
    return done.stdout.splitlines()[0].strip() if done.returncode == 0 and done.stdout else "none"


# ---- the table ----


def mark(result: Result) -> str:
    """How the row did: "not measured", "MISSED", "gate" or "want"."""
    if result.ratio is None:
        return "not measured"
    if result.reaches(result.want):
        return "want"
    return "gate" if result.reaches(result.gate) else "MISSED"


def _goal(result: Result, goal: float) -> str:
    return f"{'<=' if result.better == 'lower' else '>='} {goal:g}"


def _figure(value: float | None) -> str:
    return "-" if value is None else f"{value:,.0f}"


def _ratio(result: Result) -> str:
    return "-" if result.ratio is None else f"{result.ratio:.3f}"


def _range(result: Result) -> str:
    return "-" if result.low is None or result.high is None else f"{result.low:.3f} to {result.high:.3f}"


def _lost(result: Result) -> str:
    if not result.lost:
        return ""
    # Of latencies it is pings without an answer: the other core was taken away for longer than that.
    return f"{result.lost:,} " + (
        "pings given up after 50 ms" if result.better == "lower" else "messages lost for good"
    )


def _us(value: float) -> str:
    return f"{value / 1000:,.1f}"


def _tail(tail: Tail | None) -> str:
    """p50, p99, p99.9, max and jitter in us."""
    if tail is None:
        return "-"
    return " / ".join(_us(value) for value in (tail.p50, tail.p99, tail.p999, tail.max, tail.jitter))


def _notes(result: Result) -> str:
    notes = "; ".join(note for note in (result.why, _lost(result)) if note)
    return f"  ({notes})" if notes else ""


def _caveats(result: Result) -> str:
    fewer = f"{result.pairs} pairs only" if result.why and result.ratio is not None else ""
    caveats = ", ".join(caveat for caveat in (fewer, _lost(result)) if caveat)
    return f" ({caveats})" if caveats else ""


def table(results: Iterable[Result]) -> str:
    """The table as text for a terminal."""
    lines = [
        f"{'what':<44} {'size':>5} {'ours':>13} {'reference':>13} {'ratio':>8} {'gate':>8} {'want':>8}  {'':<12} range"
    ]
    for r in results:
        lines.append(
            f"{r.name:<44} {r.size:>5} {_figure(r.ours):>13} {_figure(r.reference):>13} {_ratio(r):>8} "
            f"{_goal(r, r.gate):>8} {_goal(r, r.want):>8}  {mark(r):<12} {_range(r)}{_notes(r)}"
        )
        if r.ratio is not None:
            lines.append(f"    {TAIL} in us: ours {_tail(r.tail)}; reference {_tail(r.reference_tail)}")
    return "\n".join(lines)


def peers_section(
    results: Sequence[Result], facts: Mapping[str, str], probes: Sequence[float], settings: str, why: Mapping[str, str]
) -> str:
    """The section of RESULTS.md about a run of `make bench-peers`."""
    lines = ["## Against bare sockets, rings and libzmq", "", f"{settings}", ""]
    lines += [f"- {name}: {value}" for name, value in facts.items()]
    if probes:
        ordered = sorted(probes)
        lines.append(
            f"- cache line between the cores, half a round trip: {ordered[len(ordered) // 2]:.0f} ns "
            f"({ordered[0]:.0f} to {ordered[-1]:.0f})"
        )
    lines += [
        "",
        "Latencies are half round trips in ns, rates are messages (or MB) per second at the receiver.",
        f"Tails are {TAIL} in us; jitter is p99.9 - p50. Of a rate they are from handing a message over until its",
        "receiver has it, at that rate: some messages are sampled. max is of all runs, the others are medians.",
        "",
        "| what | size | ours | reference | ratio | range | gate | want | reached | tail, ours | tail, reference |",
        "| --- | ---: | ---: | ---: | ---: | --- | ---: | ---: | --- | --- | --- |",
    ]
    for r in results:
        reached = mark(r)
        lines.append(
            f"| {r.name} | {r.size} | {_figure(r.ours)} | {_figure(r.reference)} | {_ratio(r)} "
            f"| {_range(r)}{_caveats(r)} | {_goal(r, r.gate)} | {_goal(r, r.want)} "
            f"| {f'**{reached}**' if reached == 'MISSED' else reached} | {_tail(r.tail)} | {_tail(r.reference_tail)} |"
        )
    missed = [r for r in results if mark(r) in ("MISSED", "not measured")]
    lines += ["", "### What missed its gate, and why", ""]
    if not missed:
        lines.append("Nothing.")
    for r in missed:
        text = r.why if r.ratio is None else why.get(r.name, "not looked into yet")
        lines.append(f"- {r.name}, {r.size} B: {'not measured: ' if r.ratio is None else ''}{text.strip()}")
    return "\n".join([*lines, "", "### Beside published figures", "", *field_lines(results, facts)])


# ---- published figures ----


@dataclass(frozen=True, slots=True)
class Published:
    """A figure that others published, and our rows beside it.

    Attributes:
        system: whose it is.
        figure: as published.
        hardware: as far as it was published.
        ours: name of our row; its figure is half a round trip, or a rate.
        tail: which of the row's latencies is compared, "" for its rate.
    """

    system: str
    figure: str
    hardware: str
    ours: str
    tail: str = ""


_UDP, _MULTICAST = "UDP unicast p50 / raw UDP spin", "multicast p50 / raw multicast spin"
_SHM, _RATE = "shm p50 / slot ring", "multicast msgs/s, GSO / raw packed with GSO"
_SHM_RATE = "shm msgs/s / best raw ring"
_UNSTATED = "not stated"
FIELD = (
    Published("ZeroMQ and OpenAMQ slides", "30 to 40 us end to end", "Linux, a network; model not stated", _UDP, "p50"),
    Published("ZeroMQ and OpenAMQ slides", "3 to 4 M small messages/s, one stream", "Linux; model not stated", _RATE),
    Published("ZeroMQ and OpenAMQ slides", "15 k messages/s (OpenAMQ, a broker)", _UNSTATED, _RATE),
    Published("ZeroMQ and OpenAMQ slides", "160 us (OpenVMS)", "OpenVMS; model not stated", _UDP, "p50"),
    Published("LMAX Disruptor discussion", "100 k transactions/s below 1 ms", _UNSTATED, _UDP, "p999"),
    Published("LMAX Disruptor discussion", "6 M events/s, one thread, in memory", _UNSTATED, _SHM_RATE),
    Published("LMAX Disruptor discussion", "below 40 us for a hop", "1 Gbit/s Ethernet", _MULTICAST, "p50"),
    Published("LMAX Disruptor discussion", "single-digit us", "user-space network stack or RDMA", _SHM, "p50"),
)


def field_lines(results: Sequence[Result], facts: Mapping[str, str]) -> list[str]:
    """Published figures with ours beside them, the hardware of both stated."""
    hardware = ", ".join(facts[name] for name in ("processor", "kernel") if name in facts)
    lines = [
        f"Ours: 64-byte messages between two processes on one host ({hardware or 'hardware unknown'}), on the loopback",
        "or in memory: no network is in them. Published figures are from other hardware, as their authors gave them.",
        "",
        "| published by | figure | their hardware | ours | of the row |",
        "| --- | --- | --- | ---: | --- |",
    ]
    for published in FIELD:
        row = next((r for r in results if (r.name, r.size) == (published.ours, 64)), None)
        figure = "not measured"
        if row is not None and row.ours is not None and row.tail is not None:
            name = published.tail.replace("p999", "p99.9")
            figure = (
                f"{name} {_us(getattr(row.tail, published.tail))} us"
                if published.tail
                else f"{row.ours:,.0f}/s; p50 {_us(row.tail.p50)} us, p99.9 {_us(row.tail.p999)} us"
            )
        row_name = published.ours.partition(" / ")[0]
        lines.append(f"| {published.system} | {published.figure} | {published.hardware} | {figure} | {row_name} |")
    return lines


# ---- RESULTS.md ----


def put_section(name: str, body: str, path: Path = RESULTS) -> None:
    """Write a section into the file, in place of the one of that name if there is one."""
    text = path.read_text(encoding="utf-8") if path.exists() else _HEAD
    begin, end = f"<!-- begin {name} -->", f"<!-- end {name} -->"
    section = f"{begin}\n{body.strip()}\n{end}"
    pattern = re.compile(re.escape(begin) + ".*?" + re.escape(end), re.DOTALL)
    text = pattern.sub(lambda _: section, text) if pattern.search(text) else f"{text.rstrip()}\n\n{section}\n"
    path.write_text(text, encoding="utf-8")
