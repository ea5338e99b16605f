"""``heliograph export``, run as people run it."""

from __future__ import annotations

import argparse
import http.client
import json
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from heliograph.exporters.commands import command
from heliograph.monitor.errors import UserError
from tests.fleet import sample_fleet
from tests.monitor.test_module_process import EXAMPLE, Compile, compiled  # noqa: F401 - a fixture

DEADLINE = 30


@pytest.fixture
def segments(tmp_path: Path) -> Path:
    folder = tmp_path / "segments"
    sample_fleet(folder)
    return folder


def line(*arguments: str | Path) -> list[str]:
    return [sys.executable, "-m", "heliograph.monitor.cli", "export", *map(str, arguments)]


def export(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(line(*arguments), capture_output=True, text=True, timeout=DEADLINE)


@contextmanager
def running(*arguments: str | Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The process, and the sentence it began with."""
    process = subprocess.Popen(line(*arguments), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    try:
        yield process, process.stderr.readline()
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


def metrics(text: str) -> dict[str, float]:
    return {s.name: s.value for family in text_string_to_metric_families(text) for s in family.samples}


def parsed(*arguments: str) -> object:
    """The settings as the command line would pass them, run in this process."""
    parser = argparse.ArgumentParser()
    command(parser.add_subparsers())
    args = parser.parse_args(["export", *arguments])
    return args.run(args)


def test_once_writes_the_metrics_to_standard_output(segments: Path) -> None:
    done = export("prometheus", "--once", "--segments", segments, "--interval", "0.05")
    assert (done.returncode, done.stderr) == (0, "")
    found = metrics(done.stdout)
    assert found["heliograph_tx_stream_packets_sent_total"] == 20_000
    assert found["heliograph_exporter_window_seconds"] == pytest.approx(0.05, abs=0.5)


def test_once_writes_a_file_whole_or_not_at_all(segments: Path, tmp_path: Path) -> None:
    out = tmp_path / "metrics.prom"
    done = export("prometheus", "--once", "--out", out, "--segments", segments, "--interval", "0.05")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert metrics(out.read_text())["heliograph_node_up"] == 1
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == ["metrics.prom"]
    refused = export("prometheus", "--once", "--out", tmp_path / "no" / "such", "--segments", segments)
    assert refused.returncode == 2
    assert "cannot be written" in refused.stderr


def test_once_says_when_there_is_nobody(tmp_path: Path) -> None:
    done = export("prometheus", "--once", "--segments", tmp_path, "--interval", "0.05")
    assert done.returncode == 0
    assert "no instance has a segment in" in done.stderr


@pytest.mark.parametrize("sign", [signal.SIGTERM, signal.SIGINT])
def test_several_exporters_run_in_one_process_and_end_in_order(
    segments: Path, tmp_path: Path, sign: signal.Signals
) -> None:
    out = [tmp_path / "spool", tmp_path / "latency.hlog"]
    names = ["prometheus", "console", "spool", "hdrlog"]
    settings: list[str | Path] = ["--dir", out[0], "--file", out[1], "--backlog"]
    settings += ["--listen", "127.0.0.1:0", "--interval", "0.05"]
    with running(*names, *settings, "--segments", segments) as (process, told):
        address = re.search(r"prometheus at http://([\d.]+):(\d+)/metrics, console, spool, hdrlog", told)
        assert address, told
        assert process.stdout is not None
        for _ in range(2):
            assert "live" in process.stdout.readline()
        connection = http.client.HTTPConnection(address[1], int(address[2]), timeout=DEADLINE)
        connection.request("GET", "/metrics")
        found = list(text_string_to_metric_families(connection.getresponse().read().decode()))
        published = {
            sample.labels["exporter"]: sample.value
            for family in found
            for sample in family.samples
            if sample.name == "heliograph_exporter_publishes_total"
        }
        assert published.keys() == set(names)
        assert published["console"] >= 1
        process.send_signal(sign)
        rest, trouble = process.communicate(timeout=DEADLINE)
        assert (process.returncode, trouble) == (0, "")
        assert rest.endswith("\n")
    assert list(out[0].rglob("*.parquet")), "what was held is written on the way out"
    assert "total_latency" in out[1].read_text()


def test_a_module_beside_an_exporter_is_fed_and_its_counts_are_exported(
    segments: Path,
    tmp_path: Path,
    compiled: Compile,  # noqa: F811
) -> None:
    lines = tmp_path / "lines.jsonl"
    module = compiled(text=EXAMPLE.read_text(), name="jsonl")
    settings = ["--segments", segments, "--interval", "0.05", "--listen", "127.0.0.1:0"]
    with running("prometheus", "--module", f"{module}={lines}", *settings) as (process, said):
        host, _, port = said.strip().removesuffix("/metrics").rpartition("http://")[2].partition(":")
        ends = time.monotonic() + DEADLINE
        found: dict[str, float] = {}
        while found.get("heliograph_module_snapshots_total", 0) < 2 and time.monotonic() < ends:
            connection = http.client.HTTPConnection(host, int(port), timeout=DEADLINE)
            connection.request("GET", "/metrics")
            found = metrics(connection.getresponse().read().decode())
            connection.close()
        assert found["heliograph_module_snapshots_total"] >= 2
        assert found["heliograph_module_errors_total"] == 0
        assert found["heliograph_module_topics_total"] >= 20
        process.send_signal(signal.SIGTERM)
        assert process.wait(DEADLINE) == 0
    told = [json.loads(line) for line in lines.read_text().splitlines()]
    assert {line["what"] for line in told} == {"instance", "object", "event"}


def test_a_module_that_cannot_be_opened_leaves_nothing_running(segments: Path) -> None:
    done = export("prometheus", "--module", "log=values,colour=red", "--listen", "127.0.0.1:0", "--segments", segments)
    assert done.returncode == 2
    assert "unknown option 'colour=red'" in done.stderr


def test_a_port_in_use_is_one_clear_sentence_and_nothing_is_left_running(segments: Path, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = export("console", "prometheus", "--listen", f"127.0.0.1:{port}", "--segments", segments)
    assert (done.returncode, done.stdout) == (2, "")
    assert re.fullmatch(rf"heliograph: port {port} on 127\.0\.0\.1 is in use: .*\n", done.stderr)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["nonsense"], "unknown exporter 'nonsense'; available: console, hdrlog"),
        (["console", "console"], "console is named twice"),
        (["spool"], "'spool' needs --dir"),
        (["hdrlog"], "'hdrlog' needs --file"),
        (["pushgateway"], "'pushgateway' needs --gateway"),
        (["console", "--dir", "x"], "--dir belongs to spool"),
        (["console", "--max-series", "5"], "--max-series belongs to prometheus and pushgateway"),
        (["console", "--backlog"], "--backlog belongs to spool and hdrlog"),
        (["console", "--once"], "--once works only with the exporter prometheus"),
        (["prometheus", "--out", "x"], "--out needs --once"),
        (["pushgateway", "--gateway", "h", "--group", "x"], "'x' is not of the form --group LABEL=VALUE"),
        (["console", "--set", "console.a=b"], "not a named exporter of another package"),
        (["prometheus", "--listen", "nowhere"], "write HOST:PORT"),
    ],
)
def test_a_setting_that_is_missing_or_strange_is_refused(arguments: list[str], told: str) -> None:
    with pytest.raises(UserError) as refused:
        parsed(*arguments)
    assert told in str(refused.value)


@pytest.mark.parametrize("interval", ["0", "0.01", "nan", "inf", "soon"])
def test_an_interval_must_be_a_sensible_number_of_seconds(interval: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parsed("console", "--interval", interval)
    assert f"--interval: '{interval}' is not a time in seconds" in capsys.readouterr().err


def test_the_signals_are_as_they_were_after_a_refusal(tmp_path: Path) -> None:
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    file = tmp_path / "file"
    file.write_text("")
    with pytest.raises(UserError):
        parsed("hdrlog", "--file", str(file / "below"))
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before
