"""The page of the message stores: all, worst first; of one its streams, stability, subscriptions, files and service."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from heliograph.dashboards.live.figures.stores import behind, disk, file_times, kept
from heliograph.dashboards.live.keeping import (
    QUANTILES,
    Judged,
    Keeping,
    KeptStream,
    Stability,
    Subscribed,
    Times,
    judged,
)
from heliograph.dashboards.live.pages import numbers, tables
from heliograph.dashboards.live.pages.address import refused
from heliograph.dashboards.live.pages.elements import html
from heliograph.dashboards.live.pages.head import head
from heliograph.dashboards.live.pages.parts import (
    badge,
    card,
    cell,
    chart,
    gauge,
    of_store,
    of_stream,
    picker,
    table,
    tile,
)
from heliograph.dashboards.live.pages.verdict import old
from heliograph.dashboards.live.store import View
from heliograph.dashboards.words import STORE

__all__ = ["CHOICES", "PLACES", "Choice", "choice", "layout", "listed", "parts"]

_CHARTS: Mapping[str, tuple[str, str]] = {
    "st-kept": ("Kept", "messages taken per second, by stream"),
    "st-behind": ("Behind", "messages behind the source; dotted: taken and not yet in the files"),
    "st-times": ("Files", "p99 of writes and syncs, and from arrival until durable"),
    "st-disk": ("Disk", "free bytes, and bytes of the segments of open streams"),
}
"""Title and note of each chart."""

PLACES: Mapping[str, str] = {
    "st-verdict": "children",
    "st-tiles": "children",
    "st-list": "children",
    **dict.fromkeys(_CHARTS, "figure"),
    **{f"{place}-twin": "children" for place in _CHARTS},
    "st-streams": "children",
    "st-stability": "children",
    "st-subscriptions": "children",
    "st-files": "children",
    "st-service": "children",
    "st-events": "children",
    "st-store": "options",
}
"""Ids of the parts that change with the view, and the property that holds them."""

CHOICES = ("st-store",)
"""Ids of the selections, in the address without the prefix."""

_MOST_ROWS = 40
_EMPTY = "No message store in reach."
_HEADS = (
    ("State", ""),
    ("Store", ""),
    ("Streams", "n"),
    ("Kept/s", "n"),
    ("Behind", "n"),
    ("Lag", "n"),
    ("Lost", "n"),
    ("Disk in use", ""),
    ("Full in", "n"),
    ("Subscribers", "n"),
    ("Why", ""),
)


@dataclass(frozen=True, slots=True)
class Choice:
    """The selections of one reader."""

    store: str = ""
    """Name of the instance; empty: the worst."""


def _ranked(view: View) -> list[tuple[str, Keeping, Judged]]:
    """The stores, worst first."""
    found = [(name, one, judged(name, one, view.points)) for name, one in view.keeping.items()]
    return sorted(found, key=lambda item: (-STORE[item[2].state].rank, -(item[1].behind or 0), item[0]))


def choice(values: Mapping[str, Sequence[str]], view: View) -> tuple[Choice, list[str]]:
    """Return the possible part of a selection, and messages about the rest.

    Args:
        values: Values by name: store, from an address.
        view: The view that the page shows.
    """
    name = str((values.get("store") or [""])[0])
    if name and name not in view.keeping:
        return Choice(), [refused("Store", name, "is not in reach; the page shows the worst store")]
    return Choice(name), []


def parts(view: View, chosen: Choice) -> dict[str, Any]:
    """Return the content by part (see PLACES)."""
    ranked = _ranked(view)
    own = next((item for item in ranked if item[0] == chosen.store), None)
    if own is None and not chosen.store and ranked:
        own = ranked[0]
    name, found, state = own or (chosen.store, Keeping(), Judged("keeping", "", None))
    return {
        "st-verdict": _verdict(ranked, own, chosen),
        "st-tiles": _tiles(ranked, found, state),
        "st-list": listed(view),
        "st-kept": kept(view.points, name),
        "st-kept-twin": _twin("Kept", found, ("kept/s", "bytes/s"), _kept_values),
        "st-behind": behind(view.points, name),
        "st-behind-twin": _twin("Behind", found, ("behind", "not written"), _behind_values),
        "st-times": file_times(view.points, name),
        "st-times-twin": _times_twin(found),
        "st-disk": disk(view.points, name),
        "st-disk-twin": _disk_twin(view, name),
        "st-streams": _streams(found),
        "st-stability": _stability(found),
        "st-subscriptions": _subscriptions(found),
        "st-files": _files(found, state) if own else _nothing(),
        "st-service": _service(found) if own else _nothing(),
        "st-events": tables.events(_with_events(view, name)),
        "st-store": [{"label": one, "value": one} for one in sorted(view.keeping)],
    }


def layout(view: View, state: Mapping[str, Any], chosen: Choice, said: Sequence[str] = ()) -> html.Main:
    """Return the whole page.

    Args:
        view: The view to show.
        state: Its stamp.
        chosen: The selection of the reader.
        said: Messages about the address of the page.
    """
    found = parts(view, chosen)
    return html.Main(
        [
            *head("/stores", "st-", state, view, said),
            html.Div(
                [picker("st-store", "Store", found["st-store"], chosen.store, "the worst store")], className="controls"
            ),
            html.Div(old(state) or found["st-verdict"], id="st-verdict"),
            html.Dl(found["st-tiles"], id="st-tiles", className="tiles"),
            card("Message stores", "worst first", html.Div(found["st-list"], id="st-list")),
            html.Div(
                [chart(place, title, note, found) for place, (title, note) in _CHARTS.items()], className="charts"
            ),
            card("Streams", "that the store keeps; those furthest behind first", _div(found, "st-streams")),
            card("Stability", "of these streams, as their sources see it", _div(found, "st-stability")),
            card("Durable subscriptions", "of the store; furthest behind first", _div(found, "st-subscriptions")),
            card("Files and disk", "of the store", _div(found, "st-files")),
            card("Service", "subscribers that read from the store now", _div(found, "st-service")),
            card(
                "Events", "of the store, newest first", html.Div(found["st-events"], id="st-events", className="events")
            ),
        ]
    )


def _div(found: Mapping[str, Any], place: str) -> html.Div:
    return html.Div(found[place], id=place)


def _nothing() -> html.Div:
    return html.Div(html.P(_EMPTY, className="nothing"))


def _with_events(view: View, name: str) -> View:
    return View(time_ns=view.time_ns, events=tuple(event for event in view.events if event.instance == name))


def listed(view: View) -> html.Div:
    """One line per store, worst first."""
    ranked = _ranked(view)
    if not ranked:
        return _nothing()
    body: list[Any] = [table(_HEADS, [_line(*item) for item in ranked[:_MOST_ROWS]], "Message stores, worst first")]
    if len(ranked) > _MOST_ROWS:
        body.append(html.P(f"and {len(ranked) - _MOST_ROWS} more in a better state", className="more"))
    return html.Div(body)


def _line(name: str, found: Keeping, state: Judged) -> html.Tr:
    word = STORE[state.state]
    return html.Tr(
        [
            html.Td(badge(word)),
            html.Td(of_store(name)),
            cell(numbers.count(len(found.streams)), "n"),
            cell(numbers.rate(found.kept), "n"),
            cell(_count(found.behind), "n"),
            cell(numbers.seconds(found.lag_seconds), "n"),
            cell(numbers.count(found.lost), "n loud" if found.lost else "n"),
            html.Td(gauge(found.used) if found.disk_bytes else numbers.NONE),
            cell(numbers.seconds(state.full_seconds), "n"),
            cell(numbers.count(found.readers), "n"),
            html.Td(state.reason, className="why"),
        ],
        key=name,
        className=word.tone,
    )


def _count(value: int | None) -> str:
    return numbers.NONE if value is None else numbers.count(value)


def _verdict(
    ranked: Sequence[tuple[str, Keeping, Judged]], own: tuple[str, Keeping, Judged] | None, chosen: Choice
) -> html.Section:
    """The state of the store in words, and the stores that are in a worse state than they should be."""
    if own is None:
        text = f"{chosen.store} is not in reach any more" if chosen.store else _EMPTY.removesuffix(".")
        return html.Section([html.H1(text)], className="verdict idle")
    name, found, state = own
    word = STORE[state.state]
    body: list[Any] = [html.H1(f"{name}: {word.text}" + (f": {state.reason}" if state.reason else ""))]
    more = [f"{numbers.count(found.lost)} messages are missing in its files."] if found.lost else []
    more += [
        f"{other}: {STORE[one.state].text}: {one.reason}"
        for other, _, one in ranked[:_MOST_ROWS]
        if other != name and STORE[one.state].tone != "good"
    ]
    if more:
        body.append(html.Ul([html.Li(text) for text in more]))
    return html.Section(body, className=f"verdict {word.tone}")


def _tiles(ranked: Sequence[tuple[str, Keeping, Judged]], found: Keeping, state: Judged) -> list[html.Div]:
    bad = sum(STORE[one.state].tone == "bad" for _, _, one in ranked)
    full = state.full_seconds
    fsync = numbers.latency(found.sync_times.get("p99"))
    return [
        tile("In trouble", f"{bad}", f"of {len(ranked)} stores", "bad" if bad else ""),
        tile("Kept", numbers.rate(found.kept), "msg/s"),
        tile("Behind", _count(found.behind), "messages"),
        tile("Largest lag", numbers.seconds(found.lag_seconds), "oldest message"),
        tile("Lost", numbers.count(found.lost), "messages", "bad" if found.lost else ""),
        tile(
            "Disk full in",
            numbers.seconds(full),
            f"{numbers.size(found.disk_free)} free",
            "watch" if state.state == "filling" else "bad" if state.state == "full" else "",
        ),
        tile("fsync p99", fsync, "newest"),
        tile("Subscribers", numbers.count(found.readers), "reading now"),
    ]


def _streams(found: Keeping) -> html.Div:
    heads = (
        ("Stream", ""),
        ("Kept/s", "n"),
        ("Last position", "n"),
        ("Behind", "n"),
        ("Lag", "n"),
        ("Not written", "n"),
        ("Not durable", "n"),
        ("Messages in files", "n"),
        ("Taken", "n"),
        ("Lost", "n"),
        ("Durable p50", "n"),
        ("p99", "n"),
    )
    ordered = sorted(found.streams.items(), key=lambda item: (-(item[1].behind or 0), -item[1].kept, item[0]))
    if not ordered:
        return html.Div(html.P("It keeps no stream at present.", className="nothing"))
    return _rows(heads, [_stream(stream, one) for stream, one in ordered], "Streams of the store")


def _stream(stream: str, one: KeptStream) -> html.Tr:
    held = one.written - one.first + 1 if one.first else 0
    return html.Tr(
        [
            html.Td(of_stream(stream)),
            cell(numbers.rate(one.kept), "n"),
            cell(f"{one.last:,}", "n"),
            cell(_count(one.behind), "n"),
            cell(numbers.seconds(one.lag_seconds), "n"),
            cell(numbers.count(max(0, one.last - one.written)), "n"),
            cell(numbers.count(max(0, one.last - one.durable)) if one.durable else numbers.NONE, "n"),
            cell(numbers.count(max(0, held)), "n"),
            cell(numbers.size(one.bytes), "n"),
            cell(numbers.count(one.lost), "n loud" if one.lost else "n"),
            cell(numbers.latency(one.durable_times.get("p50")), "n"),
            cell(numbers.latency(one.durable_times.get("p99")), "n"),
        ],
        key=stream,
    )


def _stability(found: Keeping) -> html.Div:
    heads = (
        ("Stream", ""),
        ("Source", ""),
        ("Quorum", "n"),
        ("Stable p50", "n"),
        ("p99", "n"),
        ("Not stable", "n"),
        ("Limit", "n"),
        ("Bytes", "n"),
        ("Limit", "n"),
    )
    known = [(stream, one.stability) for stream, one in sorted(found.streams.items()) if one.stability is not None]
    if not known:
        return html.Div(html.P("No source in reach asks for acknowledgements.", className="nothing"))
    return _rows(heads, [_stable(stream, one) for stream, one in known], "Stability of the streams")


def _stable(stream: str, one: Stability) -> html.Tr:
    lost = one.present < one.required
    return html.Tr(
        [
            html.Td(of_stream(stream)),
            cell(one.source),
            cell(f"{one.present} of {one.required}", "n loud" if lost else "n"),
            *(cell(numbers.latency(one.times.get(name)), "n") for name in ("p50", "p99")),
            cell(numbers.count(one.messages), "n"),
            cell(numbers.count(one.limit_messages) if one.limit_messages else numbers.NONE, "n"),
            cell(numbers.size(one.bytes), "n"),
            cell(numbers.size(one.limit_bytes) if one.limit_bytes else numbers.NONE, "n"),
        ],
        key=stream,
    )


def _subscriptions(found: Keeping) -> html.Div:
    heads = (
        ("Subscription", ""),
        ("Topic", ""),
        ("Stream", ""),
        ("Next", "n"),
        ("Waiting", "n"),
        ("Progress/s", "n"),
        ("Saved", "n"),
    )
    if not found.subscriptions:
        return html.Div(html.P("It keeps no durable subscription.", className="nothing"))
    return _rows(heads, [_subscribed(one) for one in found.subscriptions], "Durable subscriptions of the store")


def _subscribed(one: Subscribed) -> html.Tr:
    return html.Tr(
        [
            cell(one.name),
            cell(one.topic),
            html.Td(of_stream(one.stream)),
            cell(f"{one.next_message:,}", "n"),
            cell(numbers.count(one.waiting), "n"),
            cell(numbers.rate(one.progress), "n"),
            cell(f"{numbers.seconds(one.saved_seconds)} ago", "n"),
        ],
        key=f"{one.name} {one.topic} {one.stream}",
    )


def _rows(heads: Sequence[tuple[str, str]], rows: Sequence[html.Tr], caption: str) -> html.Div:
    body: list[Any] = [table(heads, list(rows[:_MOST_ROWS]), caption)]
    if len(rows) > _MOST_ROWS:
        body.append(html.P(f"and {len(rows) - _MOST_ROWS} more", className="more"))
    return html.Div(body)


def _files(found: Keeping, state: Judged) -> html.Div:
    heads = (
        ("Directory", ""),
        ("fsync", ""),
        ("Segments", "n"),
        ("Bytes", "n"),
        ("Removed by retention", "n"),
        ("Disk", "n"),
        ("Free", "n"),
        ("Full in", "n"),
        ("Write p50", "n"),
        ("p99", "n"),
        ("fsync p50", "n"),
        ("p99", "n"),
        ("Failures", "n"),
    )
    row = html.Tr(
        [
            cell(found.directory),
            cell(found.fsync),
            cell(numbers.count(found.segments), "n"),
            cell(numbers.size(found.segment_bytes), "n"),
            cell(numbers.count(found.segments_removed), "n"),
            cell(numbers.size(found.disk_bytes), "n"),
            cell(numbers.size(found.disk_free), "n"),
            cell(numbers.seconds(state.full_seconds), "n"),
            *(cell(numbers.latency(found.write_times.get(name)), "n") for name in ("p50", "p99")),
            *(cell(numbers.latency(found.sync_times.get(name)), "n") for name in ("p50", "p99")),
            cell(numbers.count(found.failures), "n loud" if found.failures else "n"),
        ]
    )
    return html.Div(table(heads, [row], "Files and disk of the store"))


def _service(found: Keeping) -> html.Div:
    heads = (
        ("Subscribers now", "n"),
        ("Bytes/s", "n"),
        ("Requests/s", "n"),
        ("Refused", "n"),
        ("Ended early", "n"),
        ("Restarts", "n"),
    )
    row = html.Tr(
        [
            cell(numbers.count(found.readers), "n"),
            cell(numbers.size(found.sent), "n"),
            cell(numbers.rate(found.requests), "n"),
            *(cell(numbers.count(value), "n") for value in (found.refused, found.aborted)),
            cell(numbers.count(found.restarts), "n loud" if found.restarts else "n"),
        ]
    )
    return html.Div(table(heads, [row], "Service of the store"))


def _kept_values(one: KeptStream) -> tuple[str, ...]:
    return numbers.rate(one.kept), numbers.size(one.data)


def _behind_values(one: KeptStream) -> tuple[str, ...]:
    return _count(one.behind), numbers.count(max(0, one.last - one.written))


def _twin(title: str, found: Keeping, names: Sequence[str], values: Any) -> html.Table:
    rows = [(stream, values(one)) for stream, one in sorted(found.streams.items())]
    return tables.twin(f"{title}, newest interval", names, rows)


def _times_twin(found: Keeping) -> html.Table:
    def line(times: Times) -> tuple[str, ...]:
        return tuple(numbers.latency(times.get(name)) for name in QUANTILES)

    rows = [("write", line(found.write_times)), ("fsync", line(found.sync_times))]
    rows += [(f"durable, {stream}", line(one.durable_times)) for stream, one in sorted(found.streams.items())]
    return tables.twin("Times of the files, newest interval", tuple(QUANTILES), rows)


def _disk_twin(view: View, name: str) -> html.Table:
    known = [point.keeping[name] for point in view.points if name in point.keeping]
    rows = []
    if known:
        for label, field in (("free", "disk_free"), ("segments", "segment_bytes")):
            rows.append((label, tuple(numbers.size(getattr(one, field)) for one in (known[-1], known[0]))))
    return tables.twin("Disk", ("newest", "oldest shown"), rows)
