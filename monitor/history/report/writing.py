"""Put a file in its place whole."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from heliograph.monitor.errors import UserError

__all__ = ["write_report"]


def write_report(text: str, path: Path) -> None:
    """Write a report atomically.

    Raises:
        UserError: The file cannot be written.
    """
    temporary = path.with_name(f".tmp-{path.name}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_text(text, encoding="utf-8")
        temporary.replace(path)
    except OSError as error:
        with suppress(OSError):
            temporary.unlink()
        raise UserError(f"the report {path} cannot be written: {error.strerror or error}") from error
