"""The house as a visitor finds it: what stands at the top, and that what the README says is there."""

from __future__ import annotations

import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[2]
ROOMS = {"engine", "monitor", "dashboards", "exporters", "tests", "deploy"}
BESIDE = {"pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md", "Makefile"}


def tracked() -> list[Path]:
    """The files of the repository: what git knows or would add, else what is there and not made by make."""
    if shutil.which("git") and (TOP / ".git").exists():
        names = subprocess.run(
            ["git", "-c", f"safe.directory={TOP}", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=TOP,
            capture_output=True,
            text=True,
            check=True,
        ).stdout.split("\0")
        return [TOP / name for name in names if name and (TOP / name).is_file()]
    made = {"build", ".venv", "__pycache__", ".git"}
    return [path for path in TOP.rglob("*") if path.is_file() and not made & set(path.relative_to(TOP).parts)]


FILES = tracked()


def test_the_top_level_is_the_list_of_the_design() -> None:
    names = {path.relative_to(TOP).parts[0] for path in FILES}
    visible = {name for name in names if not name.startswith(".")}
    assert visible == ROOMS | BESIDE


def text_of(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return None


# Written in pieces, so that this file passes its own test.
HOMES = re.compile(r"(?<![\w.~-])/(" + "|".join(("wo" + "rk", "far" + "m", "ro" + "ot", "ho" + "me")) + r")/")
UNFINISHED = re.compile(r"\b(" + "|".join(("TO" + "DO", "FIX" + "ME", "XX" + "X", "HA" + "CK")) + r")\b")
BINARY = {".png", ".ico", ".parquet", ".pcap", ".gz"}


@pytest.mark.parametrize("pattern", [HOMES, UNFINISHED], ids=["paths of one machine", "unfinished words"])
def test_no_file_holds_what_a_stranger_would_trip_over(pattern: re.Pattern[str]) -> None:
    wrong = [
        f"{path.relative_to(TOP)}:{text.count(chr(10), 0, match.start()) + 1} {match[0]}"
        for path in FILES
        if path.suffix not in BINARY and (text := text_of(path)) is not None
        for match in pattern.finditer(text)
    ]
    assert not wrong


def test_every_room_has_a_readme() -> None:
    missing = [room for room in sorted(ROOMS) if not (TOP / room / "README.md").exists()]
    assert not missing


def test_make_targets_named_in_the_readme_exist() -> None:
    makefile = (TOP / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))
    readme = (TOP / "README.md").read_text(encoding="utf-8")
    named = set(re.findall(r"(?:^|`)(?:[A-Z_]+=\S+ )*make ([a-z-]+)", readme, re.MULTILINE))
    assert {"demo", "test"} <= named
    assert named <= targets


def test_subcommands_named_in_the_readme_exist() -> None:
    project = tomllib.loads((TOP / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    commands = set(project["entry-points"]["heliograph.commands"])
    named = set(re.findall(r"(?:`|^\s*\$? ?)heliograph ([a-z]+)", (TOP / "README.md").read_text("utf-8"), re.MULTILINE))
    assert named, "the README shows the command line"
    assert named <= commands


def test_files_the_readme_points_at_exist() -> None:
    targets = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", (TOP / "README.md").read_text(encoding="utf-8"))
    missing = [target for target in targets if not (TOP / target).exists()]
    assert not missing


def test_make_help_lists_every_public_target() -> None:
    if shutil.which("make") is None:
        pytest.skip("no make here")
    text = subprocess.run(["make", "help"], cwd=TOP, capture_output=True, text=True, check=True).stdout
    for target in ("build", "demo", "test", "lint", "bench", "clean", "help"):
        assert re.search(rf"^  make {target}\b", text, re.MULTILINE), target
