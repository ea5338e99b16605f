"""`heliograph why`: the walk of an incident as one page."""

from __future__ import annotations

import json
import shlex
from collections.abc import Collection
from pathlib import Path

import pytest

from heliograph.engine import Instance
from heliograph.monitor.cli import main
from heliograph.monitor.model import Snapshot
from heliograph.monitor.sampler import Sampler
from tests.api.conftest import until
from tests.fleet import sample_fleet
from tests.monitor.conftest import changed
from tests.ports import free_port

QUICK = ("--interval", "0.05")


def test_the_page_goes_from_the_state_to_the_command_to_act(segments: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sample_fleet(segments, 0)
    assert main(["why", "slow", *QUICK]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("receiver slow of ")
    heads = [line.split()[0] for line in lines if line.startswith("  ")]
    for head in ("since", "positions", "behind", "queue", "latency", "forecast", "requests", "action"):
        assert head in heads
    assert any(line.startswith("host of slow: ") for line in lines)
    act = lines[lines.index("to act:") + 1 :]
    assert act
    assert shlex.split(act[0])[:4] == ["heliograph", "ctl", "resume", "slow"], "it is suspended already"


def test_one_object_for_programs(segments: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sample_fleet(segments, 0)
    assert main(["why", "slow", "--json", *QUICK]) == 0
    page = json.loads(capsys.readouterr().out)
    assert {row["instance"] for row in page["receivers"]} == {"slow"}
    assert {row["name"] for row in page["sources"]} == {"slow"}
    assert {row["name"] for row in page["instances"]} == {"feed", "slow"}
    assert {event["instance"] for event in page["events"]} == {"slow"}
    assert page["commands"]


def test_a_name_that_matches_nothing_is_refused_with_the_names_there_are(
    segments: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sample_fleet(segments, 0)
    assert main(["why", "slwo", *QUICK]) == 2
    error = capsys.readouterr().err
    assert "no receiver matches 'slwo'; receivers: " in error
    assert "slow" in error


def test_without_an_instance_there_is_no_page(segments: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["why", "slow", *QUICK]) == 2
    assert "no running instance found" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["events", "losses", "receivers", "reconcile", "stats"])
def test_an_instance_that_matches_nothing_is_refused_with_the_names_there_are(
    command: str, segments: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sample_fleet(segments, 0)
    assert main([command, "--instance", "nobody"]) == 2
    assert "no instance matches 'nobody'; instances: " in capsys.readouterr().err


def feed_knows(folder: Path) -> bool:
    """Whether the source tracks the receiver."""
    with Sampler(folder) as sampler:
        return any(True for _ in sampler.sample(histograms=False).of("tx_receiver"))


def test_a_receiver_that_does_not_read_is_explained(segments: Path, capsys: pytest.CaptureFixture[str]) -> None:
    url = f"rmm+unicast://127.0.0.1:{free_port()}"
    with (
        Instance(name="feed") as feed,
        Instance(name="desk") as desk,
        desk.receiver(url, "PRICES", receive_queue=64 << 10),
        feed.transmitter(url, "PRICES", linger=0) as transmitter,
    ):
        transmitter.send_many([b"x" * 500] * 400)
        assert until(lambda: feed_knows(segments))
        assert main(["why", "desk", "--interval", "0.3"]) == 0
    page = capsys.readouterr().out
    assert page.startswith("receiver desk of PRICES: stalled: delivers nothing")
    assert "at source feed, stream " in page
    assert "receiver_discovered" in page, "what happened before the command was given"
    assert "heliograph ctl suspend desk " in page


def test_faults_of_its_stream_are_on_the_page_of_a_receiver(
    segments: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    sound = Sampler.sample

    def stormy(self: Sampler, histograms: bool | Collection[str] = True) -> Snapshot:
        return changed(sound(self, histograms), "tx_stream", {"storm_active": 1})

    monkeypatch.setattr(Sampler, "sample", stormy)
    sample_fleet(segments, 0)
    assert main(["why", "alpha", *QUICK]) == 0
    assert "\nfault: NAK storm on the stream of feed: " in capsys.readouterr().out
    assert main(["why", "alpha", "--json", *QUICK]) == 0
    (fault,) = json.loads(capsys.readouterr().out)["faults"]
    assert (fault["kind"], fault["text"].partition(":")[0]) == ("storm", "NAK storm on the stream of feed")
