"""The documents people read: the pictures are fresh, and what the pages name exists."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def test_the_picture_of_the_architecture_is_fresh() -> None:
    subprocess.run([sys.executable, ROOT / "deploy" / "bootstrap" / "picture.py", "--check"], check=True)


def pages() -> list[Path]:
    """Every page that people wrote, which RESULTS.md of the benchmarks is not."""
    folders = ("", "dashboards", "deploy", "engine", "exporters", "monitor", "tests")
    found = [path for folder in folders for path in (ROOT / folder).glob("**/*.md" if folder else "*.md")]
    made = [path for path in found if "do not edit" in path.read_text(encoding="utf-8")[:200]]
    return sorted({*found} - {*made, ROOT / "tests" / "bench" / "RESULTS.md"})


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_prose_is_wrapped_at_120_columns(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    prose = re.sub(r"^```.*?^```", lambda block: "\n" * block[0].count("\n"), text, flags=re.MULTILINE | re.DOTALL)
    lines = enumerate(prose.splitlines(), 1)
    long = [f"{page.name}:{n}" for n, line in lines if len(line) > 120 and not line.startswith("|")]
    assert not long


def test_the_tests_that_the_coverage_names_exist() -> None:
    missing = []
    text = (ROOT / "tests" / "COVERAGE.md").read_text(encoding="utf-8")
    for file, functions in re.findall(r"`(\w+/[\w./-]*(?:::\w+)?)`(?: \(([^)]*)\))?", text):
        name, _, function = file.partition("::")
        path = next((folder / name for folder in (ROOT / "tests", ROOT) if (folder / name).exists()), None)
        if path is None:
            missing.append(file)
            continue
        wanted = [function] * bool(function) + re.findall(r"`(\w+)`", functions) * (path.suffix == ".c")
        missing += [f"{name} {test}" for test in wanted if f"{test}(" not in path.read_text(encoding="utf-8")]
    assert not missing


def test_what_the_guide_for_contributors_names_exists() -> None:
    text = (ROOT / "engine" / "docs" / "contributing.md").read_text(encoding="utf-8")
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"\bmake ([a-z][a-z-]*)", text))
    paths = set(re.findall(r"\b(?:engine|exporters|dashboards|monitor|tests|deploy)/[\w./-]*\w", text))
    links = set(re.findall(r"\]\(([^)#]+)\)", text))
    programs = set(re.findall(r"\b(test_[a-z_]+)$", text, re.MULTILINE))
    assert all((targets, paths, links, programs))
    assert not {target for target in targets if f"\n{target}:" not in makefile}
    assert not {path for path in paths if "NAME" not in path and not (ROOT / path).exists()}
    assert not {link for link in links if not (ROOT / "engine" / "docs" / link).exists()}
    assert not {name for name in programs if not (ROOT / "tests" / "engine" / f"{name}.c").exists()}


def test_each_decision_has_a_number_of_its_own() -> None:
    pages = sorted((ROOT / "engine/docs/adr").glob("[0-9]*.md"))
    numbers = [int(page.name[:4]) for page in pages]
    titles = [re.match(r"# (\d+)[.: ]", page.read_text(encoding="utf-8")) for page in pages]
    assert numbers == sorted(set(numbers))
    assert numbers == [int(title[1]) for title in titles if title]
