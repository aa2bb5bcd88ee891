"""What became of a command, decided from what the launcher said, how its process ended, and which bound stopped it."""

from __future__ import annotations

import hashlib
import os
import time
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from firsthand.isolation.interface import Captured, Result
from firsthand.records import Cleanup, LimitName, Outcome
from firsthand_seatbelt.process import READY_S, ConfinedGroup

PROFILE_REFUSED: Final = 65
APPLY_REFUSED: Final = 71
"""Exit statuses of sandbox-exec itself (EX_DATAERR, EX_OSERR). They count as its own only when the launcher inside
never said `ready`: a command may exit with the same numbers."""

Stopped: TypeAlias = LimitName | Literal["deadline"] | None
"""Which bound ended the command's time; None when it ended by itself."""


@dataclass(frozen=True, slots=True)
class End:
    """What the host measured of one command's end."""

    ready: bool
    stopped: Stopped
    cleanup: Cleanup
    duration_ms: int
    leftovers: int


def outcome_of(group: ConfinedGroup, end: End) -> Outcome:
    """The outcome of an ended group, after its pipes were drained.

    `may-linger` for whatever ran: a descendant in a session of its own leaves the group, and macOS keeps no list of
    descendants. It stays confined by the same profile.
    """
    if not end.ready:
        return _of("sandbox-failed", end, end.cleanup, detail=_set_up_failure(group, group.returncode))
    if refusal := _refusal(group):
        return _of("could-not-start", end, end.cleanup, detail=refusal)
    cleanup: Cleanup = "may-linger" if end.cleanup == "complete" else end.cleanup
    limit = next((stream.name for stream in group.streams if stream.over), end.stopped)
    if limit is not None and limit != "deadline":
        return _of("output-limit", end, cleanup, limit=limit)
    return _ended(end, cleanup, group.returncode)


def never_ran(detail: str, begun: float) -> Result:
    """The result of a command for which no process was started."""
    empty = Captured(data=b"", total_bytes=0, sha256=hashlib.sha256().hexdigest())
    duration_ms = round((time.monotonic() - begun) * 1000)
    outcome = Outcome(kind="sandbox-failed", cleanup="complete", duration_ms=duration_ms, detail=detail)
    return Result(outcome=outcome, stdout=empty, stderr=empty)


def _ended(end: End, cleanup: Cleanup, code: int | None) -> Outcome:
    # A command that ended by itself just before the kill reached it keeps its exit code.
    if end.stopped == "deadline" and (code is None or code < 0):
        return _of("timed-out", end, cleanup)
    if code is None:
        return _of("sandbox-failed", end, cleanup, detail="the command's end could not be established")
    if code < 0:
        return _of("signalled", end, cleanup, signal=-code, leftovers=end.leftovers)
    return _of("exited", end, cleanup, exit_code=code, leftovers=end.leftovers)


def _of(kind: str, end: End, cleanup: Cleanup, **fields: object) -> Outcome:
    return Outcome.model_validate({"kind": kind, "cleanup": cleanup, "duration_ms": end.duration_ms, **fields})


def _set_up_failure(group: ConfinedGroup, code: int | None) -> str:
    said = group.streams[1].text() or "nothing"
    if refusal := _refusal(group):
        return f"the launcher inside the sandbox failed: {refusal}"
    if code == PROFILE_REFUSED:
        return f"sandbox-exec refused the profile (exit 65); it said: {said}"
    if code == APPLY_REFUSED:
        return (
            "sandbox-exec could not apply the profile or start the launcher (exit 71); a sandbox can't be entered from"
            f" inside another one; it said: {said}"
        )
    if code is None or code == -9:
        return f"the sandbox was not ready after {READY_S:.0f} s and was ended; it said: {said}"
    return f"sandbox-exec ended before the sandbox was ready (status {code}); it said: {said}"


def _refusal(group: ConfinedGroup) -> str:
    """The launcher's own report of the step that it could not take, in words; empty when there is none."""
    for word in group.words:
        if word.startswith("stopped "):
            _, step, number = word.split(" ")
            return f"{step}: {os.strerror(int(number)) if int(number) else 'refused'}"
    return ""
