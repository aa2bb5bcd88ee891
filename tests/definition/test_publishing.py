"""What is published about the definition agrees with what the code does."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from firsthand.definition import (
    CREDENTIAL_EXCEPTIONS,
    CREDENTIAL_FILES,
    CREDENTIAL_FOLDERS,
    CREDENTIAL_PATTERNS,
    REASONS,
    DefinitionError,
    credential_file,
    credential_folder,
    json_schema,
)
from firsthand.definition.mutation_paths import CONFIGURATION_NAMES, TEST_FOLDERS, TEST_NAMES
from firsthand.definition.toolchains import DEPENDENCY_FOLDERS, SYSTEM_FOLDERS, WIDE_FOLDERS

DOC = Path(__file__).resolve().parents[2] / "docs" / "definition.md"


def rows(heading: str) -> list[list[str]]:
    """The cells of the table below a heading of the page."""
    section = DOC.read_text("utf-8").split(f"## {heading}\n", 1)[1].split("\n## ", 1)[0]
    lines = [line for line in section.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines[2:]]


def listed(heading: str, label: str) -> set[str]:
    """The names in backticks of one list item below a heading."""
    section = DOC.read_text("utf-8").split(f"## {heading}\n", 1)[1].split("\n## ", 1)[0]
    item = next(item for item in section.split("\n- ") if item.startswith(label))
    return set(re.findall(r"`([^`]+)`", item.split("\n\n")[0]))


def test_the_page_lists_exactly_the_reasons_of_the_code() -> None:
    published = {cells[0].strip("`"): (cells[1], cells[2]) for cells in rows("Reasons")}
    assert published == dict(REASONS)


def test_every_reason_is_raised_somewhere() -> None:
    source = Path(__file__).resolve().parents[2] / "core" / "src" / "firsthand"
    text = "".join(
        path.read_text("utf-8")
        for room in ("files", "definition", "snapshot")
        for path in (source / room).glob("*.py")
        if path.name not in ("reasons.py", "refusal.py")
    )
    assert [reason for reason in REASONS if f'"{reason}"' not in text] == []


def test_the_page_lists_exactly_the_credentials_of_the_code() -> None:
    assert listed("Credentials", "Folders") == set(CREDENTIAL_FOLDERS)
    assert listed("Credentials", "Files") == set(CREDENTIAL_FILES)
    assert listed("Credentials", "Patterns") == set(CREDENTIAL_PATTERNS)
    assert listed("Credentials", "Exceptions") == set(CREDENTIAL_EXCEPTIONS)


def test_the_page_lists_exactly_what_is_no_implementation() -> None:
    assert listed("Mutation paths", "Tests") == set(TEST_FOLDERS) | set(TEST_NAMES)
    assert listed("Mutation paths", "Configuration") == set(CONFIGURATION_NAMES)


def test_the_page_lists_exactly_the_folders_that_are_no_toolchain() -> None:
    assert listed("Toolchain roots", "Too wide") == set(WIDE_FOLDERS)
    assert listed("Toolchain roots", "The system's") == set(SYSTEM_FOLDERS)
    assert listed("Toolchain roots", "Dependency folders") == set(DEPENDENCY_FOLDERS)


@pytest.mark.parametrize("entry", CREDENTIAL_FOLDERS)
def test_every_credential_folder_is_recognised_wherever_it_lies(entry: str) -> None:
    names = entry.split("/")
    assert credential_folder(names) is not None
    assert credential_folder(["a", *[name.upper() for name in names], "b"]) is not None
    assert credential_folder([f"{name}x" for name in names]) is None


@pytest.mark.parametrize("entry", CREDENTIAL_FILES)
def test_every_credential_file_is_recognised_in_any_case(entry: str) -> None:
    assert credential_file(entry) == credential_file(entry.upper()) == credential_file(entry, patterns=False) == entry


def test_exceptions_are_no_credentials_and_patterns_are_optional() -> None:
    assert [name for name in CREDENTIAL_EXCEPTIONS if credential_file(name) is not None] == []
    assert credential_file("a.pem") == "*.pem"
    assert credential_file("a.pem", patterns=False) is None


def test_the_error_says_what_where_and_what_next() -> None:
    error = DefinitionError("reviewVerification.files[3]", "symlink", "src/a")
    assert str(error) == (
        "review_verification_definition: symlink: the path, or a folder on the way to it, is a symbolic link (src/a) "
        "(reviewVerification.files[3]). Next: register the file that the link leads to, or replace the link by the file"
    )
    with pytest.raises(KeyError):
        DefinitionError("", "no-such-reason")


def walk(node: object) -> list[dict[str, Any]]:
    if isinstance(node, dict):
        return [node, *(found for child in node.values() for found in walk(child))]
    if isinstance(node, list):
        return [found for child in node for found in walk(child)]
    return []


def test_the_schema_is_complete_plain_json() -> None:
    schema = json.loads(json.dumps(json_schema()))
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert schema["title"] == "Firsthand run definition"
    assert schema["description"]
    assert set(schema["properties"]) == {
        "$schema",
        "runId",
        "root",
        "runtime",
        "reviewRuntime",
        "stages",
        "maxRounds",
        "package",
        "reviewVerification",
    }
    assert schema["required"] == ["runId", "runtime"]
    nodes = walk(schema)
    objects = [node for node in nodes if node.get("type") == "object"]
    assert len(objects) == 4
    assert all(node["additionalProperties"] is False for node in objects)
    assert not any(node.get("type") == "null" for node in nodes)
    described = [field for node in objects for field in node["properties"].values()]
    assert [field for field in described if not field.get("description")] == []


def test_the_schema_holds_the_limits() -> None:
    schema: dict[str, Any] = json_schema()
    part = schema["$defs"]["ReviewVerification"]["properties"]
    assert (part["files"]["minItems"], part["files"]["maxItems"]) == (1, 256)
    assert (part["checks"]["minItems"], part["checks"]["maxItems"]) == (1, 8)
    assert (part["timeoutMs"]["minimum"], part["timeoutMs"]["maximum"]) == (1, 300_000)
    assert schema["properties"]["runId"]["pattern"] == "^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$"
    assert schema["$defs"]["Check"]["properties"]["id"]["pattern"] == "^[a-z0-9][a-z0-9-]{0,63}$"
    assert "exit" in schema["$defs"]["Check"]["properties"]["runner"]["enum"]
    for node in walk(schema):
        if "pattern" in node and isinstance(node["pattern"], str):
            re.compile(node["pattern"])
