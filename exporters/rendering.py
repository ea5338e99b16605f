"""The two text formats from metric families, byte for byte as prometheus-client writes them.

A family of this package writes its own lines (`tables.Table.text`). The lines of any other family are made here; the
names and labels in them are escaped once and kept. `Renderer` knows counters, gauges and histograms whose samples have
neither timestamps nor exemplars, and one set of label names for each sample name. prometheus-client writes all other
forms (`choose`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import Enum
from functools import partial

from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from heliograph.exporters.tables import Table, number_text

__all__ = ["Encoder", "Format", "Renderer"]

Encoder = Callable[[Collector], bytes]


class Format(Enum):
    """A text format."""

    TEXT = "text/plain; version=0.0.4"
    OPENMETRICS = "application/openmetrics-text; version=1.0.0"


class Renderer:
    """Renders families; one call at a time."""

    def __init__(self, limit: int, *, has_created: bool = False) -> None:
        """Create a renderer.

        Args:
            limit: Largest number of line beginnings to keep.
            has_created: Whether OpenMetrics has ``_created`` lines.
        """
        self._has_created = has_created
        self._limit = limit
        self._beginnings: dict[tuple[str, ...], str] = {}

    def choose(self, accept: str) -> tuple[Encoder, str]:
        """Return the encoder for an Accept header and its content type."""
        encode, content_type = choose_encoder(accept)
        for form in Format:
            _, found, rest = content_type.partition(form.value)
            if found and rest.partition("escaping=")[2] in ("", "underscores", "allow-utf-8"):
                return partial(self._registry, form=form), content_type
        return encode, content_type

    def _registry(self, registry: Collector, *, form: Format) -> bytes:
        return self.render(registry.collect(), form)

    def render(self, families: Iterable[Metric], form: Format) -> bytes:
        """Return the families as text."""
        parts: list[bytes] = []
        for family in families:
            parts.append(_head(family, form))
            if not isinstance(family, Table):
                parts.append(self._lines(family))
            elif form is Format.TEXT:
                parts.append(family.text)
            else:
                parts.append(family.openmetrics_with_created if self._has_created else family.openmetrics)
        if form is Format.OPENMETRICS:
            parts.append(b"# EOF\n")
        if len(self._beginnings) > self._limit:
            self._beginnings.clear()  # series come and go; the next answer escapes its own labels
        return b"".join(parts)

    def _lines(self, family: Metric) -> bytes:
        beginnings = self._beginnings
        lines = []
        for sample in family.samples:
            name, labels, value = sample[:3]
            key = (name, *labels.values())
            beginning = beginnings.get(key)
            if beginning is None:
                beginning = beginnings[key] = _beginning(name, labels)
            lines.append(f"{beginning}{number_text(value)}\n")
        return "".join(lines).encode()


def _head(family: Metric, form: Format) -> bytes:
    name, text = family.name, family.documentation.replace("\\", r"\\").replace("\n", r"\n")
    if form is Format.OPENMETRICS:
        text = text.replace('"', r"\"")
    elif family.type == "counter":
        name += "_total"
    return f"# HELP {name} {text}\n# TYPE {name} {family.type}\n".encode()


def _beginning(name: str, labels: dict[str, str]) -> str:
    if not labels:
        return f"{name} "
    pairs = ",".join(f'{key}="{_escaped(value)}"' for key, value in sorted(labels.items()))
    return f"{name}{{{pairs}}} "


def _escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")
