"""The positions of a durable subscriber in a file of its own."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path

from heliograph.engine.options import refusal

__all__ = ["PositionFile"]


class PositionFile:
    """Positions in a file, as `Subscription` keeps them in stores."""

    def __init__(self, path: Path, topic: str) -> None:
        """Read the positions that an earlier run has saved; none when there is no file.

        Raises:
            OptionError: The file is not one of positions, or of another topic.
        """
        self._path = path
        self._topic = topic
        self.positions: dict[str, int] = {}
        try:
            saved = json.loads(path.read_text(encoding="utf-8"))
            self.positions = {str(stream): int(number) for stream, number in saved["positions"].items()}
            found = saved["topic"]
        except FileNotFoundError:
            return
        except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
            raise refusal(f"{path} does not have the positions of a subscriber: {error}") from error
        if found != topic:
            raise refusal(f"{path} has the positions of topic {found}, not of {topic}")

    def save(self, positions: Mapping[str, int]) -> None:
        """Save positions, durably and as a whole.

        Raises:
            OSError: The file cannot be written.
        """
        new = self._path.with_name(f"{self._path.name}.{os.getpid()}")
        try:
            with new.open("w", encoding="utf-8") as file:
                json.dump({"topic": self._topic, "positions": positions}, file)
                file.flush()
                os.fsync(file.fileno())
            new.replace(self._path)
        finally:
            new.unlink(missing_ok=True)
        self.positions = dict(positions)
