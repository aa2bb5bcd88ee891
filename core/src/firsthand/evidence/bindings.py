"""Whether evidence belongs to the definition that it carries, and its commands to the place they claim."""

from __future__ import annotations

from collections.abc import Iterator

from firsthand.definition import DefinitionError, Document, parse_canonical
from firsthand.definition.rules import registered_paths
from firsthand.evidence.package import package_digest
from firsthand.evidence.problems import invalid
from firsthand.records import Evidence
from firsthand.rules import Problem


def binding_problems(evidence: Evidence) -> Iterator[Problem]:
    """What in an evidence is not of its definition: names, stage, files, package, toolchains, executables.

    Checks, argv, runners and mutation paths are compared by the rules, which need them anyway.
    """
    try:
        document = parse_canonical(evidence.definition)
    except DefinitionError as error:
        yield invalid("definition", " ".join(part for part in (error.where, error.message) if part))
        return
    yield from _names(evidence, document)
    registered = tuple(each.path for each in registered_paths(document))
    if tuple(entry.path for entry in evidence.manifest.entries) != registered:
        yield invalid("manifest", "not the files that the definition registers, in its order")
    elif evidence.package_digest != package_digest(evidence.manifest, document):
        yield invalid("packageDigest", "not the digest of the package's documents in the manifest")
    if (document.review_verification is not None) != (evidence.execution == "sandboxed"):
        yield invalid("execution", "sandboxed exactly where the definition registers checks")
    yield from _enclosing(evidence, document)


def _names(evidence: Evidence, document: Document) -> Iterator[Problem]:
    if evidence.run_id != document.run_id:
        yield invalid("runId", f"the definition is of run {document.run_id}")
    if evidence.runtime != document.runtime:
        yield invalid("runtime", f"the definition says {document.runtime}")
    if evidence.kind != "review":
        return
    if evidence.review_runtime != document.review_runtime:
        yield invalid("reviewRuntime", f"the definition says {document.review_runtime}")
    if evidence.stage not in document.stages:
        yield invalid("stage", "the definition has no such stage")
    if evidence.round is None or not 1 <= evidence.round <= document.max_rounds:
        yield invalid("round", f"the definition allows rounds 1 to {document.max_rounds}")


def _enclosing(evidence: Evidence, document: Document) -> Iterator[Problem]:
    if evidence.enclosing is None or document.review_verification is None:
        return
    named = sum(root.named for root in evidence.enclosing.toolchains)
    if named != len(document.review_verification.toolchains):
        yield invalid("enclosing.toolchains", "not one digest for each toolchain that the definition names")
    known = set(evidence.enclosing.executables)
    for index, run in enumerate(evidence.runs):
        executable = run.command.executable
        if executable is not None and executable not in known:
            yield invalid(f"runs[{index}].command.executable", "not among the executables of this evidence")
        if executable is None and run.command.outcome.kind not in {"could-not-start", "sandbox-failed"}:
            yield invalid(f"runs[{index}].command.executable", "a command that started ran some program")
