"""The first lines of Fleet: the main faults in words, worst first, with links to the pages that have the cause.

The sentences about receivers are those of their judge (`monitor/behaviour.py`), those about senders, hosts and clocks
are those of `monitor/faults.py`. Serious faults come first; among them storms, then receivers, then the rest.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from dash import dcc

from heliograph.dashboards.live.pages.elements import html
from heliograph.dashboards.live.pages.numbers import moment
from heliograph.dashboards.live.pages.parts import address
from heliograph.dashboards.live.store import Service, Status, View
from heliograph.dashboards.words import BEHAVIOUR, CALM, FAULT, HEALTH, Tone
from heliograph.monitor.behaviour import CLASSES, Behaviour
from heliograph.monitor.faults import Fault, Kind
from heliograph.monitor.fleet import InstanceRow, ReceiverRow, worst_instances
from heliograph.monitor.groups import groups_of, labels_of, rows_of_instance, vector_of
from heliograph.monitor.model import Health

__all__ = ["Sentence", "Verdict", "clause", "drawn", "fault_text", "old", "troubled", "verdict"]

_NAMED = 3
_OLD = "The data on this page is old"
_LASTING = frozenset({Kind.STORM, Kind.QUEUE, Kind.WAIT})
"""Faults that are present; the others are over."""


@dataclass(frozen=True, slots=True)
class Sentence:
    """One sentence of the first line."""

    said: str
    subject: str = ""
    """Its first words, which lead to a page; empty: none does."""
    href: str = ""
    """Address of the page that shows the cause."""
    tone: Tone = "idle"

    @property
    def text(self) -> str:
        """The whole sentence."""
        return self.subject + self.said


@dataclass(frozen=True, slots=True)
class Verdict:
    """Sentences, the most important first, and how serious the worst is."""

    tone: Tone
    sentences: Sequence[Sentence]
    spoken: str = ""
    """The same for screen readers, without figures: it changes only when a state does. Empty: the headline."""

    @property
    def headline(self) -> str:
        """The first sentence."""
        return self.sentences[0].text

    @property
    def more(self) -> str:
        """The other sentences."""
        return " · ".join(sentence.text for sentence in self.sentences[1:] if sentence.text)

    @property
    def announced(self) -> str:
        """The text that a screen reader announces when it changes."""
        return self.spoken or self.headline


def drawn(verdict: Verdict) -> list[Any]:
    """Return the sentences as the content of the first line."""
    first, *rest = verdict.sentences
    more: list[Any] = []
    for sentence in rest:
        if sentence.text:
            more += [*([" · "] if more else []), *_words(sentence)]
    return [html.H1(_words(first)), html.P(more)]


def _words(sentence: Sentence) -> list[Any]:
    if not sentence.href:
        return [sentence.text]
    return [dcc.Link(sentence.subject, href=sentence.href, refresh=False), sentence.said]


def troubled(rows: Sequence[ReceiverRow]) -> list[ReceiverRow]:
    """Return the worst row of each receiving instance in trouble; instances that closed normally are left out."""
    return [row for row in worst_instances(rows) if row.behaviour not in CALM and row.badness > 0]


def verdict(view: View, status: Status) -> Verdict:
    """Return the most important facts for the reader."""
    if status.service is Service.STARTING:
        return _plain("idle", "Waiting for the first sample", status.reason)
    if status.service is Service.EMPTY:
        return _plain(
            "idle", "No running instance found", f"{status.reason}; the page shows instances as soon as they start"
        )
    if status.service is Service.STALE:
        return _plain("watch", _OLD, status.reason)
    for known, said in tuple(_said):
        if known is view:
            return said
    said = _judged(view)
    _said.append((view, said))
    return said


_said: deque[tuple[View, Verdict]] = deque(maxlen=1)
"""The newest verdict: each browser gets it with each message, and a view may have a hundred thousand receivers."""


def _judged(view: View) -> Verdict:
    bad = troubled(view.rows)
    gone = [row for row in view.instances if row.health in {Health.DEAD, Health.DAMAGED, Health.STALE}]
    silent = [row for row in gone if row.name not in {item.instance for item in bad}]
    found = _worst_first(view, bad, silent)
    if not found:
        return _well(view)
    rest = [f"{len(bad) - _NAMED} more in trouble"] if len(bad) > _NAMED else []
    healthy = len(groups_of(view.rows, "instance")) - len(bad)
    tail = [*map(Sentence, rest), *_left_on(view), *([Sentence(_others(healthy))] if healthy else [])]
    tone: Tone = "bad" if any(sentence.tone == "bad" for sentence in found) else "watch"
    return Verdict(tone, (*found, *tail), _spoken(view, bad, silent))


def _plain(tone: Tone, headline: str, more: str) -> Verdict:
    return Verdict(tone, (Sentence(headline), Sentence(more)))


def _worst_first(view: View, bad: Sequence[ReceiverRow], silent: Sequence[InstanceRow]) -> list[Sentence]:
    by_kind: dict[Kind, list[Fault]] = {}
    for fault in view.faults:
        by_kind.setdefault(fault.kind, []).append(fault)
    of_faults = {kind: _of_faults(view, faults) for kind, faults in by_kind.items()}
    receivers = [
        Sentence(
            f" {_state(row, view.rows)}: {row.reason}",
            row.instance,
            address("/receiver", instance=row.instance),
            BEHAVIOUR[row.behaviour].tone,
        )
        for row in bad[:_NAMED]
    ]
    instances = [
        Sentence(f" is {HEALTH[row.health].text}: {row.reason}", row.name, tone=HEALTH[row.health].tone)
        for row in silent
    ]
    storms = [of_faults.pop(Kind.STORM)] if Kind.STORM in of_faults else []
    found = [*storms, *receivers, *instances, *of_faults.values()]
    return sorted(found, key=lambda sentence: sentence.tone != "bad")  # stable


def _of_faults(view: View, faults: Sequence[Fault]) -> Sentence:
    """Return the sentence of the worst fault of one kind, and how many more there are."""
    first = faults[0]
    said = fault_text(first, view.time_ns).removeprefix(first.subject)
    more = f"; {len(faults) - 1} more like this" if len(faults) > 1 else ""
    return Sentence(said + more, first.subject, _page_of(view, first), FAULT[first.kind].tone)


def fault_text(fault: Fault, now_ns: int) -> str:
    """Return the sentence of a fault, with the time since when it lasts.

    Args:
        fault: The fault.
        now_ns: Time of the newest sample.
    """
    return f"{fault.text}; since {moment(fault.since_ns, now_ns)}" if fault.kind in _LASTING else fault.text


def _page_of(view: View, fault: Fault) -> str:
    """Return the address of the page that has the chart of a fault; empty: there is none."""
    if fault.kind is Kind.QUEUE:
        return address("/topic", topic=fault.topic, stream=fault.stream)
    if fault.stream:
        return address("/congestion", stream=fault.stream)
    name = fault.instances[0]
    if rows_of_instance(view.rows, name):
        return address("/receiver", instance=name)
    sent = next((row for row in view.transmitters if row.instance == name), None)
    return address("/topic", topic=sent.topic, stream=sent.stream) if sent is not None else ""


def _left_on(view: View) -> list[Sentence]:
    """Return the sentence of the levels of detail that were left on, if any."""
    left = [item for item in view.raised if item.is_left_on]
    if not left:
        return []
    more = f"; {len(left) - 1} more like this" if len(left) > 1 else ""
    return [Sentence(f": {left[0].clause}{more}", "Detail was left on", address("/detail"))]


def _spoken(view: View, bad: Sequence[ReceiverRow], silent: Sequence[InstanceRow]) -> str:
    """Name what is in trouble, the worst class first and then by name, so that equal states give equal words."""
    found = [(BEHAVIOUR[row.behaviour], f"{row.instance} is {BEHAVIOUR[row.behaviour].text}") for row in bad]
    found += [(HEALTH[row.health], f"{row.name} is {HEALTH[row.health].text}") for row in silent]
    found += [(FAULT[fault.kind], fault.subject + fault.state) for fault in view.faults]
    ordered = sorted(found, key=lambda item: (item[0].tone != "bad", -item[0].rank, item[1]))
    parts = [text for _, text in ordered[:_NAMED]]
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
    _, instance = labels_of(view.rows, "instance")
    runs = vector_of(view.rows, "behaviour") != CLASSES.index(Behaviour.STOPPED)
    receiving = len(np.unique(instance[runs]))
    lost = sum(sum(point.lost.values()) * point.seconds for point in view.points)
    minutes = sum(point.seconds for point in view.points) / 60
    span = f"{minutes:.0f} min" if minutes >= 1 else f"{minutes * 60:.0f} s"
    if not receiving:
        found = _plain("idle", "No receivers", f"{len(view.instances)} live, none of them with a receiver")
    else:
        headline = "The receiver keeps up" if receiving == 1 else f"All {receiving} receivers keep up"
        books = f"{lost:,.0f} packets lost" if lost else "no packets lost"
        newest = view.points[-1].time_ns if view.points else view.time_ns
        when = f"the last {span}" if newest == view.time_ns else f"the {span} until {moment(newest, view.time_ns)}"
        found = _plain("good", headline, f"{books} in {when}")
    return replace(found, sentences=(*found.sentences, *_left_on(view)))


def clause(row: ReceiverRow, rows: Sequence[ReceiverRow]) -> str:
    """Return a clause such as ``slow is falling behind on PRICES.A and 3 other topics``."""
    return f"{row.instance} {_state(row, rows)}"


def _state(row: ReceiverRow, rows: Sequence[ReceiverRow]) -> str:
    others = sum(item.behaviour is row.behaviour for item in rows_of_instance(rows, row.instance)) - 1
    where = f" on {row.topic}" + (f" and {others} other topic{'s' * (others > 1)}" if others else "")
    return f"is {BEHAVIOUR[row.behaviour].text}{where}"


def _others(count: int) -> str:
    return "the other receiver keeps up" if count == 1 else f"the other {count} receivers keep up"
