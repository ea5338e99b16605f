"""heliograph ctl level: raised, listed and ended from the command line, seen in the exporter's figures."""

from __future__ import annotations

import json

import pytest

from heliograph.engine import Instance
from heliograph.exporters.families import statistic_families
from heliograph.exporters.items import items, nodes
from heliograph.monitor.cli import main
from heliograph.monitor.commands.levels import level_lines
from heliograph.monitor.model import Event, Snapshot
from heliograph.monitor.sampler import Sampler, segment_folder

SMALL = 4 << 20


def engine(name: str, **options: object) -> Instance:
    return Instance(name=name, idle="block", segment_bytes=SMALL, level=1, **options)  # type: ignore[arg-type]


def snapshot() -> Snapshot:
    with Sampler(segment_folder(None)) as sampler:
        return sampler.sample(histograms=False)


def events(name: str) -> list[Event]:
    return [event for event in snapshot().events if event.name == name]


def test_a_topic_is_raised_in_every_instance_and_reverts_by_itself(capsys: pytest.CaptureFixture[str]) -> None:
    with engine("sender") as sender, engine("reader") as reader:
        endpoint = "shm://levels"
        receiver = reader.receiver(endpoint, "PRICES.FX")
        transmitter = sender.transmitter(endpoint, "PRICES.FX")
        transmitter.send(b"x")
        assert len(receiver.receive(5)) == 1
        assert main(["ctl", "level", "3", "--for", "60s", "--topic", "PRICES.*"]) == 0
        said = sorted(capsys.readouterr().out.splitlines())
        assert said == [
            f"{name}: topic=PRICES.*: the level of detail is 3 for 60 s, it was 1; 1 object matched"
            for name in ("reader", "sender")
        ]
        assert main(["ctl", "level", "3", "--for", "1ms", "--topic", "PRICES.*", "--instance", "reader"]) == 0
        while not (reverted := events("level_reverted")):
            pass
        assert [(event.instance, event.text) for event in reverted] == [
            ("reader", "topic=PRICES.*: the level of detail is 1 again, it was 3")
        ]
        changed = events("level_changed")
        assert {event.instance for event in changed} == {"reader", "sender"}
        assert changed[0].arguments["level"] == 3
        capsys.readouterr()
        assert main(["ctl", "level", "default", "--topic", "PRICES.*", "--instance", "sender"]) == 0
        assert capsys.readouterr().out == "topic=PRICES.*: the level of detail is 1 again, it was 3\n"


def test_what_is_in_force_is_listed_with_its_end(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ctl", "level", "--list"]) == 0
    assert capsys.readouterr().out == "no running instance found\n"
    with engine("feed") as instance, instance.transmitter("inproc://levels", "T", linger=0.0):
        instance.set_level(3, 3600, topic="T")
        assert main(["ctl", "level", "--list", "--json"]) == 0
        own, rule = json.loads(capsys.readouterr().out)["levels"]
        assert own == {"instance": "feed", "selector": "instance", "level": 1, "until_ns": None, "objects": None}
        assert (rule["selector"], rule["level"], rule["objects"]) == ("topic=T", 3, 1)
        seen = snapshot()
        assert 3500e9 < rule["until_ns"] - seen.time_ns < 3600e9
        assert main(["ctl", "level", "0", "--for", "1h"]) == 0
        lines = level_lines(snapshot(), snapshot().instances)
        assert lines[1].split()[:2] == ["feed", "0"]
        assert lines[1].endswith(" instance")
        assert lines[2].split()[-1] == "topic=T"
        capsys.readouterr()
        assert main(["ctl", "level", "off"]) == 0
        assert main(["ctl", "level", "--list"]) == 0
        assert "no end" in capsys.readouterr().out


def test_a_rule_in_force_is_a_metric(capsys: pytest.CaptureFixture[str]) -> None:
    def shown() -> dict[str, tuple[dict[str, str], float]]:
        found = items(nodes(snapshot()), {})
        return {
            sample.name: (sample.labels, sample.value)
            for family in statistic_families(found, {})
            for sample in family.samples
            if sample.name.startswith("heliograph_detail_")
        }

    with engine("feed") as instance:
        assert shown() == {}
        instance.set_level(2, 600, receiver="slow-*")
        figures = shown()
        assert figures["heliograph_detail_level"] == ({"node": "feed", "selector": "receiver=slow-*"}, 2.0)
        assert figures["heliograph_detail_objects"][1] == 0.0
        assert figures["heliograph_detail_until_seconds"][1] > 1.6e9
        instance.reset_level(receiver="slow-*")
        assert shown() == {}


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["3"], "--for missing: every level ends after a time: heliograph ctl level 3 --for 60s"),
        (["3", "--topic", "A*"], "heliograph ctl level 3 --for 60s --topic 'A*'"),
        (["off", "--for", "3"], "omit --for"),
        ([], "level missing"),
    ],
)
def test_a_level_without_an_end_is_refused_with_what_to_write(
    words: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with engine("feed"):
        assert main(["ctl", "level", *words]) == 2
        assert told in capsys.readouterr().err


def test_without_a_pattern_it_must_be_certain_which_instance_is_meant(capsys: pytest.CaptureFixture[str]) -> None:
    with engine("feed-1"), engine("feed-2"):
        assert main(["ctl", "level", "3", "--for", "60s"]) == 2
        assert "several instances match; select one with --instance: feed-1" in capsys.readouterr().err
        assert main(["ctl", "level", "3", "--for", "60s", "--instance", "feed-*"]) == 0
        assert len(capsys.readouterr().out.splitlines()) == 2
        assert main(["ctl", "level", "off", "--topic", "A", "--instance", "feed-?"]) == 1
        assert capsys.readouterr().err.count("refused: no rule is in force") == 2
        assert main(["ctl", "level", "3", "--for", "60s", "--instance", "nobody"]) == 2
