"""Small HTML components of the pages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote, urlencode

from dash import dcc
from dash.development.base_component import Component

from heliograph.dashboards.live.differences import OF_CLASS, of_component, plain
from heliograph.dashboards.live.pages.elements import html
from heliograph.dashboards.words import Word
from heliograph.engine.catalogue.outside import outside

__all__ = [
    "address",
    "as_sent",
    "badge",
    "card",
    "cell",
    "chart",
    "entry",
    "gauge",
    "graph",
    "harmless",
    "named",
    "of_alert",
    "of_receiver",
    "of_store",
    "of_stream",
    "of_topic",
    "picker",
    "spark",
    "table",
    "tile",
]

_FULL = 0.8
_MOST_SPARK = 20
"""Points of a small curve."""
_HALF = 0.5


def badge(word: Word) -> html.Span:
    """A state: shape, word and colour."""
    return html.Span(
        [html.Span(word.shape, className="shape", **{"aria-hidden": "true"}), word.text], className=f"badge {word.tone}"
    )


def cell(value: Any, kind: str = "") -> html.Td:
    """A table cell; a plain 0 is shown in grey."""
    quiet = " zero" if value in ("0", "–") else ""
    return html.Td(value, className=f"{kind}{quiet}".strip() or None)


def gauge(share: float) -> list[Any]:
    """A bar for a share from 0 to 1, with its percentage."""
    tone = " bad" if share >= _FULL else " watch" if share >= _HALF else ""
    bar = html.Span(html.I(style={"width": f"{share * 100:.0f}%"}), className=f"gauge{tone}", **{"aria-hidden": "true"})
    return [bar, f"{share * 100:.0f} %"]


def spark(values: Sequence[float | None], title: str) -> html.Span:
    """A small filled curve of some values, from 0 to the highest; decoration only: the number stands next to it."""
    known = [value or 0.0 for value in values]
    width = -(-len(known) // _MOST_SPARK)  # the greatest of each few: a peak stays, and an update stays small
    known = [max(known[at : at + width]) for at in range(0, len(known), width or 1)]
    top = max(known, default=0.0)
    if len(known) < 2 or top <= 0:
        return html.Span(className="spark", style={"clipPath": "polygon(0 96%,100% 96%,100% 100%,0 100%)"}, title=title)
    step = 100 / (len(known) - 1)
    line = ",".join(f"{index * step:.0f}% {100 - 96 * value / top:.0f}%" for index, value in enumerate(known))
    return html.Span(
        className="spark",
        style={"clipPath": f"polygon(0 100%,{line},100% 100%)"},
        title=title,
        **{"aria-hidden": "true"},
    )


def table(heads: Sequence[tuple[str, str]], rows: Sequence[html.Tr], label: str) -> html.Div:
    """A table with its own horizontal scroll bar in a narrow window.

    Args:
        heads: Title and class of each column.
        label: Name of the table for screen readers.
    """
    head = html.Thead(html.Tr([html.Th(title, className=kind or None, scope="col") for title, kind in heads]))
    return html.Div(html.Table([head, html.Tbody(list(rows))], **{"aria-label": label}), className="scroll")


def card(title: str, note: Any, *body: Any, beside: Any = None) -> html.Section:
    """A titled box."""
    header = [html.H2(title), html.P(note)] + ([beside] if beside is not None else [])
    return html.Section([html.Header(header), *body], className="card")


def tile(title: str, value: Any, note: str, tone: str = "") -> html.Div:
    """One number with its name."""
    return html.Div([html.Dt(title), html.Dd([value, html.Small(note)])], className=f"tile {tone}".strip())


def address(page: str, **values: str) -> str:
    """Return the address of a page with selections."""
    chosen = "&".join(f"{name}={quote(value, safe='', errors='replace')}" for name, value in values.items())
    return f"{page}?{chosen}" if chosen else page


def _link(shown: str, page: str, **values: str) -> html.Strong:
    return html.Strong(dcc.Link(shown, href=address(page, **values), refresh=False))


def of_receiver(name: str) -> html.Strong:
    """The name of a receiver, which opens its page."""
    return _link(name, "/receiver", instance=name)


def of_topic(topic: str, stream: str) -> html.Strong:
    """The name of a topic, which opens its page."""
    return _link(topic, "/topic", topic=topic, stream=stream)


def of_store(name: str) -> html.Strong:
    """The name of a message store, which opens its page."""
    return _link(name, "/stores", store=name)


def of_stream(stream: str, shown: str = "") -> html.Strong:
    """The name of a stream, or another text, which opens the page of its congestion control."""
    return _link(shown or stream, "/congestion", stream=stream)


def of_alert(name: str, **selected: str) -> html.Strong:
    """The name of an alert, which opens its page; the page loads again, so that it also works from that page."""
    chosen = urlencode({"alert": name} | {key: value for key, value in selected.items() if value})
    return html.Strong(html.A(name, href=f"/alerts?{chosen}"))


def picker(place: str, name: str, options: Sequence[Mapping[str, str]], value: str, empty: str) -> html.Div:
    """A labelled list of choices; `empty` is shown without a choice."""
    box = dcc.Dropdown(id=place, options=list(options), value=value or None, placeholder=empty)
    return named(name, html.Label(name, htmlFor=place), box, kind="picker")


def entry(place: str, name: str, example: str, kind: Any = "text", value: str = "", waits: bool = False) -> html.Div:
    """A labelled field for text.

    Args:
        place: Id of the field.
        name: Its label.
        example: What is shown while it is empty.
        kind: "text" or "password".
        value: Its text.
        waits: Whether it takes effect with Enter, or when it loses the focus; otherwise with each letter.
    """
    box = dcc.Input(
        id=place, type=kind, placeholder=example, value=value, maxLength=256, autoComplete="off", debounce=waits
    )
    return html.Div([html.Label(name, htmlFor=place), box], className="picker")


def named(name: str, *body: Any, kind: str) -> html.Div:
    """Controls with a common name for screen readers; those of Dash have no name of their own."""
    return html.Div(list(body), className=kind, role="group", **{"aria-label": name})


def graph(place: str, figure: Any, title: str, height: str = "240px") -> html.Div:
    """A chart; `place` is its id, and a table has its values."""
    style = {"height": height}
    drawn = dcc.Graph(id=place, figure=figure, className="graph", style=style, config={"displayModeBar": False})
    return html.Div(drawn, role="img", **{"aria-label": f"Chart: {title}"})


def chart(
    place: str, title: str, note: Any, found: Mapping[str, Any], beside: Any = None, height: str = "240px"
) -> html.Section:
    """A titled chart with the table of its values.

    Args:
        place: Id of the chart; that of its table ends with "-twin".
        found: Contents by id.
        beside: A choice beside the title.
    """
    twin = html.Details(
        [html.Summary("As a table"), html.Div(found[f"{place}-twin"], id=f"{place}-twin")], className="twin scroll"
    )
    return card(title, note, graph(place, found[place], title, height), twin, beside=beside)


_SHOWN = ("children", "title", "aria-label", "label", "key")
"""Properties of a component that are visible to a reader, and keys of rows, which are made of names."""


def harmless(found: Any) -> Any:
    """Make every text of a page, or of its parts, safe to show; components are changed in place.

    The browser escapes markup. It does not escape characters that change the reading direction or are invisible.
    Figures are skipped: their names were made safe before (`Output.PLOTLY`).
    """
    if isinstance(found, str):
        return outside(found)
    if isinstance(found, Mapping):
        return {key: item if key == "value" else harmless(item) for key, item in found.items()}
    if isinstance(found, list | tuple):
        return [harmless(item) for item in found]
    if isinstance(found, Component):
        own = vars(found)
        for name in _SHOWN:
            if (shown := own.get(name)) is not None:
                own[name] = harmless(shown)
        if isinstance(options := own.get("options"), list):
            own["options"] = harmless(options)
    return found


def as_sent(part: Any) -> Any:
    """Return what `plain(harmless(part))` does, in one walk and without a change of the part.

    Raises:
        TypeError: A value is not one of JSON, a component or a figure.
    """
    if isinstance(part, str):
        return outside(part)
    if isinstance(part, Component):
        own = ((name, item) for name, item in vars(part).items() if name not in OF_CLASS)
        return of_component(part, {name: as_sent(item) if _is_shown(name, item) else plain(item) for name, item in own})
    if isinstance(part, Mapping):
        return {name: plain(item) if name == "value" else as_sent(item) for name, item in part.items()}
    if isinstance(part, list | tuple):
        return [as_sent(item) for item in part]
    return plain(part)


def _is_shown(name: str, item: Any) -> bool:
    return name in _SHOWN or (name == "options" and isinstance(item, list))
