"""``heliograph ctl level``: sets levels of detail for instances or for objects that match a pattern, always for a time.

The command may address several instances at once. A topic is sent and received in many instances, and a delay must be
measured at both ends.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from heliograph.engine.catalogue.outside import json_text
from heliograph.monitor.errors import UserError
from heliograph.monitor.model import InstanceState, Snapshot
from heliograph.monitor.text import duration_text, table

__all__ = ["Level", "add_arguments", "has_selector", "level_json", "level_lines", "levels_of", "values"]

_SELECTORS = ("topic", "receiver", "stream")
INSTANCE = "instance"
"""Value in place of a selector that means the whole instance (engine/core/stats/levels.c)."""


@dataclass(frozen=True, slots=True)
class Level:
    """A level of detail that is in force."""

    instance: str
    selector: str
    """Patterns such as ``topic=PRICES.*``; ``instance``: every object that no rule matches."""
    level: int
    until_ns: int | None
    """End of the level, wall clock in ns since 1970; None: no end."""
    objects: int | None
    """Streams, transmitters and receivers that have this level because of this rule; None: not counted."""


def add_arguments(parser: argparse.ArgumentParser, time: Callable[[str], str]) -> None:
    """Add the arguments of the verb; `time` is the argparse type of a time."""
    parser.add_argument(
        "level",
        metavar="LEVEL",
        nargs="?",
        choices=("0", "1", "2", "3", "default", "off"),
        help="0 to 3 (heliograph info shows content and cost of each); default or off ends a level early",
    )
    parser.add_argument("--for", dest="for", metavar="TIME", type=time, help="duration: 30, 1.5s, 5m; required")
    parser.add_argument(
        "--topic", metavar="PATTERN", default=argparse.SUPPRESS, help="only topics that match: 'PRICES.*'"
    )
    parser.add_argument(
        "--receiver", metavar="PATTERN", help="only receivers that match by name, id or address: 'slow-*', '10.1.2.3:*'"
    )
    parser.add_argument(
        "--stream", metavar="PATTERN", help="only streams that match (GSI:PORT), with their transmitters and receivers"
    )
    parser.add_argument(
        "--list", action="store_true", help="show the levels in force and their remaining time; changes nothing"
    )


def values(given: Mapping[str, Any]) -> dict[str, object]:
    """Return the fields of the command.

    Raises:
        UserError: The level or its duration is missing.
    """
    selectors = {key: given[key] for key in _SELECTORS if given.get(key) is not None}
    level, time = given.get("level"), given.get("for")
    if level is None:
        raise UserError(
            "level missing: 'heliograph ctl level 3 --for 60s' sets one, 'heliograph ctl level --list' shows all"
        )
    if level in ("default", "off"):
        if time is not None:
            raise UserError("default and off end a level at once: omit --for")
        return {"off": "yes", **selectors}
    if time is None:
        words = "".join(f" --{key} '{value}'" for key, value in selectors.items())
        raise UserError(f"--for missing: every level ends after a time: heliograph ctl level {level} --for 60s{words}")
    return {"level": level, "for": time, **selectors}


def has_selector(given: Mapping[str, Any]) -> bool:
    """Whether the arguments select less than whole instances."""
    return any(given.get(key) is not None for key in _SELECTORS)


def levels_of(instances: Iterable[InstanceState]) -> Iterator[Level]:
    """Yield the levels in force, the level of the instance first."""
    for instance in instances:
        found = {
            item.labels.get("selector", ""): Level(
                instance.name,
                item.labels.get("selector", ""),
                item.values.get("level", 0),
                item.values.get("until") or None,
                item.values.get("objects"),
            )
            for item in instance.of("detail")
            if item.live
        }
        level = next((item.values.get("detail_level", 0) for item in instance.of("instance")), 0)
        yield found.pop(INSTANCE, Level(instance.name, INSTANCE, level, None, None))
        yield from found.values()


def level_lines(snapshot: Snapshot, instances: Iterable[InstanceState]) -> list[str]:
    """Format the table of ``--list``."""
    rows = [
        (
            item.instance,
            str(item.level),
            "no end" if item.until_ns is None else f"{duration_text(max(0, item.until_ns - snapshot.time_ns))} more",
            "" if item.objects is None else str(item.objects),
            item.selector,
        )
        for item in levels_of(instances)
    ]
    return table(("instance", "level", "for", "objects", "of"), rows) if rows else ["no running instance found"]


def level_json(snapshot: Snapshot, instances: Iterable[InstanceState]) -> str:
    """The same table as JSON."""
    return json_text({"time_ns": snapshot.time_ns, "levels": [asdict(item) for item in levels_of(instances)]})
