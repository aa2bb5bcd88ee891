"""`firsthand init`."""

from __future__ import annotations

import json
import os
from pathlib import Path

from firsthand.canonical import JSONValue
from firsthand.cli.output import answers, lines, print_json, table
from firsthand.definition import json_schema, parse_definition
from firsthand.engine.detection import draft
from firsthand.engine.detection.draft import SCHEMA_NAME
from firsthand.errors import UsageError


def run(folder: Path, config: Path, *, runtime: str, force: bool, as_json: bool) -> None:
    """Draft a definition, prove that it is accepted, write it and its schema."""
    root = folder.resolve()
    target = config if config.is_absolute() else root / config
    if not root.is_dir():
        raise UsageError("not a folder", where=str(folder), next_step="name the project's folder")
    if os.path.lexists(target) and not force:
        raise UsageError("it exists already", where=str(target), next_step="use --force to replace it")
    found = draft(root, os.environ, runtime=runtime, root_field=os.path.relpath(root, target.parent))
    schema = target.parent / SCHEMA_NAME
    definition: dict[str, JSONValue] = {"$schema": f"./{SCHEMA_NAME}", **found.definition}
    raw = (json.dumps(definition, indent=2, ensure_ascii=False) + "\n").encode()
    parsed = parse_definition(raw, target.parent)
    target.write_bytes(raw)
    schema.write_text(json.dumps(json_schema(), indent=2, ensure_ascii=True) + "\n", encoding="ascii")
    verification = parsed.document.review_verification
    assert verification is not None  # noqa: S101 # the draft always has one
    if as_json:
        print_json(
            {
                "definition": str(target),
                "fingerprint": parsed.fingerprint,
                "files": len(verification.files),
                "checks": [
                    {"id": check.id, "command": list[JSONValue](check.command)} for check in verification.checks
                ],
                "remarks": list[JSONValue](found.remarks),
            }
        )
        return
    console = answers()
    console.print(table(("CHECK", "COMMAND"), [(check.id, " ".join(check.command)) for check in verification.checks]))
    console.print()
    console.print(
        lines(
            f"{target}: {len(verification.files)} files registered, {len(verification.mutation_paths)} may be mutated"
        )
    )
    for root_named in verification.toolchains:
        console.print(lines(f"toolchain: {root_named}"))
    for remark in found.remarks:
        console.print(lines(f"note: {remark}"))
    console.print(lines("next: firsthand check"))
