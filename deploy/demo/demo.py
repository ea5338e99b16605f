"""All of Heliograph on one machine: a feed, four receivers, all monitoring, and the reconciliation at the end.

    make demo                                        until Ctrl-C
    make demo DEMO_SECONDS=30 DEMO_HEADLESS=1        unattended
    make demo DEMO_SLOW=enforce                      a slow receiver is warned, suspended and readmitted (story.py)
    make demo DEMO_STORE=1                           a message store, a late joiner, a durable subscriber (store.py)
    make demo DEMO_BUILDS=2 [DEMO_INJECT=8]          two builds: is the second slower, and in which stage (builds.py)

Steps: prepare (directory, ports, network), listen (capture, receivers, monitoring), feed, watch, stop the feed, let the
receivers drain, reconcile while all processes run, end all processes, and run the Spark roll-up and report over the
recorded data. With DEMO_SLOW=observe, advise or enforce the receiver `slow` becomes slow during the demo, and the end
prints the actions on it. The first Ctrl-C ends the watching, and the other steps follow; a second Ctrl-C ends the demo
at once. In every case, no process, segment or namespace remains.

The exit code is 0 when every residual is 0, every receiver got the messages that the reconciliation shows, the scenario
of the slow receiver is complete where one was requested, no subscriber of a store saw a gap or a duplicate, and nothing
failed. With two builds it is 0 when the verdict is the expected one.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import socket
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

import reconciliation
from builds import run_builds, wanted_inject
from children import Child, Children
from network import Road, free_port, road
from services import Places, Watchers
from store import NAME as STORE
from store import TOPIC, StoreScenario
from story import Mode, Story

TOP = Path(__file__).resolve().parents[2]
GROUP = "239.192.77.1"
LOSS = 0.02
HEALTHY = ("alpha", "bravo")
MARK = ".heliograph-demo"
"""Marks a directory of a demo, which the next demo may empty."""
STATUS_EVERY = 3.0
DRAIN_SECONDS = 60.0
BUILDS_SECONDS = 60.0
"""Length of the demo with two builds, which ends by itself, without DEMO_SECONDS."""


def say(text: str) -> None:
    """Print one line."""
    print(f"demo: {text}", flush=True)


class Failure(Exception):
    """The demo cannot continue; the text is the reason."""


@dataclass(slots=True)
class Ending:
    """Ctrl-C and SIGTERM: the first signal ends the demo in order, the second ends it at once."""

    asked: bool = False

    def __call__(self, number: int, frame: FrameType | None) -> None:
        """Handle a signal."""
        if self.asked:
            for known in (signal.SIGINT, signal.SIGTERM):
                signal.signal(known, signal.SIG_IGN)  # nothing may interrupt the clean-up
            raise KeyboardInterrupt
        self.asked = True


def is_wanted(name: str) -> bool:
    """Whether a variable of the environment is set, and not to 0."""
    return os.environ.get(name, "") not in ("", "0")


def wanted_seconds() -> float:
    """Duration: DEMO_SECONDS, otherwise until Ctrl-C, or 30 s when unattended (DEMO_HEADLESS=1)."""
    text = os.environ.get("DEMO_SECONDS", "")
    headless = is_wanted("DEMO_HEADLESS")
    try:
        seconds = float(text or (30.0 if headless else "inf"))
    except ValueError:
        seconds = 0.0
    if seconds <= 0:
        raise Failure(f"DEMO_SECONDS={text} is not a number of seconds above 0")
    return seconds


def wanted_builds() -> bool:
    """Whether the demo is the one with two builds (DEMO_BUILDS=2)."""
    text = os.environ.get("DEMO_BUILDS", "")
    if text not in ("", "0", "2"):
        raise Failure(f"DEMO_BUILDS={text} is not 2")
    try:
        wanted_inject()
    except ValueError as error:
        raise Failure(str(error)) from None
    return text == "2"


def wanted_story() -> Mode | None:
    """The mode of the feed towards slow receivers (DEMO_SLOW); None: default options, and no scenario."""
    text = os.environ.get("DEMO_SLOW", "")
    try:
        return Mode(text) if text else None
    except ValueError:
        raise Failure(f"DEMO_SLOW={text} is none of {', '.join(Mode)}") from None


@contextlib.contextmanager
def prepared() -> Iterator[Places]:
    """Prepare an empty output directory, and a segment directory that is removed at the end."""
    out = Path(os.environ.get("DEMO_FOLDER") or TOP / "build" / "demo").resolve()
    mark = out / MARK
    if out.exists() and any(out.iterdir()) and not mark.exists():
        raise Failure(f"{out} contains other files: empty it or set another DEMO_FOLDER")
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    mark.touch()
    shared = Path("/dev/shm")
    segments = (shared if shared.is_dir() else out) / f"heliograph-demo-{os.getpid()}"
    segments.mkdir()
    try:
        yield Places(TOP, out, segments)
    finally:
        shutil.rmtree(segments, ignore_errors=True)


def start_receivers(children: Children, way: Road, port: int, mode: Mode | None) -> dict[str, Child]:
    """Start the four receivers; they listen when this returns. With a scenario `slow` becomes slow later."""
    near, far = (f"rmm://{GROUP}:{port}?interface={address}" for address in (way.near, way.far))
    script = TOP / "deploy/demo/receiver.py"
    loss = [f"--inject-loss={value}" for value in way.options.values()]
    plans: dict[str, tuple[tuple[str, ...], str, list[str]]] = {
        "alpha": ((), near, []),
        "bravo": ((), near, []),
        "slow": ((), near, [f"--pause={0 if mode else 0.024}", "--receive-queue=65536"]),
        "lossy": (way.prefix, far, loss),
    }
    receivers = {
        name: children.start(
            name,
            [*prefix, sys.executable, script, f"--name={name}", f"--endpoint={endpoint}", *more],
            talks=True,
        )
        for name, (prefix, endpoint, more) in plans.items()
    }
    for name, child in receivers.items():
        if child.hear(15.0) is None:
            raise Failure(f"receiver {name} did not start:\n{child.last_words()}")
    return receivers


def start_feed(children: Children, way: Road, port: int, mode: Mode | None, places: Places) -> tuple[Child, str]:
    """Start the feed; returns it and the UDP port of its stream when it sends."""
    endpoint = f"rmm://{GROUP}:{port}?interface={way.near}"
    command: list[str | Path] = [sys.executable, TOP / "deploy/demo/feed.py", f"--endpoint={endpoint}"]
    if mode is not None:
        places.decisions.mkdir()
        command += [f"--slow={mode}", f"--decision-log={places.decisions}"]
    feed = children.start("feed", command, talks=True)
    told = feed.hear(15.0)
    if told is None:
        raise Failure(f"the feed did not start:\n{feed.last_words()}")
    return feed, re.findall(r"\d+", told["stream"])[-1]


def start_store(children: Children, way: Road, port: int, places: Places) -> StoreScenario:
    """Start the message store; it listens when this returns."""
    endpoint = f"rmm://{GROUP}:{port}?interface={way.near}"
    scenario = StoreScenario(children, places, endpoint, free_port(7800, "the store", say), say)
    if not scenario.listens():
        raise Failure(f"the store did not start:\n{scenario.store.last_words()}")
    return scenario


def watch(
    children: Children,
    reader: reconciliation.Books,
    seconds: float,
    ending: Ending,
    scenarios: Sequence[Story | StoreScenario],
) -> None:
    """Print status lines until the time is over or the end is requested, and run the scenarios."""
    until = time.monotonic() + seconds
    due = time.monotonic() + STATUS_EVERY
    while time.monotonic() < until and not ending.asked:
        if fallen := children.fallen():
            raise Failure(f"{fallen[0].name} ended unexpectedly:\n{fallen[0].last_words()}")
        if time.monotonic() >= due:
            due += STATUS_EVERY
            say(reader.status())
        for scenario in scenarios:
            scenario.step()
        time.sleep(0.1)
    for scenario in scenarios:
        scenario.end()


def show(way: Road, port: int, prometheus: int | None, exporter: int, live: int, places: Places) -> None:
    """Print the running services and their addresses."""
    say(f"loss: {way.how}")
    say(f"feed on rmm://{GROUP}:{port}?interface={way.near}, topics PRICES.EQUITY, .FX, .RATES, .CREDIT")
    say(f"live page    http://127.0.0.1:{live}/")
    say(f"metrics      http://127.0.0.1:{exporter}/metrics")
    if prometheus is not None:
        say(f"Prometheus   http://127.0.0.1:{prometheus}/alerts")
    say(f"terminal     .venv/bin/heliograph top --segments {places.segments}")
    say(f"one page     .venv/bin/heliograph why slow --segments {places.segments}")


def settle(
    feed: Child, names: tuple[str, ...], reader: reconciliation.Books, store: StoreScenario | None
) -> tuple[list[reconciliation.Line], bool, dict[str, int]]:
    """Stop the feed, wait until all receivers have all messages, and reconcile; returns whether it is good, and the
    number of messages sent by topic.
    """
    feed.say("stop")
    told = feed.hear(30.0)
    if told is None:
        raise Failure(f"the feed did not stop:\n{feed.last_words()}")
    sent: dict[str, int] = told["sent"]
    total = sum(sent.values())
    say(f"feed stopped after {total:,} messages; waiting for the receivers to drain")
    until = time.monotonic() + DRAIN_SECONDS
    while not reader.drained(sent, names) and time.monotonic() < until:
        time.sleep(0.2)
    if store is not None:
        store.drain(sent[TOPIC])
    lines = reader.lines()
    print("\n" + "\n".join(reconciliation.table(lines)) + "\n", flush=True)
    return lines, reconciliation.are_balanced(lines, total, names, say), sent


def run(places: Places, seconds: float, mode: Mode | None, ending: Ending, stack: contextlib.ExitStack) -> bool:
    """Run all steps; returns whether all succeeded."""
    port = free_port(7500, "the feed", say, socket.SOCK_DGRAM)
    exporter_port, live_port, prometheus_port = (
        free_port(preferred, what, say)
        for preferred, what in ((9464, "the exporter"), (8050, "the live page"), (9090, "Prometheus"))
    )
    way = stack.enter_context(road(port, LOSS, say))
    children = Children(places.logs, {"HELIOGRAPH_SEGMENT_DIR": str(places.segments), "PYTHONUNBUFFERED": "1"})
    stack.callback(children.end_all)
    watchers = Watchers(children, places, say)

    capture = watchers.capture(way.device)
    receivers = start_receivers(children, way, port, mode)
    store = start_store(children, way, port, places) if is_wanted("DEMO_STORE") else None
    export = watchers.exporters(exporter_port)
    live = watchers.live(live_port)
    prometheus = watchers.prometheus(prometheus_port, exporter_port)
    feed, stream_port = start_feed(children, way, port, mode, places)
    show(way, port, prometheus_port if prometheus else None, exporter_port, live_port, places)
    if store is not None:
        store.show()
        say(f"             http://127.0.0.1:{live_port}/stores")

    with reconciliation.Books(places.segments) as reader:
        story = None
        if mode is not None:
            story = stack.enter_context(Story(mode, receivers["slow"], HEALTHY, places.segments, say))
        watch(children, reader, seconds, ending, [scenario for scenario in (story, store) if scenario is not None])
        ending.asked = True  # from here on Ctrl-C ends the demo at once
        drawn = watchers.picture(live_port)
        names = (*receivers, STORE) if store is not None else tuple(receivers)
        lines, balanced, sent = settle(feed, names, reader, store)
    told = story.verdict() if story is not None else True
    written = watchers.metrics() and watchers.events()
    # The exporter first: it writes a last interval while all processes run.
    children.end(export)
    children.end(*(child for child in (live, prometheus) if child is not None))
    kept = store.close(sent[TOPIC]) if store is not None else True
    children.end(*receivers.values())
    tallies = {name: child.hear(1.0) for name, child in receivers.items()}
    counted = [
        reconciliation.check_tally(line, tallies[line.receiver], say) for line in lines if line.receiver in tallies
    ]
    if story is not None:
        counted.append(story.heard(reconciliation.notices(tallies["slow"])))
    children.end(feed)
    if capture is not None:
        children.end(capture)
        # All packets come from the port of the stream, and repair requests go to it.
        say(f"packets: tshark -r {places.out}/capture.pcap -d udp.port=={stream_port},pgm")
    fallen = children.fallen()
    for child in fallen:
        say(f"{child.name} ended badly (exit code {child.process.returncode}):\n{child.last_words()}")
    replayed = watchers.replay() if mode is not None else True
    studied = watchers.study()
    good = drawn and balanced and told and written and all(counted) and not fallen and replayed and studied
    if store is not None:
        seen = "no gap and no duplicate" if kept else "a gap or a duplicate, see above"
        say(f"verdict: {'good' if good and kept else 'bad'}; the subscribers of the store saw {seen}")
    return good and kept


def compare_builds(places: Places, seconds: float, ending: Ending, stack: contextlib.ExitStack) -> bool:
    """Run the demo with two builds; returns whether its verdict is the expected one."""
    ports = [free_port(preferred, what, say, socket.SOCK_DGRAM) for preferred, what in ((7500, "A"), (7600, "B"))]
    endpoints = [f"rmm://{GROUP}:{port}?interface=127.0.0.1" for port in ports]
    children = Children(places.logs, {"HELIOGRAPH_SEGMENT_DIR": str(places.segments), "PYTHONUNBUFFERED": "1"})
    stack.callback(children.end_all)
    if not os.environ.get("DEMO_SECONDS"):
        seconds = BUILDS_SECONDS
    return run_builds(children, places, endpoints, seconds, lambda: ending.asked, say)


def main() -> int:
    """Run the demo; returns the exit code."""
    ending = Ending()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, ending)
    try:
        seconds, mode, is_of_builds = wanted_seconds(), wanted_story(), wanted_builds()
        with prepared() as places, contextlib.ExitStack() as stack:
            if is_of_builds:
                good = compare_builds(places, seconds, ending, stack)
            else:
                good = run(places, seconds, mode, ending, stack)
            stack.close()
        return 0 if good else 1
    except Failure as failure:
        say(f"{failure}")
        return 1
    except KeyboardInterrupt:
        say("ended early")
        return 130


if __name__ == "__main__":
    sys.exit(main())
