"""Modules by name: Python modules by entry point or path, C modules by file.

log=FILE                    an installed entry point of the group ``heliograph.modules``
mine=OPTIONS                a C module: mine.so in a directory of $HELIOGRAPH_MODULE_PATH
./mine.so=OPTIONS           a C module by its file
package.module:Class        a Python class that is not installed as a module
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Iterable, Mapping
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path

from heliograph.monitor.errors import UserError
from heliograph.monitor.modules.lane import Lane, to_stderr
from heliograph.monitor.modules.protocol import Module

__all__ = ["GROUP", "PATH_VARIABLE", "available", "load", "native", "natives", "open_module"]

GROUP = "heliograph.modules"
PATH_VARIABLE = "HELIOGRAPH_MODULE_PATH"

Factory = Callable[[str], Module]


def available(found: Iterable[EntryPoint] | None = None) -> Mapping[str, EntryPoint]:
    """Return the installed Python modules by name."""
    return {point.name: point for point in (entry_points(group=GROUP) if found is None else found)}


def natives() -> Mapping[str, Path]:
    """Return the C modules that are found by name."""
    found: dict[str, Path] = {}
    for folder in reversed([part for part in os.environ.get(PATH_VARIABLE, "").split(os.pathsep) if part]):
        found |= {path.name[:-3]: path.absolute() for path in Path(folder).glob("*.so")}
    return found


def native(name: str) -> Path | None:
    """Return the file of a C module; None when the name is not that of one.

    Raises:
        UserError: The name is that of a missing file.
    """
    if name.endswith(".so"):
        path = Path(name).absolute()
        if not path.is_file():
            raise UserError(f"file not found: {name}")
        return path
    return None if name in available() or ":" in name else natives().get(name)


def load(request: str, found: Iterable[EntryPoint] | None = None) -> tuple[str, Module]:
    """Create the Python module of a request.

    Args:
        request: ``NAME`` or ``NAME=OPTIONS``; the name of one not installed is ``package.module:Class``.
        found: Entry points to search; default: the installed ones.

    Returns:
        Its name and the module.

    Raises:
        UserError: The name is unknown, or the module cannot be loaded or created.
    """
    name, _, options = request.partition("=")
    installed = available(found)
    try:
        factory: Factory
        if name in installed:
            factory = installed[name].load()
        elif ":" in name:
            place, _, attribute = name.partition(":")
            factory = getattr(importlib.import_module(place), attribute)
        else:
            known = ", ".join(sorted({*installed, *natives()})) or "none is installed"
            raise UserError(f"unknown module {name!r}; known: {known}")
        return name, factory(options)
    except UserError:
        raise
    except Exception as error:  # any error of the module's code
        raise UserError(f"module {name!r} cannot be loaded: {type(error).__name__}: {error}") from error


def open_module(
    request: str,
    *,
    process: bool = False,
    answer: float = 10.0,
    tell: Callable[[str], None] = to_stderr,
) -> Lane:
    """Return the module of a request on its own lane.

    Args:
        request: ``NAME`` or ``NAME=OPTIONS``, see the comment of this file.
        process: Run a Python module in its own process too; a C module always has one.
        answer: Seconds after which a module in a process that does not answer is killed.
        tell: Receives messages about faults; default: standard error.

    Raises:
        UserError: The name is unknown, or the module cannot be loaded, or rejects its options.
    """
    from heliograph.monitor.modules.host import PythonSink

    name, _, options = request.partition("=")
    path = native(name)
    if path is None and not process:
        return Lane(name, PythonSink(load(request)[1]), tell=tell)
    from heliograph.monitor.modules.process import ProcessSink  # it needs the codec and numpy

    what = {"python": request} if path is None else {"native": str(path), "options": options}
    sink = ProcessSink(what, answer=answer)
    try:
        sink.open()
    except UserError as error:
        raise UserError(f"module {name!r} cannot be loaded: {error}") from None
    return Lane(name if path is None else path.stem, sink, tell=tell)
