"""Scenarios: small TOML files that say what is on the network, what changes when, and what must come out.

Every mistake is told with the file, the key and what is allowed there. Options are the engine's, by the names of the
catalogue. A scenario may have variants (the same with some values changed); a criterion sees the curves of all.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from importlib import resources
from typing import Any, Literal

from heliograph.engine import _lab
from heliograph.engine.options import encode

__all__ = [
    "Criterion",
    "Pipe",
    "Plan",
    "Receivers",
    "Scenario",
    "ScenarioError",
    "Source",
    "Tcp",
    "Turn",
    "load",
    "parse",
    "shipped",
]

_FOLDER = resources.files(__package__) / "scenarios"


class ScenarioError(ValueError):
    """A scenario cannot be used: the text names the file, the key and what is allowed."""


@dataclass(frozen=True, slots=True)
class Turn:
    """A knob is turned `at` seconds after the beginning."""

    at: float
    knob: Literal["pipe", "offered", "loss", "delay", "drain", "leave"]
    which: int
    value: float = 0.0
    second: float = 0.0


@dataclass(frozen=True, slots=True)
class Pipe:
    """A bottleneck: bytes per second, bytes its queue holds, bytes each packet takes beside its own, seconds."""

    name: str
    rate: int
    queue: int
    overhead: int
    loss: float
    delay: float


@dataclass(frozen=True, slots=True)
class Source:
    """A source: bytes of messages per second it is offered, bytes of each message, seconds."""

    name: str
    pipe: str
    offered: float
    message: int
    queue: int
    even: bool
    start: float
    feedback_delay: float
    feedback_loss: float
    options: str | None


@dataclass(frozen=True, slots=True)
class Receivers:
    """Receivers that are alike. drain: messages per second each takes, below 0: all at once."""

    name: str
    count: int
    join: float
    delay: float
    jitter: float
    loss: float
    burst: tuple[float, float, float]
    drain: float
    queue: int
    access_rate: int
    access_queue: int
    options: str | None


@dataclass(frozen=True, slots=True)
class Tcp:
    """A TCP flow beside the sources."""

    name: str
    pipe: str
    start: float
    stop: float
    delay: float
    feedback_delay: float


@dataclass(frozen=True, slots=True)
class Plan:
    """The network of one run and its machines."""

    duration: float
    interval: float
    """Seconds of one sample, which is the control interval too."""
    watches: bool
    """Sources' views of each receiver are kept."""
    pipes: tuple[Pipe, ...]
    sources: tuple[Source, ...]
    receivers: tuple[Receivers, ...]
    tcps: tuple[Tcp, ...]
    turns: tuple[Turn, ...]


@dataclass(frozen=True, slots=True)
class Criterion:
    """A condition: the `measure` of a run, in its worst seed, is on the right side of `bound`."""

    name: str
    measure: str
    bound: float | None
    """None: the value is reported, no bound is set."""
    values: Mapping[str, float | str]
    """Parameters of the measure beside the curves."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """One file."""

    name: str
    title: str
    shows: str
    repeat: int
    """Runs for each seed."""
    network: Literal["simulated", "namespaces"]
    plans: Mapping[str, Plan]
    """By variant; one without a name when there are no variants."""
    criteria: tuple[Criterion, ...]
    marks: tuple[tuple[float, str], ...] = field(default=())
    """Moments worth a mark in the page: seconds, words."""


# ---- reading a table ----


class _Table:
    """A TOML table being read: what is asked for is checked, what nobody asked for is a mistake."""

    def __init__(self, file: str, path: str, values: object) -> None:
        self.file, self.path = file, path
        if not isinstance(values, dict):
            raise ScenarioError(f"{file}: {path} is a table, not {values!r}")
        self.left: dict[str, Any] = dict(values)

    def wrong(self, key: str, allowed: str, value: object) -> ScenarioError:
        return ScenarioError(f"{self.file}: {self.key(key)} is {allowed}, not {value!r}")

    def key(self, key: str) -> str:
        return f"{self.path}.{key}" if self.path else key

    def take(self, key: str, default: object = None) -> Any:
        if key not in self.left and default is None:
            raise ScenarioError(f"{self.file}: {self.key(key)} is missing")
        return self.left.pop(key, default)

    def number(self, key: str, low: float, high: float, default: float | None = None) -> float:
        value = self.take(key, default)
        if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
            raise self.wrong(key, f"a number from {low:g} to {high:g}", value)
        return float(value)

    def whole(self, key: str, low: int, high: int, default: int | None = None) -> int:
        value = self.take(key, default)
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise self.wrong(key, f"a whole number from {low} to {high}", value)
        return value

    def text(self, key: str, default: str | None = None) -> str:
        value = self.take(key, default)
        if not isinstance(value, str):
            raise self.wrong(key, "a text", value)
        return value

    def choice(self, key: str, choices: Sequence[str], default: str | None = None) -> str:
        value = self.take(key, default)
        if value not in choices:
            raise self.wrong(key, "one of " + ", ".join(choices), value)
        return str(value)

    def flag(self, key: str, default: bool) -> bool:
        value = self.left.pop(key, default)
        if not isinstance(value, bool):
            raise self.wrong(key, "true or false", value)
        return value

    def table(self, key: str) -> _Table:
        return _Table(self.file, self.key(key), self.left.pop(key, {}))

    def tables(self, key: str) -> list[_Table]:
        values = self.left.pop(key, [])
        if not isinstance(values, list):
            raise self.wrong(key, "a list of tables", values)
        return [_Table(self.file, f"{self.key(key)}[{i}]", value) for i, value in enumerate(values)]

    def end(self, known: Sequence[str] = ()) -> None:
        if self.left:
            wrong = next(iter(self.left))
            more = f"; there are: {', '.join(known)}" if known else ""
            raise ScenarioError(f'{self.file}: unknown key "{self.key(wrong)}"{more}')

    def options(self, owner: str, more: Mapping[str, float] | None = None) -> str | None:
        """The options, and `more` where these are not given."""
        values = self.left.pop("options", {})
        if not isinstance(values, dict):
            raise self.wrong("options", "a table of options", values)
        values = {**(more or {}), **values}
        try:
            text = encode(values)
            _lab.check_options(owner, text)
        except ValueError as error:
            raise ScenarioError(f"{self.file}: {self.key('options')}: {error}") from None
        return text


_SECONDS = (0.0, 1e6)
_BYTES = (0, 10**12)


def _names(tables: Sequence[_Table], what: str) -> list[str]:
    names = [table.text("name", f"{what}{i}") for i, table in enumerate(tables)]
    for i, name in enumerate(names):
        if name in names[:i]:
            raise ScenarioError(f'{tables[i].file}: {tables[i].key("name")}: there are two "{name}"')
    return names


def _turns(
    table: _Table, knobs: Mapping[str, tuple[Any, float, float]], which: int, more: Mapping[str, float] | None = None
) -> Iterator[Turn]:
    """The changes of one thing; `knobs`: knob, least, most by key."""
    for change in table.tables("changes"):
        at = change.number("at", *_SECONDS)
        found = [key for key in knobs if key in change.left]
        if len(found) != 1:
            raise ScenarioError(f"{change.file}: {change.path} changes one of {', '.join(knobs)}")
        knob, low, high = knobs[found[0]]
        value = change.number(found[0], low, high)
        second = change.number("queue", *_BYTES, default=more["queue"]) if more else 0.0
        change.end(("at", *knobs, *(more or ())))
        yield Turn(at, knob, which, value, second)


def _pipe(table: _Table, name: str, number: int, turns: list[Turn]) -> Pipe:
    pipe = Pipe(
        name,
        rate=table.whole("rate", 1, _BYTES[1]),
        queue=table.whole("queue", *_BYTES),
        overhead=table.whole("overhead", 0, 1000, 66),
        loss=table.number("loss", 0, 1, 0.0),
        delay=table.number("delay", *_SECONDS, default=0.0),
    )
    turns += _turns(table, {"rate": ("pipe", 0, _BYTES[1])}, number, {"queue": pipe.queue})
    table.end(("name", "rate", "queue", "overhead", "loss", "delay", "changes"))
    return pipe


def _way(table: _Table, pipes: Sequence[str]) -> str:
    return table.choice("pipe", ["", *pipes], pipes[0] if pipes else "")


def _source(table: _Table, name: str, number: int, pipes: Sequence[str], turns: list[Turn], interval: float) -> Source:
    source = Source(
        name,
        pipe=_way(table, pipes),
        offered=table.number("offered", 0, 1e12),
        message=table.whole("message", 1, 65536, 1000),
        queue=table.whole("queue", 1, _BYTES[1], 1 << 20),
        even=table.flag("even", False),
        start=table.number("start", *_SECONDS, default=0.1),
        feedback_delay=table.number("feedback_delay", *_SECONDS, default=0.001),
        feedback_loss=table.number("feedback_loss", 0, 1, 0.0),
        options=table.options("transmitter", {"control_interval": interval}),
    )
    turns += _turns(table, {"offered": ("offered", 0, 1e12)}, number)
    table.end(
        ("name", "pipe", "offered", "message", "queue", "even", "start", "feedback_delay", "feedback_loss", "options")
    )
    return source


def _receivers(table: _Table, name: str, number: int, turns: list[Turn]) -> Receivers:
    burst, access = table.table("burst"), table.table("access")
    receivers = Receivers(
        name,
        count=table.whole("count", 1, 10000, 1),
        join=table.number("join", *_SECONDS, default=0.0),
        delay=table.number("delay", *_SECONDS, default=0.001),
        jitter=table.number("jitter", *_SECONDS, default=0.0),
        loss=table.number("loss", 0, 1, 0.0),
        burst=(burst.number("begin", 0, 1, 0.0), burst.number("end", 0, 1, 0.0), burst.number("loss", 0, 1, 0.0)),
        drain=table.number("drain", -1, 1e9, -1.0),
        queue=table.whole("queue", 1, _BYTES[1], 8 << 20),
        access_rate=access.whole("rate", 0, _BYTES[1], 0),
        access_queue=access.whole("queue", *_BYTES, default=65536),
        options=table.options("receiver"),
    )
    turns += _turns(table, {"loss": ("loss", 0, 1), "delay": ("delay", *_SECONDS), "drain": ("drain", -1, 1e9)}, number)
    leave = table.number("leave", 0, math.inf, math.inf)
    if leave < math.inf:
        turns.append(Turn(leave, "leave", number))
    burst.end(("begin", "end", "loss"))
    access.end(("rate", "queue"))
    table.end(
        (
            *("name", "count", "join", "leave", "delay", "jitter", "loss", "burst", "drain", "queue", "access"),
            *("changes", "options"),
        )
    )
    return receivers


def _tcp(table: _Table, name: str, pipes: Sequence[str]) -> Tcp:
    tcp = Tcp(
        name,
        pipe=_way(table, pipes),
        start=table.number("start", *_SECONDS, default=0.0),
        stop=table.number("stop", 0, math.inf, math.inf),
        delay=table.number("delay", *_SECONDS, default=0.001),
        feedback_delay=table.number("feedback_delay", *_SECONDS, default=0.001),
    )
    table.end(("name", "pipe", "start", "stop", "delay", "feedback_delay"))
    return tcp


_PLAN_KEYS = ("duration", "interval", "watches", "pipe", "source", "receivers", "tcp")


def _plan(file: str, values: Mapping[str, object]) -> Plan:
    table = _Table(file, "", {key: values[key] for key in _PLAN_KEYS if key in values})
    turns: list[Turn] = []
    duration = table.number("duration", 1e-3, 1e5)
    interval = table.number("interval", 1e-3, 60)
    pipes = table.tables("pipe")
    pipe_names = _names(pipes, "pipe")
    sources, receivers, tcps = (table.tables(key) for key in ("source", "receivers", "tcp"))
    if not sources or not receivers:
        raise ScenarioError(f"{file}: there is at least one [[source]] and one [[receivers]]")
    source_names, receiver_names, tcp_names = (
        _names(tables, what) for tables, what in ((sources, "source"), (receivers, "receivers"), (tcps, "tcp"))
    )
    return Plan(
        duration,
        interval,
        table.flag("watches", False),
        tuple(_pipe(one, name, i, turns) for i, (one, name) in enumerate(zip(pipes, pipe_names, strict=True))),
        tuple(
            _source(one, name, i, pipe_names, turns, interval)
            for i, (one, name) in enumerate(zip(sources, source_names, strict=True))
        ),
        tuple(
            _receivers(one, name, i, turns) for i, (one, name) in enumerate(zip(receivers, receiver_names, strict=True))
        ),
        tuple(_tcp(one, name, pipe_names) for one, name in zip(tcps, tcp_names, strict=True)),
        tuple(sorted(turns, key=lambda turn: turn.at)),
    )


# ---- variants ----


def _changed(file: str, variant: str, values: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """The scenario's tables with some values changed; a key is a path such as ``receivers.0.count``."""
    made = deepcopy(dict(values))
    for path, value in changes.items():
        place: Any = made
        *way, last = path.split(".")
        try:
            for step in way:
                place = place[int(step)] if isinstance(place, list) else place.setdefault(step, {})
            if isinstance(place, list):
                place[int(last)] = value
            else:
                place[last] = value
        except (KeyError, IndexError, ValueError, TypeError, AttributeError):
            raise ScenarioError(f'{file}: variant.{variant}: there is nothing at "{path}"') from None
    return made


def _plans(file: str, values: Mapping[str, Any], variants: Mapping[str, Any]) -> dict[str, Plan]:
    if not variants:
        return {"": _plan(file, values)}
    plans = {}
    for name, changes in variants.items():
        if not isinstance(changes, dict):
            raise ScenarioError(f"{file}: variant.{name} is a table of paths and values, not {changes!r}")
        plans[name] = _plan(file, _changed(file, name, values, changes))
    return plans


# ---- the file ----


def _criterion(table: _Table, check: Callable[[str, Mapping[str, float | str]], None], duration: float) -> Criterion:
    name, measure = table.text("name"), table.text("measure")
    bound = table.left.pop("bound", None)
    if bound is not None and (isinstance(bound, bool) or not isinstance(bound, int | float)):
        raise table.wrong("bound", "a number", bound)
    values = dict(table.left)
    for key, value in values.items():
        if isinstance(value, bool) or not isinstance(value, int | float | str):
            raise table.wrong(key, "a number or a text", value)
    try:
        check(measure, values)
    except ValueError as error:
        raise ScenarioError(f"{table.file}: {table.path}: {error}") from None
    for key in ("at", "begin", "end"):
        if float(values.get(key, 0.0)) > duration:
            raise table.wrong(key, f"a moment of the run, which takes {duration:g} seconds", values[key])
    return Criterion(name, measure, None if bound is None else float(bound), values)


def parse(text: str, file: str, name: str) -> Scenario:
    """The scenario of a TOML text.

    Args:
        text: what is in the file.
        file: its name, for what is said of mistakes.
        name: of the scenario.

    Raises:
        ScenarioError: something in it is wrong.
    """
    from heliograph.monitor.lab.measures import check  # it knows scenarios

    try:
        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ScenarioError(f"{file}: {error}") from None
    table = _Table(file, "", {key: value for key, value in values.items() if key not in _PLAN_KEYS})
    marks = []
    for mark in table.tables("mark"):
        marks.append((mark.number("at", *_SECONDS), mark.text("text")))
        mark.end(("at", "text"))
    network = table.choice("network", ["simulated", "namespaces"], "simulated")
    plans = _plans(file, values, table.left.pop("variant", {}))
    shortest = min(plan.duration for plan in plans.values())
    scenario = Scenario(
        name=name,
        title=table.text("title"),
        shows=table.text("shows"),
        repeat=table.whole("repeat", 1, 1000, 1),
        network="namespaces" if network == "namespaces" else "simulated",
        plans=plans,
        criteria=tuple(_criterion(one, check, shortest) for one in table.tables("criterion")),
        marks=tuple(marks),
    )
    table.end(("title", "shows", "repeat", "network", "criterion", "variant", "mark", *_PLAN_KEYS))
    if scenario.network == "namespaces":
        from heliograph.monitor.lab import namespaces  # it knows scenarios

        for plan in scenario.plans.values():
            namespaces.check(file, plan)
    if not scenario.criteria:
        raise ScenarioError(f"{file}: there is at least one [[criterion]]")
    return scenario


def shipped() -> list[str]:
    """Names of the scenarios that come along."""
    return sorted(path.name.removesuffix(".toml") for path in _FOLDER.iterdir() if path.name.endswith(".toml"))


def load(name: str) -> Scenario:
    """A scenario that comes along, by name, or one of a file that ends in ``.toml``.

    Raises:
        ScenarioError: there is none, or something in it is wrong.
    """
    if name.endswith(".toml"):
        from pathlib import Path

        try:
            return parse(Path(name).read_text(encoding="utf-8"), name, Path(name).stem)
        except (OSError, UnicodeDecodeError) as error:
            raise ScenarioError(f"{name}: {error}") from None
    if name not in shipped():
        raise ScenarioError(f'there is no scenario "{name}"; there are: {", ".join(shipped())}, or a file.toml')
    file = _FOLDER / f"{name}.toml"
    return parse(file.read_text(encoding="utf-8"), f"{name}.toml", name)
