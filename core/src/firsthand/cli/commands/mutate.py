"""`firsthand mutate`."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

from firsthand.canonical import JSONValue
from firsthand.cli.output import answers, end, lines, print_json, table
from firsthand.cli.progress import watched
from firsthand.engine.mutating import run_mutations
from firsthand.engine.sealing import Sealed
from firsthand.errors import UsageError
from firsthand.files import FileRefusedError, read_path
from firsthand.mutation import LIMIT_PLAN_BYTES, parse_plan
from firsthand.records import Mutation, MutationRun, Verdict

_LIMIT_TEXT_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class Texts:
    """One mutation as the command line gives it."""

    check_id: str | None
    path: str | None
    old: str | None
    new: str | None
    old_file: Path | None
    new_file: Path | None


def run(
    config: Path,
    texts: Texts,
    plan: Path | None,
    jobs: int,
    out: Path | None,
    sign: Path | None,
    state: Path | None,
    *,
    as_json: bool,
) -> None:
    """Try the mutations, show them, end with the contract's exit status."""
    mutations = _requested(texts, plan)
    with watched(quiet=as_json, total=len(mutations)) as (line, watching):
        sealed = run_mutations(
            config,
            mutations,
            jobs=jobs,
            state_path=state,
            out=out,
            key=sign,
            observers=watching,
            progress=line.probe,
        )
    if as_json:
        print_json(_answer(sealed))
    else:
        show(sealed)
    end(sealed.exit_status)


def show(sealed: Sealed) -> None:
    """The table for people, the counts, and where the evidence lies."""
    evidence = sealed.evidence
    console = answers()
    rows = [
        (str(number), run.mutation.check, run.mutation.path, _change(run), run.verdict, run.cause, _runs(run))
        for number, run in enumerate(evidence.mutations, 1)
    ]
    console.print(table(("#", "CHECK", "PATH", "CHANGE", "VERDICT", "CAUSE", "RUNS"), rows))
    console.print()
    told = ", ".join(f"{count} {verdict}" for verdict, count in _counts(sealed).items() if count)
    console.print(lines(f"{len(evidence.mutations)} mutations: {told}"))
    if evidence.unprobed:
        console.print(lines(f"without a catch: {', '.join(evidence.unprobed)}"))
    verdict = "every mutation was caught" if evidence.status == "passed" else f"{evidence.status}: {evidence.code}"
    console.print(lines(verdict))
    console.print(lines(f"evidence: {sealed.path}"))


def _requested(texts: Texts, plan: Path | None) -> tuple[Mutation, ...]:
    single = (texts.check_id, texts.path, texts.old, texts.new, texts.old_file, texts.new_file)
    if plan is not None:
        if any(value is not None for value in single):
            raise _usage("--plan stands alone: it names checks, paths and texts itself")
        return parse_plan(_read(plan, LIMIT_PLAN_BYTES), str(plan))
    if texts.check_id is None or texts.path is None:
        raise _usage("a mutation needs --check and --path, or --plan")
    old, new = _text("old", texts.old, texts.old_file), _text("new", texts.new, texts.new_file)
    for option, value in (("--check", texts.check_id), ("--path", texts.path), ("--old", old), ("--new", new)):
        try:
            value.encode()
        except UnicodeEncodeError as error:
            raise _usage(f"{option} is not UTF-8") from error
    return (Mutation(check=texts.check_id, path=texts.path, old=old, new=new),)


def _text(name: str, given: str | None, file: Path | None) -> str:
    if (given is None) == (file is None):
        raise _usage(f"give exactly one of --{name} and --{name}-file")
    if given is not None:
        return given
    assert file is not None  # noqa: S101 # one of the two is given
    try:
        return _read(file, _LIMIT_TEXT_BYTES).decode("utf-8")
    except UnicodeDecodeError as error:
        raise _usage(f"{file} is not UTF-8") from error


def _read(path: Path, limit_bytes: int) -> bytes:
    try:
        content = read_path(path, limit_bytes)
    except FileRefusedError as error:
        raise _usage(f"{path} can't be read: {error.message}") from error
    if content is None:
        raise _usage(f"{path} does not exist")
    return content.data


def _usage(message: str) -> UsageError:
    return UsageError(message, where="mutate", next_step="see `firsthand mutate --help`")


def _answer(sealed: Sealed) -> dict[str, JSONValue]:
    evidence = sealed.evidence
    result: dict[str, JSONValue] = {"status": evidence.status}
    if evidence.code:
        result["code"] = evidence.code
    result["evidence"] = str(sealed.path)
    result["sha256"] = sealed.sha256
    result["mutations"] = [
        {
            "check": run.mutation.check,
            "path": run.mutation.path,
            "verdict": run.verdict,
            "cause": run.cause,
            "runs": [number for number in (run.before, run.mutated, run.after) if number is not None],
        }
        for run in evidence.mutations
    ]
    result["counts"] = dict[str, JSONValue](_counts(sealed))
    return result


def _counts(sealed: Sealed) -> dict[str, int]:
    counted = Counter(run.verdict for run in sealed.evidence.mutations)
    return {verdict: counted.get(verdict, 0) for verdict in get_args(Verdict)}


def _change(run: MutationRun) -> str:
    def short(text: str) -> str:
        line = " ".join(text.split())
        return line if len(line) <= 40 else f"{line[:39]}…"

    return f"{short(run.mutation.old)} → {short(run.mutation.new)}"


def _runs(run: MutationRun) -> str:
    return " ".join("-" if number is None else str(number) for number in (run.before, run.mutated, run.after))
