"""A sound definition to start from, and a way to refuse a changed one."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from firsthand.definition import DefinitionError, parse_definition

SOUND: dict[str, Any] = {
    "runId": "fix-1234",
    "root": ".",
    "runtime": "codex",
    "reviewRuntime": "claude",
    "stages": ["root-cause", "final"],
    "maxRounds": 5,
    "package": {"requirements": ["REQUIREMENTS.md"], "instructions": ["AGENTS.md"]},
    "reviewVerification": {
        "files": ["src/value.mjs", "tests/value.test.mjs", "package.json", "AGENTS.md", "REQUIREMENTS.md"],
        "checks": [{"id": "value", "command": ["node", "--test", "tests/value.test.mjs"]}],
        "mutationPaths": ["src/value.mjs"],
        "timeoutMs": 60000,
    },
}

Change = Callable[[dict[str, Any]], object]


@pytest.fixture
def sound() -> dict[str, Any]:
    return copy.deepcopy(SOUND)


@pytest.fixture
def refusal(tmp_path: Path) -> Callable[[Change], tuple[str, str]]:
    """Change the sound definition, see it refused, and get field and reason."""

    def refuse(change: Change) -> tuple[str, str]:
        document = copy.deepcopy(SOUND)
        change(document)
        with pytest.raises(DefinitionError) as caught:
            parse_definition(json.dumps(document).encode(), tmp_path, homes=[])
        assert caught.value.code == "review_verification_definition"
        assert caught.value.exit_status == 2
        assert caught.value.next_step
        assert caught.value.where == caught.value.field
        return caught.value.field, caught.value.reason

    return refuse
