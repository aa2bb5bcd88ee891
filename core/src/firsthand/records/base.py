"""What all records share: frozen, nothing extra, camelCase on the wire, no floats and no unsafe integers."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from firsthand.canonical import MAX_SAFE_INTEGER, JSONValue, canonical_digest

Count = Annotated[int, Field(ge=0, le=MAX_SAFE_INTEGER)]
"""A whole number that survives every JSON reader."""

Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
"""SHA-256, lower-case hexadecimal."""

Mode = Annotated[int, Field(ge=0, le=0o7777)]
"""Permission bits of a file, set-id and sticky bits included."""


class Record(BaseModel):
    """A value of the evidence: written once, never changed."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        strict=True,
        alias_generator=to_camel,
        validate_by_name=True,
        validate_by_alias=True,
        serialize_by_alias=True,
        ser_json_bytes="base64",
    )

    def as_json(self) -> JSONValue:
        """The record as plain JSON values, camelCase, nothing left out."""
        value: JSONValue = self.model_dump(mode="json", by_alias=True)
        return value

    def canonical_digest(self) -> str:
        """SHA-256 over the record's canonical JSON: binds every field and the order of every list."""
        return canonical_digest(self.as_json())
