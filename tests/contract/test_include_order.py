"""The C core's floors: each folder of ``engine/core`` includes only itself and the folders before it.

And what belongs to one room stays there: sockets in ``io``, threads and clocks in ``io`` and ``runtime``, Python in the
binding, byte order in ``wire``. Monitoring modules (``engine/modules``) are programs of their own, outside the core.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ENGINE = Path(__file__).resolve().parents[2] / "engine"
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
    "runtime",
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
