"""`heliograph bench`: what it prints, and that its books balance. No test here judges a speed."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from typing import Any

import pytest

from heliograph.engine import _bench
from heliograph.engine.bench import Run, measure

COMMAND = [sys.executable, "-m", "heliograph.monitor.cli", "bench"]


def bench(*arguments: str) -> Any:
    done = subprocess.run([*COMMAND, *arguments, "--json"], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("transport", ["rmm", "rmm+unicast", "shm"])
def test_throughput_tells_rate_losses_and_percentiles(transport: str) -> None:
    row = bench("throughput", "--transport", transport, "--size", "64", "--seconds", "0.5")
    assert row["sent"] == row["received"] + row["unrecoverable"] > 0
    assert row["messages_per_second"] > 0
    latency = row["latency_ns"]
    assert 0 < latency["min"] <= latency["p50"] <= latency["p99"] <= latency["p99.9"] <= latency["max"]
    assert row["jitter_ns"] == latency["p99.9"] - latency["p50"]


@pytest.mark.parametrize("mode", ["spin", "thread", "block"])
def test_latency_keeps_the_rate_asked_for(mode: str) -> None:
    row = bench("latency", "--rate", "1000", "--seconds", "1", "--mode", mode)
    assert row["sent"] == row["received"] == 1000
    assert row["offered_rate"] == 1000
    assert 800 <= row["latency_ns"]["count"] < 1000, "the warm-up is left out"


def test_loss_is_repaired_and_its_price_told() -> None:
    clean, lossy = bench("loss", "--loss", "0.05", "--seconds", "0.5")
    assert lossy["recovered"] > 0
    assert lossy["received"] + lossy["unrecoverable"] == lossy["sent"]
    assert clean["loss"] == 0
    assert lossy["goodput_ratio"] > 0


def test_python_is_measured_three_ways() -> None:
    rows = bench("python", "--seconds", "0.3")
    assert [row["way"] for row in rows] == ["one", "list", "batch"]
    assert all(row["received"] + row["unrecoverable"] == row["sent"] > 0 for row in rows)


def test_several_sizes_give_a_table() -> None:
    done = subprocess.run(
        [*COMMAND, "latency", "--size", "64", "1024", "--seconds", "0.3"], capture_output=True, text=True, timeout=60
    )
    head, *rows = done.stdout.splitlines()
    assert "p99.99" in head
    assert [row.split()[1] for row in rows] == ["64", "1024"]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["latency", "--size", "8"], "a whole number of bytes from 16"),
        (["latency", "--rate", "0"], "a number of messages per second from 1"),
        (["throughput", "--transport", "pigeon"], "invalid choice"),
        (["throughput", "--endpoint", "rmm://10.0.0.1:7500"], "multicast group"),
    ],
)
def test_what_cannot_be_measured_is_refused_with_a_reason(arguments: list[str], sentence: str) -> None:
    done = subprocess.run([*COMMAND, *arguments], capture_output=True, text=True, timeout=60)
    assert done.returncode != 0
    assert sentence in done.stderr
    assert "Traceback" not in done.stderr


def test_ctrl_c_ends_both_processes() -> None:
    process = subprocess.Popen([*COMMAND, "throughput", "--seconds", "60"], start_new_session=True, text=True)
    time.sleep(1.5)
    children = subprocess.run(["ps", "-o", "pid=", "--ppid", str(process.pid)], capture_output=True, text=True).stdout
    assert len(children.split()) == 2
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=20) == 130
    left = subprocess.run(["ps", "-o", "pid=", "-p", ",".join(children.split())], capture_output=True, text=True)
    assert not left.stdout.split()


def test_messages_not_received_count_as_unrecoverable() -> None:
    result = measure(Run("rmm", 64, 0.0, 0.3, 0.03, "spin"))
    assert result.sent == result.received + result.unrecoverable


@pytest.mark.parametrize(
    ("total", "share", "rank"),
    [(1, 0.0, 1), (1, 1.0, 1), (10, 0.5, 5), (10, 0.51, 6), (1000, 0.999, 999), (19_857_408, 1.0, 19_857_408)],
)
def test_a_percentile_is_one_of_the_values(total: int, share: float, rank: int) -> None:
    assert _bench.rank(total, share) == rank
