"""The faults of the live fire: what is broken, the alerts that it must raise, and how it is repaired.

Most faults have a source and a receiver on an endpoint of their own, NAME-source and NAME, so that they run side by
side. A fault is repaired by a process of the same name that is well; only then does it end.
"""

from __future__ import annotations

import os
import resource
import signal
import struct
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.deploy.live_fire import QUIET, ROOT, Fleet
from tests.deploy.live_firing import Expected, Fault, Step, expect, nothing
from tests.deploy.live_steps import alone, ends, pair, replaced

# ---- processes


def _dies(fleet: Fleet) -> None:
    fleet.kill("alpha", signal.SIGKILL)
    fleet.running.pop("alpha").wait()


SHORT = (
    Fault(
        "SIGKILL of a receiver",
        (expect("NodeDown", 50, node="alpha"),),
        _dies,
        lambda f: f.actor("alpha", "receiver"),
    ),
    Fault(
        "SIGSTOP of a receiver",
        (expect("StatsStale", 50, node="bravo"),),
        lambda f: f.kill("bravo", signal.SIGSTOP),
        lambda f: f.kill("bravo", signal.SIGCONT),
    ),
    Fault(
        "`heliograph ctl freeze`",
        (expect("FlightKept", 30, node="charlie"),),
        lambda f: f.command("ctl", "--instance", "charlie", "freeze"),
    ),
)
EXPORTER = Fault(
    "the exporter ends",
    (expect("NodeDown", 60, node=""),),
    lambda f: f.end("export"),
    lambda f: f.export(),
)

# ---- losses and receivers


def _baby(fleet: Fleet, loss: float) -> None:
    fleet.actor("baby", "receiver", options={"inject_loss": loss}, instance=QUIET)


def _baby_is_well(fleet: Fleet) -> None:
    fleet.end("baby")
    _baby(fleet, 0.0)


LAGGING = {"receive_queue": 65536, "receive_window": 16}
"""A receiver without room: what it does not take stays at the source."""

LOSSES = (
    pair(
        "lossy",
        "a receiver that loses 5 % of its packets",
        [expect("NakRatioHigh", 240, 150, node="lossy-source")],
        feed={"rate": 2000, "size": 200},
        sick={"inject_loss": 0.05},
    ),
    pair(
        "shed",
        "a source that repairs 5 packets a second, a receiver that loses 20 % and requests them for 0.2 s",
        [expect("RepairsShed", 240, 150, node="shed-source"), expect("UnrecoverableLoss", 60, node="shed")],
        source={"nak_limit": 5},
        sick={"inject_loss": 0.2, "nak_deadline": 0.2},  # longer, and the repeated requests are a storm
    ),
    pair(
        "isolated",
        "a source that suspends a receiver that loses 30 % of its packets",
        [
            expect("SlowReceiverAction", 60, 180, node="isolated-source"),
            expect("ReceiverIsolated", 240, 180, node="isolated-source"),
            expect("AcceptedLoss", 60, node="isolated"),
        ],
        source={"slow_mode": "enforce", "slow_action": "suspend", "suspend_time": 30.0},  # again and again
        sick={"inject_loss": 0.3},
        others=3,  # with fewer, loss of one is not told from that of the network
    ),
    Fault(
        "one of four receivers loses 30 % of its packets",
        (expect("CryingBabyReceiver", 120, node="feed"),),
        lambda f: _baby(f, 0.3),
        _baby_is_well,
        lambda f: f.end("baby"),
    ),
    pair(
        "storm",
        "a receiver that loses 90 % of all packets, repairs among them",
        [expect("NakStorm", 60, node="storm-source")],
        feed={"rate": 100},
        sick={"inject_loss": 0.9},
    ),
    pair(
        "cramped",
        "a socket buffer of 4 kB under bursts of 60 kB",
        [expect("SocketDrops", 60, node="cramped")],
        feed={"rate": 60, "bursts": True},
        sick={"socket_buffer": 4096},
    ),
    pair(
        "stuck",
        "an application that takes no messages",
        [
            expect("ReceiverStalled", 120, node="stuck"),
            expect("ReceiveWindowOverflow", 60, node="stuck"),
            expect("LossCertain", 60, node="stuck-source"),
        ],
        source={"send_window": 64},
        sick={"pause": 3600, **LAGGING},
    ),
    pair(
        "ahead",
        "a receiver without room that takes 20 of 60 packets a second",
        [expect("LossAhead", 120, node="ahead-source")],
        source={"send_window": 4096},
        sick={"pause": 3.2, **LAGGING},
    ),
    Fault(
        "a receiver that takes 20 of 400 messages a second",
        (expect("ReceiverFallingBehind", 150, 90, node="slow"),),
        lambda f: f.actor("slow", "receiver", pause=3.0),
        lambda f: f.say("slow", "0"),
        lambda f: f.end("slow"),
    ),
    Fault(
        "a receiver of a topic that nobody sends",
        (expect("ReceiverUnmatched", 110, node="deaf"),),
        lambda f: f.actor("deaf", "receiver", topics=["NOBODY"], instance=QUIET),
        lambda f: f.end("deaf"),
    ),
)

# ---- sources

COLLAPSE_SECONDS = 150.0


def _collapse_sink(fleet: Fleet, loss: float) -> None:
    place = fleet.place("collapse")
    fleet.actor("collapse", "receiver", endpoint=place, topics=["C"], options={"inject_loss": loss}, instance=QUIET)


def _collapse_prepared(fleet: Fleet) -> None:
    options = {"rate_policy": "dynamic", "rate": 2_000_000}
    place = fleet.place("collapse")
    fleet.actor(
        "collapse-source", "feed", endpoint=place, topics=["C"], rate=60, size=1000, options=options, instance=QUIET
    )
    _collapse_sink(fleet, 0.0)


def _limited(rate: int) -> Step:
    def step(fleet: Fleet) -> None:
        options = {"rate": rate, "overflow": "drop_oldest"}
        place = fleet.place("limited")
        fleet.actor(
            "limited-source", "feed", endpoint=place, topics=["L"], rate=60, size=1000, options=options, instance=QUIET
        )

    return step


def _limited_begins(fleet: Fleet) -> None:
    fleet.actor("limited", "receiver", endpoint=fleet.place("limited"), topics=["L"], instance=QUIET)
    _limited(20_000)(fleet)


def _link_prepared(fleet: Fleet) -> None:
    near, far, link = (fleet.port(name) for name in ("near", "far", "link"))
    for name, port in (("near", near), ("far", far)):
        endpoint = f"rmm+unicast://127.0.0.1:{port}"
        fleet.actor(name, "receiver", endpoint=endpoint, topics=["P"], instance=QUIET)
    fleet.actor("link", "link", **{"from": link, "to": far})
    endpoint = f"rmm+unicast://127.0.0.1:{near},127.0.0.1:{link}"
    fleet.actor("path-source", "feed", endpoint=endpoint, topics=["P"], rate=20, size=200, instance=QUIET)


def _silent_prepared(fleet: Fleet) -> None:
    common = {"endpoint": fleet.place("silent"), "topics": ["SILENT"], "instance": QUIET}
    fleet.actor("silent-source", "feed", rate=20, **common)
    fleet.actor("silent", "receiver", **common)


SOURCES = (
    pair(
        "blocker",
        "a source that waits for the window of a receiver that takes 20 of 80 packets a second",
        [
            expect("SenderBlocked", 180, 150, node="blocker-source"),
            expect("SubmitQueueFull", 180, node="blocker-source"),
        ],
        feed={"rate": 80},
        source={"flow_window": "min", "submit_queue": 1 << 19, "overflow": "refuse"},  # it never drains by a fifth
        sick={"pause": 3.2, **LAGGING},
    ),
    Fault(
        "a source that submits three times its rate",
        (expect("RateLimited", 180, 150, node="limited-source"),),
        _limited_begins,
        replaced("limited-source", _limited(1_000_000)),
        ends("limited-source", "limited"),
    ),
    Fault(
        "a receiver that loses 30 % of its packets lowers the rate of its source to a hundredth",
        (expect("FlowControlCollapse", 180, 180, node="collapse-source"),),
        replaced("collapse", lambda f: _collapse_sink(f, 0.3)),
        replaced("collapse", lambda f: _collapse_sink(f, 0.0)),
        ends("collapse", "collapse-source"),
        _collapse_prepared,
        settle=COLLAPSE_SECONDS,
    ),
    Fault(
        "SIGSTOP of the source",
        (expect("PublisherSilent", 60, source="silent-source"),),
        lambda f: f.kill("silent-source", signal.SIGSTOP),
        lambda f: f.kill("silent-source", signal.SIGCONT),
        ends("silent-source", "silent"),
        _silent_prepared,
    ),
    Fault(
        "the path to one of two receivers is cut",
        (expect("HeartbeatLate", 40, node="far"), expect("PeerLost", 60, node="far")),
        lambda f: f.kill("link", signal.SIGSTOP),
        lambda f: f.kill("link", signal.SIGCONT),
        ends("path-source", "near", "far", "link"),
        _link_prepared,
    ),
)

# ---- host, memory, clocks


def _garbage(fleet: Fleet) -> None:
    """Send packets that are not valid to the group, 50 a second, until healed."""
    group, _, port = fleet.endpoint.removeprefix("rmm://").partition("?")[0].partition(":")
    script = (
        "import socket,time\n"
        "s=socket.socket(socket.AF_INET,socket.SOCK_DGRAM)\n"
        "s.setsockopt(socket.IPPROTO_IP,socket.IP_MULTICAST_IF,socket.inet_aton('127.0.0.1'))\n"
        f"while True: s.sendto(b'garbage',('{group}',{port})); time.sleep(0.02)\n"
    )
    fleet.spawn("garbage", [sys.executable, "-c", script])


def _restless(times: int) -> Step:
    return alone("restless", "restless", times=times, instance={**QUIET, "event_rate": 0})


STEP_NS = 5_000_000_000
APART_NS = 500_000_000
"""Longer than latencies, shorter than what makes a heartbeat look old to the exporter, which has the other clock."""


def _clock(fleet: Fleet, name: str, offset_ns: int) -> Mapping[str, str]:
    """Write how far the wall clock of a process is off; return the environment that makes it so."""
    library = fleet.folder / "step_clock.so"
    if not library.exists():
        words = ["cc", "-shared", "-fPIC", "-O1", "-o", str(library), str(ROOT / "tests/faults/step_clock.c")]
        subprocess.run(words, check=True, capture_output=True)
    file = fleet.folder / f"{name}.offset"
    with file.open("r+b" if file.exists() else "wb", buffering=0) as offset:
        offset.write(struct.pack("<q", offset_ns))
    return {"LD_PRELOAD": str(library), "HELIOGRAPH_STEP_FILE": str(file)}


def _stepped_prepared(fleet: Fleet) -> None:
    alone("stepped", "feed", rate=20, instance=QUIET, environment=_clock(fleet, "stepped", 0))(fleet)


def _steps(fleet: Fleet) -> None:
    _clock(fleet, "stepped", STEP_NS)


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True)


def _two_hosts(fleet: Fleet) -> None:
    """A source and a receiver that have addresses of their own, so that they compare their clocks."""
    number = fleet.port("clocks")
    near, far = f"fire-near-{number}", f"fire-far-{number}"
    _ip("netns", "add", near)
    _ip("netns", "add", far)
    _ip("link", "add", "near", "netns", near, "type", "veth", "peer", "name", "far", "netns", far)
    for name, device, address in ((near, "near", "10.9.0.1/30"), (far, "far", "10.9.0.2/30")):
        _ip("-n", name, "address", "add", address, "dev", device)
        _ip("-n", name, "link", "set", device, "up")
    common = {"endpoint": f"rmm+unicast://10.9.0.2:{number}", "topics": ["CLOCK"], "instance": QUIET}
    fleet.actor("clock-source", "feed", rate=20, prefix=["ip", "netns", "exec", near], **common)
    _clock_sink(APART_NS)(fleet)


def _clock_sink(offset_ns: int) -> Step:
    def step(fleet: Fleet) -> None:
        number = fleet.port("clocks")
        fleet.actor(
            "clock",
            "receiver",
            endpoint=f"rmm+unicast://10.9.0.2:{number}",
            topics=["CLOCK"],
            instance=QUIET,
            prefix=["ip", "netns", "exec", f"fire-far-{number}"],
            environment=_clock(fleet, "clock", offset_ns),
        )

    return step


def _one_host(fleet: Fleet) -> None:
    ends("clock-source", "clock")(fleet)
    for side in ("near", "far"):
        _ip("netns", "delete", f"fire-{side}-{fleet.port('clocks')}")


HOST = (
    Fault(
        "50 invalid packets a second to the group",
        (expect("ForeignOrInvalidPackets", 130, node="charlie"),),
        _garbage,
        lambda f: f.end("garbage"),
    ),
    pair(
        "callback",
        "a callback that takes 70 ms",
        [expect("DutyCycleOverrun", 60, node="callback", unless="HostHiccupHigh")],
        feed={"rate": 60},
        sick={"role": "callback", "pause": 0.07},
    ),
    Fault(
        "a queue that takes 16 of 18 MiB of memory_limit",
        (expect("MemoryHigh", 180, node="full"),),
        alone("full", "receiver", options={"receive_queue": 16 << 20}, instance={**QUIET, "memory_limit": 18 << 20}),
        replaced("full", alone("full", "receiver", instance={**QUIET, "memory_limit": 64 << 20})),
        ends("full"),
    ),
    Fault(
        "a program that asks for a queue above its memory_limit every second",
        (expect("MemoryRefused", 60, node="refused"),),
        alone("refused", "greedy", bytes=128 << 20, instance={**QUIET, "memory_limit": 32 << 20}),
        replaced("refused", alone("refused", "greedy", bytes=1 << 20, instance={**QUIET, "memory_limit": 32 << 20})),
        ends("refused"),
    ),
    Fault(
        "a program with 3,000 events a second, without event_rate",
        (expect("EventsMissed", 60),),
        _restless(3000),
        replaced("restless", _restless(0)),
        ends("restless"),
    ),
    Fault(
        "the wall clock of a process is set 5 s ahead",
        (expect("ClockStepped", 60, node="stepped"),),
        _steps,
        nothing,
        ends("stepped"),
        _stepped_prepared,
    ),
)
CLOCKS = Fault(
    "the wall clock of a host is half a second ahead of that of the source",
    (expect("ClockUntrustworthy", 480, 150, node="clock"),),
    _two_hosts,
    replaced("clock", _clock_sink(0)),
    _one_host,
)

# ---- message stores

TMPFS_BYTES = 128 << 20


def store(fleet: Fleet, name: str, *options: str, source: Mapping[str, Any], **more: Any) -> None:
    """A store NAME with some options, and NAME-source that sends to it."""
    _serve(fleet, name, *options, **more)
    common = {"endpoint": fleet.place(name), "topics": [name.upper()], "instance": QUIET}
    fleet.actor(f"{name}-source", "feed", rate=50, size=1000, options=dict(source), **common)


def _serve(fleet: Fleet, name: str, *options: str, topic: str = "", words: Sequence[str] = (), **more: Any) -> None:
    (folder := fleet.folder / name).mkdir(exist_ok=True)
    given = [word for option in (f"name={name}", "idle=block", *options) for word in ("-o", option)]
    listen = f"--listen=127.0.0.1:{fleet.port(name)}"
    what = [str(folder), fleet.place(name), topic or name.upper()]
    fleet.heliograph(name, "store", "serve", *what, *given, *words, listen, **more)


def _store_cannot_write(possible: bool) -> Step:
    def step(fleet: Fleet) -> None:
        limit = resource.RLIM_INFINITY if possible else 1 << 16
        resource.prlimit(fleet.running["kept"].pid, resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))

    return step


def _service_dies(fleet: Fleet) -> None:
    pid = fleet.running["served"].pid
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    assert children, "the store has a service"
    for child in children:
        os.kill(int(child), signal.SIGKILL)


def _store_rests(fleet: Fleet) -> None:
    fleet.kill("gap", signal.SIGSTOP)
    threading.Timer(5.0, lambda: fleet.kill("gap", signal.SIGCONT)).start()


def _more_topics(fleet: Fleet) -> None:
    common = {"endpoint": fleet.place("crowded"), "topics": ["CROWDED-2"], "instance": QUIET}
    fleet.actor("crowded-more", "feed", rate=50, size=1000, **common)


def _small_disk(fleet: Fleet) -> None:
    """A store in a file system of its own, in a mount namespace that ends with it."""
    mount = f'mount -t tmpfs -o size={TMPFS_BYTES} tmpfs {fleet.folder / "disk"} && exec "$@"'
    words = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", mount, "sh"]
    store(fleet, "disk", source={}, prefix=words)


def _disk_is_full(fleet: Fleet) -> None:
    inside = Path(f"/proc/{fleet.running['disk'].pid}/root{fleet.folder / 'disk'}")
    with (inside / "other").open("wb") as file:
        disk = os.fstatvfs(file.fileno())
        os.posix_fallocate(file.fileno(), 0, disk.f_frsize * (disk.f_bavail - disk.f_blocks * 3 // 100))


def _disk_has_room(fleet: Fleet) -> None:
    Path(f"/proc/{fleet.running['disk'].pid}/root{fleet.folder / 'disk'}/other").unlink()


def _small_store(name: str) -> Step:
    """A store whose socket holds little, and whose source keeps little."""
    return lambda f: store(f, name, "socket_buffer=8192", source={"send_window": 64})


def _of_store(name: str, about: str, alert: Expected, inject: Step, heal: Step = nothing) -> Fault:
    start: Step = _small_disk if name == "disk" else _small_store(name)
    return Fault(about, (alert,), inject, heal, ends(f"{name}-source", name), start)


BY_ONE = {"acks": 1, "acks_from": "stores"}
"""Messages are stable when one store has them."""

STORES = (
    Fault(
        "SIGSTOP of the only store of a source that waits for its confirmations",
        (expect("QuorumLost", 60, node="quorum-source"), expect("UnstableAtLimit", 180, 150, node="quorum-source")),
        lambda f: f.kill("quorum", signal.SIGSTOP),
        lambda f: f.kill("quorum", signal.SIGCONT),
        ends("quorum-source", "quorum"),
        lambda f: store(f, "quorum", source={**BY_ONE, "unstable_messages": 100}),
    ),
    Fault(
        "a store that writes every half second",
        (expect("StabilitySlow", 180, 180, node="tardy-source"),),
        lambda f: store(f, "tardy", source=BY_ONE, words=["--batch-time=0.5s"]),
        replaced("tardy", lambda f: _serve(f, "tardy")),
        ends("tardy-source", "tardy"),
    ),
    _of_store(
        "kept",
        "files of the store may not exceed 64 kB",
        expect("StoreBlocked", 60, node="kept"),
        _store_cannot_write(False),
        _store_cannot_write(True),
    ),
    _of_store("served", "SIGKILL of the service", expect("StoreServiceRestarted", 60, node="served"), _service_dies),
    Fault(
        "a second topic of the pattern of a store with --topics-max=1",
        (expect("StoreTopicsRefused", 60, node="crowded"),),
        _more_topics,
        lambda f: f.end("crowded-more"),
        ends("crowded-source", "crowded"),
        lambda f: store(f, "crowded", source={}, topic="CROWDED*", words=["--topics-max=1"]),
    ),
    _of_store(
        "gap",
        "SIGSTOP of the store for 5 s, 64 packets of history",
        expect("StoreGap", 60, node="gap"),
        _store_rests,
    ),
    _of_store(
        "disk",
        "another file takes all of the disk but 3 %",
        expect("StoreDiskNearFull", 150, node="disk"),
        _disk_is_full,
        _disk_has_room,
    ),
)

# ---- monitoring


def _collect(fleet: Fleet, name: str, query: str = "", *more: str) -> None:
    fleet.exporters.setdefault(name, fleet.port(name))
    fleet.export(name, f"--collect={fleet.place('reports')}{query}", *more)


def _host(name: str, exporter: str) -> Step:
    """A host with one source and receiver, which publishes, and an exporter of all such hosts."""

    def step(fleet: Fleet) -> None:
        common = {"endpoint": fleet.place(name), "topics": [name.upper()], "instance": QUIET, "host": name}
        fleet.actor(f"{name}-source", "feed", rate=100, bursts=True, options={"rate": 200_000}, **common)
        fleet.actor(name, "receiver", **common)
        fleet.heliograph(f"{name}-publisher", "publish", f"--to={fleet.place('reports')}", f"--host={name}", host=name)
        _collect(fleet, exporter)

    return step


def _worse(name: str, query: str = "", *more: str) -> Step:
    """A step that starts an exporter again with other words."""

    def step(fleet: Fleet) -> None:
        fleet.end(name)
        _collect(fleet, name, query, *more)

    return step


MONITORING = (
    Fault(
        "SIGSTOP of the publisher of a host",
        (expect("CollectorHostSilent", 90, host="mute"),),
        lambda f: f.kill("mute-publisher", signal.SIGSTOP),
        lambda f: f.kill("mute-publisher", signal.SIGCONT),
        ends("mute-publisher", "mute-source", "mute"),
        scraped=_host("mute", "collector"),
    ),
    Fault(
        "a collector that loses 30 % of its packets for good",
        (expect("SnapshotsLost", 120, host="distant"),),
        _worse("poor", "&inject_loss=0.3&nak=off"),
        _worse("poor"),
        ends("distant-publisher", "distant-source", "distant"),
        scraped=_host("distant", "poor"),
    ),
    Fault(
        "an exporter that may show 50 series and feeds a module that takes 5 s a snapshot",
        (expect("SeriesCapped", 150), expect("ModuleDropping", 120)),
        _worse("full-exporter", "", "--max-series=50", "--module=tests.deploy.slow_module:Slow"),
        _worse("full-exporter"),
        ends("third-publisher", "third-source", "third"),
        scraped=_host("third", "full-exporter"),
    ),
)

GROUPS: Mapping[str, tuple[Fault, ...]] = {
    "processes": SHORT,
    "losses": LOSSES,
    "sources": SOURCES,
    "host": HOST,
    "stores": STORES,
    "monitoring": MONITORING,
    "clocks": (CLOCKS,),
    "exporter": (EXPORTER,),
}
RUNS = (("processes", "losses", "sources", "clocks"), ("host", "stores", "monitoring"), ("exporter",))
"""The groups of a run are side by side."""
