"""docs/evidence.md names every field of schema version 1, and its commands do what it says."""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, get_args

import pytest
from cryptography.hazmat.primitives.serialization import load_pem_public_key
from pydantic import BaseModel

from evidence.builder import check_evidence, mutate_evidence
from evidence.reviews import review_evidence, tool_less_evidence
from evidence.vectors import FOLDER, published_key
from firsthand import records
from firsthand.evidence import EVIDENCE_TYPE, SealedFile, digest_of, seal
from firsthand.records import BatteryReport, Evidence, Record

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "evidence.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| (`[^|]+`) \|", PAGE, re.MULTILINE)
NAMED = {name for row in ROWS for name in re.findall(r"`([^`]+)`", row)}
LAST_PARTS = {name.rpartition(".")[2].removesuffix("[]") for name in NAMED}


def reachable(model: type[BaseModel], seen: set[type[BaseModel]]) -> set[type[BaseModel]]:
    if model not in seen:
        seen.add(model)
        for field in model.model_fields.values():
            for part in parts(field.annotation):
                reachable(part, seen)
    return seen


def parts(annotation: Any) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [found for argument in get_args(annotation) for found in parts(argument)]


MODELS = sorted(
    reachable(Evidence, set()) | reachable(SealedFile, set()) | reachable(BatteryReport, set()),
    key=lambda model: model.__name__,
)


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_every_field_has_a_row(model: type[BaseModel]) -> None:
    names = [field.alias or name for name, field in model.model_fields.items()]
    assert names
    assert [name for name in names if name not in LAST_PARTS] == []


def test_every_record_is_looked_at() -> None:
    known = {model.__name__ for model in MODELS}
    models = {name for name in records.__all__ if isinstance(getattr(records, name), type(Record))}
    assert models - known == {"Record"}


def paths(value: Any, prefix: str = "") -> set[str]:
    """Every field of a value with its place, as the page writes places."""
    if isinstance(value, dict):
        here = {f"{prefix}{name}" for name in value}
        return here.union(*(paths(inner, f"{prefix}{name}.") for name, inner in value.items()))
    if isinstance(value, list):
        return set().union(*(paths(inner, f"{prefix.removesuffix('.')}[].") for inner in value))
    return set()


def test_rows_name_fields_that_exist() -> None:
    """Each row of a record's section is a place in some evidence; a field that is gone may not keep its row."""
    places: set[str] = set()
    for evidence in (check_evidence(), mutate_evidence(), review_evidence(), tool_less_evidence()):
        places |= paths(evidence.as_json())
    places |= {"enclosing.toolchains[].path", "enclosing.toolchains[].named", "enclosing.toolchains[].digest"}
    section: str | None = None
    checked = 0
    for line in PAGE[PAGE.index("## The records") : PAGE.index("### The battery report")].splitlines():
        if line.startswith("### "):
            heading = re.match(r"### `(.+)`", line)
            section = None if heading is None else "" if heading[1] == "evidence" else f"{heading[1]}."
        elif section is not None and (row := re.match(r"\| (`[^|]+`) \|", line)):
            for name in re.findall(r"`([^`]+)`", row[1]):
                assert f"{section}{name}" in places, f"{section}{name}"
                checked += 1
    assert checked > 150


def words(annotation: Any) -> set[str]:
    """Every word of the closed lists in an annotation."""
    if isinstance(annotation, str):
        return {annotation}
    return set().union(*(words(argument) for argument in get_args(annotation)))


def test_every_word_of_a_closed_list_is_named() -> None:
    quoted = set(re.findall(r"`([^`]+)`", PAGE))
    known = {
        word
        for model in MODELS
        for field in model.model_fields.values()
        for word in words(field.annotation)
        if word != EVIDENCE_TYPE
    }
    assert {"detected", "sandbox-failed", "report-unreadable", "oauth-copy"} <= known
    assert sorted(known - quoted) == []


def test_names_and_limits_are_the_ones_in_the_code() -> None:
    assert EVIDENCE_TYPE in PAGE
    assert "64 MiB" in PAGE


def commands() -> list[str]:
    """The indented Python one-liners of the page."""
    blocks = re.findall(r"python3 -c '(.+?)'", PAGE, re.DOTALL)
    return [re.sub(r"\n {4}", "\n", block) for block in blocks]


def test_the_digest_can_be_recomputed_as_the_page_says(tmp_path: Path) -> None:
    raw = seal(review_evidence(run_id="demo-1"))
    program = next(block for block in commands() if "hashlib" in block)
    done = subprocess.run([sys.executable, "-c", program], input=raw, capture_output=True, check=True)
    assert done.stdout.decode().strip() == digest_of(raw) == json.loads(raw)["digest"]
    assert hashlib.sha256(raw).hexdigest() != digest_of(raw)


def test_the_signed_bytes_are_split_off_as_the_page_says(tmp_path: Path) -> None:
    program = next(block for block in commands() if "DSSEv1" in block)
    result = FOLDER / "mutate-signed.json"
    subprocess.run([sys.executable, "-c", program, str(result)], cwd=tmp_path, check=True)
    key: Any = load_pem_public_key(published_key().public.pem.encode())
    key.verify((tmp_path / "sig").read_bytes(), (tmp_path / "pae").read_bytes())
