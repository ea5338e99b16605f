"""Evaluates rules over given series with promtool, as Prometheus does (ADR 0042).

The series become the input of a unit test for rules. The test expects no alert and no value, and promtool reports those
that it finds.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from heliograph.monitor.errors import UserError

__all__ = ["Labels", "Report", "duration", "evaluate", "pairs", "run", "seconds_of", "series"]

TIMEOUT = 600.0
_ALERT = re.compile(r"alertname: (\w+), time: (\S+?), ")
_LABELS = re.compile(r"Labels:\{(.*)\}")
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
_VALUES = re.compile(r'^ *expr: "((?:[^"\\]|\\.)*)", time: \S+,\n.*\n +got: (.*)$', re.MULTILINE)
_VALUE = re.compile(r'\{((?:[^"{}]|"(?:[^"\\]|\\.)*")*)\} ([^\s,]+)')
_ERROR = re.compile(r'^ *(?:rule: (\w+)|expr: "((?:[^"\\]|\\.)*)"), time: [^,]*, err: (.*)$', re.MULTILINE)
_ESCAPE = re.compile(r"\\(?:x([0-9a-f]{2})|u([0-9a-f]{4})|U([0-9a-f]{8})|(.))", re.DOTALL)
_SPECIAL = re.compile(r"[^ !#-\[\]-~]")
_LETTERS = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_UNITS = {"w": 604800.0, "d": 86400.0, "h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}

Labels = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Report:
    """The answer of promtool."""

    firing: Sequence[tuple[str, Labels, float]] = ()
    """Alert, labels without job, and seconds from the first step, for each step at which it fires."""
    values: Mapping[str, Sequence[tuple[Labels, float]]] = field(default_factory=dict)
    """By expression: labels without job, and value."""
    errors: Mapping[str, str] = field(default_factory=dict)
    """By name of a rule or by expression: why it has no result. After an error promtool evaluates nothing more."""


def evaluate(
    rules: Sequence[Mapping[str, object]],
    inputs: Iterable[Mapping[str, str]],
    step: float,
    times: Mapping[str, Sequence[float]],
    values: Sequence[str] = (),
    *,
    at: float = 0.0,
    timeout: float = TIMEOUT,
) -> Report:
    """Evaluate rules at every step of some series.

    Args:
        rules: Rules in the form of a rule file.
        inputs: The series, each from `series`.
        step: Seconds between two values.
        times: By alert: the times to look at it, in seconds from the first step.
        values: Expressions to evaluate once.
        at: Time of `values`, in seconds from the first step.
        timeout: Seconds.

    Raises:
        UserError: promtool is not installed, fails, or exceeds the timeout.
    """
    test = {
        "interval": duration(step),
        "input_series": list(inputs),
        "alert_rule_test": [
            {"eval_time": duration(time), "alertname": name, "exp_alerts": []}
            for name, found in times.items()
            for time in found
        ],
        "promql_expr_test": [{"eval_time": duration(at), "expr": expr, "exp_samples": []} for expr in values],
    }
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        (folder / "rules.yml").write_text(json.dumps({"groups": [{"name": "past", "rules": list(rules)}]}))
        content = {"rule_files": ["rules.yml"], "evaluation_interval": duration(step), "tests": [test]}
        (folder / "tests.yml").write_text(json.dumps(content))
        return _parsed(run("test", "rules", str(folder / "tests.yml"), failing=True, timeout=timeout))


def series(name: str, labels: Labels, values: Iterable[str]) -> Mapping[str, str]:
    """Return a series as an input; a value is a number, ``_`` (none), or ``stale`` where the series ended."""
    inside = ", ".join(f"{label}={_quoted(value)}" for label, value in labels)
    return {"series": f"{name}{{{inside}}}", "values": " ".join(values)}


def _quoted(text: str) -> str:
    """Return a text as Go quotes strings, in ASCII; half of a surrogate pair, which has no UTF-8, is replaced."""
    return f'"{_SPECIAL.sub(_escaped, text)}"'


def _escaped(match: re.Match[str]) -> str:
    char = match[0]
    if char in '"\\':
        return f"\\{char}"
    return "\\ufffd" if "\ud800" <= char <= "\udfff" else f"\\U{ord(char):08x}"


def duration(seconds: float) -> str:
    """Return a number of seconds as a duration of Prometheus."""
    return f"{round(seconds * 1000)}ms"


def seconds_of(text: str) -> float:
    """Return a duration of Prometheus in seconds."""
    return sum(int(count) * _UNITS[unit] for count, unit in re.findall(r"(\d+)(ms|[wdhms])", text))


def pairs(text: str) -> Iterator[tuple[str, str]]:
    """Yield the labels in a text of promtool; their values are quoted as Go quotes strings."""
    for key, value in _LABEL.findall(text):
        yield key, _ESCAPE.sub(_unescaped, value)


def _unescaped(match: re.Match[str]) -> str:
    code = match[1] or match[2] or match[3]
    return chr(int(code, 16)) if code else _LETTERS.get(match[4], match[4])


def run(*words: str, failing: bool = False, timeout: float = TIMEOUT) -> str:
    """Run promtool and return its output.

    Args:
        words: Its arguments.
        failing: Its tests may fail; the output is then that of both streams.
        timeout: Seconds.

    Raises:
        UserError: It is not installed, fails, or exceeds the timeout.
    """
    program = shutil.which("promtool")
    if program is None:
        raise UserError("promtool is not installed; it is part of Prometheus (Debian: prometheus)")
    try:
        done = subprocess.run([program, *words], capture_output=True, text=True, timeout=timeout)
    except subprocess.TimeoutExpired:
        raise UserError(f"promtool did not end within {timeout:g} s") from None
    if done.returncode != 0 and not (failing and "FAILED" in done.stdout + done.stderr):
        said = (done.stderr or done.stdout).strip() or f"it ended with code {done.returncode}"
        raise UserError(f"promtool failed: {said}")
    return done.stdout + done.stderr if failing else done.stdout


def _parsed(report: str) -> Report:
    """Read the report; a part of it that has another form is an error."""
    errors = {name or _ESCAPE.sub(_unescaped, expr): text for name, expr, text in _ERROR.findall(report)}
    parts = _ALERT.split(report)
    if not errors and re.search(r"err(or)?:", parts[0]):
        raise UserError(f"promtool failed: {parts[0].strip()}")
    firing = [
        (name, _known(labels), seconds_of(time))
        for name, time, text in zip(parts[1::3], parts[2::3], parts[3::3], strict=True)
        for labels in _LABELS.findall(text)
    ]
    values = {
        _ESCAPE.sub(_unescaped, expr): [(_known(labels), float(value)) for labels, value in _VALUE.findall(got)]
        for expr, got in _VALUES.findall(report)
    }
    return Report(firing, values, errors)


def _known(labels: str) -> Labels:
    return tuple(sorted((key, value) for key, value in pairs(labels) if key not in ("__name__", "alertname", "job")))
