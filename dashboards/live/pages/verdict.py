"""The first line of the page: the main fault and its receiver, in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dash import html

from heliograph.dashboards.live.store import Service, Status, View
from heliograph.dashboards.words import BEHAVIOUR, CALM, HEALTH, Tone
from heliograph.monitor.behaviour import Behaviour
from heliograph.monitor.fleet import InstanceRow, ReceiverRow, worst_instances
from heliograph.monitor.groups import groups_of, rows_of_instance
from heliograph.monitor.model import Health

__all__ = ["Verdict", "clause", "old", "troubled", "verdict"]

_NAMED = 3
_OLD = "The data on this page is old"


@dataclass(frozen=True, slots=True)
class Verdict:
    """A headline, further details, and how serious it is."""

    tone: Tone
    headline: str
    more: str
    spoken: str = ""
    """The same for screen readers, without figures: it changes only when a state does. Empty: the headline."""

    @property
    def announced(self) -> str:
        """The text that a screen reader announces when it changes."""
        return self.spoken or self.headline


def troubled(rows: Sequence[ReceiverRow]) -> list[ReceiverRow]:
    """Return the worst row of each receiving instance in trouble; instances that closed normally are left out."""
    return [row for row in worst_instances(rows) if row.behaviour not in CALM and row.badness > 0]


def verdict(view: View, status: Status) -> Verdict:
    """Return the most important fact for the reader."""
    if status.service is Service.STARTING:
        return Verdict("idle", "Waiting for the first sample", status.reason)
    if status.service is Service.EMPTY:
        return Verdict(
            "idle", "No running instance found", f"{status.reason}; the page shows instances as soon as they start"
        )
    if status.service is Service.STALE:
        return Verdict("watch", _OLD, status.reason)
    bad = troubled(view.rows)
    gone = [row for row in view.instances if row.health in {Health.DEAD, Health.DAMAGED, Health.STALE}]
    silent = [row for row in gone if row.name not in {item.instance for item in bad}]
    healthy = len(groups_of(view.rows, "instance")) - len(bad)
    if bad:
        tones = [BEHAVIOUR[row.behaviour].tone for row in bad] + [HEALTH[row.health].tone for row in silent]
        more = [f"{clause(row, view.rows)}: {row.reason}" for row in bad[1:_NAMED]]
        if len(bad) > _NAMED:
            more.append(f"{len(bad) - _NAMED} more in trouble")
        more += [f"{row.name} is {HEALTH[row.health].text}: {row.reason}" for row in silent]
        if healthy:
            more.append(_others(healthy))
        tone: Tone = "bad" if "bad" in tones else "watch"
        headline = f"{clause(bad[0], view.rows)}: {bad[0].reason}"
        return Verdict(tone, headline, " · ".join(more), _spoken(bad, silent))
    if silent:
        first, *rest = silent
        more = [f"{row.name} is {HEALTH[row.health].text}" for row in rest]
        tone = "bad" if any(HEALTH[row.health].tone == "bad" for row in silent) else "watch"
        headline = f"{first.name} is {HEALTH[first.health].text}: {first.reason}"
        return Verdict(tone, headline, " · ".join(more), _spoken((), silent))
    return _well(view)


def _spoken(bad: Sequence[ReceiverRow], silent: Sequence[InstanceRow]) -> str:
    """Name what is in trouble, the worst class first and then by name, so that equal states give equal words."""
    found = [(BEHAVIOUR[row.behaviour], row.instance) for row in bad]
    found += [(HEALTH[row.health], row.name) for row in silent]
    ordered = sorted(found, key=lambda item: (item[0].tone != "bad", -item[0].rank, item[1]))
    parts = [f"{name} is {word.text}" for word, name in ordered[:_NAMED]]
    if len(ordered) > _NAMED:
        parts.append(f"{len(ordered) - _NAMED} more in trouble")
    return "; ".join(parts)


def old(state: Mapping[str, Any]) -> html.Section | None:
    """Return the first line of a page whose data is old; None while it is not.

    Args:
        state: The stamp of the view.
    """
    if state["word"] != Service.STALE:
        return None
    return html.Section([html.H1(_OLD), html.P(state["reason"])], className="verdict watch")


def _well(view: View) -> Verdict:
    receiving = len({row.instance for row in view.rows if row.behaviour is not Behaviour.STOPPED})
    lost = sum(sum(point.lost.values()) * point.seconds for point in view.points)
    minutes = sum(point.seconds for point in view.points) / 60
    span = f"{minutes:.0f} min" if minutes >= 1 else f"{minutes * 60:.0f} s"
    if not receiving:
        return Verdict("idle", "No receivers", f"{len(view.instances)} live, none of them with a receiver")
    headline = "The receiver keeps up" if receiving == 1 else f"All {receiving} receivers keep up"
    books = f"{lost:,.0f} packets lost" if lost else "no packets lost"
    return Verdict("good", headline, f"{books} in the last {span}")


def clause(row: ReceiverRow, rows: Sequence[ReceiverRow]) -> str:
    """Return a clause such as ``slow is falling behind on PRICES.A and 3 other topics``."""
    others = sum(item.behaviour is row.behaviour for item in rows_of_instance(rows, row.instance)) - 1
    where = f" on {row.topic}" + (f" and {others} other topic{'s' * (others > 1)}" if others else "")
    return f"{row.instance} is {BEHAVIOUR[row.behaviour].text}{where}"


def _others(count: int) -> str:
    return "the other receiver keeps up" if count == 1 else f"the other {count} receivers keep up"
