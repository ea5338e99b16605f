"""`heliograph alerts check`: the alerts that a recorded past would have raised, and when."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from heliograph.monitor.cli import main
from tests.flights import START_NS, FlightObject, FlightWriter

SETTINGS = f"--settings={Path(__file__).resolve().parents[2] / 'deploy/alerts.toml'}"
START = START_NS / 1e9

pytestmark = pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not installed")


def recording(folder: Path, drops_at: int, unmatched_from: int) -> Path:
    """90 seconds in which the kernel drops packets at one second, and a receiver has no source from another on."""
    flight = FlightWriter(name="feed", interval_ns=100_000_000)
    flight.tick(new={0: FlightObject("instance", {"instance": "feed"}, {})})
    for tick in range(1, 901):
        seconds = tick // 10
        cells = {"socket_drops": 40 * (seconds >= drops_at), "receivers_unmatched": int(seconds >= unmatched_from)}
        flight.tick(changed={0: cells})
    file = folder / "feed.4711.flight"
    flight.write(file)
    return file


def found(capsys: pytest.CaptureFixture[str], *words: str | Path) -> dict[str, dict[str, Any]]:
    assert main(["alerts", "check", *map(str, words), SETTINGS, "--json"]) == 0
    return {one["alert"]: one for one in json.loads(capsys.readouterr().out)["alerts"]}


def test_a_recording_says_which_alerts_would_have_fired_and_when(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    alerts = found(capsys, recording(tmp_path, drops_at=30, unmatched_from=50))
    assert alerts.keys() == {"HeliographSocketDrops", "HeliographReceiverUnmatched"}
    drops = alerts["HeliographSocketDrops"]
    assert drops["fired_ns"] / 1e9 == pytest.approx(START + 30, abs=1)
    assert drops["resolved_ns"] is None, "the alert outlasts the recording"
    assert drops["labels"] == {"instance": "recording", "node": "feed"}
    unmatched = alerts["HeliographReceiverUnmatched"]
    assert unmatched["condition_ns"] / 1e9 == pytest.approx(START + 50, abs=1)
    assert unmatched["fired_ns"] is None, "40 seconds are too few for this alert"


def test_a_quiet_recording_raises_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = recording(tmp_path, drops_at=1000, unmatched_from=1000)
    assert main(["alerts", "check", str(file), SETTINGS]) == 0
    assert "no alert, and no condition of an alert held" in capsys.readouterr().out


def test_the_data_of_a_prometheus_is_a_past_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    name = 'heliograph_node_up{job="heliograph",instance="h:1",node="feed"}'
    lines = [f"{name} {int(not 60 <= second < 120)} {START + second}" for second in range(0, 300, 5)]
    past, data = tmp_path / "past.txt", tmp_path / "data"
    past.write_text("\n".join(["# TYPE heliograph_node_up gauge", *lines, "# EOF", ""]))
    command = ["promtool", "tsdb", "create-blocks-from", "openmetrics", str(past), str(data)]
    subprocess.run(command, check=True, capture_output=True)
    (data / "wal").mkdir()  # a server always has one
    down = found(capsys, data)["HeliographNodeDown"]
    assert down["labels"]["node"] == "feed"
    assert down["condition_ns"] / 1e9 == pytest.approx(START + 60, abs=1)
    assert down["fired_ns"] / 1e9 == pytest.approx(START + 75, abs=1), "after 15 seconds"
    assert down["resolved_ns"] / 1e9 == pytest.approx(START + 180, abs=6), "a minute after the node is back"


def test_a_file_that_is_no_recording_is_an_error_in_words(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "feed.1.flight"
    file.write_bytes(b"no recording")
    assert main(["alerts", "check", str(file), SETTINGS]) == 2
    assert "heliograph: " in capsys.readouterr().err
