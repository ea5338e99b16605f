"""The page of clauses of RFC 3208 keeps its word: its tests exist, and no clause goes without one or a reason."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[2]
PAGE = TOP / "engine" / "docs" / "clauses.md"
LEVELS = {"MUST", "SHOULD", "MAY"}
AREAS = {"Format", "Source", "Receiver", "Designated local repairer"}


@dataclass(frozen=True, slots=True)
class Clause:
    """One row of the page."""

    area: str
    section: str
    level: str
    what: str
    shown_by: str

    @property
    def tests(self) -> list[tuple[str, str]]:
        """File below tests/ and function of each test named."""
        return re.findall(r"`([\w/.]+)::(\w+)`", self.shown_by)

    @property
    def excluded(self) -> str:
        """Why it is left out; empty when it is not."""
        return self.shown_by.removeprefix("excluded:").strip() if self.shown_by.startswith("excluded:") else ""


def read() -> list[Clause]:
    """The rows of all tables."""
    clauses: list[Clause] = []
    area = ""
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            area = line[3:]
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("|") and cells[0] != "section" and not set(line) <= set("|- "):
            section, level, what, shown_by = cells
            clauses.append(Clause(area, section, level, what, shown_by))
    return clauses


CLAUSES = read()


def is_defined(file: str, function: str) -> bool:
    """Whether the test is there, and for C also run or used."""
    path = TOP / "tests" / file
    if not path.is_file():
        return False
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        return re.search(rf"^def {function}\(", text, re.MULTILINE) is not None
    defined = re.search(rf"^(static )?\w[\w *]*\b{function}\(", text, re.MULTILINE) is not None
    return defined and len(re.findall(rf"\b{function}\b", text)) > 1


def test_the_page_covers_both_roles_and_the_format() -> None:
    assert {clause.area for clause in CLAUSES} == AREAS
    assert {clause.level for clause in CLAUSES} == LEVELS
    for section in ("5.2", "6.3", "9.3.4", "12.5", "13.5", "14.5", "15.2.2", "15.3.2"):
        assert any(clause.section == section for clause in CLAUSES), f"nothing says what became of {section}"


@pytest.mark.parametrize("clause", CLAUSES, ids=lambda clause: f"{clause.area}-{clause.section}-{clause.what[:40]}")
def test_a_clause_is_shown_by_tests_that_exist_or_excluded_with_a_reason(clause: Clause) -> None:
    assert clause.tests or len(clause.excluded) > 20
    assert not (clause.tests and clause.excluded)
    missing = [f"{file}::{function}" for file, function in clause.tests if not is_defined(file, function)]
    assert missing == []
