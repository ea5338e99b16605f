"""Ownership of files and directories, and which of them a monitor reads (engine/docs/adr/0030-local-surfaces.md).

Any user of a machine can write files into a shared directory. A monitor therefore reads only the files of its own user,
unless ``--all-users`` is set, and only directories whose files no other user can replace. The owner is that of the open
file, not of its name.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

__all__ = ["folder_fault", "folders_beside", "foreign_mark", "is_own", "segment_folder", "stranger"]

DEFAULT_FOLDER = "/dev/shm/heliograph"


def is_own(uid: int) -> bool:
    """Whether a file of this user is the monitor's own. For root only root's files are: others may be forged."""
    return uid == os.geteuid()


def stranger(uid: int) -> str:
    """Return the message about a file of another user."""
    return f"it belongs to another user (uid {uid}); --all-users reads such files"


def foreign_mark(uid: int) -> str:
    """Return the suffix of the name of another user's instance, which prevents confusion with one's own."""
    return f"@uid{uid}"


def folder_fault(folder: Path, all_users: bool = False) -> str | None:
    """Return the reason why a directory is not read; None: it can be read, or does not exist.

    Args:
        folder: May be a link.
        all_users: Accept a directory of another user.
    """
    try:
        found = folder.stat()
    except OSError:
        return None
    if not stat.S_ISDIR(found.st_mode):
        return None  # the listing reports the error
    if found.st_uid and not is_own(found.st_uid) and not all_users:
        return f"it belongs to another user (uid {found.st_uid}), who can replace the files in it; --all-users reads it"
    if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH) and not found.st_mode & stat.S_ISVTX and not all_users:
        return "other users may write in it and it is not sticky (chmod go-w, or +t); --all-users reads it"
    return None


def segment_folder(folder: Path | str | None = None) -> Path:
    """The folder of the stats segments, as engines choose it.

    The one given, else ``$HELIOGRAPH_SEGMENT_DIR``, else ``/dev/shm/heliograph``, or ``/dev/shm/heliograph-UID`` where
    another user made that.
    """
    named = folder or os.environ.get("HELIOGRAPH_SEGMENT_DIR")
    if named:
        return Path(named)
    shared = Path(DEFAULT_FOLDER)
    return shared if folder_fault(shared) is None else Path(f"{DEFAULT_FOLDER}-{os.geteuid()}")


def folders_beside(folder: Path, suffix: str) -> list[Path]:
    """Return other directories with segments of this user beside the default one, as those of a demo.

    Args:
        folder: The directory that is read; there are none beside one with another name.
        suffix: End of the names of segments.
    """
    default = Path(DEFAULT_FOLDER)
    if folder.parent != default.parent or not folder.name.startswith(default.name):
        return []
    return [
        other
        for other in sorted(default.parent.glob(f"{default.name}-*"))
        if other != folder and _is_readable(other) and any(other.glob(f"*{suffix}"))
    ]


def _is_readable(folder: Path) -> bool:
    try:
        return folder.is_dir() and is_own(folder.stat().st_uid) and folder_fault(folder) is None
    except OSError:
        return False  # it was removed after the listing
