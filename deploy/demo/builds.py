"""The demo with two builds of an application: is B slower than A, and in which stage of latency?

With DEMO_BUILDS=2 the demo runs a sender and a handler of build A and of build B, all with real engines. The handler of
B works longer on each message (DEMO_INJECT=8: 8 %; 0: not), so messages behind it wait longer: the stage dispatch. The
builds take turns (A, B, B, A), because a machine changes with time, and a change that both see is not one of the build.
One exporter records all turns into a spool. At the end the spool is rolled up, and `heliograph history stages` says
whether B is slower than A, and in which stage.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from children import Child, Children
from services import Places, Watchers, heliograph

__all__ = ["BUILDS", "STAGE", "expected", "run_builds", "turns", "wanted_inject"]

BUILDS = ("A", "B")
WORK_SECONDS = 0.007
"""Long against the stops of a busy machine, which are noise."""
STAGE = "dispatch"
TURN_SECONDS = 3.0
"""Turns take about this long."""
REST_SECONDS = 0.15
"""Pause between turns: the last messages of a turn are taken before the next begins."""
INTERVALS = 120
"""Intervals of each build, about: enough to see how neighbours resemble each other."""
SHORTEST_INTERVAL = 0.2
"""Seconds."""
SHORT_SECONDS = 16.0
"""A shorter demo has fewer than 40 of the shortest intervals of each build."""
FEW_INTERVALS = 8
"""Intervals of each build in a short demo. They are parts of turns, and are taken as independent."""
STOP = "10ms"
"""Intervals in which the machine stopped for this time are left out, except in a short demo."""
MARGIN = 5.0
"""Increase that does not matter, per cent."""
START_SECONDS = 15.0
MOST_INJECTED = 100.0
"""Per cent; with more, the handler of B could not keep up with the bursts."""

Say = Callable[[str], None]


def wanted_inject() -> float:
    """How much longer build B works on each message, per cent (DEMO_INJECT; 8 by default).

    Raises:
        ValueError: It is not a number from 0 to `MOST_INJECTED`; the text is the reason.
    """
    text = os.environ.get("DEMO_INJECT", "")
    try:
        percent = float(text or 8.0)
    except ValueError:
        percent = -1.0
    if not 0 <= percent <= MOST_INJECTED:
        raise ValueError(f"DEMO_INJECT={text} is not a number of per cent from 0 to {MOST_INJECTED:g}")
    return percent


def turns(seconds: float) -> list[tuple[str, float]]:
    """Return the builds in the order of their turns (A, B, B, A, ...), and the seconds of each."""
    cycles = max(1, round(seconds / TURN_SECONDS / 4))
    return [(build, seconds / cycles / 4) for _ in range(cycles) for build in (*BUILDS, *reversed(BUILDS))]


def interval_of(seconds: float) -> float:
    """Return the length of the recorded intervals in seconds."""
    if seconds < SHORT_SECONDS:
        return seconds / len(BUILDS) / FEW_INTERVALS
    return max(SHORTEST_INTERVAL, seconds / len(BUILDS) / INTERVALS)


def expected(inject: float) -> str | None:
    """Return the verdict that a demo with this injection should end with; None: any, since it is near the margin."""
    if inject == 0:
        return "not slower"
    return f"slower: build={BUILDS[1]} in {STAGE}" if inject >= 1.5 * MARGIN else None


class _Builds:
    """The processes of both builds."""

    def __init__(self, children: Children, endpoints: Sequence[str], inject: float) -> None:
        folder = Path(__file__).parent
        self._children = children
        self.all: list[Child] = []
        self.senders: dict[str, Child] = {}
        for build, endpoint, factor in zip(BUILDS, endpoints, (1.0, 1.0 + inject / 100), strict=True):
            words = [f"--build={build}", f"--endpoint={endpoint}"]
            for role, more in (("handler", [f"--work={WORK_SECONDS * factor}"]), ("quoter", [])):
                child = children.start(
                    f"{role}-{build}", [sys.executable, folder / f"{role}.py", *words, *more], talks=True
                )
                self.all.append(child)
                if role == "quoter":
                    self.senders[build] = child

    def failed(self) -> Child | None:
        """Return the first process that does not become ready."""
        return next((child for child in self.all if child.hear(START_SECONDS) is None), None)


def run_builds(
    children: Children, places: Places, endpoints: Sequence[str], seconds: float, is_over: Callable[[], bool], say: Say
) -> bool:
    """Run all turns and print the verdict; returns whether it is the expected one.

    Args:
        children: The processes of the demo.
        places: Its directories.
        endpoints: Endpoint of each build.
        seconds: Length of all turns together.
        is_over: Whether the end was requested; the turn is finished early, and the verdict follows.
        say: Prints one line.
    """
    inject = wanted_inject()
    spool = places.out / "spool"
    record = interval_of(seconds)
    words = (f"--dir={spool}", f"--interval={record / 2}", f"--record={record}")
    export = children.start("export", heliograph("export", "spool", *words))
    builds = _Builds(children, endpoints, inject)
    if (failed := builds.failed()) is not None:
        say(f"{failed.name} did not start:\n{failed.last_words()}")
        return False
    say(f"build B works {inject:g} % longer on each message" if inject else "build B is equal to build A")
    plan = turns(seconds)
    say(f"{len(plan)} turns of {plan[0][1]:.3g} s: {' '.join(build for build, _ in plan)}")
    for build, length in plan:
        until = time.monotonic() + length
        builds.senders[build].say("go")
        while time.monotonic() < until and not is_over():
            time.sleep(0.02)
        builds.senders[build].say("rest")
        time.sleep(REST_SECONDS)
    children.end(export)  # it writes the last interval while all processes run
    children.end(*builds.all)
    if fallen := children.fallen():
        say(f"{fallen[0].name} ended badly:\n{fallen[0].last_words()}")
        return False
    stops = (f"--without-stops={STOP}",) if seconds >= SHORT_SECONDS else ()
    return _verdict(Watchers(children, places, say), places, spool, (f"--interval={record}", *stops), inject, say)


def _verdict(watchers: Watchers, places: Places, spool: Path, options: Sequence[str], inject: float, say: Say) -> bool:
    """Roll the spool up, compare the builds, and print the result."""
    rollup = heliograph("history", "rollup", "--no-spark", f"--spool={spool}", f"--history={places.out / 'history'}")
    a, b = (f"build={build}" for build in BUILDS)
    words = (f"--a={a}", f"--b={b}", f"--margin={MARGIN}", *options)
    study = heliograph("history", "stages", f"--spool={spool}", *words)
    if not (watchers.job("rollup", rollup) and watchers.job("stages", study)):
        return False
    text = (places.logs / "stages.log").read_text(encoding="utf-8")
    print(f"\n{text}", flush=True)
    verdict = text.splitlines()[-1].removeprefix("verdict: ")
    due = expected(inject)
    is_good = due is None or verdict == due
    if not is_good:
        say(f"expected {due!r}; a busy machine needs more time: DEMO_SECONDS=120")
    say(f"verdict: {verdict}")
    return is_good
