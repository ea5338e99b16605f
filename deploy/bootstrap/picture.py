"""The picture of the architecture, drawn from what includes and imports what.

    python deploy/bootstrap/picture.py [--check]

Rooms of the core, their order and their captions are the table in ``engine/README.md``. Arrows are the includes of
``engine/core`` and the imports of the Python packages. Only the position of each box is given here. ``make fmt`` writes
the picture; ``tests/contract/test_documents.py`` checks that its rooms and arrows are those of the sources.
"""

from __future__ import annotations

import ast
import re
import sys
import textwrap
from collections.abc import Iterable
from dataclasses import dataclass
from html import escape
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CORE = ROOT / "engine" / "core"
PICTURE = ROOT / "deploy" / "images" / "architecture.svg"

COLUMN, ROW, WIDTH, HEIGHT = 182, 112, 158, 68  # of the grid of rooms, and of a box
LEFT, TOP, BAND = 44, 326, 46  # where the core's grid begins; height of a band

# Where each room between the bands stands: column and row of the grid, and its colour.
GRID = {
    "receive": (0, 0, "way"),
    "flight": (2.5, 0, "host"),
    "send": (0.5, 1, "way"),
    "options": (3, 1, "host"),
    "repair": (0, 2, "peers"),
    "policy": (1, 2, "peers"),
    "queue": (2, 2, "way"),
    "receivers": (0.5, 3, "peers"),
    "io": (2.5, 3, "way"),
}
# The Python packages: left, top, width, caption.
PYTHON = {
    "engine": (LEFT, 172, 300, "Instance, Transmitter, Receiver; the binding to the core"),
    "dashboards": (846, 172, 166, "the live page; Grafana"),
    "exporters": (1030, 172, 166, "Prometheus, HDR log, spool"),
    "monitor": (846, 326, 350, "segments to snapshots, rates and latency; collector, modules, lab, history"),
    "engine/catalogue": (846, 470, 350, "every name: statistics, events, options, errors"),
}
MESSAGE = ("your program", "queue", "send", "io", "network", "io", "receive", "queue", "your program")
STATISTIC = ("any room", "stats", "shared memory", "monitor", "exporters, dashboards")
COLOURS = {  # fill, line
    "way": ("#fdeccf", "#c98a1b"),
    "peers": ("#ece4f7", "#8561b5"),
    "host": ("#e4eaf0", "#6b7f93"),
    "band": ("#dbe9f6", "#3f7cb3"),
    "python": ("#def0e3", "#3f8f5c"),
    "outside": ("#ffffff", "#8a8f98"),
}


@dataclass(frozen=True)
class Box:
    """A room: where it stands and what is written on it."""

    name: str
    caption: str
    size: str
    left: float
    top: float
    width: float
    height: float
    colour: str


def rooms() -> dict[str, str]:
    """Rooms of the core in include order, each with the first words of its description."""
    text = (ROOT / "engine" / "README.md").read_text(encoding="utf-8")
    table = re.findall(r"^\| `(\w+)` \| (.+) \|$", text, re.MULTILINE)
    return {name: re.split("[:;]", what)[0].strip() for name, what in table}


def includes(names: Iterable[str]) -> set[tuple[str, str]]:
    """Pairs of rooms, of which the first includes a header of the second."""
    known = set(names)
    found = {
        (room, include.split("/")[0])
        for room in known
        for path in (CORE / room).rglob("*.[ch]")
        for include in re.findall(r'^\s*#\s*include\s*"([^"]+)"', path.read_text(encoding="utf-8"), re.MULTILINE)
    }
    return {(a, b) for a, b in found if a != b and b in known}


def package(path: str) -> str:
    """The Python room that a module or file, with slashes, belongs to."""
    return max((room for room in PYTHON if f"{path}/".startswith(f"{room}/")), key=len, default="")


def imports() -> set[tuple[str, str]]:
    """Pairs of Python rooms, of which the first imports something of the second."""
    found = set()
    for path in sorted(path for room in PYTHON for path in (ROOT / room).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.level == 0:
                names = [f"{node.module}.{alias.name}" for alias in node.names]
            for name in names:
                if name.startswith("heliograph."):
                    here = package(path.relative_to(ROOT).as_posix())
                    found.add((here, package(name.removeprefix("heliograph.").replace(".", "/"))))
    return {(a, b) for a, b in found if a != b and b}


def size(folder: Path, pattern: str) -> str:
    """Thousands of lines, roughly."""
    lines = sum(path.read_text(encoding="utf-8").count("\n") for path in folder.rglob(pattern))
    return f"{max(1, round(lines / 1000))}k lines"


def text(x: float, y: float, words: str, style: str, anchor: str = "start") -> str:
    return f'<text class="{style}" x="{x:g}" y="{y:g}" text-anchor="{anchor}">{escape(words)}</text>'


def draw(box: Box) -> list[str]:
    fill, line = COLOURS[box.colour]
    shape = (
        f'<rect x="{box.left:g}" y="{box.top:g}" width="{box.width:g}" height="{box.height:g}" rx="7" '
        f'fill="{fill}" stroke="{line}"/>'
    )
    name = text(box.left + 12, box.top + 21, box.name, "name")
    lines = text(box.left + box.width - 10, box.top + 20, box.size, "size", "end")
    wrapped = textwrap.wrap(box.caption, int((box.width - 16) / 6.1))
    caption = [text(box.left + 12, box.top + 38 + 14 * n, words, "caption") for n, words in enumerate(wrapped)]
    return [shape, name, lines, *caption]


def arrow(x1: float, y1: float, x2: float, y2: float, style: str = "arrow") -> str:
    bend = (y2 - y1) / 2
    return f'<path class="{style}" d="M{x1:g} {y1:g}C{x1:g} {y1 + bend:g} {x2:g} {y2 - bend:g} {x2:g} {y2 - 3:g}"/>'


def arrows(boxes: dict[str, Box], pairs: Iterable[tuple[str, str]]) -> list[str]:
    """One arrow a pair, down from box to box; those of a box spread over its edge by where they lead."""
    pairs = sorted(pairs)

    def middle(name: str) -> tuple[float, str]:
        return boxes[name].left + boxes[name].width / 2, name

    ports: dict[tuple[str, str, bool], float] = {}
    for end in (0, 1):
        for name, box in boxes.items():
            others = sorted((pair[1 - end] for pair in pairs if pair[end] == name), key=middle)
            for n, other in enumerate(others):
                ports[name, other, bool(end)] = box.left + box.width * (n + 1) / (len(others) + 1)
    return [
        arrow(ports[a, b, False], boxes[a].top + boxes[a].height, ports[b, a, True], boxes[b].top) for a, b in pairs
    ]


def way(title: str, stations: tuple[str, ...], y: float, colours: dict[str, str]) -> list[str]:
    """One line of stations with arrows between them."""
    parts = [text(LEFT, y + 21, title, "title")]
    x = LEFT + 190.0
    for n, name in enumerate(stations):
        width = 7.0 * len(name) + 26
        fill, line = COLOURS[colours.get(name, "outside")]
        if n:
            parts.append(f'<path class="route" d="M{x - 19:g} {y + 16:g}H{x - 5:g}"/>')
        parts.append(f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="32" rx="16" fill="{fill}" stroke="{line}"/>')
        parts.append(text(x + width / 2, y + 21, name, "station", "middle"))
        x += width + 22
    return parts


def legend(x: float, y: float) -> list[str]:
    """How to read the picture."""
    lines = (
        "A box is a folder. An arrow leads from a room to one that it",
        "includes or imports; no arrow ever leads back.",
        "Bands are included by many rooms: their arrows are left out,",
        "and so are those of runtime, which joins everything.",
        "Blue dashes: statistics on their way to the monitor.",
    )
    return [
        text(x, y, "How to read it", "title"),
        *(text(x, y + 20 + 16 * n, s, "caption") for n, s in enumerate(lines)),
    ]


def picture() -> str:
    captions = rooms()
    pairs = includes(captions)
    order = list(captions)
    bands = [name for name in order if name not in GRID]
    roof, *ground = reversed(bands)  # the last room joins all; the others are included by most
    if missing := set(GRID) - set(order):
        raise SystemExit(f"picture.py: not in the table of engine/README.md: {', '.join(sorted(missing))}")
    width = 3 * COLUMN + WIDTH
    core: dict[str, Box] = {}
    floor = TOP + BAND + 44
    for name, (column, row, colour) in GRID.items():
        place = (LEFT + column * COLUMN, floor + row * ROW, WIDTH, HEIGHT)
        core[name] = Box(name, captions[name], size(CORE / name, "*.[ch]"), *place, colour)
    floor += 3 * ROW + HEIGHT + 30
    levels = {roof: TOP} | {name: floor + n * (BAND + 8) for n, name in enumerate(ground)}
    slabs = {
        name: Box(name, captions[name], size(CORE / name, "*.[ch]"), LEFT, top, width, BAND, "band")
        for name, top in levels.items()
    }
    python = {
        name: Box(name, caption, size(ROOT / name, "*.py"), left, top, wide, 74, "python")
        for name, (left, top, wide, caption) in PYTHON.items()
    }
    bottom = floor + len(ground) * (BAND + 8)
    used = {name: sum(b == name for _, b in pairs) for name in ground}
    colours = {name: box.colour for name, box in (core | slabs | python).items()}
    colours["exporters, dashboards"] = "python"
    engine, monitor, catalogue = python["engine"], python["monitor"], python["engine/catalogue"]
    uses = imports()
    importers = sum(b == catalogue.name for _, b in uses)
    note = LEFT + width - 96
    stats = levels["stats"] + BAND / 2
    parts = [
        *way("The way of a message", MESSAGE, 36, colours),
        *way("The way of a statistic", STATISTIC, 84, colours),
        text(LEFT, 158, "Python packages", "title"),
        text(LEFT, TOP - 14, "C core", "title"),
        text(LEFT + engine.width + 40, 196, "include/heliograph/heliograph.h", "name"),
        text(LEFT + engine.width + 40, 214, "the C interface, for programs and the binding", "caption"),
        arrow(LEFT + 230, engine.top + engine.height, LEFT + 230, TOP),
        arrow(LEFT + engine.width + 130, 224, LEFT + engine.width + 130, TOP),
        *arrows(core, [pair for pair in pairs if set(pair) <= set(core)]),
        *arrows(python, [(a, b) for a, b in uses if b == "monitor"]),
        *(part for box in (core | slabs | python).values() for part in draw(box)),
        *(text(note, levels[name] + 20, f"included by {used[name]} rooms", "size", "end") for name in ground),
        text(note, TOP + 20, "includes the rooms below", "size", "end"),
        text(catalogue.left + catalogue.width - 80, catalogue.top + 20, f"imported by {importers}", "size", "end"),
        f'<path class="segment" d="M{LEFT + width:g} {stats:g}H800V{monitor.top + 50:g}H{monitor.left - 3:g}"/>',
        text(812, stats - 22, "the stats segment: shared memory that", "caption"),
        text(812, stats - 7, "the engine writes and the monitor reads", "caption"),
        *legend(846, 590),
    ]
    if ("monitor", "engine") in uses:  # its collector sends snapshots over the transport
        parts.append(f'<path class="arrow" d="M{monitor.left:g} {monitor.top + 22:g}H816V150H310V{engine.top - 3:g}"/>')
    style = (
        "text{font-family:system-ui,'Segoe UI','DejaVu Sans',sans-serif;fill:#22272e}"
        ".title{font-size:14px;font-weight:600;fill:#57606a}.name{font-size:14px;font-weight:650}"
        ".caption{font-size:11.5px;fill:#3d444d}.size{font-size:10.5px;fill:#6e7781}.station{font-size:13px}"
        ".arrow,.segment,.route{fill:none;stroke:#57606a;stroke-width:1.3;marker-end:url(#tip)}"
        ".segment{stroke:#3f7cb3;stroke-width:1.8;stroke-dasharray:6 4}.route{stroke-width:1.6}"
    )
    tip = '<marker id="tip" viewBox="0 0 8 8" refX="6" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
    high = bottom + 30
    return "\n".join(
        [
            "<!-- Made by deploy/bootstrap/picture.py; do not edit. -->",
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1240 {high:g}" width="1240" height="{high:g}" '
            'role="img" aria-label="Rooms of Heliograph and what they include">',
            f"<style>{style}</style>",
            f'<defs>{tip}<path d="M0 0L8 4L0 8z" fill="#57606a"/></marker></defs>',
            f'<rect width="1240" height="{high:g}" rx="14" fill="#fbfbf9"/>',
            *parts,
            "</svg>\n",
        ]
    )


def structure(svg: str) -> str:
    """What must be fresh: everything but the figures, which change with every commit."""
    return re.sub(r">(\d+k lines|(included|imported) by [^<]*)<", "><", svg)


def main() -> None:
    drawn = picture()
    if "--check" in sys.argv[1:]:
        if not PICTURE.exists() or structure(PICTURE.read_text(encoding="utf-8")) != structure(drawn):
            raise SystemExit(f"{PICTURE.relative_to(ROOT)} is stale: make fmt writes it")
    else:
        PICTURE.write_text(drawn, encoding="utf-8")


if __name__ == "__main__":
    main()
