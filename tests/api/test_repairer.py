"""A local repairer on real sockets: a site's receivers ask it first, and the source when it does not answer."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

from heliograph.engine import Instance, OptionError, Transmitter
from tests.ports import free_port

from .conftest import collect, until
from .test_reliability import records

TOPIC = "PRICES.FX"
COUNT = 2000


def _send(transmitter: Transmitter) -> None:
    for start in range(0, COUNT, 5):
        transmitter.send_many([b"%d" % number + b"." * 600 for number in range(start, start + 5)])
        transmitter.flush()


def test_the_receivers_of_a_site_get_their_repairs_from_its_repairer(multicast: str) -> None:
    at = f"127.0.0.1:{free_port()}"
    limits: dict[str, int | float] = {"repair_bytes": 1 << 26, "repair_time": 30.0, "repair_rate": 0}
    with (
        Instance() as source,
        Instance() as site,
        Instance() as sink,
        site.receiver(multicast, TOPIC, repair_at=at, **limits),
    ):
        receiver = sink.receiver(multicast, TOPIC, repairer=at, inject_loss=0.05, nak_deadline=20.0)
        transmitter = source.transmitter(multicast, TOPIC, linger=1.0)
        _send(transmitter)
        messages = collect(receiver, COUNT, seconds=40.0)
        assert [message.number for message in messages] == list(range(COUNT))
        assert all(message.data.startswith(b"%d." % message.number) for message in messages)
        asked, repaired = records(sink, "rx_stream")[0], records(site, "rx_stream")[0]
        assert 0 < asked["repairer_repairs_received"] <= asked["packets_recovered"]
        assert repaired["repairer_repairs_sent"] >= asked["repairer_repairs_received"]
        assert repaired["repairer_naks_received"] > 0
        assert until(lambda: records(site, "instance")[0]["repairer_kept_packets"] > 0)
        # What the repairer was too slow for on a busy machine, or lost again and again, came from the source.
        assert records(source, "tx_stream")[0]["naks_received"] <= asked["repairer_given_up"] + asked["naks_retried"]


def test_without_an_answer_of_the_repairer_the_source_repairs(multicast: str) -> None:
    at = f"127.0.0.1:{free_port()}"
    with Instance() as source, Instance() as sink:
        receiver = sink.receiver(multicast, TOPIC, repairer=at, inject_loss=0.05, nak_deadline=20.0)
        transmitter = source.transmitter(multicast, TOPIC, linger=1.0)
        _send(transmitter)
        assert len(collect(receiver, COUNT, seconds=40.0)) == COUNT
        stream = records(sink, "rx_stream")[0]
        assert stream["repairer_naks_sent"] > 0
        assert stream["repairer_repairs_received"] == 0
        assert stream["repairer_given_up"] > 0
        assert records(source, "tx_stream")[0]["repair_packets"] > 0


@pytest.mark.parametrize("text", ["here", "10.0.0.5", "239.1.1.1:7600", "0.0.0.0:7600", "10.0.0.5:0"])
@pytest.mark.parametrize("option", ["repairer", "repair_at"])
def test_an_address_that_is_none_is_named(multicast: str, option: str, text: str) -> None:
    with Instance() as instance, pytest.raises(OptionError, match=rf"{option} .*'{text}'"):
        instance.receiver(multicast, TOPIC, **{option: text})


def test_endpoints_without_udp_have_no_repairer() -> None:
    with Instance() as instance, pytest.raises(OptionError, match="needs an endpoint of UDP"):
        instance.receiver(f"rum://127.0.0.1:{free_port()}", TOPIC, repairer="127.0.0.1:7600")


def test_the_command_repairs_until_it_is_stopped(multicast: str) -> None:
    at = f"127.0.0.1:{free_port()}"
    command = [sys.executable, "-m", "heliograph.monitor.cli", "repairer", multicast, TOPIC, "--at", at]
    limits = ["--bytes", "1M", "--time", "5s", "--rate", "10M"]
    with subprocess.Popen([*command, *limits], stderr=subprocess.PIPE, text=True) as repairer:
        try:
            assert repairer.stderr is not None
            assert repairer.stderr.readline() == f"repairing at {at}\n"
            with Instance() as source, Instance() as sink:
                receiver = sink.receiver(multicast, TOPIC, repairer=at, inject_loss=0.05, nak_deadline=20.0)
                transmitter = source.transmitter(multicast, TOPIC, linger=1.0)
                _send(transmitter)
                assert len(collect(receiver, COUNT, seconds=40.0)) == COUNT
                assert records(sink, "rx_stream")[0]["repairer_repairs_received"] > 0
            repairer.send_signal(signal.SIGTERM)
            assert repairer.wait(20) == 128 + signal.SIGTERM
        finally:
            repairer.kill()
