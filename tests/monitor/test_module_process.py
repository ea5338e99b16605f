"""Modules in processes of their own: what crashes, hangs, exits or lies costs its own data only, and is counted."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from heliograph.engine import catalogue
from heliograph.monitor.errors import UserError
from heliograph.monitor.model import Event, Snapshot
from heliograph.monitor.modules import Direction, Lane, Topic, TopicChange, open_module
from heliograph.monitor.modules.finding import PATH_VARIABLE, native, natives
from heliograph.monitor.modules.lane import Ledger
from heliograph.monitor.modules.process import ProcessSink

TOP = Path(__file__).resolve().parents[2]
EXAMPLE = TOP / "deploy/examples/jsonl.c"
PATIENCE = 60.0
"""Seconds; none waits as long when all is well, but a busy machine may take long to start a process."""

MISCHIEF = r"""
#include <heliograph/module.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static FILE *file;
static const helio_module_host *host;
static char deed[16];
static unsigned long long at; /* the snapshot to do it at; 0: every one */

static int mischief_open(const char *options, const helio_module_host *given, void **state) {
    char path[512] = "";
    (void)state;
    host = given;
    if (sscanf(options, "%511[^,],%15[a-z]@%llu", path, deed, &at) < 1 || strcmp(path, "-") == 0) {
        host->error(host->context, "\"-\" is no file of mine");
        return 1;
    }
    file = fopen(path, "a");
    setvbuf(file, NULL, _IOLBF, 0);
    fputs("open\n", file);
    return 0;
}

static int mischief_snapshot(void *state, const helio_module_snapshot *snapshot) {
    (void)state;
    fprintf(file, "snapshot %llu dropped %llu\n", (unsigned long long)snapshot->number,
            (unsigned long long)snapshot->dropped);
    if (at != 0 && snapshot->number != at)
        return 0;
    if (strcmp(deed, "crash") == 0)
        raise(SIGSEGV);
    if (strcmp(deed, "exit") == 0)
        exit(3);
    if (strcmp(deed, "hang") == 0)
        for (;;)
            pause();
    if (strcmp(deed, "stray") == 0) /* closes what is not its own */
        for (int i = 3; i < 64; i++)
            close(i);
    if (strcmp(deed, "garble") == 0) { /* writes to what is not its own, and gets no further */
        for (int i = 3; i < 64; i++)
            if (i != fileno(file))
                dprintf(i, "{\"answer\": 7}\n");
        for (;;)
            pause();
    }
    if (strcmp(deed, "mute") == 0)
        return -7;
    if (strcmp(deed, "fail") == 0) {
        host->error(host->context, "this one is not to my taste");
        return 1;
    }
    if (strcmp(deed, "talk") == 0) {
        for (int i = 0; i < 25; i++)
            host->log(host->context, HELIO_MODULE_WARNING, "hear me");
        host->lost(host->context, 5);
    }
    return 0;
}

static int mischief_event(void *state, const helio_module_event *event) {
    (void)state;
    return fprintf(file, "event %s\n", event->text.text) < 0;
}

static int mischief_created(void *state, const helio_module_topic *topic) {
    (void)state;
    return fprintf(file, "created %s\n", topic->topic.text) < 0;
}

static int mischief_destroyed(void *state, const helio_module_topic *topic) {
    (void)state;
    return fprintf(file, "destroyed %s\n", topic->topic.text) < 0;
}

static void mischief_close(void *state) {
    (void)state;
    fputs("close\n", file);
    fclose(file);
}

const helio_module *helio_module_entry(uint32_t abi) {
    static helio_module module = {sizeof module, HELIO_MODULE_ABI, 0, "mischief", "1",
        mischief_open, NULL, mischief_snapshot, mischief_event, mischief_created, mischief_destroyed, mischief_close};
    (void)abi;
#ifdef WRONG_ABI
    module.abi = 77;
#endif
#ifdef TOO_SMALL
    module.size = 24;
#endif
#ifdef UNWILLING
    return NULL;
#endif
#ifdef NAMELESS
    module.name = NULL;
#endif
    return &module;
}
"""

Compile = Callable[..., Path]


@pytest.fixture(scope="session")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Compile:
    """Compiles a module, warnings being errors; each once."""
    if shutil.which("cc") is None:
        pytest.skip("no cc here")
    folder = tmp_path_factory.mktemp("modules")
    made: dict[tuple[str, ...], Path] = {}

    def make(*flags: str, text: str = MISCHIEF, name: str = "mischief") -> Path:
        key = (text, name, *flags)
        if key not in made:
            source, target = folder / f"{name}{len(made)}.c", folder / f"{name}{len(made)}.so"
            source.write_text(text)
            command = ["cc", "-std=c11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC"]
            subprocess.run([*command, f"-I{TOP}/engine/include", *flags, source, "-o", target], check=True)
            made[key] = target
        return made[key]

    return make


@pytest.fixture
def mischief(compiled: Compile) -> Path:
    return compiled()


def _snapshot(number: int, *events: str) -> Snapshot:
    return Snapshot(number, (), tuple(Event("alpha", 1, 0, number, "packets_lost", "error", {}, {}, t) for t in events))


def _offer(lane: Lane, number: int, *events: str) -> None:
    snapshot = _snapshot(number, *events)
    lane.offer(snapshot, snapshot.events, number)


def _opened(path: Path, options: str, told: list[str], answer: float = PATIENCE, restarts: int = 10) -> Lane:
    sink = ProcessSink({"native": str(path), "options": options}, answer=answer, pause=0.01, restarts=restarts)
    sink.open()
    return Lane("mischief", sink, tell=told.append)


def _until(true: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while not true():
        assert time.monotonic() < end, "it never came to be"
        time.sleep(0.005)


def test_a_module_in_c_is_given_everything_in_order_and_closed(mischief: Path, tmp_path: Path) -> None:
    told: list[str] = []
    lane = _opened(mischief, f"{tmp_path}/out", told)
    topic = Topic(1, "alpha", 1, Direction.RECEIVE, "PRICES", "s", "e")
    snapshot = _snapshot(1, "a")
    moments = (TopicChange(topic, created=True), *snapshot.events, TopicChange(topic, created=False))
    lane.offer(snapshot, moments, 1)
    _offer(lane, 2)
    assert lane.close(PATIENCE)
    assert (tmp_path / "out").read_text().splitlines() == [
        "open",
        "snapshot 1 dropped 0",
        "created PRICES",
        "event a",
        "destroyed PRICES",
        "snapshot 2 dropped 0",
        "close",
    ]
    stats = lane.stats
    assert (stats.offered, stats.snapshots, stats.events, stats.topics) == (2, 2, 1, 2)
    assert (stats.errors, stats.crashes, stats.dropped, told) == (0, 0, 0, [])


@pytest.mark.parametrize(
    ("deed", "said"),
    [
        ("crash", "its process was killed by SIGSEGV"),
        ("exit", "its process ended with exit code 3"),
        ("hang", "its process did not answer in time and was killed"),
        ("stray", "its process ended with exit code 1"),
        ("garble", "its process sent an invalid answer and was killed"),
    ],
)
def test_what_ends_a_module_costs_the_portion_it_had_and_it_is_started_again(
    mischief: Path, tmp_path: Path, deed: str, said: str
) -> None:
    told: list[str] = []
    lane = _opened(mischief, f"{tmp_path}/out,{deed}@2", told, answer=1.5 if deed == "hang" else PATIENCE)
    topic = Topic(1, "alpha", 1, Direction.RECEIVE, "PRICES", "s", "e")
    lane.offer(_snapshot(1), [TopicChange(topic, created=True)], 1)
    _offer(lane, 2, "lost with it")
    _until(lambda: lane.stats.crashes == 1)
    _offer(lane, 3, "after")
    _until(lambda: lane.stats.snapshots == 2)
    assert lane.close(PATIENCE)
    lines = (tmp_path / "out").read_text().splitlines()
    assert lines == [
        "open", "snapshot 1 dropped 0", "created PRICES", "snapshot 2 dropped 0",
        "open", "created PRICES", "snapshot 3 dropped 1", "event after", "close",
    ]  # fmt: skip
    stats = lane.stats
    assert (stats.offered, stats.snapshots, stats.dropped) == (3, 2, 1)
    assert (stats.events, stats.events_dropped, stats.topics, stats.topics_dropped) == (1, 1, 1, 0)
    assert (stats.crashes, stats.restarts, stats.errors, stats.error, stats.last_error) == (1, 1, 1, "", said)
    assert told == [f"module mischief: {said}", "module mischief works again"]


def test_a_module_that_always_crashes_is_given_up_and_all_of_it_counted(mischief: Path, tmp_path: Path) -> None:
    told: list[str] = []
    lane = _opened(mischief, f"{tmp_path}/out,crash", told, restarts=2)
    for number in range(1, 7):
        _offer(lane, number, "x")
    _until(lambda: lane.stats.dropped == 6)
    assert lane.close(PATIENCE)
    stats = lane.stats
    assert (stats.crashes, stats.restarts) == (3, 2)
    assert (stats.offered, stats.snapshots, stats.dropped, stats.events, stats.events_dropped) == (6, 0, 6, 0, 6)
    assert told == [
        "module mischief: its process was killed by SIGSEGV",
        "module mischief is stopped: it was restarted 2 times within an hour",
    ]


@pytest.mark.parametrize(
    ("deed", "said"), [("fail", "this one is not to my taste"), ("mute", "it returned -7 and did not say why")]
)
def test_a_module_that_fails_is_told_in_its_own_words_and_goes_on(
    mischief: Path, tmp_path: Path, deed: str, said: str
) -> None:
    told: list[str] = []
    lane = _opened(mischief, f"{tmp_path}/out,{deed}@1", told)
    _offer(lane, 1, "a")
    _offer(lane, 2)
    assert lane.close(PATIENCE)
    assert "event a" in (tmp_path / "out").read_text()
    assert (lane.stats.errors, lane.stats.snapshots, lane.stats.crashes, lane.stats.last_error) == (1, 2, 0, said)
    assert told == [f"module mischief failed in snapshot: {said}", "module mischief works again"]


def test_a_module_may_say_something_and_count_what_it_gave_up(mischief: Path, tmp_path: Path) -> None:
    told: list[str] = []
    lane = _opened(mischief, f"{tmp_path}/out,talk@1", told)
    _offer(lane, 1)
    assert lane.close(PATIENCE)
    assert lane.stats.lost == 5
    assert told == [
        *["module mischief says: hear me"] * 20,
        "module mischief says 5 messages more than the limit",
    ]


def test_a_module_that_hangs_holds_up_neither_the_end_nor_anyone_else(mischief: Path, tmp_path: Path) -> None:
    hanging = _opened(mischief, f"{tmp_path}/one,hang", [], answer=3600.0)
    quick = _opened(mischief, f"{tmp_path}/two", [])
    for number in range(1, 30):
        for lane in (hanging, quick):
            _offer(lane, number)
    assert quick.close(PATIENCE)
    assert quick.stats.snapshots + quick.stats.dropped == 29
    assert hanging.close(2.0)
    assert (hanging.stats.snapshots, hanging.stats.dropped) == (0, 29)


def test_a_module_that_is_not_wanted_any_more_leaves_no_process(mischief: Path, tmp_path: Path) -> None:
    sink = ProcessSink({"native": str(mischief), "options": f"{tmp_path}/out"})
    sink.open()
    pid = sink.pid
    lane = Lane("mischief", sink, tell=lambda text: None)
    assert lane.close(PATIENCE)
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_a_child_without_its_monitor_closes_the_module_and_leaves(mischief: Path, tmp_path: Path) -> None:
    sink = ProcessSink({"native": str(mischief), "options": f"{tmp_path}/out"})
    sink.open()
    assert sink._child is not None
    for number in (signal.SIGINT, signal.SIGTERM):  # reach the group; the monitor decides
        os.kill(sink.pid, number)
    sink._child._line.close()  # as when the monitor was killed
    sink._child._process.wait(PATIENCE)
    assert (tmp_path / "out").read_text().splitlines() == ["open", "close"]


@pytest.mark.parametrize(
    ("flag", "said"),
    [
        ("-DWRONG_ABI", "is of version 77 of the module interface; this Heliograph has 1"),
        ("-DUNWILLING", "does not work with version 1 of the module interface"),
        ("-DTOO_SMALL", "24 bytes"),
        ("-DNAMELESS", "has no name, version or function open"),
        ("-Dhelio_module_entry=something_else", "does not export helio_module_entry"),
    ],
)
def test_what_is_no_module_for_this_host_is_refused_by_name(compiled: Compile, flag: str, said: str) -> None:
    path = compiled(flag)
    with pytest.raises(UserError, match=said) as refused:
        open_module(f"{path}=x")
    assert str(path) in str(refused.value)


def test_what_is_no_library_or_no_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "text.so").write_text("This is no ELF file.")
    with pytest.raises(UserError, match=r"text\.so"):
        open_module(f"{tmp_path}/text.so")
    with pytest.raises(UserError, match="file not found"):
        open_module(f"{tmp_path}/nothing.so")


def test_options_a_module_refuses_are_the_users_error_in_its_words(mischief: Path) -> None:
    with pytest.raises(UserError, match='failed to open: "-" is no file of mine'):
        open_module(f"{mischief}=-")


def test_a_module_in_c_is_found_by_name(mischief: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(PATH_VARIABLE, f"/nowhere{os.pathsep}{mischief.parent}")
    assert native(mischief.stem) == mischief
    assert mischief.stem in natives()
    assert native("log") is None, "that one is in Python"


class Sturdy:
    """A module in Python for a process of its own."""

    def __init__(self, options: str) -> None:
        self.file = open(options, "a", buffering=1)  # noqa: SIM115 (closed by close)

    def describe(self, scopes: Mapping[str, catalogue.Scope]) -> None:
        self.file.write(f"{len(scopes)} scopes\n")

    def snapshot(self, snapshot: Snapshot) -> None:
        self.file.write(f"{snapshot.time_ns}\n")
        if snapshot.time_ns == 2:
            os._exit(9)
        if snapshot.time_ns == 3:
            raise ValueError("three is too many")

    def event(self, event: Event) -> None:
        self.file.write(f"{event.text}\n")

    def close(self) -> None:
        self.file.close()


def test_a_module_in_python_may_have_a_process_of_its_own(tmp_path: Path) -> None:
    told: list[str] = []
    request = f"{__name__}:Sturdy={tmp_path}/out"
    lane = open_module(request, process=True, tell=told.append)
    for number in (1, 2):
        _offer(lane, number, f"event {number}")
    _until(lambda: lane.stats.crashes == 1)
    _offer(lane, 3, "event 3")
    _until(lambda: lane.stats.snapshots == 2)
    assert lane.close(PATIENCE)
    scopes = f"{len(catalogue.scopes())} scopes"
    assert (tmp_path / "out").read_text().splitlines() == [scopes, "1", "event 1", "2", scopes, "3", "event 3"]
    assert (lane.stats.snapshots, lane.stats.dropped, lane.stats.errors) == (2, 1, 2)
    assert "failed in snapshot: ValueError: three is too many" in told[1]


class _Silence:
    """Counts the threads that offer; each returns at once whatever the module does."""

    def __init__(self) -> None:
        self.longest = 0.0

    def offer(self, lane: Lane, count: int) -> None:
        for number in range(1, count + 1):
            begin = time.monotonic()
            _offer(lane, number)
            self.longest = max(self.longest, time.monotonic() - begin)


@pytest.fixture
def wait_for_threads() -> Iterator[None]:
    before = threading.active_count()
    yield
    assert threading.active_count() <= before


@pytest.mark.usefixtures("wait_for_threads")
def test_offering_to_a_module_that_hangs_never_waits(mischief: Path, tmp_path: Path) -> None:
    lane = _opened(mischief, f"{tmp_path}/out,hang", [], answer=3600.0)
    offering = _Silence()
    offering.offer(lane, 500)
    assert lane.stats.offered == 500, "none of them waited for the hour the module has"
    assert lane.close(2.0)
    assert lane.stats.dropped == 500


def test_a_ledger_survives_answers_of_many_failures() -> None:
    told: list[str] = []
    ledger = Ledger("x", "module", told.append)
    ledger.failed("a", "in event", 3)
    ledger.failed("a", "in event", 2)
    assert (ledger.stats.errors, told) == (5, ["module x failed in event: a"])
