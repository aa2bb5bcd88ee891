"""The definition's JSON Schema, for editors and for people."""

from __future__ import annotations

from firsthand.canonical import JSONValue
from firsthand.definition.document import Document


def json_schema() -> dict[str, JSONValue]:
    """The JSON Schema (draft 2020-12) of a definition file, with its limits and patterns, as plain values.

    Rules that JSON Schema can't express (credential names, mutation paths, roots, what stands on the disk) are not in
    it: what it accepts can still be refused.
    """
    schema: dict[str, JSONValue] = {
        key: _for_readers(part) for key, part in Document.model_json_schema(by_alias=True).items()
    }
    own: dict[str, JSONValue] = {
        "$schema": {
            "title": "Schema",
            "type": "string",
            "description": "Where editors find this schema; left out of the fingerprint.",
        }
    }
    properties = schema.pop("properties")
    assert isinstance(properties, dict)  # noqa: S101 - the shape of pydantic's own output
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **schema,
        "title": "Firsthand run definition",
        "properties": {**own, **properties},
    }


def _for_readers(node: JSONValue) -> JSONValue:
    """One line a description; fields that may be absent are described as what they are when present, never null."""
    if isinstance(node, list):
        return [_for_readers(child) for child in node]
    if not isinstance(node, dict):
        return node
    kept = {key: _for_readers(child) for key, child in node.items() if not (key == "default" and child is None)}
    description = kept.get("description")
    if isinstance(description, str):
        kept["description"] = " ".join(description.split())
    choices = kept.get("anyOf")
    if isinstance(choices, list) and {"type": "null"} in choices:
        (present,) = (choice for choice in choices if isinstance(choice, dict) and choice != {"type": "null"})
        del kept["anyOf"]
        kept = {**present, **kept}
    return kept
