"""Small JSON files that are replaced as a whole."""

from __future__ import annotations

import json
import os
from pathlib import Path

__all__ = ["write_json"]


def write_json(path: Path, content: object) -> None:
    """Replace a file. After a crash it is there as before or as now. One process at a time may write it.

    Raises:
        OSError: The file cannot be written. It is as before.
    """
    new = path.with_name(f"{path.name}.new")
    try:
        with new.open("w", encoding="utf-8") as file:
            json.dump(content, file)
            file.flush()
            os.fsync(file.fileno())
        new.replace(path)
    finally:
        new.unlink(missing_ok=True)
