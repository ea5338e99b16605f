"""heliograph pub, sub and info, as people call them."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeAlias

import pytest

from heliograph.engine import Instance, catalogue

Command: TypeAlias = "subprocess.Popen[bytes]"
Start: TypeAlias = Callable[..., Command]


@pytest.fixture
def heliograph() -> Iterator[Start]:
    """Starts a subcommand; what still runs at the end is killed."""
    running: list[Command] = []

    def start(*arguments: str) -> Command:
        process = subprocess.Popen(
            [sys.executable, "-m", "heliograph.monitor.cli", *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        running.append(process)
        return process

    yield start
    for process in running:
        process.kill()
        process.communicate()


def wait_for_segment(segments: Path, name: str, process: Command) -> None:
    """Until the command's instance is there, and a moment more for its receiver."""
    end = time.monotonic() + 10
    while not list(segments.glob(f"{name}*.helio")):
        assert process.poll() is None, process.communicate()[1]
        assert time.monotonic() < end
        time.sleep(0.01)
    time.sleep(0.1)


def subscriber(start: Start, segments: Path, *arguments: str) -> Command:
    process = start("sub", *arguments)
    wait_for_segment(segments, "sub-", process)
    return process


def test_lines_published_are_lines_printed(heliograph: Start, multicast: str, segments: Path) -> None:
    sub = subscriber(heliograph, segments, multicast, "T", "--count", "3", "--timeout", "10", "--stats")
    pub = heliograph("pub", multicast, "T", "-o", "linger=0.1")
    output, errors = pub.communicate("one\n\nthrée".encode(), timeout=20)
    assert (pub.returncode, output) == (0, b"")
    assert errors.startswith(b"sent 3 messages on stream ")
    output, errors = sub.communicate(timeout=20)
    assert (sub.returncode, output.decode()) == (0, "one\n\nthrée\n")
    assert errors.decode().startswith("3 messages, 9 bytes")
    assert errors.decode().endswith("0 recovered, 0 lost\n")


def test_each_message_can_be_json(heliograph: Start, multicast: str, segments: Path) -> None:
    sub = subscriber(heliograph, segments, multicast, "T", "--count", "2", "--timeout", "10", "--format", "json")
    with Instance() as instance, instance.transmitter(multicast, "T", linger=0.1) as transmitter:
        transmitter.send_many(["€".encode(), b"\xff\0"])
        output, _ = sub.communicate(timeout=20)
        stream = transmitter.stream
    text, raw = map(json.loads, output.decode().splitlines())
    assert (text["topic"], text["stream"], text["number"], text["data"]) == ("T", stream, 0, "€")
    assert (raw["number"], raw["hex"]) == (1, "ff00")
    assert text["submit_ns"] <= text["receive_ns"]


def test_a_file_and_filler_can_be_published(heliograph: Start, multicast: str, segments: Path, tmp_path: Path) -> None:
    (tmp_path / "data").write_bytes(b"\x01\x02")
    sub = subscriber(heliograph, segments, multicast, "T", "--count", "5", "--timeout", "10", "--format", "hex")
    file = heliograph("pub", multicast, "T", "--file", str(tmp_path / "data"), "-o", "linger=0.1")
    assert file.communicate(timeout=20)[0] == b""
    filler = heliograph(
        "pub", multicast, "T", "--size", "4", "--count", "4", "--rate", "100", "-o", "linger=0.1", "-o", "level=3"
    )
    assert filler.communicate(timeout=20)[0] == b""
    assert (file.returncode, filler.returncode) == (0, 0)
    output, _ = sub.communicate(timeout=20)
    assert output.decode().splitlines() == ["01 02", *[f"3{number} 2e 2e 2e" for number in range(4)]]


def test_ctrl_c_ends_sub_cleanly(heliograph: Start, multicast: str, segments: Path) -> None:
    sub = subscriber(heliograph, segments, multicast, "T", "--stats")
    sub.send_signal(signal.SIGINT)
    output, errors = sub.communicate(timeout=10)
    assert (sub.returncode, output) == (130, b"")
    assert errors == b"0 messages, 0 bytes; 0 recovered, 0 lost\n"
    assert not list(segments.glob("*.helio"))


def test_a_reader_that_goes_away_ends_sub_quietly(heliograph: Start, multicast: str, segments: Path) -> None:
    sub = subscriber(heliograph, segments, multicast, "T")
    assert sub.stdout is not None
    sub.stdout.close()
    with Instance() as instance, instance.transmitter(multicast, "T", linger=0.0) as transmitter:
        end = time.monotonic() + 10
        while sub.poll() is None and time.monotonic() < end:
            transmitter.send(b"x" * 1000)
            time.sleep(0.01)
    assert sub.stderr is not None
    assert sub.stderr.read() == b""


def test_silence_ends_sub_and_fails_when_messages_are_missing(
    heliograph: Start, multicast: str, segments: Path
) -> None:
    patient = heliograph("sub", multicast, "T", "--timeout", "0.2")
    demanding = heliograph("sub", multicast, "T", "--timeout", "0.2", "--count", "1")
    assert (patient.wait(20), demanding.wait(20)) == (0, 1)


def test_losses_are_told_on_standard_error(heliograph: Start, multicast: str, segments: Path) -> None:
    options = ("-o", "inject_loss=0.3", "-o", "nak_retries=0", "-o", "nak_deadline=0.02")
    sub = subscriber(heliograph, segments, multicast, "T", "--timeout", "5", "--format", "quiet", "--stats", *options)
    pub = heliograph("pub", multicast, "T", "--size", "1000", "--count", "500", "--rate", "5000", "-o", "linger=0.5")
    pub.communicate(timeout=20)
    output, errors = sub.communicate(timeout=20)
    told = errors.decode().splitlines()
    assert output == b""
    assert any(line.startswith("lost ") and " of stream " in line for line in told[:-1])
    assert re.fullmatch(r"[\d,]+ messages?, .*; \d+ recovered, [1-9][\d,]* lost", told[-1])


WRONG = {
    "endpoint": (("pub", "http://x", "T", "--message", "x"), "heliograph: "),
    "option": (("sub", "rmm://239.192.1.1:7500", "T", "-o", "reorder_tim=1"), "did you mean reorder_time?"),
    "range": (("pub", "rmm://239.192.1.1:7500", "T", "-o", "ttl=300"), "from 0 to 255"),
    "file": (("pub", "rmm://239.192.1.1:7500", "T", "--file", "/nowhere/x"), "cannot read /nowhere/x: No such file"),
    "rate": (("pub", "rmm://239.192.1.1:7500", "T", "--rate", "0"), '"0" is not a number above 0'),
    "count": (("sub", "rmm://239.192.1.1:7500", "T", "--count", "-1"), "whole number"),
}


@pytest.mark.parametrize("mistake", WRONG)
def test_a_mistake_gets_a_sentence_and_exit_code_2(heliograph: Start, mistake: str) -> None:
    arguments, expected = WRONG[mistake]
    process = heliograph(*arguments)
    output, errors = process.communicate(timeout=20)
    assert (process.returncode, output) == (2, b"")
    assert expected in errors.decode()
    assert "Traceback" not in errors.decode()


def test_info_tells_what_is_here(heliograph: Start, segments: Path) -> None:
    text, errors = heliograph("info", "--no-measure").communicate(timeout=20)
    assert errors == b""
    assert str(segments) in text.decode()
    facts = json.loads(heliograph("info", "--json", "--no-measure").communicate(timeout=20)[0])
    assert facts["installed"]["version"]
    assert Path(facts["installed"]["library"]).exists()
    assert facts["host"]["processors"] >= 1
    assert facts["host"]["segment folder writable"] is True
    assert set(facts["option defaults"]) == set(catalogue.options())
