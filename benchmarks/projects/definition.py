"""Writing a sample project's definition."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path


def write_definition(
    root: Path,
    *,
    files: Sequence[str],
    checks: Sequence[Mapping[str, object]],
    mutation_paths: Sequence[str] = (),
    toolchains: Sequence[Path] = (),
    timeout_ms: int = 60_000,
) -> Path:
    """Write firsthand.json into a project's root and give its path. The first file is the requirements document."""
    verification: dict[str, object] = {
        "files": list(files),
        "checks": [dict(check) for check in checks],
        "mutationPaths": list(mutation_paths),
        "timeoutMs": timeout_ms,
    }
    if toolchains:
        verification["toolchains"] = [str(folder) for folder in toolchains]
    value = {
        "runId": f"bench-{root.parent.name}-{root.name}",
        "root": ".",
        "runtime": "bench",
        "reviewRuntime": "claude",
        "stages": ["final"],
        "maxRounds": 100,
        "package": {"requirements": [files[0]], "instructions": []},
        "reviewVerification": verification,
    }
    config = root / "firsthand.json"
    config.write_text(json.dumps(value, indent=1), encoding="utf-8")
    return config
