"""Does a request fit Grafana's own description of its API?  Method, path, and the body's required fields and types.

A small reader of Swagger 2.0, as much as the document uses: `$ref`, objects, arrays and the plain types.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

__all__ = ["Description", "description"]

_FILE = Path(__file__).resolve().parents[2].parent / "shared/data/grafana/http-api-openapi2.json"
_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float),
    "object": (dict,),
    "array": (list,),
}
_WRITTEN_OTHERWISE = {"for": "string"}
"""The document has an integer here; Grafana reads and writes a text such as 5m."""


class Description:
    """The document."""

    def __init__(self, document: dict[str, Any]) -> None:
        self._document = document

    def misfits(self, method: str, path: str, body: Any) -> list[str]:
        """What is wrong with a request; nothing when it fits."""
        operation = self._operation(method, path)
        if operation is None:
            return [f"{method} {path} is not in the description"]
        found = []
        wanted = next((item for item in operation.get("parameters", []) if item["in"] == "body"), None)
        if wanted is None:
            return [f"{method} {path} takes no body"] if body is not None else []
        if body is None:
            return [f"{method} {path} needs a body"] if wanted.get("required") else []
        found += self._check(wanted["schema"], body, "body")
        return found

    def _operation(self, method: str, path: str) -> dict[str, Any] | None:
        """The operation whose path fits with the fewest placeholders."""
        words = path.partition("?")[0].strip("/").split("/")
        fits = []
        for template, operations in self._document["paths"].items():
            pattern = template.strip("/").split("/")
            same = len(pattern) == len(words) and all(
                want.startswith("{") or want == have for want, have in zip(pattern, words, strict=True)
            )
            if same and method.lower() in operations:
                fits.append((template.count("{"), operations[method.lower()]))
        return min(fits, key=lambda fit: fit[0])[1] if fits else None

    def _check(self, schema: dict[str, Any], value: Any, place: str) -> Iterator[str]:
        if "$ref" in schema:
            schema = self._document["definitions"][schema["$ref"].rpartition("/")[2]]
        kind = schema.get("type")
        if kind in _TYPES and (not isinstance(value, _TYPES[kind]) or (isinstance(value, bool) and kind != "boolean")):
            yield f"{place} should be {kind}, not {type(value).__name__}"
            return
        if isinstance(value, dict):
            properties = schema.get("properties")
            yield from (f"{place} lacks {name}" for name in schema.get("required", []) if name not in value)
            for name, item in value.items():
                if name in _WRITTEN_OTHERWISE:
                    yield from self._check({"type": _WRITTEN_OTHERWISE[name]}, item, f"{place}.{name}")
                elif properties and name in properties:
                    yield from self._check(properties[name], item, f"{place}.{name}")
                elif properties:
                    yield f"{place} has no {name}"
        elif isinstance(value, list) and "items" in schema:
            for index, item in enumerate(value):
                yield from self._check(schema["items"], item, f"{place}[{index}]")


def description() -> Description:
    """The document, or a skip when it is not here."""
    if not _FILE.exists():
        pytest.skip("Grafana's API description is not part of the project and not beside it")
    return Description(json.loads(_FILE.read_text()))
