"""The page from nothing to the first alert: its commands parse and its files exist."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "deploy/first-alert.md").read_text(encoding="utf-8")
LINES = [line for block in re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL) for line in block.splitlines()]
COMMANDS = [line for line in LINES if line.startswith("heliograph ")]


def words_of(line: str) -> list[str]:
    """The words of a command, without its comment and what it pipes to."""
    return shlex.split(line.split(" | ")[0], comments=True)


@pytest.mark.parametrize("line", COMMANDS)
def test_every_command_of_the_page_has_its_options(line: str) -> None:
    _, *words = words_of(line)
    command = [word for word in words[:1] if not word.startswith("-")]
    done = subprocess.run(
        [sys.executable, "-m", "heliograph.monitor.cli", *command, "--help"],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    for option in (word for word in words if re.match(r"--?[a-z]", word)):
        assert re.search(rf"(^|[\s,]){re.escape(option.split('=')[0])}\b", done.stdout), option


def test_every_file_of_the_page_exists() -> None:
    named = set(re.findall(r"deploy/[\w./-]+\w", PAGE)) | set(re.findall(r"\]\(\.\./([\w./-]+)\)", PAGE))
    assert len(named) >= 5
    assert [name for name in sorted(named) if not (ROOT / name).exists()] == []


def test_every_alert_of_the_page_exists() -> None:
    rules = (ROOT / "deploy/prometheus/rules/heliograph.yml").read_text(encoding="utf-8")
    names = set(re.findall(r"`(Heliograph[A-Z]\w+)`", PAGE))
    assert len(names) >= 4
    assert [name for name in sorted(names) if f"alert: {name}" not in rules] == []


@pytest.mark.parametrize("program", ["prometheus", "prometheus-alertmanager"])
def test_the_options_of_other_programs_exist(program: str) -> None:
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not installed")
    (line,) = (line for line in LINES if words_of(line)[:1] == [program])
    done = subprocess.run([program, "--help"], capture_output=True, text=True, check=False, timeout=60)
    for word in words_of(line)[1:]:
        assert word.split("=")[0] in done.stdout + done.stderr, word


def test_the_targets_of_make_exist() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for line in LINES:
        if line.startswith("make "):
            assert f"\n{words_of(line)[1]}:" in makefile
