"""A definition for a project, drafted from what its files show."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from firsthand.canonical import JSONValue
from firsthand.definition import FILES_LIMIT, TOTAL_LIMIT_BYTES, mutation_fault
from firsthand.engine.detection.runners import Detected, detect
from firsthand.engine.detection.tree import Tree, look
from firsthand.errors import UsageError

SCHEMA_NAME: Final = "firsthand.schema.json"
_REQUIREMENTS: Final = ("REQUIREMENTS.md", "SPEC.md", "README.md", "README.rst", "README")
_INSTRUCTIONS: Final = ("AGENTS.md", "CLAUDE.md", "CONTRIBUTING.md")
_IMPLEMENTATION: Final = (".py", ".js", ".mjs", ".cjs", ".ts", ".mts", ".cts", ".go", ".rs")
_SET_UP: Final = re.compile(
    r"(^|/)((setup|noxfile|tasks)\.py|build\.rs|(gulp|Grunt)file\.js|[^/]+\.config\.[cm]?[jt]s)$"
)
"""Code that sets a project up and that no test exercises."""
_TIMEOUT_MS: Final = 120_000


class DraftError(UsageError):
    """No definition can be drafted: no tests were found, or the project is larger than a definition may be."""


@dataclass(frozen=True, slots=True)
class Draft:
    """A definition as plain JSON values, and what the user should know about it."""

    definition: dict[str, JSONValue]
    remarks: tuple[str, ...]


def draft(root: Path, environment: Mapping[str, str], *, runtime: str, root_field: str, own: Path) -> Draft:
    """Look at a project and draft its definition.

    Args:
        root: the project's folder, absolute.
        environment: the host's, for PATH and VIRTUAL_ENV.
        runtime: label of the host that did the work.
        root_field: what the definition's `root` says.
        own: where the definition will lie; neither it nor the schema beside it is registered.

    Raises:
        DraftError: nothing to run was found, or too much to register.
    """
    tree = look(root, apart=(own, own.with_name(SCHEMA_NAME)))
    found = detect(root, tree, environment)
    if not found:
        raise DraftError(
            "no tests of pytest, unittest, node --test, go or cargo were found",
            where=str(root),
            next_step="run it in the project's folder, or write the definition by hand (see `firsthand schema`)",
        )
    requirements = [path for path in _REQUIREMENTS if tree.has(path)][:1]
    instructions = [path for path in _INSTRUCTIONS if tree.has(path)]
    files = _registered(tree, found, (*requirements, *instructions))
    endings = tuple(ending for detected in found for ending in detected.sources)
    mutation_paths = [
        path
        for path in files
        if path.endswith(_IMPLEMENTATION)
        and path.endswith(endings)
        and mutation_fault(path) is None
        and not _SET_UP.search(path)
    ]
    verification: dict[str, JSONValue] = {
        "files": list[JSONValue](files),
        "checks": [{"id": detected.id, "command": list[JSONValue](detected.command)} for detected in found],
        "mutationPaths": list[JSONValue](mutation_paths),
        "timeoutMs": _TIMEOUT_MS,
    }
    toolchains = list(dict.fromkeys(str(path) for detected in found for path in detected.toolchains))
    if toolchains:
        verification["toolchains"] = list[JSONValue](toolchains)
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", root.name).strip("-.") or "project"
    definition: dict[str, JSONValue] = {
        "runId": f"{name[:100]}-1",
        "root": root_field,
        "runtime": runtime,
        "package": {
            "requirements": list[JSONValue](requirements),
            "instructions": list[JSONValue](instructions),
        },
        "reviewVerification": verification,
    }
    return Draft(definition, tuple(remark for detected in found for remark in detected.remarks))


def _registered(tree: Tree, found: list[Detected], documents: tuple[str, ...]) -> list[str]:
    """What to register: everything if it fits, else what the runners are about and the documents."""
    everything = list(tree.files)
    if _fits(tree, everything):
        return everything
    endings = tuple(ending for detected in found for ending in detected.sources)
    needed = [path for path in everything if path.endswith(endings) or path in documents]
    if _fits(tree, needed):
        return needed
    size = sum(tree.files[path] for path in needed)
    raise DraftError(
        f"{len(needed)} files with {size} bytes would have to be registered,"
        f" at most {FILES_LIMIT} with {TOTAL_LIMIT_BYTES} bytes can be",
        where="reviewVerification.files",
        next_step="run it in one package of the project, or list the files that the tests need by hand",
    )


def _fits(tree: Tree, paths: list[str]) -> bool:
    return len(paths) <= FILES_LIMIT and sum(tree.files[path] for path in paths) <= TOTAL_LIMIT_BYTES
