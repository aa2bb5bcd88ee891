"""Whether a reviewer's dispatch agrees with itself and with the runs, mutations and files of the evidence."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, get_args

from firsthand.canonical import JSONValue, StrictJSONError, canonical_bytes, parse_strict, sha256_hex
from firsthand.evidence.problems import invalid
from firsthand.records import Dispatch, Evidence, ToolCall, ToolName
from firsthand.rules import LIMIT_TOOL_CALLS, Problem

LIMIT_ARGUMENTS: Final = 2_000
"""Characters of a call's arguments that a record keeps."""

_DELIVERED: Final = ("read_file", "ok")
_TOOLS: Final = frozenset(get_args(ToolName))


def dispatch_problems(evidence: Evidence, dispatch: Dispatch) -> Iterator[Problem]:
    """What is wrong with the calls and the coverage of one dispatch."""
    run_owners: dict[int, int] = {}
    mutation_owners: dict[int, int] = {}
    for index, call in enumerate(dispatch.tool_calls):
        where = f"dispatch.toolCalls[{index}]"
        if call.call != index + 1:
            yield invalid(f"{where}.call", f"call {call.call} stands at place {index + 1}: one is missing or moved")
        yield from _call(where, index, call)
        yield from _owned_runs(where, call, evidence, run_owners)
        yield from _owned_mutation(where, call, evidence, mutation_owners)
    for index, run in enumerate(evidence.runs):
        if run.run not in run_owners:
            yield invalid(f"runs[{index}]", "in a review, each run belongs to the call that caused it")
    for index in range(len(evidence.mutations)):
        if index not in mutation_owners:
            yield invalid(f"mutations[{index}]", "in a review, each mutation belongs to the call that asked for it")
    yield from _coverage(evidence, dispatch)


def _call(where: str, index: int, call: ToolCall) -> Iterator[Problem]:
    if index >= LIMIT_TOOL_CALLS and call.result != "refused":
        yield invalid(f"{where}.result", f"only {LIMIT_TOOL_CALLS} calls are served in one review")
    if (call.code == "") != (call.result == "ok"):
        yield invalid(f"{where}.code", "a code stands exactly with a result other than ok")
    if call.result == "ok" and call.tool not in _TOOLS:
        yield invalid(f"{where}.tool", "there is no such tool, so it can't have answered")
    if call.runs and call.tool not in {"run_check", "mutate_check"}:
        yield invalid(f"{where}.runs", f"{call.tool} runs nothing")
    if call.mutation is not None and call.tool != "mutate_check":
        yield invalid(f"{where}.mutation", f"{call.tool} mutates nothing")
    if len(call.arguments) > LIMIT_ARGUMENTS:
        yield invalid(f"{where}.arguments", f"more than {LIMIT_ARGUMENTS} characters")
    # At the limit the text may have been cut, and then its digest is that of the whole.
    elif len(call.arguments) < LIMIT_ARGUMENTS and sha256_hex(call.arguments.encode()) != call.arguments_sha256:
        yield invalid(f"{where}.argumentsSha256", "not the digest of these arguments")


def _owned_runs(where: str, call: ToolCall, evidence: Evidence, owners: dict[int, int]) -> Iterator[Problem]:
    arguments = _arguments(call)
    for number in call.runs:
        if not 1 <= number <= len(evidence.runs):
            yield invalid(f"{where}.runs", f"there is no run {number}")
            continue
        if number in owners:
            yield invalid(f"{where}.runs", f"run {number} belongs to call {owners[number]} already")
        owners[number] = call.call
        run = evidence.runs[number - 1]
        if "checkId" in arguments and run.check_id != arguments["checkId"]:
            yield invalid(f"{where}.runs", f"run {number} is of another check than the call asked for")
        if call.tool == "run_check" and run.purpose != "baseline":
            yield invalid(f"{where}.runs", f"run {number} is a {run.purpose} run, which run_check does not make")


def _owned_mutation(where: str, call: ToolCall, evidence: Evidence, owners: dict[int, int]) -> Iterator[Problem]:
    number = call.mutation
    if number is None:
        return
    if number >= len(evidence.mutations):
        yield invalid(f"{where}.mutation", f"there is no mutation {number}")
        return
    if number in owners:
        yield invalid(f"{where}.mutation", f"mutation {number} belongs to call {owners[number]} already")
    owners[number] = call.call
    asked = evidence.mutations[number].mutation
    arguments = _arguments(call)
    given = {"checkId": asked.check, "path": asked.path, "old": asked.old, "new": asked.new}
    if any(arguments.get(name, value) != value for name, value in given.items()):
        yield invalid(f"{where}.mutation", f"mutation {number} is not what the call asked for")
    rests_on = (evidence.mutations[number].before, evidence.mutations[number].mutated, evidence.mutations[number].after)
    if any(run is not None and run not in call.runs for run in rests_on):
        yield invalid(f"{where}.runs", f"mutation {number} rests on a run of another call")


def _arguments(call: ToolCall) -> dict[str, JSONValue]:
    """The arguments as far as they are whole and an object."""
    try:
        value = parse_strict(call.arguments.encode())
    except StrictJSONError:
        return {}
    return value if isinstance(value, dict) and canonical_bytes(value) == call.arguments.encode() else {}


def _coverage(evidence: Evidence, dispatch: Dispatch) -> Iterator[Problem]:
    whole: set[str] = set()
    seen: set[str] = set()
    # Without tools the documents stand in the prompt; otherwise only an answered call delivers bytes.
    asked = {_arguments(call).get("path") for call in dispatch.tool_calls if (call.tool, call.result) == _DELIVERED}
    for index, coverage in enumerate(dispatch.coverage):
        where = f"dispatch.coverage[{index}]"
        entry = evidence.manifest.entry(coverage.path)
        if entry is None or entry.size is None:
            yield invalid(f"{where}.path", "not a registered file that is present")
            continue
        if coverage.path in seen:
            yield invalid(f"{where}.path", "the same file twice")
        seen.add(coverage.path)
        if coverage.total_bytes != entry.size or coverage.delivered_bytes > entry.size:
            yield invalid(where, "not the size of the file, or more delivered than there is")
        if coverage.delivered_bytes and evidence.execution == "sandboxed" and coverage.path not in asked:
            yield invalid(where, "no answered call asked for this file")
        if coverage.whole:
            whole.add(coverage.path)
        if coverage.whole and coverage.delivered_bytes != entry.size:
            yield invalid(f"{where}.whole", "not all bytes were delivered")
    present = (entry.path for entry in evidence.manifest.entries if entry.state == "present")
    if dispatch.unread != tuple(path for path in present if path not in whole):
        yield invalid("dispatch.unread", "not the files that were not delivered whole")
