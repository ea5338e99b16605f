"""Whose files and folders are, and which of them a monitor looks at (engine/docs/adr/0030-local-surfaces.md).

Any user of a machine can put files into a shared folder. So a monitor reads the files of its own user and of nobody
else, unless it is asked to (``--all-users``), and looks into a folder only when nobody else can exchange what is in it.
Whose a file is is asked of the open file, not of its name.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

__all__ = ["folder_fault", "foreign_mark", "is_own", "segment_folder", "stranger"]

DEFAULT_FOLDER = "/dev/shm/heliograph"


def is_own(uid: int) -> bool:
    """Whether a file of this user is the monitor's own. Root's own are root's: another's may be made up."""
    return uid == os.geteuid()


def stranger(uid: int) -> str:
    """What is told of a file of another user."""
    return f"it belongs to another user (uid {uid}); --all-users reads such files"


def foreign_mark(uid: int) -> str:
    """What is added to the name of another user's instance, so that it never passes for one of one's own."""
    return f"@uid{uid}"


def folder_fault(folder: Path, all_users: bool = False) -> str | None:
    """What keeps a folder from being looked into; None: nothing, or it is not there.

    Args:
        folder: May be a link.
        all_users: One that another user owns is looked into as well.
    """
    try:
        found = folder.stat()
    except OSError:
        return None
    if not stat.S_ISDIR(found.st_mode):
        return None  # listing it tells
    if found.st_uid and not is_own(found.st_uid) and not all_users:
        return (
            f"it belongs to another user (uid {found.st_uid}), who can exchange the files in it; --all-users reads it"
        )
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
