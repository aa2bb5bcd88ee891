"""Records as the model is shown them: JSON texts that are short enough to be delivered whole."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Final

from firsthand.canonical import JSONValue
from firsthand.records import CheckRun, Excerpt, MutationRun
from firsthand.review.paging import REPLY_CHARACTERS, escaped_characters

_EXCERPT_BYTES: Final = (8192, 4096, 2048, 1024, 512, 128, 0)
_FAILURES: Final = (64, 32, 16, 8, 4, 2, 0)


def as_text(value: JSONValue) -> str:
    """JSON in one line; characters stand as they are, so that text costs no more than it must."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def shown_error(message: str) -> str:
    """A refusal that the model can read."""
    return as_text({"error": message})


def shown_run(run: CheckRun) -> str:
    """One run of a check, with as much of its output as a reply can hold."""
    return _fitting(lambda level: _run(run, level))


def shown_mutation(mutation: MutationRun, runs: Iterable[CheckRun]) -> str:
    """A mutation's verdict and the runs that it rests on; output only of the mutated run, and of what was not green."""
    told = list(runs)

    def build(level: int) -> JSONValue:
        return {
            "verdict": mutation.verdict,
            "cause": mutation.cause,
            "checkId": mutation.mutation.check,
            "path": mutation.mutation.path,
            "restored": mutation.restored_sha256 is not None and mutation.restored_sha256 == mutation.original_sha256,
            "runs": [
                _run(run, level if run.purpose == "mutated" or run.status != "passed" else len(_EXCERPT_BYTES) - 1)
                for run in told
            ],
        }

    return _fitting(build)


def _fitting(build: Callable[[int], JSONValue]) -> str:
    text = ""
    for level in range(len(_EXCERPT_BYTES)):
        text = as_text(build(level))
        if escaped_characters(text) <= REPLY_CHARACTERS:
            break
    return text


def _run(run: CheckRun, level: int) -> JSONValue:
    outcome = run.command.outcome
    return {
        "run": run.run,
        "checkId": run.check_id,
        "purpose": run.purpose,
        "status": run.status,
        "cause": run.cause,
        "outcome": {
            "kind": outcome.kind,
            "exitCode": outcome.exit_code,
            "signal": outcome.signal,
            "detail": outcome.detail[:500],
        },
        "durationMs": outcome.duration_ms,
        "tests": _tests(run, _FAILURES[level]),
        "stdout": _excerpt(run.command.stdout, _EXCERPT_BYTES[level]),
        "stderr": _excerpt(run.command.stderr, _EXCERPT_BYTES[level]),
    }


def _tests(run: CheckRun, most: int) -> JSONValue:
    tests = run.tests
    if tests is None:
        return None
    failures: list[JSONValue] = [
        {"name": failure.name[:300], "message": failure.message} for failure in tests.failures[:most]
    ]
    return {
        "source": tests.source,
        "executed": tests.executed,
        "failed": tests.failed,
        "skipped": tests.skipped,
        "failures": failures,
    }


def _excerpt(excerpt: Excerpt, limit: int) -> JSONValue:
    """The excerpt, cut further at both ends' far sides where the reply has no room for all of it."""
    head, tail = excerpt.head, excerpt.tail
    half = limit // 2
    cut = len(head) + len(tail) > limit
    if cut:
        if not tail:
            tail = head[len(head) - min(half, len(head) - half) :] if half else ""
        head, tail = head[:half], tail[len(tail) - half :] if half and len(tail) > half else tail if half else ""
    return {
        "head": head,
        "tail": tail,
        "totalBytes": excerpt.total_bytes,
        "truncated": excerpt.truncated or cut,
    }
