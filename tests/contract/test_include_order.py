"""The rooms of the C core: each folder of ``engine/core`` includes only itself and the folders before it.

What belongs to one room stays there: sockets in ``io``, threads and clocks in ``io`` and ``runtime``, Python in the
binding, byte order in ``wire``. A header that is the inside of one thing is included by that thing's files only.
Monitoring modules (``engine/modules``) are programs of their own, outside the core.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from fnmatch import fnmatch
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ENGINE = ROOT / "engine"
CORE = ENGINE / "core"
ORDER = (
    "base",
    "stats",
    "wire",
    "window",
    "receivers",
    "repair",
    "policy",
    "send",
    "receive",
    "io",
    "queue",
    "options",
    "flight",
    "store",
    "runtime",
    "keep",
)
ALWAYS = ("generated",)

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.MULTILINE)


def c_sources(folder: Path) -> list[Path]:
    return sorted(path for pattern in ("*.c", "*.h", "*.def") for path in folder.rglob(pattern))


def includes(path: Path) -> Iterator[tuple[int, str]]:
    text = path.read_text(encoding="utf-8")
    for match in INCLUDE.finditer(text):
        yield text.count("\n", 0, match.start()) + 1, match[2]


def room_of(include: str, path: Path) -> str | None:
    """The room of `engine/core` an include leads to; None for system headers and the public header."""
    for base in (path.parent, CORE, ENGINE):
        target = (base / include).resolve()
        if target.exists() and target.is_relative_to(CORE):
            return target.relative_to(CORE).parts[0]
    return None


def test_every_room_of_the_core_has_a_place_in_the_order() -> None:
    rooms = {path.relative_to(CORE).parts[0] for path in c_sources(CORE) if path.parent != CORE}
    assert rooms <= {*ORDER, *ALWAYS}


@pytest.mark.parametrize("room", ORDER)
def test_a_room_includes_only_rooms_before_it(room: str) -> None:
    below = {*ORDER[: ORDER.index(room) + 1], *ALWAYS}
    wrong = [
        f"{path.relative_to(ENGINE)}:{line} includes {include}"
        for path in c_sources(CORE / room)
        for line, include in includes(path)
        if (target := room_of(include, path)) is not None and target not in below
    ]
    assert not wrong


def test_the_readme_lists_the_rooms_in_order() -> None:
    table = re.findall(r"^\| `(\w+)` \| .+ \|$", (ENGINE / "README.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert tuple(table) == ORDER


# The inside of one thing that has several files, and who may include it (patterns of fnmatch). Everybody else includes
# the thing's other header.
INSIDES = {
    "engine/binding/lab_cost.h": ("engine/binding/lab_*.c",),
    "engine/core/base/endian.h": (
        "engine/core/wire/*",
        "engine/core/io/*",
        "engine/core/store/*",
        "tests/engine/test_udp_raw.c",
        "tests/sim/sim_network_element.c",
    ),
    "engine/core/io/shm_channel.h": ("engine/core/io/shm*.c",),
    "engine/core/io/tcp.h": ("engine/core/io/tcp*.c",),
    "engine/core/policy/slow_receiver_parts.h": ("engine/core/policy/slow_receiver*.c",),
    "engine/core/policy/decision_fields.h": ("engine/core/policy/decision_*.c", "tests/fuzz/fuzz_decisions.c"),
    "engine/core/keep/keeper_life.h": ("engine/core/keep/keeper*.c",),
    "engine/core/keep/keeper_parts.h": ("engine/core/keep/*", "tests/engine/test_keeper.c"),
    "engine/core/queue/kept_parts.h": ("engine/core/queue/kept_*.c",),
    "engine/core/receive/control.h": ("engine/core/receive/*.c",),
    "engine/core/receive/delivery_topic.h": (
        "engine/core/receive/delivery*.c",
        "engine/core/receive/fast_path.c",
        "tests/sim/sim_fast_path.c",
    ),
    "engine/core/receive/feedback.h": ("engine/core/receive/*.c",),
    "engine/core/receive/passing.h": ("engine/core/receive/*.c",),
    "engine/core/receivers/entries.h": ("engine/core/receivers/*.c",),
    "engine/core/receivers/reports.h": ("engine/core/receivers/*.c",),
    "engine/core/runtime/control_verbs.h": ("engine/core/runtime/control*.c",),
    "engine/core/receive/endpoint_parts.h": (
        "engine/core/receive/endpoint.c",
        "engine/core/receive/fast_path.c",
        "engine/core/receive/tracking.c",
        "tests/sim/sim_fast_path.c",
    ),
    "engine/core/runtime/transmitter_parts.h": ("engine/core/runtime/transmitter*.c",),
    "engine/core/runtime/tx_lane_parts.h": ("engine/core/runtime/tx_lane*.c",),
    "engine/core/send/data_packet.h": (
        "engine/core/send/fast_path.c",
        "engine/core/send/packets.c",
        "engine/core/send/stream.c",
    ),
    "engine/core/send/parts.h": (
        "engine/core/send/*.c",
        "engine/core/send/data_packet.h",
        "tests/engine/fleet.h",
        "tests/engine/test_clock_offset.c",
        "tests/engine/test_slow.c",
        "tests/sim/sim_*.c",
    ),
    "engine/core/stats/segment.h": (
        "engine/core/stats/*",
        "engine/lab/trial/samples.c",
        "tests/engine/*",
        "tests/sim/sim_*.c",
    ),
    "engine/core/wire/pgm_options.h": ("engine/core/wire/pgm*.c",),
    "engine/lab/trial/parts.h": ("engine/lab/trial/*.c",),
}


@cache
def includers() -> dict[str, set[str]]:
    """Every header of the repository, by its path, with the files that include it."""
    found: dict[str, set[str]] = {}
    for path in [*c_sources(ENGINE), *c_sources(ROOT / "tests")]:
        for _, include in includes(path):
            for base in (path.parent, CORE, ENGINE, ENGINE / "lab", ENGINE / "binding"):
                target = (base / include).resolve()
                if target.is_file():
                    header = target.relative_to(ROOT).as_posix()
                    found.setdefault(header, set()).add(path.relative_to(ROOT).as_posix())
                    break
    return found


def test_the_inside_of_a_thing_is_included_by_its_own_files_only() -> None:
    found = includers()
    wrong = [
        f"{path} includes {header}"
        for header, patterns in INSIDES.items()
        for path in found.get(header, ())
        if not any(fnmatch(path, pattern) for pattern in patterns)
    ]
    assert not wrong


def test_the_list_of_insides_is_of_today() -> None:
    found = includers()
    unused = [
        f"{pattern} includes no {header}"
        for header, patterns in INSIDES.items()
        for pattern in patterns
        if not any(fnmatch(path, pattern) for path in found.get(header, ()))
    ]
    unlisted = [header for header in found if header.endswith("parts.h") and header not in INSIDES]
    assert not unused
    assert not unlisted


# Whether a message may go is asked once (docs/adr/0032): who else may ask the single questions.
QUESTIONS = {
    "helio_tx_stream_credit": ("core/send/admit.c", "core/send/credit.c", "core/runtime/tx_lane_admit.c"),
    "helio_tx_stream_pressing": ("core/send/stream.c", "core/runtime/tx_lane_admit.c"),
    "helio_tx_acks_has_room": ("core/send/admit.c", "core/send/acks.c"),
    "helio_tx_pace_admit": ("core/send/admit.c", "core/send/pace.c"),
}


@pytest.mark.parametrize("question", QUESTIONS)
def test_whether_a_message_may_go_is_asked_at_the_gate(question: str) -> None:
    asking = {
        path.relative_to(ENGINE).as_posix()
        for path in CORE.rglob("*.c")
        if re.search(rf"\b{question}\(", path.read_text(encoding="utf-8"))
    }
    assert asking == set(QUESTIONS[question])


SYSTEM_HEADERS = {
    "Python.h": ("binding/",),
    "sys/socket.h": ("core/io/", "modules/"),
    "netinet/in.h": ("core/io/",),
    "netinet/ip.h": ("core/io/",),
    "netinet/udp.h": ("core/io/",),
    "arpa/inet.h": ("core/io/",),
    "sys/epoll.h": ("core/io/", "core/runtime/"),
    "pthread.h": ("core/io/", "core/queue/", "core/flight/", "core/runtime/"),
    "threads.h": ("core/io/", "core/queue/", "core/flight/", "core/runtime/"),
    "endian.h": ("core/wire/",),
}


@pytest.mark.parametrize("header", SYSTEM_HEADERS)
def test_a_system_header_is_included_only_where_it_belongs(header: str) -> None:
    wrong = [
        f"{path.relative_to(ENGINE)}:{line}"
        for path in c_sources(ENGINE)
        for line, include in includes(path)
        if include == header and not path.relative_to(ENGINE).as_posix().startswith(SYSTEM_HEADERS[header])
    ]
    assert not wrong


CALLS = {
    r"\b(clock_gettime|gettimeofday|time\(NULL\)|clock_nanosleep|nanosleep|usleep)\b": (
        "core/io/",
        "core/flight/",
        "core/queue/",
        "core/runtime/",
        "binding/",
        "modules/",
    ),
    r"\bpthread_\w+\s*\(": ("core/io/", "core/queue/", "core/flight/", "core/runtime/"),
    r"\b(socket|recvmmsg|sendmmsg|recvmsg|sendmsg|recvfrom|sendto|setsockopt)\s*\(": ("core/io/", "modules/"),
    r"\b(htonl|htons|ntohl|ntohs|htobe\d+|be\d+toh)\s*\(": ("core/wire/", "core/io/"),
}


def without_comments(text: str) -> str:
    blank = lambda match: re.sub(r"[^\n]", " ", match[0])  # noqa: E731 - one use, keeps the line numbers
    return re.sub(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"', blank, text, flags=re.DOTALL)


@pytest.mark.parametrize("call", CALLS)
def test_sockets_threads_clocks_and_byte_order_stay_in_their_rooms(call: str) -> None:
    wrong = []
    for path in c_sources(ENGINE):
        if path.relative_to(ENGINE).as_posix().startswith(CALLS[call]):
            continue
        text = without_comments(path.read_text(encoding="utf-8"))
        wrong += [
            f"{path.relative_to(ENGINE)}:{text.count(chr(10), 0, match.start()) + 1} {match[0]}"
            for match in re.finditer(call, text)
        ]
    assert not wrong


def test_the_core_has_files_to_check() -> None:
    assert {"wire", "window", "io", "runtime"} <= {path.relative_to(CORE).parts[0] for path in c_sources(CORE)}
