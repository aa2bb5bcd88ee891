"""Whether a dispatch was a review: what the provider saw against what the host saw itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from firsthand.canonical import sha256_hex
from firsthand.errors import FirsthandError
from firsthand.records import Judgement, ToolCall, Transcript
from firsthand.review.answer import AnswerError, parse_answer
from firsthand.review.coverage import Delivered
from firsthand.review.interface import BREACHES, Diagnosis, Failure, FailureKind, Provider, ReviewRecord, ToolUse
from firsthand.review.server.log import arguments_text
from firsthand.review.transcript import ReadTranscript, TranscriptError, read_transcript


@dataclass(frozen=True, slots=True)
class Seen:
    """What a dispatch left behind.

    Attributes:
        record: what the provider brought back, or None.
        failure: why there is no review, as far as it is known already.
        calls: the host's own log.
        arrived: how many calls there were, recorded or not.
        instances: how many relays connected.
        delivered: what of the files went out.
        spoiled: what ended the desk's service.
    """

    record: ReviewRecord | None
    failure: Failure | None
    calls: tuple[ToolCall, ...]
    arrived: int
    instances: int
    delivered: Delivered
    spoiled: FirsthandError | None


@dataclass(frozen=True, slots=True)
class Judged:
    """What it is worth.

    Attributes:
        judgement: the reviewer's answer; None with a failure.
        failure: why it is no review.
        breach: whether a guard of the reviewer failed.
        transcript: size and digest, when it could be read under guard.
    """

    judgement: Judgement | None
    failure: Failure | None
    breach: bool
    transcript: Transcript | None


def judge(  # noqa: PLR0911 # one return a sign: it reads as the list that it is
    provider: Provider, diagnosis: Diagnosis, private: Path, seen: Seen
) -> Judged:
    """Look for every sign of a review, in order; the first that is missing decides.

    1. The transcript is within its guards, whatever became of the dispatch.
    2. The whole process group has ended.
    3. The provider saw a success, of the program that was diagnosed.
    4. There is a transcript, and its tool uses are exactly the host's calls.
    5. The answer is of the schema, checked here.

    Args:
        provider: reads tool uses out of its program's transcript.
        diagnosis: what the dispatch was bound to.
        private: the run's folder.
        seen: what is judged.
    """
    record = seen.record
    read: ReadTranscript | None = None
    if record is not None:
        try:
            read = read_transcript(private, record.transcripts)
        except TranscriptError as error:
            return _breach("transcript-limit", f"the transcript's guard failed: {error}", None)
    transcript = read.record if read is not None else None
    if record is None:
        failure = seen.failure or Failure("died", "the provider brought nothing back")
        return Judged(None, failure, breach=failure.kind in BREACHES, transcript=None)
    if not record.exit.clean:
        return _breach("died", "the end of the reviewer's processes could not be established", transcript)
    failed = seen.failure or _shortfall(diagnosis, record)
    if failed is not None:
        return Judged(None, failed, breach=failed.kind in BREACHES, transcript=transcript)
    if read is None:
        return _breach("no-result", "there is no transcript to compare with the host's log", None)
    if seen.arrived != len(seen.calls):
        return _breach("tools-extra", f"of {seen.arrived} calls only {len(seen.calls)} have a record", transcript)
    difference = _difference(provider, read.records(), seen.calls)
    if difference:
        return _breach("tools-extra", difference, transcript)
    try:
        answer = parse_answer(record.structured_output)
    except AnswerError as error:
        return Judged(None, Failure("no-answer", str(error)), breach=False, transcript=transcript)
    return Judged(answer, None, breach=False, transcript=transcript)


def _shortfall(diagnosis: Diagnosis, record: ReviewRecord) -> Failure | None:
    """What a record that claims success still lacks."""
    if record.program != diagnosis.program:
        return Failure("setup-differs", "the program is not the one of the diagnosis")
    if record.exit.kind != "exited" or record.exit.code != 0:
        return Failure("died", f"the program ended with {record.exit.kind} {record.exit.code}")
    if not record.result:
        return Failure("no-result", "there was no final result")
    if record.structured_output is None:
        return Failure("no-answer", "there was no structured answer")
    return None


def _difference(provider: Provider, records: Iterable[bytes], calls: Iterable[ToolCall]) -> str:
    """How the transcript's tool uses differ from the host's log; empty when they are the same calls."""
    try:
        uses = provider.tool_uses(records)
    except Exception as error:  # noqa: BLE001 - foreign code on a foreign file; what it can't read is no transcript
        return f"the transcript can't be read: {type(error).__name__}: {error}"
    claimed = Counter(_key(use) for use in uses)
    logged = Counter((call.tool, call.arguments_sha256) for call in calls)
    if claimed == logged:
        return ""
    only_claimed = sorted(tool for tool, _ in (claimed - logged).elements())
    only_logged = sorted(tool for tool, _ in (logged - claimed).elements())
    return (
        "the transcript's tool uses are not the host's calls: "
        f"only in the transcript {', '.join(only_claimed)[:200] or 'none'}, "
        f"only in the host's log {', '.join(only_logged)[:200] or 'none'}"
    )


def _key(use: ToolUse) -> tuple[str, str]:
    return use.tool, sha256_hex(arguments_text(use.arguments).encode())


def _breach(kind: FailureKind, detail: str, transcript: Transcript | None) -> Judged:
    return Judged(None, Failure(kind, detail), breach=True, transcript=transcript)
