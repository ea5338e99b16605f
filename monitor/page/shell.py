"""The shell of a page that is one file, and its parts: header, tiles, legends and tables.

The page states a Content-Security-Policy that admits only its own style sheet and script. Texts are escaped here. An
argument called `markup`, and the cells of a table, are markup already.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Sequence

from heliograph.engine.catalogue.outside import html_text
from heliograph.monitor.page.style import PAGE_STYLE

__all__ = ["document", "legend", "small", "table", "tiles"]


def document(
    title: str,
    about: Iterable[str],
    markup: Iterable[str],
    footer: str,
    *,
    brand: str = "Heliograph",
    style: str = "",
    script: str = "",
) -> str:
    """A whole page.

    Args:
        title: Of the page.
        about: Lines below the title.
        markup: Its parts; empty ones are left out.
        footer: Markup of the last line.
        brand: Above the title.
        style: Rules beside those of all pages.
        script: Empty for none.
    """
    sheet = f"{PAGE_STYLE}{style}"
    lines = "".join(f"<p class='sub'>{html_text(line)}</p>" for line in about)
    body = "\n".join(part for part in markup if part)
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_policy(sheet, script)}">\n'
        f"<title>{html_text(title)}</title>\n<style>{sheet}</style>\n</head>\n<body>\n<main>\n"
        f"<header><p class='brand'>{html_text(brand)}</p><h1>{html_text(title)}</h1>{lines}</header>\n"
        f"{body}\n<footer>{footer}</footer>\n</main>\n"
        + (f"<script>{script}</script>\n" if script else "")
        + "</body>\n</html>\n"
    )


def _policy(style: str, script: str) -> str:
    """The Content-Security-Policy of a page: its own style sheet and script by their hashes, nothing else."""
    rules = ["default-src 'none'", f"style-src {_hash(style)}"]
    if script:
        rules.append(f"script-src {_hash(script)}")
    return "; ".join([*rules, "base-uri 'none'", "form-action 'none'"])


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def tiles(figures: Iterable[tuple[str, str, str]]) -> str:
    """Figures side by side: a heading, the figure, a line below it."""
    shown = "".join(
        f"<div class='tile'><h2>{html_text(head)}</h2><p class='big'>{html_text(value)}</p>"
        f"<p class='sub'>{html_text(below)}</p></div>"
        for head, value, below in figures
    )
    return f"<section class='tiles'>{shown}</section>"


def legend(lines: Iterable[tuple[str, str, str]]) -> str:
    """The names of a chart's lines, in their colours: name, small print behind it, style of the line."""
    items = "".join(
        f"<li><span class='key {f'{style} c{index}'.strip()}'></span>{html_text(name)}{small(print_)}</li>"
        for index, (name, print_, style) in enumerate(lines)
    )
    return f"<ul class='legend'>{items}</ul>"


def small(text: str) -> str:
    """Small print behind something; nothing when empty."""
    return f" <small>{html_text(text)}</small>" if text else ""


def table(columns: Sequence[str], rows: Iterable[Sequence[str]], texts: Sequence[int] = ()) -> str:
    """A table that scrolls sideways. The first cell of a row is its heading.

    Args:
        columns: Headings of the columns.
        rows: Markup of the cells.
        texts: Columns of text, which are not set to the right; below 0: a long text, which may wrap.
    """
    kinds = ["text" if at in texts else "text told" if ~at in texts else "" for at in range(len(columns))]
    kinds = [f" class='{kind}'" if kind else "" for kind in kinds]
    head = "".join(
        f"<th scope='col'{kind.replace(' told', '')}>{html_text(name)}</th>"
        for name, kind in zip(columns, kinds, strict=True)
    )
    body = "".join(
        f"<tr><th scope='row'>{first}</th>"
        + "".join(f"<td{kind}>{cell}</td>" for cell, kind in zip(rest, kinds[1:], strict=True))
        + "</tr>"
        for first, *rest in rows
    )
    return f"<div class='scroll'><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
