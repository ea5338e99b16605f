"""Both IP families behave alike: every message in order through loss, repaired by requests that carry IPv6 addresses.

Groups need a route, which the loopback device does not have, so they are tried on a pair of devices in a network
namespace of their own.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import pytest

from heliograph.engine import EndpointError, Instance, OptionError
from tests.ports import free_port

from .conftest import collect

EXCHANGE = """
import sys
from heliograph.engine import Instance
with Instance() as sink, Instance() as source:
    for endpoint in sys.argv[1:]:
        with sink.receiver(endpoint, "T", inject_loss=0.05, nak_deadline=10.0) as receiver:
            with source.transmitter(endpoint, "T", linger=0.0) as transmitter:
                got = []
                for start in range(0, 3000, 50):
                    transmitter.send_many([b"%d" % number + b"." * 500 for number in range(start, start + 50)])
                    got += receiver.receive(timeout=0)
                while len(got) < 3000 and (more := receiver.receive(timeout=10.0)):
                    got += more
                in_order = [message.number for message in got] == list(range(3000))
                print(in_order, any(message.recovered for message in got), receiver.losses() == [])
"""

NAMESPACE = """
ip link set lo up && ip link add helio0 type veth peer name helio1 && ip addr add fd00::1/64 dev helio0 nodad
sysctl -qw net.ipv6.conf.helio1.accept_dad=0 net.ipv6.conf.helio0.accept_dad=0
ip link set helio0 up && ip link set helio1 up
for _ in $(seq 50); do ip -6 addr show dev helio0 | grep -q tentative || break; sleep 0.02; done
exec "$@"
"""


def in_namespace(*command: str) -> subprocess.CompletedProcess[str]:
    """Run a program in a network namespace with a pair of devices; skips where that is not permitted."""
    if not (shutil.which("unshare") and shutil.which("ip")):
        pytest.skip("needs unshare and ip")
    if subprocess.run(["unshare", "--net", "true"], capture_output=True, check=False).returncode != 0:
        pytest.skip("network namespaces are not permitted")
    return subprocess.run(
        ["unshare", "--net", "sh", "-c", NAMESPACE, "sh", *command],
        capture_output=True,
        text=True,
        timeout=120,
        env=os.environ,
    )


@pytest.mark.parametrize("mode", ["thread", "poll"])
def test_unicast_recovers_what_is_lost(mode: str) -> None:
    endpoint = f"rmm+unicast://[::1]:{free_port()}"
    with Instance(mode=mode) as instance:  # type: ignore[arg-type]
        receiver = instance.receiver(endpoint, "T", inject_loss=0.05, nak_deadline=10.0)
        transmitter = instance.transmitter(endpoint, "T", linger=0.0)
        messages = []
        for start in range(0, 3000, 50):
            transmitter.send_many([b"%d" % number + b"." * 500 for number in range(start, start + 50)])
            messages += receiver.receive(timeout=0)
        messages += collect(receiver, 3000 - len(messages), seconds=30.0)
        assert [message.number for message in messages] == list(range(3000))
        assert any(message.recovered for message in messages)
        assert receiver.losses() == []


def test_groups_recover_what_is_lost() -> None:
    endpoints = [
        "rmm://[ff15::1]:7500?interface=helio0",
        "rmm://[ff15::1]:7501?interface=fd00::1",
        "rmm://[ff15::1]:7502",
        "rmm://[ff02::1:5]:7503?interface=helio1",
        "rmm://[ff15::1]:7504?interface=helio0&encapsulation=ip",
    ]
    run = in_namespace(sys.executable, "-c", EXCHANGE, *endpoints)
    assert run.stdout.splitlines() == ["True True True"] * len(endpoints), run.stderr


def test_an_interface_is_given_by_its_name_in_both_families() -> None:
    port = free_port()
    for endpoint in (f"rmm+unicast://[::1]:{port}?interface=lo", f"rmm://239.192.40.1:{port}?interface=lo"):
        with Instance() as instance:
            receiver = instance.receiver(endpoint, "T")
            instance.transmitter(endpoint, "T").send(b"named")
            assert [message.data for message in collect(receiver, 1)] == [b"named"]


@pytest.mark.parametrize("owner", ["transmitter", "receiver"])
@pytest.mark.parametrize(
    ("endpoint", "error", "text"),
    [
        ("rmm+unicast://[::1]:7500,127.0.0.1:7500", EndpointError, "IPv4 and IPv6 hosts cannot be mixed"),
        ("rmm+unicast://[::1]:7500?interface=127.0.0.1", OptionError, "an IPv4 address and the endpoint's is an IPv6"),
        ("rmm://239.1.1.1:7500?interface=::1", OptionError, "an IPv6 address and the endpoint's is an IPv4"),
        ("rmm://239.1.1.1:7500?interface=nosuch0", OptionError, 'not "nosuch0"'),
        ("rmm://[ff15::1]:7500?interface=2001:db8::1", EndpointError, "is not an address of this machine"),
        ("rmm://[::1]:7500", EndpointError, r"use rmm\+unicast://"),
    ],
)
def test_what_does_not_go_together_is_refused(owner: str, endpoint: str, error: type[Exception], text: str) -> None:
    with Instance() as instance, pytest.raises(error, match=text):
        getattr(instance, owner)(endpoint, "T")


def test_a_group_without_a_way_to_it_is_refused() -> None:
    with Instance() as instance, pytest.raises(EndpointError, match="no multicast route to group ff15::1"):
        instance.transmitter("rmm://[ff15::1]:7500?interface=lo", "T")
