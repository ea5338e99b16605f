"""Modules by name: Python's by entry point or place, C's by file.

log=FILE                    an installed entry point of the group ``heliograph.modules``
mine=OPTIONS                a module in C: mine.so in a folder of $HELIOGRAPH_MODULE_PATH
./mine.so=OPTIONS           a module in C by its file
package.module:Class        Python that is not installed as a module
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
    """The installed modules in Python by name."""
    return {point.name: point for point in (entry_points(group=GROUP) if found is None else found)}


def natives() -> Mapping[str, Path]:
    """The modules in C that are found by name."""
    found: dict[str, Path] = {}
    for folder in reversed([part for part in os.environ.get(PATH_VARIABLE, "").split(os.pathsep) if part]):
        found |= {path.name[:-3]: path.absolute() for path in Path(folder).glob("*.so")}
    return found


def native(name: str) -> Path | None:
    """The file of a module in C; None when the name is not of one.

    Raises:
        UserError: It is the name of a file that is not there.
    """
    if name.endswith(".so"):
        path = Path(name).absolute()
        if not path.is_file():
            raise UserError(f"there is no file {name}")
        return path
    return None if name in available() or ":" in name else natives().get(name)


def load(request: str, found: Iterable[EntryPoint] | None = None) -> tuple[str, Module]:
    """Make the module in Python of a request.

    Args:
        request: ``NAME`` or ``NAME=OPTIONS``; the name of one not installed is ``package.module:Class``.
        found: Where names are looked up; default: the installed entry points.

    Returns:
        Its name and the module.

    Raises:
        UserError: There is none of that name, or it cannot be loaded or made.
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
            raise UserError(f"there is no module {name!r}; known are: {known}")
        return name, factory(options)
    except UserError:
        raise
    except Exception as error:  # whatever the module's own code does wrong
        raise UserError(f"module {name!r} cannot be loaded: {type(error).__name__}: {error}") from error


def open_module(
    request: str,
    *,
    process: bool = False,
    answer: float = 10.0,
    tell: Callable[[str], None] = to_stderr,
) -> Lane:
    """The module of a request on a lane of its own.

    Args:
        request: ``NAME`` or ``NAME=OPTIONS``, as the comment of this file tells.
        process: Run a module in Python in a process of its own too; one in C always is.
        answer: Seconds after which a module in a process that does not answer is killed.
        tell: Told of troubles, in sentences; default: standard error.

    Raises:
        UserError: There is none of that name, or it cannot be loaded, or refuses its options.
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
