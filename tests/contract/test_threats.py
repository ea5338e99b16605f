"""The page on threats is true of the tests: those it names exist, and every finding has a row and a test."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[2]
PAGE = (TOP / "engine/docs/threats.md").read_text(encoding="utf-8")
FINDINGS = [f"H{n}" for n in range(1, 6)] + [f"M{n}" for n in range(1, 7)] + [f"L{n}" for n in range(1, 9)]
NAMED = sorted(set(re.findall(r"`((?:hostile|engine|sim)/[\w.]+)`", PAGE)))


@pytest.mark.parametrize("name", NAMED)
def test_a_test_that_is_named_exists(name: str) -> None:
    assert (TOP / "tests" / name).is_file()


@pytest.mark.parametrize("finding", FINDINGS)
def test_a_finding_has_a_row(finding: str) -> None:
    """In bold at the start of its row, which names what shows that it is mended."""
    rows = [line for line in PAGE.splitlines() if re.match(rf"\| \*\*(?:\w+, )*{finding}(?:, \w+)*\*\*", line)]
    assert len(rows) == 1
    assert re.search(r"`(?:hostile|engine|sim)/", rows[0])


@pytest.mark.parametrize("finding", FINDINGS)
def test_a_finding_has_a_test_of_its_name(finding: str) -> None:
    sources = [path.read_text(encoding="utf-8") for path in (TOP / "tests/hostile").glob("test_*.py")]
    assert any(re.search(rf"^def test_{finding.lower()}_", text, re.MULTILINE) for text in sources)


def test_every_file_of_attacks_is_named() -> None:
    files = {f"hostile/{path.name}" for path in (TOP / "tests/hostile").glob("test_*.py")}
    assert files == {name for name in NAMED if name.startswith("hostile/")}
