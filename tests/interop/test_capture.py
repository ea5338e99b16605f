"""What a capture of a lossy run holds is what the statistics say, packet by packet."""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
import time
from collections import Counter
from pathlib import Path

import pytest

from heliograph.engine import Instance
from tests.interop.cable import ADDRESSES, Cable
from tests.interop.conftest import assert_nothing_odd, collect, look, lose_everywhere, make, objects, only, settled
from tests.wire.decoder import decode_packet

ENDPOINT = "rmm://239.192.78.2:7502"
KINDS = {0x00: "SPM", 0x04: "ODATA", 0x05: "RDATA", 0x08: "NAK", 0x0A: "NCF"}


class Capture:
    """tcpdump at the near end, which sees packets before they are lost there."""

    def __init__(self, cable: Cable, file: Path) -> None:
        if shutil.which("tcpdump") is None:
            pytest.skip("tcpdump is not installed")
        command = [
            "tcpdump",
            "-i",
            "near",
            "-n",
            "-s",
            "0",
            "-B",
            "65536",
            "-U",
            "--immediate-mode",
            "-Z",
            "root",
            "-w",
            str(file),
            "udp",
        ]
        self._process = subprocess.Popen([*cable.at("near"), *command], stderr=subprocess.PIPE, text=True)
        assert self._process.stderr is not None
        assert "listening on near" in self._process.stderr.readline()

    def end(self) -> int:
        """Stop; returns the number of packets captured. None was missed."""
        time.sleep(0.2)  # what the kernel has taken down reaches tcpdump
        self._process.send_signal(signal.SIGINT)
        _, said = self._process.communicate(timeout=10)
        numbers = {
            what: int(number) for number, what in re.findall(r"(\d+) packets? (captured|dropped by kernel)", said)
        }
        assert numbers["dropped by kernel"] == 0, said
        return numbers["captured"]


def counted(file: Path, stream_port: int) -> dict[str, Counter[str]]:
    """Packets by sender's address and kind, as tshark reads them; nothing is malformed."""
    tshark = shutil.which("tshark")
    if tshark is None:
        pytest.skip("tshark is not installed")
    command = [tshark, "-r", str(file), "-d", "udp.port==7502,pgm", "-d", f"udp.port=={stream_port},pgm"]

    def run(*more: str) -> list[str]:
        return subprocess.run([*command, *more], check=True, capture_output=True, text=True).stdout.splitlines()

    assert run("-Y", "_ws.malformed || pgm.bad_checksum") == []
    found: dict[str, Counter[str]] = {address: Counter() for address in ADDRESSES.values()}
    for line in run("-T", "fields", "-e", "ip.src", "-e", "pgm.hdr.type", "-e", "udp.payload"):
        address, kind, payload = line.split("\t")
        if kind and int(kind, 0) in KINDS:
            found[address][KINDS[int(kind, 0)]] += 1
        else:  # tshark does not know SPMR
            found[address][decode_packet(bytes.fromhex(payload)).kind] += 1
    return found


def test_a_capture_of_a_lossy_run_holds_exactly_what_the_statistics_say(cable: Cable, tmp_path: Path) -> None:
    file = tmp_path / "lossy.pcap"
    messages = make(3000, seed=50) + make(30, seed=51, longest=20_000)
    with cable.enter("near"):
        source = Instance(name="source")
    with cable.enter("far"):
        sink = Instance(name="sink")
    with source, sink:
        capture = Capture(cable, file)
        endpoint = f"{ENDPOINT}?interface={ADDRESSES['near']}"
        # Heartbeats so seldom that the receiver meets data first and asks where the stream is (SPMR). Without gso:
        # a capture sees what the kernel is given, which would be many packets in one.
        transmitter = source.transmitter(
            endpoint, "t", gso="off", linger=0.3, heartbeat_min=0.1, ambient_interval=4.0, announce_interval=10.0
        )
        transmitter.send_many(messages[:10])
        transmitter.flush()
        time.sleep(0.05)
        receiver = sink.receiver(f"{ENDPOINT}?interface={ADDRESSES['far']}", "t", nak_deadline=20.0)
        transmitter.send(messages[10])
        settled(lambda now: bool(objects(now, "rx_stream")))
        lose_everywhere(cable, 0.05)
        for begin in range(11, len(messages), 20):
            transmitter.send_many(messages[begin : begin + 20])
            time.sleep(0.001)
        got = collect(receiver, len(messages) - 10, 30)
        assert [message.data for message in got] == messages[10:]
        assert_nothing_odd()
        stream_port = int(transmitter.stream.rsplit(":", 1)[1])
        transmitter.close()
        ended = settled(lambda now: all(item.values["tx_streams"] == 0 for item in objects(now, "instance")))
        assert all(item.values["tx_streams"] == 0 for item in objects(ended, "instance"))
        captured = capture.end()
        snapshot = look()
    sent, asked = only(objects(snapshot, "tx_stream")).values, only(objects(snapshot, "rx_stream")).values
    found = counted(file, stream_port)
    alone = asked["reports_sent"] - asked["nak_packets_sent"]  # reports that no request carried
    # Counters, so that a kind of which there was none is 0 on both sides: a prompt repair confirms its request itself.
    assert found[ADDRESSES["near"]] == Counter(
        {
            "SPM": sent["heartbeats_sent"],
            "ODATA": sent["packets_sent"],
            "RDATA": sent["repair_packets"],
            "NCF": sent["nak_confirmations_sent"],
        }
    )
    assert found[ADDRESSES["far"]] == {
        "NAK": asked["nak_packets_sent"],
        "SPMR": asked["heartbeat_requests_sent"],
        **({"ACK": alone} if alone else {}),
    }
    assert sent["repair_packets"] > 50
    by_name = {item.labels["instance"]: item.values["packets_sent"] for item in objects(snapshot, "instance")}
    assert by_name == {
        "source": found[ADDRESSES["near"]].total(),
        "sink": found[ADDRESSES["far"]].total(),
    }
    assert captured == sum(by_name.values())
