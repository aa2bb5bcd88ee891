"""Whether a session that is over was a review: only if every sign says so. The CLI's own "success" is one of many.

Source: measured behaviour of the CLI. Its `subtype` is `success` even for 401 and for a login that is missing; it exits
with 0 when its server never came, when no answer was given, and when it was interrupted.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from firsthand.records import Usage
from firsthand.review.interface import Exit, Failure, FailureKind
from firsthand_claude.events import Stream

_BY_STATUS: Final[dict[int, FailureKind]] = {
    401: "unauthenticated",
    403: "unauthenticated",
    429: "rate-limited",
    529: "overloaded",
}
_SAFE: Final = 2**53 - 1


def judge(stream: Stream, ended: Exit) -> Failure | None:
    """Why this was no review, the weightiest reason first; None only for a success by every sign.

    1. What the host ended is what the host says it is. 2. What made the provider end it. 3. A model that reached for
    what it was not given, or a permission that the CLI refused. 4. Exactly one final result. 5. It is no error of model
    or network. 6. Exit status 0. 7. Exactly one structured answer.
    """
    failures = (_limit_reached(ended), stream.failure, _reached_beyond(stream), _no_result(stream, ended))
    return next((failure for failure in failures if failure is not None), None) or next(
        _result_failures(stream, ended), None
    )


def _no_result(stream: Stream, ended: Exit) -> Failure | None:
    if ended.kind == "cancelled":
        return Failure("died", f"ended by the host: {ended.detail or 'cancelled'}")
    if stream.results == 1:
        return None
    silent = stream.results == 0 and ended.kind == "exited" and ended.code == 0
    if not stream.started:
        if silent:
            return Failure("no-result", "it ended without a word")
        return Failure("died", f"it ended before it began: {_how(ended)}")
    if stream.results == 0 and not silent:
        return Failure("died", _how(ended))
    return Failure("no-result", f"{stream.results} final results, expected one; {_how(ended)}")


def _limit_reached(ended: Exit) -> Failure | None:
    # `cancelled` is not here: the provider's own stop ends so, too, and has a better reason.
    match ended.kind:
        case "could-not-start" | "timed-out" | "output-limit" | "transcript-limit":
            return Failure(ended.kind, ended.detail or "ended by the host")
        case _:
            return None


def _reached_beyond(stream: Stream) -> Failure | None:
    if stream.foreign:
        return Failure("permission-denied", f"the model asked for {', '.join(stream.foreign)}")
    denials = stream.result.get("permission_denials")
    if denials:
        return Failure("permission-denied", f"the CLI refused {str(denials)[:200]}")
    return None


def _result_failures(stream: Stream, ended: Exit) -> Iterator[Failure]:
    """What is wrong with the one final result and the end after it, the weightiest first."""
    result = stream.result
    subtype, status = result.get("subtype"), result.get("api_error_status")
    said = str(result.get("result") or result.get("errors") or "")[:300]
    if status is not None:
        yield Failure(_BY_STATUS.get(status, "model-error") if isinstance(status, int) else "model-error", said)
    if subtype == "error_max_structured_output_retries":
        yield Failure("no-answer", said)
    if subtype == "error_max_turns":
        yield Failure("no-answer", "the turns of the budget were used up")
    if result.get("is_error") is not False or subtype != "success":
        yield Failure(_error_kind(result, said), f"{subtype}: {said}")
    if ended.kind != "exited" or ended.code != 0:
        yield Failure("died", _how(ended))
    if result.get("structured_output") is None:
        yield Failure("no-answer", "the model gave no structured answer; its text is not looked at")
    if stream.answers != 1:
        yield Failure("no-answer", f"{stream.answers} structured answers were given, expected one")


def _error_kind(result: dict[str, Any], said: str) -> FailureKind:
    if "/login" in said or "API key" in said:
        return "unauthenticated"
    return "stream-broken" if result.get("terminal_reason") == "api_error" else "model-error"


def _how(ended: Exit) -> str:
    last = ended.stderr[-200:].decode("utf-8", "backslashreplace").strip()
    end = f"signal {ended.signal}" if ended.kind == "signalled" else f"exit status {ended.code}"
    return f"{end}; {last}" if last else end


def usage_of(result: dict[str, Any]) -> Usage | None:
    """What the CLI reports as spent, as reported; None when it reports nothing that can be read."""
    reported = result.get("usage")
    if not isinstance(reported, dict):
        return None
    counts = [reported.get(name, 0) for name in _COUNTS]
    if not all(isinstance(count, int) and 0 <= count <= _SAFE for count in counts):
        return None
    cost = result.get("total_cost_usd")
    return Usage(
        input_tokens=counts[0],
        output_tokens=counts[1],
        cache_read_tokens=counts[2],
        cache_creation_tokens=counts[3],
        cost_usd=repr(cost) if isinstance(cost, int | float) and not isinstance(cost, bool) else "",
    )


_COUNTS: Final = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
