"""``heliograph ctl level``: levels of detail, of instances or of what patterns fit, always for a time.

Unlike other commands it may be for several instances at once: a topic is sent and received in many of them, and who
looks for a delay wants it seen at both ends.
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
"""What stands in the place of a selector for the instance itself (engine/core/stats/levels.c)."""


@dataclass(frozen=True, slots=True)
class Level:
    """A level of detail that is in force."""

    instance: str
    selector: str
    """Patterns, such as ``topic=PRICES.*``; ``instance``: of all that no rule fits."""
    level: int
    until_ns: int | None
    """Wall clock, since 1970; None: it has no end."""
    objects: int | None
    """Streams, transmitters, receivers and peers that have it because of this; None: not counted."""


def add_arguments(parser: argparse.ArgumentParser, time: Callable[[str], str]) -> None:
    """Add what the verb takes; `time` is the type of a time."""
    parser.add_argument(
        "level",
        metavar="LEVEL",
        nargs="?",
        choices=("0", "1", "2", "3", "default", "off"),
        help="0 to 3 (heliograph info tells what each adds, and its cost); default or off: end it early",
    )
    parser.add_argument("--for", dest="for", metavar="TIME", type=time, help="how long: 30, 1.5s, 5m; needed")
    parser.add_argument("--topic", metavar="PATTERN", default=argparse.SUPPRESS, help="only such topics: 'PRICES.*'")
    parser.add_argument(
        "--receiver", metavar="PATTERN", help="only such receivers, by name, id or address: 'slow-*', '10.1.2.3:*'"
    )
    parser.add_argument("--stream", metavar="PATTERN", help="only such streams (GSI:PORT), with all that is theirs")
    parser.add_argument("--list", action="store_true", help="show what is in force, and until when; changes nothing")


def values(given: Mapping[str, Any]) -> dict[str, object]:
    """What goes into the command.

    Raises:
        UserError: There is no level, or no end to it.
    """
    selectors = {key: given[key] for key in _SELECTORS if given.get(key) is not None}
    level, time = given.get("level"), given.get("for")
    if level is None:
        raise UserError("which level? heliograph ctl level 3 --for 60s sets one, heliograph ctl level --list shows all")
    if level in ("default", "off"):
        if time is not None:
            raise UserError("default and off end a level now: leave --for out")
        return {"off": "yes", **selectors}
    if time is None:
        words = "".join(f" --{key} '{value}'" for key, value in selectors.items())
        raise UserError(f"say for how long, as no level stays for good: heliograph ctl level {level} --for 60s{words}")
    return {"level": level, "for": time, **selectors}


def has_selector(given: Mapping[str, Any]) -> bool:
    """Whether something less than whole instances is meant."""
    return any(given.get(key) is not None for key in _SELECTORS)


def levels_of(instances: Iterable[InstanceState]) -> Iterator[Level]:
    """What is in force, each instance's own level first."""
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
    """The table of ``--list``."""
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
    return table(("instance", "level", "for", "objects", "of"), rows) if rows else ["no instance is running here"]


def level_json(instances: Iterable[InstanceState]) -> list[str]:
    """The same, one JSON object a line."""
    return [json_text(asdict(item)) for item in levels_of(instances)]
