"""``heliograph info``: installed parts, features of this host, and the cost of the levels of detail on it."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict
from typing import Any

from heliograph.engine import host
from heliograph.engine.levels import CASES, Case, Cost, ladder, measure

__all__ = ["cost_text", "run"]

_HEAD = """\
cost of a message at each level, ns of processor time, both ends together
  64 bytes over memory within one thread; median and its 95 % confidence interval"""

_NOTES = """\
  Not included: the kernel timestamps that level 3 adds to UDP sockets, and the cost of level 0 itself. To measure
  level 0, compare with a build without statistics (tests/bench/README.md)."""


def run(arguments: argparse.Namespace) -> int:
    """Print the report; return the exit code."""
    facts: dict[str, Any] = dict(host.facts())
    costs = None if arguments.no_measure else _measured(arguments.seconds)
    if arguments.json:
        facts["levels of detail"] = [asdict(added) for added in ladder()]
        if costs is not None:
            facts["cost of the levels"] = {case.name: [_as_json(cost) for cost in found] for case, found in costs}
        print(json.dumps(facts, indent=2))
        return 0
    lines = _fact_lines(facts, ("installed", "host"))
    lines += ["levels of detail: what each adds to those below it (option level; heliograph ctl level)"]
    lines += [f"  {added.level}  {added.text}" for added in ladder()]
    lines += [] if costs is None else _cost_lines(costs)
    lines += _fact_lines(facts, ("option defaults",))
    print("\n".join(lines))
    return 0


def _measured(seconds: float) -> list[tuple[Case, list[Cost]]]:
    found = []
    for case in CASES:

        def tell(share: float, case: Case = case) -> None:
            _progress(f"measuring the levels of detail, {case.name}", share)

        found.append((case, measure(case, seconds / len(CASES), tell)))
    _progress("", None)
    return found


def _progress(what: str, share: float | None) -> None:
    """A progress bar on a terminal, erased at the end."""
    if sys.stderr.isatty():
        text = "" if share is None else f"{what} [{'#' * round(30 * share):<30}]"
        print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)


def _fact_lines(facts: dict[str, Any], titles: tuple[str, ...]) -> list[str]:
    width = max(len(name) for title in titles for name in facts[title])
    lines = []
    for title in titles:
        lines.append(title)
        lines += [f"  {name:<{width}}  {value}" for name, value in facts[title].items()]
    return lines


def _as_json(cost: Cost) -> dict[str, Any]:
    return {**asdict(cost), "is_seen": cost.is_seen}


def _cost_lines(costs: list[tuple[Case, list[Cost]]]) -> list[str]:
    lines = [_HEAD]
    for case, found in costs:
        lines.append(f"  {case.name}, {found[0].rounds} rounds")
        lines += [f"    {cost.level}  {cost_text(cost)}" for cost in found]
    return [*lines, _NOTES]


def cost_text(cost: Cost) -> str:
    """The cost of a level as text; states the difference to level 0 only if it is significant."""
    whole = f"{cost.ns.median:.1f} ({cost.ns.low:.1f} to {cost.ns.high:.1f})"
    added = cost.added_ns
    if cost.level == 0:
        return whole
    between = f"{added.low:+.1f} to {added.high:+.1f}"
    if not cost.is_seen:
        return f"{whole}  no difference to level 0 larger than the noise ({between})"
    return f"{whole}  {added.median:+.1f} ({between}), throughput {cost.throughput:.3f} of level 0"
