"""Texts that users and engineers read are plain technical English: see engine/docs/glossary.md, "Words to avoid"."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FILES = [path for folder in ("monitor", "exporters", "dashboards") for path in sorted((ROOT / folder).rglob("*.py"))]
FILES += sorted((ROOT / "engine").glob("*.py"))
PAGES = [path for folder in ("monitor", "exporters", "dashboards", "deploy") for path in (ROOT / folder).rglob("*.md")]
PAGES += {*(ROOT / "engine" / "docs").glob("*.md")} - {ROOT / "engine" / "docs" / "glossary.md"}  # it lists the words
PAGES += [ROOT / "README.md", ROOT / "engine" / "README.md", ROOT / "tests" / "COVERAGE.md"]

BANNED = re.compile(
    r"\b(of no avail|such (a )?thing|so many|anew|heeded|told of|tells of|is called so|as things go)\b"
    r"|\bof late\b(?! \w)"
    r"|(?:\A|[.!?]\s+)(What|Who|Whoever)\b(?![^.]*\?)",
)


def texts(path: Path) -> Iterator[tuple[int, str]]:
    """Docstrings, texts below an assignment, texts of argparse and of raised errors, each with its line."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Expr):
            found: list[ast.expr] = [node.value]
        elif isinstance(node, ast.keyword) and node.arg in ("help", "description", "epilog", "title"):
            found = [node.value]
        elif isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
            found = node.exc.args
        else:
            continue
        for value in found:
            for part in ast.walk(value) if isinstance(value, ast.JoinedStr) else (value,):
                if isinstance(part, ast.Constant) and isinstance(part.value, str):
                    yield part.lineno, part.value


def test_docstrings_help_and_errors_use_plain_words() -> None:
    wrong = [
        f"{path.relative_to(ROOT)}:{line}: {found[0].strip()!r}"
        for path in FILES
        for line, text in texts(path)
        for found in BANNED.finditer(text)
    ]
    assert not wrong, "\n".join(wrong)


def test_pages_use_plain_words() -> None:
    wrong = [
        f"{path.relative_to(ROOT)}: {found[0].strip()!r}"
        for path in PAGES
        for found in BANNED.finditer(path.read_text(encoding="utf-8"))
    ]
    assert not wrong, "\n".join(wrong)
