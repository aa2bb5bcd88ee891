"""A value that a JSON Schema accepts, for a synthetic answer. No model is asked, so nothing is claimed by it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast


def sample(schema: Mapping[str, Any]) -> Any:  # noqa: ANN401 - any JSON value
    """The plainest value of a schema of objects, arrays, texts, numbers and enumerations; of an enum the last value.

    Raises:
        ValueError: the schema uses something else, and no value is known for it.
    """
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return cast("list[Any]", schema["enum"])[-1]
    named = schema.get("type")
    kind = named[-1] if isinstance(named, list) else named
    if kind == "object":
        properties = schema.get("properties", {})
        return {name: sample(properties[name]) for name in schema.get("required", [])}
    if kind == "array":
        return [sample(schema["items"]) for _ in range(schema.get("minItems", 0))]
    plain = {
        "string": "synthetic".ljust(schema.get("minLength", 0), "."),
        "integer": schema.get("minimum", 0),
        "number": schema.get("minimum", 0),
        "boolean": False,
        "null": None,
    }
    if kind not in plain:
        raise ValueError(f"no sample for a schema of type {named!r}")
    return plain[kind]
