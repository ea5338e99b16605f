"""The command line: every subcommand named in pyproject.toml is there, has help, and costs nothing heavy to list."""

from __future__ import annotations

import argparse
import subprocess
import sys
import tomllib
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((TOP / "pyproject.toml").read_text(encoding="utf-8"))["project"]
COMMANDS: dict[str, str] = PROJECT["entry-points"]["heliograph.commands"]
HEAVY = ("dash", "plotly", "pyspark", "pandas", "pyarrow", "grafana_api", "prometheus_client", "hdrh")


@pytest.mark.parametrize("name", COMMANDS)
def test_an_entry_point_adds_the_subcommand_of_its_name(name: str) -> None:
    add = EntryPoint(name, COMMANDS[name], "heliograph.commands").load()
    subparsers = argparse.ArgumentParser(prog="heliograph").add_subparsers()
    add(subparsers)
    assert list(subparsers.choices) == [name]
    parser = subparsers.choices[name]
    text = parser.format_help()
    assert f"heliograph {name}" in (parser.epilog or "") or "heliograph" in text.split("\n\n", 1)[1], (
        "its help ends with an example"
    )


def test_the_front_door_lists_every_subcommand() -> None:
    """Of the project as it stands; `test_installed_package` shows that an installation has the same."""
    code = (
        "from importlib.metadata import EntryPoint\n"
        "from heliograph.monitor.cli import main\n"
        f"main(['--help'], [EntryPoint(n, v, 'heliograph.commands') for n, v in {COMMANDS!r}.items()])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    missing = [name for name in COMMANDS if f" {name} " not in done.stdout.replace("\n", " ")]
    assert not missing, done.stdout


def test_listing_the_subcommands_imports_nothing_heavy() -> None:
    code = (
        "import sys, contextlib, io\n"
        "from heliograph.monitor.cli import main\n"
        "sys.argv = ['heliograph', '--help']\n"
        "with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):\n"
        "    main()\n"
        f"print(' '.join(name for name in {HEAVY!r} if name in sys.modules))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""


def test_the_script_leads_to_the_front_door() -> None:
    assert callable(EntryPoint("heliograph", PROJECT["scripts"]["heliograph"], "console_scripts").load())
