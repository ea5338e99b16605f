"""Units of systemd: systemd accepts them, their commands exist, and they keep what a service may not do."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "deploy/systemd"
UNITS = sorted(FOLDER.glob("*.service"))
PROGRAM = "/opt/heliograph/.venv/bin/heliograph"
HARDENED = (
    "DynamicUser=yes", "NoNewPrivileges=yes", "CapabilityBoundingSet=", "ProtectSystem=strict", "ProtectHome=yes",
    "IPAddressDeny=any", "SystemCallFilter=@system-service", "Restart=on-failure",
)  # fmt: skip


@pytest.fixture(params=UNITS, ids=[unit.stem for unit in UNITS])
def unit(request: pytest.FixtureRequest) -> Path:
    path: Path = request.param
    return path


def test_systemd_accepts_the_unit(unit: Path, tmp_path: Path) -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not installed")
    copy = tmp_path / unit.name
    copy.write_text(unit.read_text().replace(PROGRAM, "/bin/true"))
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(copy)], capture_output=True, text=True, timeout=60, check=False
    )
    about_it = [line for line in done.stderr.splitlines() if unit.name in line or str(copy) in line]
    assert about_it == []


def test_the_command_of_the_unit_exists(unit: Path) -> None:
    (command,) = re.findall(rf"^ExecStart={re.escape(PROGRAM)} (.+)$", unit.read_text(), re.MULTILINE)
    name, *words = command.split()
    done = subprocess.run(
        [sys.executable, "-m", "heliograph.monitor.cli", name, "--help"],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    for option in (word for word in words if word.startswith("--")):
        assert re.search(rf"{option}\b", done.stdout), option


def test_the_unit_is_confined_and_has_limits(unit: Path) -> None:
    lines = unit.read_text().splitlines()
    assert [line for line in HARDENED if line not in lines] == []
    (memory,) = (line for line in lines if line.startswith("MemoryMax="))
    # The exporter takes 140 MB with 1,000 receiver-topics (tests/bench/RESULTS.md).
    assert memory in ("MemoryMax=512M", "MemoryMax=1G")
