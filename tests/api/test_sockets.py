"""What happens in the sockets under the engine is seen: drops by cause, time waited; and PGM straight over IP."""

from __future__ import annotations

import subprocess
import sys

import pytest

from heliograph.engine import EndpointError, Instance, SystemCallError
from tests.ports import free_port
from tests.segment.decoder import Decoded, decode_live

from .conftest import collect, until

RAW = "encapsulation=ip"


def segment_of(instance: Instance) -> Decoded:
    return decode_live(instance.segment)


def counted(instance: Instance, name: str) -> int:
    (found,) = segment_of(instance).of("instance")
    return found.values[name]


def gaps(instance: Instance) -> int:
    return sum(stream.values["packets_missed"] for stream in segment_of(instance).of("rx_stream"))


def may_be_raw() -> bool:
    import socket

    try:
        socket.socket(socket.AF_INET, socket.SOCK_RAW, 113).close()
    except PermissionError:
        return False
    return True


def test_a_full_socket_is_told_from_a_lossy_network(unicast: str) -> None:
    """Two receivers miss packets: one whose program does not read in time, and one whose network loses some."""
    total = 400
    with Instance(mode="poll") as late, Instance() as source:
        receiver = late.receiver(unicast, "T", socket_buffer=4096, gro="off", nak_deadline=20.0)
        transmitter = source.transmitter(unicast, "T", linger=0.0)
        transmitter.send(b"first")
        assert len(collect(receiver, 1)) == 1
        transmitter.send_many([b"." * 1000] * total)  # nobody reads
        transmitter.flush()
        assert len(collect(receiver, total, seconds=30.0)) == total
        assert until(lambda: counted(late, "socket_drops") > 0, late)
        assert counted(late, "socket_drops") >= gaps(late) > 0

    lossy = f"rmm+unicast://127.0.0.1:{free_port()}"
    with Instance() as reader, Instance() as source:
        receiver = reader.receiver(lossy, "T", inject_loss=0.1, nak_deadline=20.0)
        transmitter = source.transmitter(lossy, "T", linger=0.0)
        for _ in range(total // 20):
            transmitter.send_many([b"." * 1000] * 20)
            transmitter.flush()
        assert len(collect(receiver, total, seconds=30.0)) == total
        assert gaps(reader) > 0
        assert counted(reader, "socket_drops") == 0


@pytest.mark.parametrize("level", [2, 3])
def test_the_wait_in_the_socket_is_recorded_at_level_3(level: int, unicast: str) -> None:
    with Instance(level=level) as instance:
        receiver = instance.receiver(unicast, "T")
        transmitter = instance.transmitter(unicast, "T", linger=0.0)
        for _ in range(20):
            transmitter.send(b"x")
            assert len(collect(receiver, 1)) == 1
        (stream,) = segment_of(instance).of("rx_stream")
        if level < 3:
            assert "socket_latency" not in stream.histograms
            return
        waits = stream.histograms["socket_latency"]
        assert waits.total >= 20
        assert 0 < waits.sum / waits.total < 1e9  # the kernel's clock and the engine's are one


@pytest.mark.skipif(not may_be_raw(), reason="raw sockets are not permitted")
@pytest.mark.parametrize("kind", ["multicast", "unicast"])
@pytest.mark.parametrize("mode", ["thread", "poll"])
def test_pgm_goes_straight_over_ip(mode: str, kind: str) -> None:
    host = "rmm://239.192.41.1" if kind == "multicast" else "rmm+unicast://127.0.0.1"
    endpoint = f"{host}:{free_port()}?interface=127.0.0.1&{RAW}"
    with Instance(mode=mode) as instance:  # type: ignore[arg-type]
        receiver = instance.receiver(endpoint, "T", inject_loss=0.05, nak_deadline=10.0)
        transmitter = instance.transmitter(endpoint, "T", linger=0.0, router_alert=True)
        messages = []
        for _ in range(0, 2000, 50):
            transmitter.send_many([b"." * 500] * 50)
            messages += receiver.receive(timeout=0)
        messages += collect(receiver, 2000 - len(messages), seconds=30.0)
        assert [message.number for message in messages] == list(range(2000))
        assert any(message.recovered for message in messages)


@pytest.mark.skipif(not may_be_raw(), reason="raw sockets are not permitted")
def test_endpoints_of_other_ports_are_not_heard_over_ip() -> None:
    first, second = (f"rmm+unicast://127.0.0.1:{free_port()}?{RAW}" for _ in range(2))
    with Instance() as instance:
        here = instance.receiver(first, "T")
        there = instance.receiver(second, "T")
        with instance.transmitter(first, "T", linger=0.0) as transmitter:
            transmitter.send(b"for the first")
            assert [message.data for message in collect(here, 1)] == [b"for the first"]
        with instance.transmitter(second, "T", linger=0.0) as transmitter:
            transmitter.send(b"for the second")
            assert [message.data for message in collect(there, 1)] == [b"for the second"]
        assert here.receive(timeout=0) == []
        # Each packet is read once: by the receiver, or the stream, that it is for.
        assert until(lambda: counted(instance, "packets_received") == counted(instance, "packets_sent") > 0)


def test_raw_ip_without_permission_is_refused_with_what_it_needs() -> None:
    program = (
        "import ctypes, os\n"
        "from heliograph.engine import Instance\n"
        "if os.getuid() == 0:\n"
        "    header = (ctypes.c_uint32 * 2)(0x20080522, 0)\n"
        "    assert ctypes.CDLL(None).capset(header, (ctypes.c_uint32 * 6)()) == 0\n"
        "with Instance(stats='memory') as instance:\n"
        "    instance.transmitter('rmm+unicast://127.0.0.1:7600', 'T', encapsulation='ip')\n"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert SystemCallError.__name__ in run.stderr
    assert "encapsulation=ip needs the capability CAP_NET_RAW" in run.stderr


def test_the_encapsulation_port_can_have_one_listener(unicast: str) -> None:
    with Instance() as instance:
        receiver = instance.receiver(unicast, "T")
        with pytest.raises(EndpointError, match=r"upstream: 127\.0\.0\.1:[0-9]+ is in use by another program"):
            instance.transmitter(unicast, "T", upstream=True)
        receiver.close()
