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
from datetime import UTC, datetime
from pathlib import Path

from tests.bench.pairing import Result

__all__ = ["RESULTS", "machine", "peers_section", "put_section", "reasons", "table"]

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "RESULTS.md"
WHY = HERE / "why.toml"
_HEAD = """# Speed, as measured

Written by `make bench-peers`, `make instructions`, `make soak` and `make faults`; how: [README.md](README.md).
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
        "",
        "| what | size | ours | reference | ratio | range | gate | want | reached |",
        "| --- | ---: | ---: | ---: | ---: | --- | ---: | ---: | --- |",
    ]
    for r in results:
        reached = mark(r)
        lines.append(
            f"| {r.name} | {r.size} | {_figure(r.ours)} | {_figure(r.reference)} | {_ratio(r)} "
            f"| {_range(r)}{_caveats(r)} | {_goal(r, r.gate)} | {_goal(r, r.want)} "
            f"| {f'**{reached}**' if reached == 'MISSED' else reached} |"
        )
    missed = [r for r in results if mark(r) in ("MISSED", "not measured")]
    lines += ["", "### What missed its gate, and why", ""]
    if not missed:
        lines.append("Nothing.")
    for r in missed:
        text = r.why if r.ratio is None else why.get(r.name, "not looked into yet")
        lines.append(f"- {r.name}, {r.size} B: {'not measured: ' if r.ratio is None else ''}{text.strip()}")
    return "\n".join(lines)


# ---- RESULTS.md ----


def put_section(name: str, body: str, path: Path = RESULTS) -> None:
    """Write a section into the file, in place of the one of that name if there is one."""
    text = path.read_text(encoding="utf-8") if path.exists() else _HEAD
    begin, end = f"<!-- begin {name} -->", f"<!-- end {name} -->"
    section = f"{begin}\n{body.strip()}\n{end}"
    pattern = re.compile(re.escape(begin) + ".*?" + re.escape(end), re.DOTALL)
    text = pattern.sub(lambda _: section, text) if pattern.search(text) else f"{text.rstrip()}\n\n{section}\n"
    path.write_text(text, encoding="utf-8")
