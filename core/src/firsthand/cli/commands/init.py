"""`firsthand init`."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

from firsthand.canonical import JSONValue
from firsthand.cli.output import answers, lines, print_json, table
from firsthand.definition import json_schema, parse_definition
from firsthand.engine.detection import draft
from firsthand.engine.detection.draft import SCHEMA_NAME
from firsthand.errors import UsageError
from firsthand.files import FileRefusedError, read_path

_LIMIT_BYTES = 1024 * 1024


def run(folder: Path, config: Path, *, runtime: str, force: bool, as_json: bool) -> None:
    """Draft a definition, prove that it is accepted, write it and its schema."""
    root = folder.resolve()
    target = config if config.is_absolute() else root / config
    if not root.is_dir():
        raise UsageError("not a folder", where=str(folder), next_step="name the project's folder")
    if os.path.lexists(target) and not force:
        raise UsageError("it exists already", where=str(target), next_step="use --force to replace it")
    found = draft(root, os.environ, runtime=runtime, root_field=os.path.relpath(root, target.parent), own=target)
    schema = target.parent / SCHEMA_NAME
    definition: dict[str, JSONValue] = {"$schema": f"./{SCHEMA_NAME}", **found.definition}
    definition["runId"] = _run_id(definition, target)
    raw = (json.dumps(definition, indent=2, ensure_ascii=False) + "\n").encode()
    parsed = parse_definition(raw, target.parent)
    try:
        target.write_bytes(raw)
        schema.write_text(json.dumps(json_schema(), indent=2, ensure_ascii=True) + "\n", encoding="ascii")
    except OSError as error:
        raise UsageError(
            f"it can't be written: {error.strerror}", where=str(target), next_step="name another file with --config"
        ) from error
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


def _run_id(definition: dict[str, JSONValue], target: Path) -> JSONValue:
    """The drafted id, or the one after it when another definition is replaced: that one's id may be bound to it."""
    drafted = definition["runId"]
    try:
        content = read_path(target, _LIMIT_BYTES)
        replaced = json.loads(content.data) if content is not None else None
    except (FileRefusedError, ValueError):
        return drafted
    if not isinstance(replaced, dict):
        return drafted
    if {**replaced, "runId": drafted} == definition:
        return str(replaced.get("runId"))
    name = str(drafted).rpartition("-")[0]
    found = re.fullmatch(rf"{re.escape(name)}-(\d{{1,9}})", str(replaced.get("runId")))
    return f"{name}-{int(found.group(1)) + 1}" if found else drafted
