"""Commands to running engines: through the ring, from the command line, and when clients die, wait in vain or crowd."""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from heliograph.engine import Instance
from heliograph.monitor import _atomic
from heliograph.monitor.cli import main
from heliograph.monitor.commands import ctl
from heliograph.monitor.control import Answer, CommandRing, NoAnswer, command_text
from heliograph.monitor.errors import UserError
from heliograph.monitor.model import Event
from heliograph.monitor.sampler import Sampler
from heliograph.monitor.segment import Segment
from heliograph.monitor.sources import ReceiverOfStream, receivers_of
from tests.ports import free_port
from tests.segments import SegmentObject, write_segment

SMALL = 4 << 20


@contextmanager
def engine(kind: str = "block", name: str = "feed", **options: object) -> Iterator[Path]:
    """A running engine - one that spins, one that sleeps, one that is polled - and its segment."""
    mode = "poll" if kind in ("poll", "unpolled") else "thread"
    idle = kind if mode == "thread" else "backoff"
    stop = threading.Event()
    with Instance(name=name, mode=mode, idle=idle, segment_bytes=SMALL, **options) as instance:  # type: ignore[arg-type]

        def poll() -> None:
            while not stop.is_set():
                instance.poll()
                time.sleep(0.0002)

        poller = threading.Thread(target=poll) if kind == "poll" else None
        if poller:
            poller.start()
        try:
            assert instance.segment is not None
            yield instance.segment
        finally:
            stop.set()
            if poller:
                poller.join()


def give(path: Path, text: str, timeout: float = 5.0) -> Answer:
    with CommandRing(path) as ring:
        return ring.give(text, timeout)


def events_of(path: Path, *names: str) -> list[Event]:
    with Segment(path) as segment:
        return [event for event in segment.events().events if event.name in names]


# An honest client


@pytest.mark.parametrize("kind", ["block", "backoff", "poll"])
def test_a_running_engine_answers(kind: str) -> None:
    with engine(kind) as path:
        began = time.monotonic()
        answer = give(path, "ping")
        assert answer == Answer(0, answer.text)
        assert answer.error is None
        assert answer.text.startswith("feed ")
        assert time.monotonic() - began < 5


def test_each_command_is_told_with_who_gave_it_and_what_became_of_it() -> None:
    with engine() as path:
        assert give(path, "ping").code == 0
        refused = give(path, "dance")
        assert refused.error == "OPTION"
        assert "command 'dance' is unknown" in refused.text
        done, not_done = events_of(path, "command", "command_refused")
    assert (done.arguments["uid"], done.arguments["pid"]) == (os.getuid(), os.getpid())
    assert done.text.startswith("ping: feed ")
    assert not_done.severity == "warning"
    assert not_done.text.startswith("dance: command 'dance' is unknown")


def test_the_level_rises_for_a_time_and_falls_again_by_itself() -> None:
    with (
        Instance(name="feed", idle="block", level=1, segment_bytes=8 << 20) as instance,
        instance.receiver("inproc://levels", "T") as receiver,
        instance.transmitter("inproc://levels", "T") as transmitter,
    ):
        assert instance.segment is not None
        transmitter.send(b"before")
        assert len(receiver.receive(5)) == 1
        with Segment(instance.segment) as segment:

            def histograms() -> dict[str, int]:
                (found,) = (item for item in segment.objects() if item.scope == "receiver")
                return {name: histogram.count for name, histogram in found.histograms.items()}

            def wait_for(condition: str) -> None:
                deadline = time.monotonic() + 10
                while not any(event.name == condition for event in segment.events().events):
                    assert time.monotonic() < deadline, condition
                    time.sleep(0.01)

            assert "total_latency" not in histograms()
            assert give(instance.segment, "level level=3 for=1").code == 0
            deadline = time.monotonic() + 10
            while "total_latency" not in histograms():
                assert time.monotonic() < deadline
                time.sleep(0.005)
            transmitter.send(b"while")
            assert len(receiver.receive(5)) == 1
            while histograms()["total_latency"] == 0:  # a message is handed over first and then counted
                assert time.monotonic() < deadline
                time.sleep(0.005)
            wait_for("level_reverted")
            transmitter.send(b"after")
            assert len(receiver.receive(5)) == 1
            assert histograms()["total_latency"] == 1, "it stopped counting and lost nothing"


def test_eight_clients_at_once_are_all_served() -> None:
    code = (
        "import sys\n"
        "from pathlib import Path\n"
        "from heliograph.monitor.control import CommandRing\n"
        "with CommandRing(Path(sys.argv[1])) as ring:\n"
        "    codes = {ring.give('ping', 30).code for _ in range(50)}\n"
        "assert codes == {0}, codes\n"
    )
    with engine("backoff") as path:
        clients = [subprocess.Popen([sys.executable, "-c", code, str(path)]) for _ in range(8)]
        assert [client.wait(60) for client in clients] == [0] * 8
        with Segment(path) as segment:
            (instance,) = (item for item in segment.objects() if item.scope == "instance")
    assert instance.values["commands_served"] == 400
    assert instance.values["commands_refused"] == 0


def test_threads_of_one_process_do_not_take_each_others_answers() -> None:
    answers: list[Answer] = []
    with engine("backoff") as path:

        def client(number: int) -> None:
            for _ in range(20):
                answers.append(give(path, f"dance{number}"))
                assert f"'dance{number}'" in answers[-1].text

        threads = [threading.Thread(target=client, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
    assert len(answers) == 80


def test_values_with_any_character_arrive_as_they_are() -> None:
    assert command_text("suspend", {"why": "10 % über, a=b"}) == "suspend why=10%20%25%20%C3%BCber,%20a=b"
    with engine() as path:
        answer = give(path, command_text("level", {"level": 2, "for": 1, "topic": "a b%\n"}))
        assert answer.error == "OPTION"
        assert "topic must be UTF-8 text without control characters" in answer.text
        answer = give(path, command_text("level", {"level": 2, "for": 1, "topic": "a b%é=c"}))
        assert answer.text.startswith("topic=a b%é=c: the level of detail is 2 for 1 s, it was 2")


def test_a_command_longer_than_a_slot_is_refused_before_it_is_given() -> None:
    with pytest.raises(UserError, match="too long: 453 of at most 448 bytes"):
        command_text("ping", {"why": "x" * 444})
    with engine() as path, pytest.raises(UserError, match="too long"):
        give(path, "x" * 449)


# Nobody answers


def test_an_engine_that_nobody_polls_is_told_apart_and_the_command_taken_back() -> None:
    with engine("unpolled") as path:
        with pytest.raises(NoAnswer, match=r"mode=poll it takes commands only while its program polls.*not executed"):
            give(path, "level level=3 for=100", 0.2)
        with CommandRing(path) as ring:
            assert {ring._state(ring._slot(n)).phase for n in range(8)} == {0}


def test_a_command_that_was_taken_back_is_never_carried_out() -> None:
    with Instance(name="feed", mode="poll", segment_bytes=SMALL) as instance:
        assert instance.segment is not None
        with pytest.raises(NoAnswer):
            give(instance.segment, "ping", 0.05)
        for _ in range(10):
            instance.wait(0.002)
            instance.poll()
        assert not events_of(instance.segment, "command", "command_refused")


def test_an_engine_that_shuts_down_meanwhile_is_reported() -> None:
    instance = Instance(name="feed", mode="poll", segment_bytes=SMALL)
    assert instance.segment is not None
    with CommandRing(instance.segment) as ring:
        instance.close()
        with pytest.raises(NoAnswer, match="feed has shut down"):
            ring.give("ping", 5)


def test_an_engine_without_a_ring_takes_no_commands(segments: Path) -> None:
    path = write_segment(segments / "old.1.helio", name="old", product="0.0.9").path
    with pytest.raises(UserError, match=r"old accepts no commands: its version of Heliograph is 0\.0\.9"):
        CommandRing(path)


@pytest.mark.parametrize(
    ("offset", "value", "what"),
    [
        (224, (1 << 40).to_bytes(8, "little"), "its ring of commands .* does not fit"),
        (224, (7).to_bytes(8, "little"), "does not fit"),
        (232, (0).to_bytes(4, "little"), "claims 0 commands"),
        (232, (1 << 20).to_bytes(4, "little"), "claims 1048576 commands"),
        (236, (8).to_bytes(4, "little"), "commands of 8 bytes"),
    ],
)
def test_a_ring_that_cannot_be_is_refused(segments: Path, offset: int, value: bytes, what: str) -> None:
    with engine("unpolled") as path:
        copy = segments / "copy.1.helio"
        copy.write_bytes(path.read_bytes())
    with copy.open("r+b") as file:
        file.seek(16)  # it was copied while it ran: state 1
        file.seek(offset)
        file.write(value)
    with pytest.raises(UserError, match=what):
        CommandRing(copy)


def test_what_is_no_segment_is_refused(segments: Path) -> None:
    with pytest.raises(UserError, match="cannot be opened"):
        CommandRing(segments / "nowhere.helio")
    (segments / "empty.helio").write_bytes(b"")
    with pytest.raises(UserError, match="is not a stats segment"):
        CommandRing(segments / "empty.helio")
    os.mkfifo(segments / "fifo.helio")
    with pytest.raises(UserError, match="not a regular file"):
        CommandRing(segments / "fifo.helio")


# Clients that die


KILLED = """
import os, signal, sys, time
from pathlib import Path
from heliograph.monitor.control import CommandRing, _SUBMITTED
ring = CommandRing(Path(sys.argv[1]))
claims = [ring._claim() for _ in range(8)]
assert all(claims)
if sys.argv[2] == "submitted":
    for at, mine in claims:
        assert ring._submit(at, mine, b"ping", time.time_ns() + 60_000_000_000)
print("ready", flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def _kill_a_client(path: Path, moment: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", KILLED, str(path), moment], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert done.stdout == "ready\n"


def test_a_ring_full_of_a_dead_clients_claims_is_free_at_once() -> None:
    with engine() as path:
        _kill_a_client(path, "claimed")
        with CommandRing(path) as ring:
            assert {ring._state(ring._slot(n)).phase for n in range(8)} == {1}
        began = time.monotonic()
        assert give(path, "ping").code == 0
        assert time.monotonic() - began < 0.9, "no claim had to grow old"
        assert len(events_of(path, "command")) == 1, "what was not submitted was not carried out"


def test_what_a_dead_client_submitted_is_carried_out_and_its_answers_make_room() -> None:
    with engine() as path:
        _kill_a_client(path, "submitted")
        assert give(path, "ping").code == 0
        deadline = time.monotonic() + 10
        while len(events_of(path, "command")) < 9 and time.monotonic() < deadline:
            time.sleep(0.01)
        assert len(events_of(path, "command")) == 9
        assert [give(path, "ping").code for _ in range(20)] == [0] * 20


def test_a_ring_full_of_living_clients_is_waited_for_and_then_reported() -> None:
    with engine("unpolled") as path, CommandRing(path) as crowd:
        claims = [crowd._claim() for _ in range(8)]
        assert None not in claims
        assert crowd._claim() is None
        with pytest.raises(NoAnswer, match="8 other commands waiting"):
            give(path, "ping", 0.1)


def test_a_client_that_stands_still_loses_its_claim() -> None:
    now = time.time_ns()
    with engine("unpolled") as path, CommandRing(path) as slow, CommandRing(path, clock=lambda: now) as other:
        claims = [slow._claim() for _ in range(8)]
        assert other._claim() is None
        now += 2_000_000_000
        taken = other._claim()
        assert taken is not None
        at, mine = next(claim for claim in claims if claim is not None and claim[0] == taken[0])
        assert not slow._submit(at, mine, b"ping", now), "it finds out, and claims another"


def test_words_of_shared_memory_are_changed_as_a_whole() -> None:
    memory = bytearray(24)
    assert _atomic.load(memory, 8) == 0
    assert _atomic.compare_exchange(memory, 8, 0, 2**64 - 1)
    assert not _atomic.compare_exchange(memory, 8, 0, 5)
    assert _atomic.add(memory, 8, 2) == 2**64 - 1
    assert _atomic.load(memory, 8) == 1
    for offset in (-8, 4, 17, 24, 2**62):
        with pytest.raises(ValueError, match="no aligned 64-bit word"):
            _atomic.load(memory, offset)
    with pytest.raises(OverflowError):
        _atomic.add(memory, 8, -1)
    with pytest.raises(BufferError):
        _atomic.load(b"readonly", 0)


# The command line


def test_the_command_line_gives_a_command_and_prints_the_answer(capsys: pytest.CaptureFixture[str]) -> None:
    with engine():
        assert main(["ctl", "ping"]) == 0
        assert capsys.readouterr().out.startswith("feed ")
        assert main(["ctl", "level", "3", "--for", "90s", "--instance", "fe*", "--json"]) == 0
        fields = json.loads(capsys.readouterr().out)
        answer = {
            "instance": "feed",
            "code": 0,
            "error": None,
            "answer": "the level of detail is 3 for 90 s, it was 2",
        }
        assert fields == {"command": "level level=3 for=90", "answers": [answer]}


def test_endpoints_before_and_after_the_verb_add_up(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def refuse(arguments: argparse.Namespace) -> None:
        asked.append(arguments.collect)
        raise UserError("enough")

    monkeypatch.setattr(ctl, "open_source", refuse)
    for words in (["--collect", "A", "receivers", "--collect", "B"], ["receivers", "--collect", "A", "--collect", "B"]):
        assert main(["ctl", *words]) == 2
    assert asked == [["A", "B"], ["A", "B"]]


def test_exit_codes_tell_refused_from_unanswered_from_impossible(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ctl, "command_text", lambda verb, values: "dance")
    with engine("block", "feed"), engine("unpolled", "idle"):
        assert main(["ctl", "ping", "--instance", "feed"]) == 1
        assert capsys.readouterr().err.startswith("heliograph: feed refused: command 'dance' is unknown")
        assert main(["ctl", "ping", "--instance", "idle", "--timeout", "100ms"]) == 3
        assert "mode=poll" in capsys.readouterr().err
        assert main(["ctl", "--json", "ping", "--instance", "idle", "--timeout", "100ms"]) == 3
        (answer,) = json.loads(capsys.readouterr().out)["answers"]
        assert (answer["code"], answer["error"]) == (None, "NO_ANSWER")
        assert main(["ctl", "ping"]) == 2
        assert (
            f"several instances match; select one with --instance: feed ({os.getpid()}), idle"
            in capsys.readouterr().err
        )
        assert main(["ctl", "ping", "--instance", "nobody"]) == 2
        assert "no instance matches 'nobody'; running: feed" in capsys.readouterr().err
    assert main(["ctl", "ping"]) == 2
    assert "no running instance found" in capsys.readouterr().err


def test_an_instance_is_chosen_by_name_process_or_path(capsys: pytest.CaptureFixture[str]) -> None:
    with engine("block", "feed") as path:
        for which in ("feed", "f?ed", str(os.getpid()), str(path)):
            assert main(["ctl", "ping", "--instance", which]) == 0
    with engine("block", "feed"), engine("block", "feed*"):
        capsys.readouterr()
        assert main(["ctl", "ping", "--instance", "feed*"]) == 0, "a whole name comes before a pattern"
        assert capsys.readouterr().out.startswith("feed* ")


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("30", "30"), ("1.5s", "1.5"), ("200ms", "0.2"), ("5m", "300"), ("2h", "7200"), ("1d", "86400")],
)
def test_times_are_read(text: str, seconds: str) -> None:
    assert ctl.duration(text) == seconds


@pytest.mark.parametrize(
    ("text", "number"), [("0", "0"), ("250k", "250000"), ("1.5M", "1500000"), ("2GB/s", "2000000000")]
)
def test_rates_are_read(text: str, number: str) -> None:
    assert ctl.rate(text) == number


@pytest.mark.parametrize("words", [["level", "4", "--for", "1"], ["level", "3", "--for", "-1"], ["dance"]])
def test_mistakes_on_the_command_line_are_found_before_anything_is_given(words: list[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["ctl", *words])
    assert ended.value.code == 2


@pytest.mark.parametrize("text", ["", "x", "1x", "0", "0.0001ms", "31d", "nan", "-5"])
def test_a_time_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(ctl.argparse.ArgumentTypeError):
        ctl.duration(text)


@pytest.mark.parametrize("text", ["", "x", "1T", "-1", "1001G", "1e6"])
def test_a_rate_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(ctl.argparse.ArgumentTypeError):
        ctl.rate(text)


# What the verbs do


@pytest.fixture
def stream() -> Iterator[tuple[Path, Instance]]:
    """A source and two receivers of one stream, each in an instance of its own; both are known to the source."""
    endpoint = f"rmm://239.192.44.7:{free_port()}?interface=127.0.0.1&ttl=0"
    with (
        Instance(name="feed", segment_bytes=SMALL) as source,
        Instance(name="slow-1", segment_bytes=SMALL) as slow,
        Instance(name="fast-1", segment_bytes=SMALL) as fast,
        slow.receiver(endpoint, "PRICES.A"),
        fast.receiver(endpoint, "PRICES.A"),
        source.transmitter(endpoint, "PRICES.A", linger=0.0) as transmitter,
    ):
        assert source.segment is not None
        deadline = time.monotonic() + 30
        while len(_known(source.segment)) < 2:
            assert time.monotonic() < deadline, "the receivers were never heard"
            transmitter.send(b"tick")
            time.sleep(0.02)
        yield source.segment, source


def _known(path: Path) -> dict[str, ReceiverOfStream]:
    """The receivers the source knows, by name."""
    with Sampler(path.parent) as sampler:
        return {item.name: item for item in receivers_of(sampler.sample(histograms=False)) if item.name}


def _ctl(*words: str) -> str:
    """Give a command on the command line that must succeed; the answer."""
    done = subprocess.run(
        [sys.executable, "-m", "heliograph.monitor.cli", "ctl", "--instance", "feed", "--json", *words],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    (answer,) = json.loads(done.stdout)["answers"]
    assert (done.returncode == 0) == (answer["code"] == 0), done.stderr
    return str(answer["answer"])


def test_a_receiver_is_suspended_resumed_expelled_and_readmitted_by_hand(stream: tuple[Path, Instance]) -> None:
    path, _ = stream
    slow = _known(path)["slow-1"]
    assert _ctl("suspend", "slow-1", "--for", "60s", "--why", "backup runs there").startswith("slow-1 (")
    assert _known(path)["slow-1"].action == "suspend"
    assert _known(path)["fast-1"].action == ""
    assert "is resumed on 1 stream" in _ctl("resume", slow.receiver)
    assert _known(path)["slow-1"].action == ""
    assert "is expelled for 600 s on 1 stream" in _ctl("expel", slow.address, "--for", "10m")
    assert _known(path)["slow-1"].action == "expel"
    assert "is expelled: readmit it first" in _ctl("suspend", "slow-1", "--for", "1s")
    assert "is readmitted on 1 stream" in _ctl("readmit", "slow-1", "--topic", "PRICES.*")
    assert _known(path)["slow-1"].action == ""
    assert "is not expelled" in _ctl("readmit", "slow-1")
    told = [event.text for event in events_of(path, "command")]
    assert told[0].startswith(f"suspend receiver=slow-1 for=60 why=backup%20runs%20there: slow-1 ({slow.receiver}")


def test_a_receiver_that_is_not_known_or_not_the_only_one_is_refused_with_those_known(
    stream: tuple[Path, Instance],
) -> None:
    path, _ = stream
    answer = _ctl("suspend", "nobody", "--for", "1s")
    assert answer.startswith("no receiver is named nobody; known receivers are: ")
    assert "slow-1 (" in answer
    assert "fast-1 (" in answer
    answer = _ctl("expel", "127.0.0.1")
    assert answer.startswith("several receivers are named 127.0.0.1; give the id or address of one: ")
    assert "no stream has this name; the streams are: " in _ctl("expel", "slow-1", "--topic", "ORDERS.*")
    assert "no stream has this name" in _ctl("expel", "slow-1", "--stream", "000000000000:1")
    assert {item.action for item in _known(path).values()} == {""}


def test_a_rate_is_set_and_lifted_and_repairs_are_cut_off_by_hand(stream: tuple[Path, Instance]) -> None:
    path, _ = stream
    assert _ctl("set-rate", "1M", "--topic", "PRICES.?") == "1 stream: at most 1000000 bytes per second"
    assert _ctl("set-rate", "0") == "1 stream: no limit on the rate"
    assert _ctl("cutoff", "--for", "500ms", "--why", "storm") == "1 stream: no repairs are sent for 0.5 s"
    assert _ctl("cutoff", "--off") == "1 stream: the cut-off is over"
    assert give(path, "cutoff").text == "cutoff needs either for=SECONDS or off=yes"
    assert give(path, "cutoff for=1 off=yes").text == "cutoff needs either for=SECONDS or off=yes"
    assert give(path, "cutoff off=no").text == "off takes the value yes only; otherwise leave it out"
    assert "rate is a whole number of bytes per second" in give(path, "set-rate rate=1.5").text
    assert "rate is a whole number" in give(path, "set-rate rate=1000000000001").text


def test_policies_are_changed_by_name(stream: tuple[Path, Instance]) -> None:
    path, _ = stream
    for name in ("static", "dynamic", "pgmcc", "window-min", "window-none", "none"):
        assert _ctl("set-policy", name) == f"1 stream: the policy is {name}"
    refusal = _ctl("set-policy", "quick")
    assert refusal.startswith("policy 'quick' is unknown; the policies are: none, static, dynamic, pgmcc, window-none")
    assert "set-policy needs policy" in give(path, "set-policy").text


def test_an_instance_that_sends_nothing_says_so() -> None:
    with engine() as path:
        for text in ("set-rate rate=5000", "cutoff for=1", "resume receiver=a"):
            assert give(path, text).text == "feed sends nothing"


def _peers(folder: Path) -> None:
    labels = {"instance": "feed", "stream": "0a1b2c3d4e5f:30001"}
    now = time.time_ns()
    write_segment(
        folder / "feed.1.helio",
        name="feed",
        objects=[
            SegmentObject(
                "tx_receiver",
                {**labels, "receiver": "10.1.2.3:41000"},
                info={"name": "slow-1", "receiver_id": "00000000deadbeef"},
                values={
                    "reports_received": 5, "loss": 21_000, "lag": 300, "buffer_fill": 750_000, "round_trip": 250_000,
                    "naks_received": 17, "last_feedback": now,
                },
            ),
            SegmentObject("tx_receiver", {**labels, "receiver": "10.1.2.4:41000"}, values={
                "naks_received": 3, "last_feedback": now,
            }),
            SegmentObject("tx_receiver", {**labels, "receiver": "10.1.2.5:41000"}, state="gone"),
        ],
    )  # fmt: skip


def test_receivers_are_listed_with_what_is_known_of_them(segments: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _peers(segments)
    assert main(["ctl", "receivers"]) == 0
    head, silent, slow = capsys.readouterr().out.splitlines()
    assert head.split()[:7] == ["INSTANCE", "STREAM", "RECEIVER", "ID", "ADDRESS", "CLASS", "ACTION"]
    assert silent.split()[2:8] == ["-", "-", "10.1.2.4:41000", "-", "-", "-"]
    for part in ("slow-1", "00000000deadbeef", "10.1.2.3:41000", "2.1 %", "300", "75 %", "250 µs", "17", "ago"):
        assert part in slow


def test_receivers_as_json_are_one_object(segments: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _peers(segments)
    assert main(["ctl", "receivers", "--json", "--instance", "fe*"]) == 0
    silent, slow = json.loads(capsys.readouterr().out)["receivers"]
    assert (slow["name"], slow["receiver"], slow["loss"], slow["lag"]) == ("slow-1", "00000000deadbeef", 0.021, 300)
    assert (silent["address"], silent["loss"], silent["action"]) == ("10.1.2.4:41000", None, "")
    assert main(["ctl", "receivers", "--instance", str(os.getpid())]) == 0, "as with the other verbs"
    assert "slow-1" in capsys.readouterr().out


@pytest.mark.parametrize("verb", [["receivers"], ["level", "--list"], ["ping"]])
def test_an_instance_that_matches_nothing_is_refused_with_those_running(
    verb: list[str], segments: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _peers(segments)
    assert main(["ctl", *verb, "--instance", "other"]) == 2
    assert f"no instance matches 'other'; running: feed ({os.getpid()})" in capsys.readouterr().err


# Everything is loaded before the rights go: the installation may be readable for its owner alone.
AS_NOBODY = """
import argparse, os, sys
from heliograph.monitor import _atomic
from heliograph.monitor.commands import ctl
from heliograph.monitor.errors import UserError
parser = argparse.ArgumentParser()
ctl.command(parser.add_subparsers())
arguments = parser.parse_args(sys.argv[1:])
os.setgroups([])
os.setgid(65534)
os.setuid(65534)
try:
    arguments.run(arguments)
except UserError as error:
    sys.exit(f"refused: {error}")
"""


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become another user")
def test_another_user_is_refused_and_told_who_may(monkeypatch: pytest.MonkeyPatch) -> None:
    with tempfile.TemporaryDirectory(prefix="helio-control-") as folder:
        os.chmod(folder, 0o755)
        monkeypatch.setenv("HELIOGRAPH_SEGMENT_DIR", folder)
        with engine() as path:
            done = subprocess.run(
                [sys.executable, "-c", AS_NOBODY, "ctl", "ping", "--instance", str(path)],
                capture_output=True,
                text=True,
                timeout=60,
                check=False,
            )
            assert done.returncode == 1, done.stderr
            assert (
                f"refused: {path} belongs to root, and only its owner may command that engine; you are nobody"
                in done.stderr
            )
            assert "sudo -u root heliograph ctl" in done.stderr
            assert not events_of(path, "command", "command_refused")
