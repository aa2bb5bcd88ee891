"""Whether the parts of an evidence go together: which kind has which fields, and what is empty with what."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from firsthand.errors import EXIT_STATUS_BY_CODE
from firsthand.evidence.problems import invalid
from firsthand.records import Evidence
from firsthand.rules import Problem

LIMIT_MUTATIONS: Final = 1000
"""Most mutations that a plan may ask for."""

LIMIT_RUNS: Final = 4096
"""More than a full plan needs: two runs for each mutation, one control, and a baseline for each check and lane."""

_TIME: Final = re.compile(r"\A\d{4}-[01]\d-[0-3]\dT[0-2]\d:[0-5]\d:[0-6]\d(?:\.\d{1,9})?Z\Z", re.ASCII)


def form_problems(evidence: Evidence) -> Iterator[Problem]:
    """What in the make-up of an evidence no command of Firsthand would write."""
    if len(evidence.mutations) > LIMIT_MUTATIONS:
        yield invalid("mutations", f"more than {LIMIT_MUTATIONS}")
    if len(evidence.runs) > LIMIT_RUNS:
        yield invalid("runs", f"more than {LIMIT_RUNS}")
    yield from _review_fields(evidence)
    yield from _execution(evidence)
    if evidence.kind == "check" and (evidence.controls or evidence.mutations):
        yield invalid("kind", "a check makes no mutations")
    if (evidence.status == "passed") != (evidence.code == ""):
        yield invalid("code", "a code stands exactly with a status other than passed")
    for where, code in (("code", evidence.code), *((f"voided[{i}]", c) for i, c in enumerate(evidence.voided))):
        if code not in EXIT_STATUS_BY_CODE and not (where == "code" and code == ""):
            yield invalid(where, "not a code of Firsthand")
    if not _TIME.match(evidence.started_at):
        yield invalid("startedAt", "not a time in UTC as RFC 3339 writes it")


def _review_fields(evidence: Evidence) -> Iterator[Problem]:
    review = evidence.kind == "review"
    for where, value in (
        ("stage", evidence.stage),
        ("round", evidence.round),
        ("reviewRuntime", evidence.review_runtime),
        ("isolation", evidence.isolation),
        ("dispatch", evidence.dispatch),
    ):
        if (value is not None) != review:
            yield invalid(where, "stands exactly in the evidence of a review")
    isolation = evidence.isolation
    if isolation is not None and (isolation.reason is not None) != (isolation.level == "app-layer"):
        yield invalid("isolation.reason", "stands exactly with the level app-layer")


def _execution(evidence: Evidence) -> Iterator[Problem]:
    sandboxed = evidence.execution == "sandboxed"
    if (evidence.enclosing is not None) != sandboxed:
        yield invalid("enclosing", "stands exactly where commands ran in a sandbox")
    if sandboxed:
        return
    if evidence.kind != "review":
        yield invalid("execution", f"none is for reviews without tools, not for {evidence.kind}")
    for where, records in (
        ("runs", evidence.runs),
        ("testNames", evidence.test_names),
        ("controls", evidence.controls),
        ("mutations", evidence.mutations),
    ):
        if records:
            yield invalid(where, "records of commands where none ran")
