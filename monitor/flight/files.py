"""Files of flight recordings in a directory: their names, a list of them, and the one that a name stands for."""

from __future__ import annotations

import os
import re
from pathlib import Path

from heliograph.monitor.errors import UserError
from heliograph.monitor.flight.format import SUFFIX
from heliograph.monitor.ownership import folder_fault, is_own
from heliograph.monitor.text import printable

__all__ = ["find", "recordings", "split_name"]


def split_name(path: Path) -> tuple[str, int, int] | None:
    """Return instance name, process and number (0: the ring) of ``NAME.PID.flight`` or ``NAME.PID.N.flight``."""
    found = re.fullmatch(r"(.+?)\.(\d{1,10})(?:\.(\d{1,10}))?\.flight", path.name, re.ASCII)
    return (found[1], int(found[2]), int(found[3] or 0)) if found else None


def recordings(folder: Path, all_users: bool = False) -> list[Path]:
    """Return the recordings of a directory, oldest first: those of this user, or of all users.

    Raises:
        UserError: The directory cannot be listed, or other users can replace the files in it.
    """
    fault = folder_fault(folder, all_users)
    if fault is not None:
        raise UserError(f"the segment directory {folder} is not read: {fault}")
    try:
        found = [(path.stat(follow_symlinks=False), path) for path in folder.glob(f"*{SUFFIX}")]
    except OSError as error:
        raise UserError(f"the segment directory {folder} cannot be listed: {error.strerror}") from None
    return [path for about, path in sorted(found, key=_age) if all_users or is_own(about.st_uid)]


def _age(found: tuple[os.stat_result, Path]) -> tuple[int, Path]:
    return found[0].st_mtime_ns, found[1]


def find(which: str, folder: Path, all_users: bool = False) -> Path:
    """Return the file that `which` names.

    Args:
        which: A path, the name of a file in the directory, or the name of an instance.
        folder: The segment directory.
        all_users: Include the instances of other users.

    Raises:
        UserError: No file matches, or several do.
    """
    if "/" in which or Path(which).is_file():
        return Path(which)
    if (folder / which).is_file():
        return folder / which
    rings = [path for path in recordings(folder, all_users) if (split_name(path) or ("", 0, 1))[0::2] == (which, 0)]
    if len(rings) == 1:
        return rings[0]
    if rings:
        raise UserError(f"several recordings match; name one of: {', '.join(printable(path.name) for path in rings)}")
    known = sorted({name[0] for path in recordings(folder, all_users) if (name := split_name(path)) and name[2] == 0})
    there = (
        f"recording instances: {', '.join(map(printable, known))}" if known else "no instance records in" + str(folder)
    )
    raise UserError(f"{which!r} is neither a file nor a recording instance; {there}")
