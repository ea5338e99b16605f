"""Keywords become the text the engine reads, and its message says what would be right."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from heliograph.engine import EndpointError, Instance, OptionError, ResourceError, catalogue
from heliograph.engine.options import OptionValue, encode, split
from heliograph.monitor.sampler import Sampler

from .conftest import collect


def test_options_are_joined_and_escaped() -> None:
    options: dict[str, OptionValue] = {"name": "a b&c=d/ü%", "level": 3, "segment_dir": Path("/tmp/x y")}
    assert encode(options) == "name=a%20b%26c%3Dd%2F%C3%BC%25&level=3&segment_dir=%2Ftmp%2Fx%20y"


def test_none_means_not_given() -> None:
    assert encode({"name": None, "mode": None}) is None
    assert encode({"name": None, "cpu": 0, "late_join": False}) == "cpu=0&late_join=false"


def test_numbers_keep_their_value() -> None:
    assert encode({"heartbeat_min": 0.00005, "linger": 1}) == "heartbeat_min=5e-05&linger=1"


WRONG: list[tuple[str, str, Any, str]] = [
    ("transmitter", "tll", 3, "a transmitter has no option tll; did you mean ttl?"),
    ("receiver", "nak_backof", 3, "a receiver has no option nak_backof; did you mean nak_backoff?"),
    ("instance", "zzzzzz", 1, "an instance has no option zzzzzz"),
    ("receiver", "ttl", 3, "option ttl belongs to a transmitter, not to a receiver"),
    ("instance", "mtu", 1500, "option mtu belongs to a transmitter or a receiver, not to an instance"),
    ("transmitter", "ttl", 256, 'option ttl is a whole number from 0 to 255 hops, not "256"'),
    ("transmitter", "ttl", -1, 'option ttl is a whole number from 0 to 255 hops, not "-1"'),
    ("transmitter", "ttl", "three", 'option ttl is a whole number from 0 to 255 hops, not "three"'),
    ("transmitter", "ttl", 3.5, 'option ttl is a whole number from 0 to 255 hops, not "3.5"'),
    ("transmitter", "ttl", True, 'option ttl is a whole number from 0 to 255 hops, not "true"'),
    (
        "transmitter",
        "heartbeat_min",
        float("nan"),
        'option heartbeat_min is a number from 5e-05 to 10 seconds, not "nan"',
    ),
    ("receiver", "inject_loss", 1.5, 'option inject_loss is a number from 0 to 1, not "1.5"'),
    ("receiver", "tagged", 1, 'option tagged is true or false, not "1"'),
    ("instance", "mode", "threads", 'option mode is one of thread,poll, not "threads"'),
    ("instance", "build", "b" * 64, "option build has at most 63 bytes"),
    ("instance", "name", b"x", "option name must be a text without NUL, a number or a bool, not b'x'"),
    ("instance", "name", "a\0b", "option name must be a text without NUL, a number or a bool, not 'a\\x00b'"),
]


@pytest.mark.parametrize(("owner", "name", "value", "text"), WRONG, ids=[f"{row[1]}={row[2]!r}" for row in WRONG])
def test_a_mistake_is_told_with_what_would_be_right(owner: str, name: str, value: Any, text: str) -> None:
    with Instance(stats="memory") as instance:
        make = Instance if owner == "instance" else partial(getattr(instance, owner), "inproc://wrong", "T")
        with pytest.raises(OptionError) as caught:
            make(**{name: value})
    assert str(caught.value) == text
    assert caught.value.code == "OPTION"
    assert isinstance(caught.value, ValueError)


def test_options_are_read_from_a_command_line() -> None:
    assert split("ttl=3") == ("ttl", "3")
    assert split("name=a=b") == ("name", "a=b")
    with pytest.raises(OptionError, match="name=value"):
        split("ttl")


def test_every_default_of_the_catalogue_is_accepted(multicast: str) -> None:
    defaults = {
        owner: {
            option.name: option.default
            for option in catalogue.options().values()
            if owner in option.on and option.default != ""
        }
        for owner in ("instance", "transmitter", "receiver")
    }
    with (
        Instance(**defaults["instance"]) as instance,  # type: ignore[arg-type]
        instance.transmitter(multicast, "T", **{**defaults["transmitter"], "linger": 0.0}),
        instance.receiver(multicast, "T", **defaults["receiver"]),  # type: ignore[arg-type]
    ):
        assert instance.name


@pytest.mark.parametrize("profile", catalogue.profiles())
def test_every_profile_opens_both_ends(multicast: str, profile: str) -> None:
    with Instance(profile=profile, stats="memory") as instance:
        receiver = instance.receiver(multicast, "T", profile=profile)
        transmitter = instance.transmitter(multicast, "T", profile=profile, linger=0.0)
        transmitter.send(b"x")
        assert len(collect(receiver, 1)) == 1


@pytest.mark.parametrize("option", catalogue.options().values(), ids=lambda option: option.name)
def test_the_engine_checks_options_in_an_endpoint_itself(multicast: str, option: catalogue.Option) -> None:
    if "instance" in option.on or option.type == "string":
        value, expected = "x%ZZ", (OptionError, EndpointError)
    else:
        value, expected = "surely-not", (OptionError, EndpointError)
    owner = option.on[0] if option.on[0] != "instance" else "transmitter"
    with Instance(stats="memory") as instance, pytest.raises(expected) as caught:
        getattr(instance, owner)(f"{multicast}&{option.name}={value}", "T")
    assert str(caught.value)


@pytest.mark.parametrize(
    "endpoint",
    [
        "",
        "rmm",
        "rmm://",
        "rmm://239.192.1.1",
        "rmm://239.192.1.1:0",
        "rmm://239.192.1.1:65536",
        "rmm://239.192.1.1:port",
        "rmm://10.0.0.1:7500",
        "rmm://not.an.address:7500",
        "rmm+unicast://127.0.0.1",
        "rum://127.0.0.1",
        "rum://239.192.1.1:7500",
        "shm://",
        "shm://a/b",
        "inproc://a b",
        "http://127.0.0.1:7500",
        "rmm://239.192.1.1:7500?interface=256.0.0.1",
        "rmm://" + "x" * 5000,
    ],
)
@pytest.mark.parametrize("owner", ["transmitter", "receiver"])
def test_a_wrong_endpoint_is_refused_with_a_reason(threaded: Instance, endpoint: str, owner: str) -> None:
    with pytest.raises((EndpointError, OptionError)) as caught:
        getattr(threaded, owner)(endpoint, "T")
    assert len(str(caught.value)) > 10


@pytest.mark.parametrize("topic", ["", "x" * 256, "ü" * 128], ids=["empty", "256 letters", "256 bytes of UTF-8"])
@pytest.mark.parametrize("owner", ["transmitter", "receiver"])
def test_a_wrong_topic_is_refused(threaded: Instance, multicast: str, topic: str, owner: str) -> None:
    with pytest.raises(OptionError) as caught:
        getattr(threaded, owner)(multicast, topic)
    assert caught.value.code == "TOPIC"


def test_a_topic_may_be_any_text_of_255_bytes(instance: Instance, multicast: str) -> None:
    for topic in ("x" * 255, "Kurse/Währung €", "a\tb"):
        with (
            instance.receiver(multicast, topic) as receiver,
            instance.transmitter(multicast, topic, linger=0.0) as sender,
        ):
            assert receiver.topic == sender.topic == topic


def test_a_nul_within_a_text_is_refused(threaded: Instance, multicast: str) -> None:
    with pytest.raises(ValueError):
        threaded.receiver(multicast, "a\0b")
    with pytest.raises(ValueError):
        threaded.receiver(multicast + "\0", "T")


def test_the_build_of_the_application_is_shown_to_monitors(segments: Path) -> None:
    with Instance(build="4.2-rc1\n", name="app") as instance, Sampler(segments) as sampler:
        ((_, own),) = sampler.sample().of("instance")
        assert own.info["build"] == "4.2-rc1 ", "a line feed would end the label"
        assert instance.segment is not None


def test_a_segment_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(ResourceError, match="file"):
        Instance(segment_dir=tmp_path / "file" / "segments")


def test_without_a_segment_there_is_no_path(segments: Path) -> None:
    with Instance(stats="memory") as instance:
        assert instance.segment is None
    assert not segments.exists() or not list(segments.iterdir())
