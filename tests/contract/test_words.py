"""The texts of the catalogue keep the rules of engine/docs/glossary.md: one term per thing, short sentences."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

TOP = Path(__file__).resolve().parents[2]
GLOSSARY = (TOP / "engine/docs/glossary.md").read_text(encoding="utf-8")
MOST_WORDS, MOST_CHARACTERS = 20, 200
RIDDLES = "of no avail|no such thing|so many events|heeded|is called so"
OPENERS = {"what", "who", "whoever", "how", "so", "of", "that", "those", "these", "which", "whether", "they", "as"}
FILES = ["statistics", "events", "errors", "derived", "identities", "options", "profiles"]


def rows(section: str, columns: int) -> list[list[str]]:
    """The rows of the table under a heading of the glossary."""
    part = GLOSSARY.split(f"\n## {section}\n", 1)[1].split("\n## ", 1)[0]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in part.splitlines() if line[:1] == "|"]
    assert all(len(row) == columns for row in cells), f"{section}: rows of {columns} columns"
    return cells[2:]


def banned() -> re.Pattern[str]:
    """Synonyms that the glossary refuses, and the words it avoids in every text."""
    lists = [row[2] for row in rows("Terms", 3)] + [row[0] for row in rows("Words to avoid in every text", 2)]
    words = sorted({word.strip() for text in lists for word in text.split(",") if word.strip()})
    return re.compile(rf"(?<![\w`=])(?:{'|'.join(map(re.escape, words))})s?(?![\w`=])", re.IGNORECASE)


BANNED = banned()


def texts(name: str) -> Iterator[tuple[str, str, bool]]:
    """Name and text of each entry of a table, and whether it is a statistic, which begins with a noun phrase."""

    def walk(path: str, value: Any) -> Iterator[tuple[str, str, bool]]:
        if isinstance(value, dict):
            if isinstance(value.get("help"), str):
                yield path, value["help"], "kind" in value
            for key, below in value.items():
                yield from walk(f"{path}.{key}", below)

    yield from walk(name, tomllib.loads((TOP / f"engine/catalogue/{name}.toml").read_text(encoding="utf-8")))


def faults(text: str, noun: bool) -> list[str]:
    """What is wrong with a text."""
    found = [f"banned: {match[0]}" for match in BANNED.finditer(text)]
    first = text.split(maxsplit=1)[0].rstrip(",:;.")
    if first.lower() in OPENERS:
        found.append(f"begins with {first}")
    if noun and first == "1" and not text.startswith("1 while "):
        found.append("begins with a number and not with '1 while'")
    if not text.endswith("."):
        found.append("ends without a full stop")
    if len(text) > MOST_CHARACTERS:
        found.append(f"{len(text)} characters")
    found += [f"{n} words: {part}" for part in re.split(r"[.;:] ", text) if (n := len(part.split())) > MOST_WORDS]
    return found


@pytest.mark.parametrize("name", FILES)
def test_texts_of_the_catalogue_keep_the_rules(name: str) -> None:
    wrong = [f"{path}: {fault}" for path, text, noun in texts(name) for fault in faults(text, noun)]
    assert not wrong, "\n".join(wrong)


def test_the_lint_finds_what_it_is_for() -> None:
    """So that an empty list of banned words cannot pass for clean texts."""
    assert faults("What the peer was told of late", noun=True)
    assert not faults("Packets sent.", noun=True)


def test_no_riddle_stands_where_an_operator_reads() -> None:
    rooms = ("engine/catalogue", "engine/include", "engine/docs", "monitor", "exporters", "dashboards", "deploy")
    paths = [path for room in rooms for path in (TOP / room).rglob("*") if path.is_file()]
    wrong = [
        f"{path.relative_to(TOP)}: {match[0]}"
        for path in [*paths, TOP / "README.md"]
        if path.suffix in {".md", ".py", ".toml", ".h", ".json", ".yml", ".js", ".css", ".c"}
        for match in re.finditer(RIDDLES, path.read_text(encoding="utf-8"), re.IGNORECASE)
    ]
    assert not wrong, "\n".join(wrong)
