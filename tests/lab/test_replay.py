"""Decision logs of a running engine, and their decisions made again."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from heliograph.engine import Instance, OptionError, SystemCallError
from heliograph.monitor.lab.replay import read
from tests.ports import free_port

ENDPOINT = "rmm+unicast://127.0.0.1:{port}"
OPTIONS = {
    "rate_policy": "dynamic",
    "rate": 20_000_000,
    "report_interval": 0.02,
    "slow_mode": "enforce",
    "storm_mode": "enforce",
}


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The log of a source whose receiver loses a tenth for a while, and whose policy is changed on the way."""
    folder = tmp_path_factory.mktemp("decisions")
    endpoint = ENDPOINT.format(port=free_port())
    with (
        Instance(name="feed", decision_log=str(folder)) as feed,
        Instance(name="desk") as desk,
        desk.receiver(endpoint, "PRICES", inject_loss=0.1) as receiver,
        feed.transmitter(endpoint, "PRICES", **OPTIONS) as transmitter,
    ):
        end = time.monotonic() + 1.5
        while time.monotonic() < end:
            transmitter.send(b"x" * 1000, timeout=10)
            receiver.receive(limit=1000)
    (path,) = folder.glob("*.decisions")
    return path


def _heliograph(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "heliograph.monitor.cli", "lab", "replay", *arguments], capture_output=True, text=True
    )


def test_every_decision_is_reproduced(log: Path) -> None:
    rerun = read(log)
    assert rerun.instance == "feed"
    assert rerun.policy == "dynamic"
    assert rerun.intervals > 20
    assert rerun.recorded > 3
    assert rerun.is_reproduced
    assert all(one.agrees and one.recorded == one.made for one in rerun.decisions)
    assert any("decrease" in one.recorded for one in rerun.decisions)


def test_a_log_takes_no_more_than_it_holds(log: Path) -> None:
    assert 1000 < log.stat().st_size < 1 << 20


def test_another_policy_decides_otherwise_on_the_same_inputs(log: Path) -> None:
    rerun = read(log, ["rate_policy=static"])
    assert rerun.policy == "static"
    assert not rerun.is_reproduced
    assert rerun.recorded > rerun.reproduced
    milder = read(log, ["loss_high=0.5"])
    assert milder.policy == "dynamic"
    assert not any("decrease" in one.made for one in milder.decisions)


def test_the_command_says_what_was_reproduced(log: Path) -> None:
    result = _heliograph(str(log))
    assert result.returncode == 0
    assert "decisions reproduced" in result.stdout
    (told,) = json.loads(_heliograph(str(log), "--json").stdout)["logs"]
    assert told["is_reproduced"]
    assert told["recorded"] == len(told["decisions"])
    changed = _heliograph(str(log), "--set", "loss_high=0.5")
    assert changed.returncode == 0
    assert "was: rate" in changed.stdout


def test_a_decision_that_is_not_reproduced_is_told(log: Path, tmp_path: Path) -> None:
    """A log in which somebody has changed what was decided."""
    data = log.read_bytes()
    at = data.rindex(b"loss")
    forged = tmp_path / "forged.decisions"
    forged.write_bytes(data[:at] + b"LOSS" + data[at + 4 :])
    result = _heliograph(str(forged))
    assert result.returncode == 1
    assert "was:" in result.stdout
    assert "now:" in result.stdout


def test_what_is_no_log_is_refused(log: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.write_bytes(b"HELIOSEG" + bytes(200))
    result = _heliograph(str(other), str(tmp_path / "missing"), str(log))
    assert result.returncode == 2
    assert "it is no decision log" in result.stderr
    assert "No such file" in result.stderr
    assert "decisions reproduced" in result.stdout
    with pytest.raises(ValueError, match="option loss_high"):
        read(log, ["loss_high=7"])
    with pytest.raises(ValueError, match=r"loss_high=0\.01 must be"):
        read(log, ["loss_low=0.5"])


def test_a_crashed_engine_leaves_whole_records(log: Path, tmp_path: Path) -> None:
    """Cut anywhere, the log is read up to there, and what is read is reproduced."""
    data = log.read_bytes()
    for part in (0.3, 0.6, 0.9):
        cut = tmp_path / f"cut-{part}"
        used = int(len(data) * part)
        cut.write_bytes(data[:16] + used.to_bytes(8, "little") + data[24:used])
        rerun = read(cut)
        assert rerun.intervals > 3
        assert all(one.agrees for one in rerun.decisions[:-1])


def test_a_full_log_ends_and_says_so(tmp_path: Path) -> None:
    endpoint = ENDPOINT.format(port=free_port())
    with (
        Instance(name="feed", decision_log=str(tmp_path), decision_log_bytes=65536) as feed,
        Instance(name="desk") as desk,
        desk.receiver(endpoint, "PRICES", inject_loss=0.1) as receiver,
        feed.transmitter(endpoint, "PRICES", control_interval=0.001, **OPTIONS) as transmitter,
    ):
        (path,) = tmp_path.glob("*.decisions")
        end = time.monotonic() + 20
        while path.read_bytes()[32] == 0 and time.monotonic() < end:
            transmitter.send(b"x" * 1000, timeout=10)
            receiver.receive(limit=1000)
        assert path.read_bytes()[32] == 1
    assert path.stat().st_size <= 65536
    assert read(path).is_reproduced


def test_a_folder_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with (
        Instance(decision_log=str(tmp_path / "missing")) as instance,
        pytest.raises(SystemCallError, match="decision_log"),
    ):
        instance.transmitter(ENDPOINT.format(port=free_port()), "PRICES")
    with pytest.raises(OptionError, match="decision_log_bytes"):
        Instance(decision_log_bytes=1)
