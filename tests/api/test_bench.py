"""`heliograph bench`: what it prints, and that its books balance. No test here judges a speed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from heliograph.engine import _bench
from heliograph.engine.bench import Run, measure

COMMAND = [sys.executable, "-m", "heliograph.monitor.cli", "bench"]


def bench(what: str, *arguments: str) -> list[dict[str, Any]]:
    """The rows of a benchmark."""
    done = subprocess.run([*COMMAND, what, *arguments, "--json"], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found.keys() == {"benchmark", "rows"}
    assert found["benchmark"] == what
    rows: list[dict[str, Any]] = found["rows"]
    return rows


@pytest.mark.parametrize("transport", ["rmm", "rmm+unicast", "shm"])
def test_throughput_tells_rate_losses_and_percentiles(transport: str) -> None:
    (row,) = bench("throughput", "--transport", transport, "--size", "64", "--seconds", "0.5")
    assert row["sent"] == row["received"] + row["unrecoverable"] > 0
    assert row["messages_per_second"] > 0
    latency = row["latency_ns"]
    assert 0 < latency["min"] <= latency["p50"] <= latency["p99"] <= latency["p99.9"] <= latency["max"]
    assert row["jitter_ns"] == latency["p99.9"] - latency["p50"]


@pytest.mark.parametrize("mode", ["spin", "thread", "block"])
def test_latency_keeps_the_rate_asked_for(mode: str) -> None:
    (row,) = bench("latency", "--rate", "1000", "--seconds", "1", "--mode", mode)
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


def test_a_grid_measures_each_cell_beside_bare_tcp() -> None:
    rows = bench("grid", "--transport", "rmm+unicast", "--seconds", "0.2")
    cells = [
        (size, rate, transport)
        for size in (50, 400)
        for rate in (500, 1000, 5000, 10000)
        for transport in ("rmm+unicast", "tcp")
    ]
    assert [(row["size"], row["offered_rate"], row["transport"]) for row in rows] == cells
    for row in rows:
        latency = row["latency_ns"]
        assert row["sent"] == row["offered_rate"] * 0.2, "every planned message is sent, however late"
        assert row["sent"] == row["received"] + row["unrecoverable"]
        assert 0 < latency["min"] <= latency["mean"] <= latency["max"]
        assert latency["p50"] <= latency["p99"] <= latency["p99.9"] <= latency["max"]
        assert row["jitter_ns"] == latency["p99.9"] - latency["p50"]
    assert all(row["unrecoverable"] == 0 for row in rows if row["transport"] == "tcp")
    assert [row["mean_ratio"] for row in rows[::2]] == [
        ours["latency_ns"]["mean"] / tcp["latency_ns"]["mean"] for ours, tcp in zip(rows[::2], rows[1::2], strict=True)
    ]


def test_a_stopped_sender_is_in_the_latency_of_all_messages_planned_meanwhile() -> None:
    """Latency counts from the planned time: a stop of 0.5 s at 1,000 messages/s delays 500 of them."""
    options = ["--size", "50", "--rate", "1000", "--seconds", "2", "--transport", "rmm+unicast", "--json"]
    process = subprocess.Popen([*COMMAND, "grid", *options], stdout=subprocess.PIPE, text=True)
    try:
        time.sleep(1.5)
        children = subprocess.run(["ps", "-o", "pid=", "--ppid", str(process.pid)], capture_output=True, text=True)
        sender = int(children.stdout.split()[0])
        os.kill(sender, signal.SIGSTOP)
        time.sleep(0.5)
        os.kill(sender, signal.SIGCONT)
        rows = json.loads(process.communicate(timeout=60)[0])["rows"]
    finally:
        process.kill()
        process.wait()
    assert rows[0]["latency_ns"]["max"] > 0.4e9
    assert rows[0]["latency_ns"]["p90"] > 0.1e9, "more than a tenth of the messages waited"


def test_wait_strategies_show_latency_and_processor_time() -> None:
    rows = bench("waits", "--transport", "rmm+unicast", "--seconds", "0.5", "--rate", "100")
    assert [row["wait"] for row in rows] == ["spin", "yield", "backoff", "block"]
    assert all(0 < row["receiver_cpu"] <= 1.05 for row in rows)
    assert all(row["received"] == 50 for row in rows)


def test_the_tables_of_grid_and_waits_show_the_tail() -> None:
    for what, heads in (("grid", "mean p50 p99 p99.9 max jitter"), ("waits", "p50 p99 p99.9 max jitter CPU")):
        command = [*COMMAND, what, "--rate", "500", "--seconds", "0.2", "--transport", "shm"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        head, *rows, note = done.stdout.splitlines()
        assert heads in " ".join(head.split())
        assert len(rows) == 4
        assert "tcp" in note or "idle" in note


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


@pytest.mark.parametrize("what", ["throughput", "grid", "waits"])
def test_ctrl_c_ends_both_processes_and_leaves_no_file(what: str, tmp_path: Path) -> None:
    """The process itself is interrupted, as by `kill -INT`; the two it started are not."""
    environment = {**os.environ, "HELIOGRAPH_SEGMENT_DIR": str(tmp_path)}
    process = subprocess.Popen([*COMMAND, what, "--seconds", "60"], start_new_session=True, text=True, env=environment)
    time.sleep(1.5)
    children = subprocess.run(["ps", "-o", "pid=", "--ppid", str(process.pid)], capture_output=True, text=True).stdout
    assert len(children.split()) == 2
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=20) == 130
    left = subprocess.run(["ps", "-o", "pid=", "-p", ",".join(children.split())], capture_output=True, text=True)
    assert not left.stdout.split()
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


def test_messages_not_received_count_as_unrecoverable() -> None:
    result = measure(Run("rmm", 64, 0.0, 0.3, 0.03, "spin"))
    assert result.sent == result.received + result.unrecoverable


@pytest.mark.parametrize(
    ("total", "share", "rank"),
    [(1, 0.0, 1), (1, 1.0, 1), (10, 0.5, 5), (10, 0.51, 6), (1000, 0.999, 999), (19_857_408, 1.0, 19_857_408)],
)
def test_a_percentile_is_one_of_the_values(total: int, share: float, rank: int) -> None:
    assert _bench.rank(total, share) == rank
