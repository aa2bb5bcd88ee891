"""`firsthand preflight`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from firsthand.cli.output import diagnostics, lines
from firsthand.engine.reviewing import run_preflight
from firsthand.records import Budget


def run(
    config: Path, model: str, effort: str, timeout_ms: int, max_turns: int, program: Path | None, state: Path | None
) -> None:
    """Write the diagnosis to standard output; what was proved goes to standard error."""
    diagnosis = run_preflight(
        config,
        model=model,
        effort=effort,
        budget=Budget(timeout_ms=timeout_ms, max_turns=max_turns),
        program=program,
        state_path=state,
    )
    sys.stdout.write(json.dumps(diagnosis.as_json(), indent=2, ensure_ascii=True) + "\n")
    console = diagnostics()
    found = diagnosis.program
    console.print(lines(f"{found.path} {found.version}, sha256 {found.sha256[:16]}…"))
    console.print(lines(f"shown to the model: {', '.join(diagnosis.tools)}"))
    console.print(lines("nothing was sent anywhere but to this machine itself; whether a login works was not tried"))
