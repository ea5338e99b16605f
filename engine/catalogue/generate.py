"""Write the C headers and the reference pages from the catalogue.

``python engine/catalogue/generate.py`` writes them, ``--check`` only compares and exits with 1 when one is stale.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING or __package__:
    from heliograph.engine import catalogue
else:  # run as a file, before anything is installed: find the package by its folder
    import importlib.util

    _spec = importlib.util.spec_from_file_location(
        "heliograph.engine.catalogue", Path(__file__).with_name("__init__.py")
    )
    catalogue = importlib.util.module_from_spec(_spec)
    sys.modules["heliograph.engine.catalogue"] = catalogue
    _spec.loader.exec_module(catalogue)

ENGINE = Path(__file__).resolve().parent.parent

_C_HEAD = "/* Generated from engine/catalogue/{source}.toml by generate.py; do not edit. */\n/* clang-format off */\n"
_MD_HEAD = "<!-- Generated from engine/catalogue/{source}.toml by generate.py; do not edit. -->\n"


def _guard(name: str, body: str) -> str:
    macro = f"HELIO_{name.upper()}_H"
    return f"#ifndef {macro}\n#define {macro}\n\n{body}\n#endif\n"


def _c_string(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _list_macro(name: str, rows: list[str]) -> str:
    return f"#define {name} \\\n" + " \\\n".join(f"    {row}" for row in rows) + "\n"


def statistics_header() -> str:
    """Records, scope numbers and X-macro lists: X(cell, KIND, unit, level, statistic, label, value, help)."""
    scopes = catalogue.scopes().values()
    out = ["#include <stdatomic.h>", "#include <stdint.h>", ""]
    out.append("typedef enum helio_scope {")
    out += [f"    HELIO_SCOPE_{scope.name.upper()} = {scope.id}," for scope in scopes]
    out += ["} helio_scope;", "", f"enum {{ HELIO_SCOPES_END = {max(scope.id for scope in scopes) + 1} }};", ""]
    out.append("/* X(SCOPE, scope, id, labels joined by ',', info joined by ',', help) */")
    out.append(
        _list_macro(
            "HELIO_SCOPES(X)",
            [
                f"X({s.name.upper()}, {s.name}, {s.id}, {_c_string(','.join(s.labels))}, "
                f"{_c_string(','.join(s.info))}, {_c_string(s.help)})"
                for s in scopes
            ],
        )
    )
    for scope in scopes:
        macro = scope.name.upper()
        out.append("/* X(cell, KIND, unit, level, statistic, label, value, help) */")
        out.append(
            _list_macro(
                f"HELIO_STATS_{macro}(X)",
                [
                    f"X({cell.name}, {cell.statistic.kind.upper()}, {_c_string(cell.statistic.unit)}, "
                    f"{cell.statistic.level}, {_c_string(cell.statistic.name)}, "
                    f"{_c_string(cell.statistic.split.label if cell.statistic.split else '')}, "
                    f"{_c_string(cell.value or '')}, {_c_string(cell.statistic.help)})"
                    for cell in scope.cells
                ],
            )
        )
        out.append(f"/* {scope.help} One writer; `guard` is odd while a group of cells changes. */")
        out.append(f"typedef struct helio_{scope.name}_stats {{")
        out.append("    _Atomic uint64_t guard;")
        out += [f"    _Atomic uint64_t {cell.name};" for cell in scope.cells]
        out += [f"}} helio_{scope.name}_stats;", ""]
        histograms = [cell.name for cell in scope.cells if cell.statistic.kind == "histogram"]
        out.append(f"enum {{ /* indexes of a {scope.name}'s histograms */")
        out += [f"    HELIO_{macro}_{name.upper()}," for name in histograms]
        out += [f"    HELIO_{macro}_HISTOGRAMS", "};", ""]
    return "\n".join([*out, *_features()])


def _features() -> list[str]:
    """Features of objects, and the cells that depend on them."""
    cells = [(scope, cell) for scope in catalogue.scopes().values() for cell in scope.cells if cell.statistic.only]
    features = dict.fromkeys(feature for _, cell in cells for feature in cell.statistic.only)
    out = ["/* Features of an object, without which some of its cells do not apply. */", "enum {"]
    out += [f"    HELIO_HAS_{name.upper()} = 1 << {bit}," for bit, name in enumerate(features)]
    out += ["};", "", "/* X(SCOPE, scope, cell, features of which one makes the cell apply) */"]
    rows = [
        f"X({scope.name.upper()}, {scope.name}, {cell.name}, "
        f"{' | '.join(f'HELIO_HAS_{name.upper()}' for name in cell.statistic.only)})"
        for scope, cell in cells
    ]
    return [*out, _list_macro("HELIO_STATS_ONLY(X)", rows)]


def _sum(terms: tuple[catalogue.Term, ...], macro: str) -> str:
    """A side of an identity as a C expression over the cells, in `macro`s."""
    parts = [f"{'-' if t.sign < 0 else '+'} {f'{macro}({t.cell})' if t.cell else t.number}" for t in terms]
    return "(" + " ".join(parts).removeprefix("+ ") + ")"


def identities_header() -> str:
    """The lists of sums that hold, as expressions over CELL(name); in joins the sender's are SENT(name)."""
    out = [
        "/* Sums that hold in one object.  X(SCOPE, scope, name, left, right): the sides are sums over CELL(name),",
        " * which the user defines; they are equal, modulo 2^64. */",
        _list_macro(
            "HELIO_IDENTITIES(X)",
            [
                f"X({i.scope.upper()}, {i.scope}, {i.name}, {_sum(i.left, 'CELL')}, {_sum(i.right, 'CELL')})"
                for i in catalogue.identities()
            ],
        ),
        "/* The two ends of a stream.  X(SENDER, sender, RECEIVER, receiver, name, left, right, modulo): left is a sum",
        " * over SENT(name), right over CELL(name); left less right is in flight.  modulo 0: 2^64. */",
        _list_macro(
            "HELIO_JOINS(X)",
            [
                f"X({j.sender.upper()}, {j.sender}, {j.receiver.upper()}, {j.receiver}, {j.name}, "
                f"{_sum(j.left, 'SENT')}, {_sum(j.right, 'CELL')}, {j.modulo})"
                for j in catalogue.joins()
            ],
        ),
    ]
    return "\n".join(out)


def events_header() -> str:
    """Event numbers and the list X(NAME, name, id, SEVERITY, arguments joined by ',', help)."""
    rows = catalogue.events().values()
    out = [
        "typedef enum helio_severity { HELIO_INFO, HELIO_WARNING, HELIO_ERROR } helio_severity;",
        "",
        "typedef enum helio_event_id {",
    ]
    out += [f"    HELIO_EVENT_{row.name.upper()} = {row.id}," for row in rows]
    out += ["} helio_event_id;", "", "/* X(NAME, name, id, SEVERITY, arguments joined by ',', help) */"]
    out.append(
        _list_macro(
            "HELIO_EVENTS(X)",
            [
                f"X({row.name.upper()}, {row.name}, {row.id}, {row.severity.upper()}, "
                f"{_c_string(','.join(row.arguments))}, {_c_string(row.help)})"
                for row in rows
            ],
        )
    )
    return "\n".join(out)


def _default_text(row: catalogue.Option) -> str:
    """A default as written in option texts."""
    return str(row.default).lower() if row.type == "boolean" else str(row.default)


_OWNERS = ("instance", "transmitter", "receiver")


def _cell_type(option: catalogue.Option) -> str:
    """How the engine keeps the value of an option."""
    if option.type == "integer":
        return "SIGNED" if (option.low or 0) < 0 else "UNSIGNED"
    return "DURATION" if option.type == "float" and option.unit == "seconds" else option.type.upper()


def _option_struct(name: str, head: list[str], rows: list[catalogue.Option]) -> list[str]:
    """A struct with one member for each option, and whether it was given."""
    words = {"STRING": "char *", "SIGNED": "int64_t ", "UNSIGNED": "uint64_t ", "DURATION": "int64_t "}
    words |= {"FLOAT": "double ", "BOOLEAN": "bool "}
    out = [f"typedef struct helio_{name}_options {{", *head]
    out += [f"    {words.get(_cell_type(r)) or f'helio_option_{r.name} '}{r.member};" for r in rows]
    out += ["    struct {", *(f"        bool {r.name};" for r in rows), "    } given;"]
    return [*out, f"}} helio_{name}_options;", ""]


def options_header() -> str:
    """A struct for each owner, and for each a list of its options."""
    rows = list(catalogue.options().values())
    out = ["#include <stdbool.h>", "#include <stdint.h>", ""]
    for row in rows:
        if row.type == "choice":
            out.append("typedef enum {")
            out += [f"    HELIO_{row.name.upper()}_{choice.upper().replace('-', '_')}," for choice in row.choices]
            out += [f"}} helio_option_{row.name};", ""]
    shared = [row for row in rows if set(row.on) >= {"transmitter", "receiver"}]
    common = {row.name for row in shared}
    out.append("/* Options of transmitters and receivers.  Durations are in ns. */")
    out += _option_struct("stream", [], shared)
    for owner in _OWNERS:
        head = [] if owner == "instance" else ["    helio_stream_options stream;"]
        own = [row for row in rows if owner in row.on and (owner == "instance" or row not in shared)]
        out += _option_struct(owner, head, own)
    out.append("/* X(name, part, member, TYPE, per_handle, low, high, default, choices joined by ',', unit) */")
    for owner in _OWNERS:
        out.append(
            _list_macro(
                f"HELIO_{owner.upper()}_OPTIONS(X)",
                [
                    f"X({r.name}, {'stream.' if owner != 'instance' and r.name in common else ''}, {r.member}, "
                    f"{_cell_type(r)}, {str(r.per_handle).lower()}, {float(r.low or 0)!r}, {float(r.high or 0)!r}, "
                    f"{_c_string(_default_text(r))}, {_c_string(','.join(r.choices))}, {_c_string(r.unit)})"
                    for r in (row.of(owner) for row in rows if owner in row.on)
                ],
            )
        )
    renamed = [f"X({old}, {new})" for old, new in catalogue.renamed_options().items()]
    out += ["/* X(former name, name of now) */", _list_macro("HELIO_RENAMED_OPTIONS(X)", renamed)]
    return "\n".join(out)


def profiles_header() -> str:
    """The list X(PROFILE, option, value as text): what each profile changes."""
    rows = [
        f"X({profile.name.upper().replace('-', '_')}, {name}, {_c_string(str(value).lower())})"
        for profile in catalogue.profiles().values()
        for name, value in profile.values.items()
    ]
    return "/* X(PROFILE, option, value as text) */\n" + _list_macro("HELIO_PROFILES(X)", rows)


def protocol_header() -> str:
    """Constants of the wire as one enum per group."""
    out: list[str] = []
    groups: dict[str, list[str]] = {}
    for dotted, value in catalogue.protocol().items():
        protocol, group, name = dotted.split(".")
        infix = {"packet_type": "TYPE_", "size": "", "kind": "KIND_"}.get(group, f"{group.upper()}_")
        groups.setdefault(f"{protocol} {group}", []).append(f"    HELIO_{protocol.upper()}_{infix}{name} = {value:#x},")
    for title, rows in groups.items():
        out += [f"enum {{ /* {title.replace('_', ' ')} */", *rows, "};", ""]
    return "\n".join(out)


def errors_header() -> str:
    """Error codes of the C interface and the list X(NAME, value, help)."""
    rows = catalogue.errors().values()
    out = ["typedef enum helio_error {", "    HELIO_OK = 0,"]
    out += [f"    /* {row.help} */\n    HELIO_ERR_{row.name} = {row.value}," for row in rows]
    out += ["} helio_error;", "", "/* X(NAME, value, help) */"]
    out.append(_list_macro("HELIO_ERRORS(X)", [f"X({r.name}, {r.value}, {_c_string(r.help)})" for r in rows]))
    return "\n".join(out)


def actions_header() -> str:
    """The actions and the list X(NAME, name, number, whether a notice carries it, help)."""
    rows = catalogue.actions().values()
    out = [
        "/* What the source of a stream decides about a receiver, and does to it.  The number is the same everywhere:",
        " * docs/events.md. */",
        "typedef enum helio_action {",
        "    HELIO_ACTION_NONE = 0,",
    ]
    out += [f"    HELIO_ACTION_{row.name.upper()} = {row.number}, /* {row.help} */" for row in rows]
    out += ["    HELIO_ACTIONS_END", "} helio_action;", ""]
    out.append("/* X(NAME, name, number, notice, help); notice 1: the source notifies the receiver of it */")
    out.append(
        _list_macro(
            "HELIO_ACTIONS(X)",
            [f"X({r.name.upper()}, {r.name}, {r.number}, {r.notice:d}, {_c_string(r.help)})" for r in rows],
        )
    )
    return "\n".join(out)


def _md_table(head: tuple[str, ...], rows: Iterator[tuple[str, ...]]) -> str:
    lines = ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head)]
    lines += ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def statistics_page() -> str:
    """Reference of the statistics, one table per scope."""
    out = ["# Statistics\n"]
    for scope in catalogue.scopes().values():
        out.append(f"\n## {scope.name}\n\n{scope.help} Identified by {', '.join(scope.labels)}.\n\n")
        out.append(
            _md_table(
                ("statistic", "kind", "unit", "level", "meaning"),
                (
                    (
                        f"`{s.name}`" + (f" by {s.split.label}: {', '.join(s.split.values)}" if s.split else ""),
                        s.kind,
                        s.unit or "number",
                        str(s.level),
                        s.help + (f" Only with {' or '.join(s.only)}." if s.only else ""),
                    )
                    for s in scope.statistics
                ),
            )
        )
    return "".join(out)


def derived_page() -> str:
    """Reference of the families that the monitor and the exporters derive."""
    return "# Derived families\n\n" + _md_table(
        ("family", "kind", "unit", "labels", "meaning"),
        (
            (f"`{d.name}`", d.kind, d.unit or "number", ", ".join(d.labels) or "none", d.help)
            for d in catalogue.derived().values()
        ),
    )


def _sum_text(terms: tuple[catalogue.Term, ...]) -> str:
    parts = [f"{'-' if t.sign < 0 else '+'} {f'`{t.cell}`' if t.cell else t.number}" for t in terms]
    return " ".join(parts).removeprefix("+ ")


def identities_page() -> str:
    """Reference of the identities: sums over statistics that must hold."""
    head = (
        "# Identities\n\nSums over statistics that must hold. `heliograph reconcile` checks them in running instances, "
        "the monitor in every snapshot (`monitor/reconciliation.py`), the C tests in 1,000 simulated networks.\n\n"
        "## In one object\n\nThey hold in every snapshot, also during traffic: an object is read as of one instant.\n\n"
    )
    within = _md_table(
        ("scope", "identity", "in", "left", "right", "in words"),
        (
            (i.scope, f"`{i.name}`", i.unit, _sum_text(i.left), _sum_text(i.right), i.help)
            for i in catalogue.identities()
        ),
    )
    between = _md_table(
        ("identity", "in", "sender", "receiver", "in words"),
        (
            (
                f"`{j.name}`",
                j.unit,
                f"{j.sender}: {_sum_text(j.left)}",
                f"{j.receiver}: {_sum_text(j.right)}",
                j.help,
            )
            for j in catalogue.joins()
        ),
    )
    return (
        head
        + within
        + "\n## Between both ends of a stream\n\nSender minus receiver is in flight: never below 0, and 0 without "
        "traffic. The ends are read one after the other, so a receiver may be ahead of its sender.\n\n" + between
    )


def events_page() -> str:
    """Reference of the events, and of the actions that their arguments name."""
    events = _md_table(
        ("event", "id", "severity", "arguments", "meaning"),
        (
            (f"`{e.name}`", str(e.id), e.severity, ", ".join(e.arguments) or "none", e.help)
            for e in catalogue.events().values()
        ),
    )
    actions = _md_table(
        ("number", "action", "in notices", "meaning"),
        ((str(a.number), f"`{a.name}`", "yes" if a.notice else "no", a.help) for a in catalogue.actions().values()),
    )
    head = (
        "\n## Actions\n\nThe event argument `action`. The number is the same in notices ([wire.md](wire.md) 1.3), "
        "in the statistic `action`, in decision logs and in the C interface; the statistics `slow_decisions` and "
        "`slow_actions`, the option `slow_action` and Python use the name.\n\n"
    )
    return "# Events\n\n" + events + head + actions


def _options_table(rows: list[catalogue.Option]) -> str:
    def bounds(option: catalogue.Option) -> str:
        if option.choices:
            return ", ".join(option.choices)
        return "" if option.low is None else f"{option.low} to {option.high} {option.unit}".rstrip()

    return _md_table(
        ("option", "of", "type", "range", "default", "meaning"),
        (
            (
                f"`{o.name}`",
                ", ".join(o.on),
                o.type,
                bounds(o),
                f"`{_default_text(o)}`" if o.default != "" else "",
                o.help,
            )
            for row in rows
            for o in ([row.of(owner) for owner in row.on] if row.variants else [row])
        ),
    )


def options_page() -> str:
    """Reference of the options, without those for experts."""
    rows = catalogue.options().values()
    usual = _options_table([o for o in rows if not o.expert and not o.for_tests])
    tests = _options_table([o for o in rows if o.for_tests])
    return (
        f"# Options\n\nRarely used options: [options-expert.md](options-expert.md).\n\n{usual}\n## For tests\n\n{tests}"
    )


def expert_page() -> str:
    """Reference of the options that few need."""
    rows = [o for o in catalogue.options().values() if o.expert]
    head = "# Options for experts\n\nThe defaults fit nearly always. Usual options: [options.md](options.md).\n\n"
    return head + _options_table(rows)


def profiles_page() -> str:
    """Reference of the profiles: one column for each, one row for each option that any of them changes."""
    profiles = list(catalogue.profiles().values())
    changed = [o for o in catalogue.options().values() if any(o.name in p.values for p in profiles)]

    def cell(profile: catalogue.Profile, option: catalogue.Option) -> str:
        if option.name in profile.values:
            return f"**{profile.values[option.name]}**"
        return str(option.default)

    head = "# Profiles\n\n" + "".join(f"- `{p.name}`: {p.help}\n" for p in profiles) + "\n"
    return head + _md_table(
        ("option", "unit", *(p.name for p in profiles)),
        ((f"`{o.name}`", o.unit or "", *(cell(p, o) for p in profiles)) for o in changed),
    )


def errors_page() -> str:
    """Reference of the errors."""
    return "# Errors\n\n" + _md_table(
        ("code", "value", "Python class", "meaning"),
        ((f"`HELIO_ERR_{e.name}`", str(e.value), f"`{e.python}`", e.help) for e in catalogue.errors().values()),
    )


def protocol_page() -> str:
    """Reference of the wire constants."""
    return "# Constants of the wire\n\n" + _md_table(
        ("name", "value"), ((f"`{name}`", f"{value:#04x}") for name, value in catalogue.protocol().items())
    )


HEADERS: Mapping[str, tuple[str, Callable[[], str]]] = {
    "core/generated/statistics.h": ("statistics", statistics_header),
    "core/generated/identities.h": ("identities", identities_header),
    "core/generated/events.h": ("events", events_header),
    "core/generated/options.h": ("options", options_header),
    "core/generated/profiles.h": ("profiles", profiles_header),
    "core/generated/protocol.h": ("protocol", protocol_header),
    "include/heliograph/errors.h": ("errors", errors_header),
    "include/heliograph/actions.h": ("actions", actions_header),
}
PAGES: Mapping[str, tuple[str, Callable[[], str]]] = {
    "docs/statistics.md": ("statistics", statistics_page),
    "docs/identities.md": ("identities", identities_page),
    "docs/derived.md": ("derived", derived_page),
    "docs/events.md": ("events", events_page),
    "docs/options.md": ("options", options_page),
    "docs/options-expert.md": ("options", expert_page),
    "docs/profiles.md": ("profiles", profiles_page),
    "docs/errors.md": ("errors", errors_page),
    "docs/protocol.md": ("protocol", protocol_page),
}


def outputs() -> Iterator[tuple[Path, str]]:
    """Each generated file and the text it must have."""
    for name, (source, body) in HEADERS.items():
        guard = Path(name).stem if name.startswith("include") else f"generated_{Path(name).stem}"
        yield ENGINE / name, _C_HEAD.format(source=source) + _guard(guard, body())
    for name, (source, body) in PAGES.items():
        yield ENGINE / name, _MD_HEAD.format(source=source) + body()


def main() -> int:
    """Write the files, or with ``--check`` name the stale ones."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="compare only; exit 1 when a file is stale")
    check = parser.parse_args().check
    stale = [(path, text) for path, text in outputs() if not path.exists() or path.read_text() != text]
    for path, text in stale:
        print(("stale: " if check else "wrote: ") + str(path.relative_to(ENGINE.parent)))
        if not check:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
