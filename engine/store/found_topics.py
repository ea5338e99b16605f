"""Topics that the patterns of a store have found, in a file: a store that starts again looks for them at once."""

from __future__ import annotations

import json
from collections.abc import Iterable
from fnmatch import fnmatchcase
from pathlib import Path

from heliograph.engine.store.whole_file import write_json

__all__ = ["FoundTopics", "is_pattern"]

_NAME = "topics.json"


def is_pattern(text: str) -> bool:
    """Whether a topic is a pattern: it has ``*`` (any characters) or ``?`` (one)."""
    return "*" in text or "?" in text


class FoundTopics:
    """Endpoint and name of each topic.

    A source names its topics now and then. Without the file, a store that starts again would wait for that, and lack
    the messages until then.
    """

    def __init__(self, folder: Path) -> None:
        """Read the file of a store. One that is absent or damaged is like an empty one: the topics are found again.

        Args:
            folder: Directory of the store.
        """
        self._path = folder / _NAME
        self._found: set[tuple[str, str]] = set()
        try:
            rows = json.loads(self._path.read_text(encoding="utf-8"))
            self._found = {(str(endpoint), str(topic)) for endpoint, topic in rows}
        except (OSError, ValueError, TypeError, RecursionError):
            pass

    def matching(self, endpoint: str, pattern: str) -> list[str]:
        """Topics that were found at an endpoint and match a pattern."""
        plain = pattern.replace("[", "[[]")  # only * and ? are special
        return sorted(topic for where, topic in self._found if where == endpoint and fnmatchcase(topic, plain))

    def replace(self, found: Iterable[tuple[str, str]]) -> None:
        """Replace the contents of the file.

        Raises:
            OSError: It cannot be written. It is as before.
        """
        self._found = set(found)
        write_json(self._path, sorted(self._found))
