"""Stores that divide the streams of their sources by the option `share`."""

from __future__ import annotations

import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

from heliograph.engine import Instance, OptionError, Transmitter, _store
from heliograph.engine.store.server import StoreServer

from .conftest import until
from .test_store_server import stop

SHARES = 3


def share_of(gsi: bytes, port: int) -> int:
    """As docs/store.md, section 7, says."""
    value = 0xCBF29CE484222325
    for byte in gsi + port.to_bytes(2, "big"):
        value = (value ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return (value >> 32) % SHARES + 1


def test_each_stream_is_kept_and_acknowledged_by_the_store_of_its_share(tmp_path: Path, multicast: str) -> None:
    with ExitStack() as opened:
        servers = []
        for share in range(1, SHARES + 1):
            server = opened.enter_context(StoreServer(tmp_path / f"store{share}", name=f"store{share}"))
            server.keep(multicast, "T", share=f"{share}/{SHARES}")
            servers.append(server)
        transmitters: list[Transmitter] = []
        for number in range(9):
            source = opened.enter_context(Instance(name=f"source{number}"))
            transmitters.append(source.transmitter(multicast, "T", acks=1))
            transmitters[-1].send(b"x")

        def are_durable() -> bool:
            for server in servers:
                server.step(0.01)
            counts = [server.counts() for server in servers]
            return sum(one.kept for one in counts) == len(transmitters) and not any(one.waiting for one in counts)

        assert until(are_durable, seconds=20)
        for transmitter in transmitters:
            transmitter.wait_acked(1, timeout=5)
    found: set[tuple[bytes, int]] = set()
    for share in range(1, SHARES + 1):
        streams = {(gsi, port) for gsi, port, _ in _store.ids(tmp_path / f"store{share}")}
        assert {share_of(gsi, port) for gsi, port in streams} <= {share}
        found |= streams
    assert len(found) == len(transmitters)


@pytest.mark.parametrize("share", ["0/3", "4/3", "1/65", "1", "1/3x", "a/b", "-1/3", "1/0", "1/3/2"])
def test_a_wrong_share_is_refused(tmp_path: Path, multicast: str, share: str) -> None:
    with StoreServer(tmp_path / "store", name="store") as server, pytest.raises(OptionError) as refused:
        server.keep(multicast, "T", share=share)
    assert f"option share is K/N, such as 1/3, with K from 1 to N and N up to 64, not '{share}'" in str(refused.value)


def test_serve_takes_a_share(tmp_path: Path, segments: Path, multicast: str) -> None:
    def serve(share: str) -> subprocess.Popen[str]:
        folder = str(tmp_path / "store")
        command = [sys.executable, "-m", "heliograph.monitor.cli", "store", "serve", folder, multicast, "T"]
        return subprocess.Popen([*command, "--share", share], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    with serve("2/1") as wrong:
        _, errors = wrong.communicate(timeout=30)
    assert wrong.returncode != 0
    assert "option share is K/N, such as 1/3" in errors
    with serve("1/1") as server, Instance(name="source") as source:
        assert server.stderr
        assert server.stderr.readline().startswith("keeping T in ")
        transmitter = source.transmitter(multicast, "T", acks=1)
        transmitter.send(b"x")
        transmitter.wait_acked(1, timeout=20)
        stop(server)
