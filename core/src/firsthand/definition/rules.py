"""The rules across fields that the document's text alone decides."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from firsthand.definition.document import Document, PackageDocuments, ReviewVerification
from firsthand.definition.mutation_paths import mutation_fault
from firsthand.definition.paths import refuse_collisions, refuse_path
from firsthand.definition.reasons import DefinitionError
from firsthand.files import Folding


@dataclass(frozen=True, slots=True)
class Registered:
    """A registered path and the field that registers it."""

    path: str
    field: str


def registered_paths(document: Document) -> tuple[Registered, ...]:
    """What a run freezes, in order: `reviewVerification.files`, or without it the package's documents."""
    verification = document.review_verification
    if verification is None:
        return tuple(_package(document.package))
    return tuple(_numbered(verification.files, "reviewVerification.files"))


def refuse_document(document: Document, folding: Folding) -> None:
    """Refuse a document of the right shape that breaks a rule across its fields.

    Raises:
        DefinitionError: for the first rule that is broken.
    """
    registered = registered_paths(document)
    if not registered:
        raise DefinitionError("package", "nothing-registered")
    for each in registered:
        refuse_path(each.path, each.field)
    refuse_collisions([each.path for each in registered], [each.field for each in registered], folding)
    if document.review_verification is not None:
        _refuse_verification(document.review_verification, document.package)


def _refuse_verification(verification: ReviewVerification, package: PackageDocuments) -> None:
    files = frozenset(verification.files)
    documents = tuple(_package(package))
    _refuse_repeats(documents)
    for each in documents:
        _refuse_unregistered(each, files)
    names = frozenset(each.path for each in documents)
    mutations = tuple(_numbered(verification.mutation_paths, "reviewVerification.mutationPaths"))
    _refuse_repeats(mutations)
    for each in mutations:
        _refuse_unregistered(each, files)
        if each.path in names:
            raise DefinitionError(each.field, "package-document", each.path)
        fault = mutation_fault(each.path)
        if fault is not None:
            raise DefinitionError(each.field, fault[0], f"{each.path}: {fault[1]}")
    _refuse_repeats(
        [
            Registered(check.id, f"reviewVerification.checks[{place}].id")
            for place, check in enumerate(verification.checks)
        ]
    )
    for place, check in enumerate(verification.checks):
        for each in _numbered(check.command, f"reviewVerification.checks[{place}].command"):
            if "\0" in each.path:
                raise DefinitionError(each.field, "nul")
    toolchains = tuple(_numbered(verification.toolchains, "reviewVerification.toolchains"))
    _refuse_repeats(toolchains)
    for each in toolchains:
        _refuse_root_text(each)


def _refuse_unregistered(each: Registered, files: frozenset[str]) -> None:
    if each.path not in files:
        # A path that could not be registered says why, before it says that it is not.
        refuse_path(each.path, each.field)
        raise DefinitionError(each.field, "not-in-files", each.path)


def _refuse_root_text(each: Registered) -> None:
    if "\0" in each.path:
        raise DefinitionError(each.field, "nul")
    if not each.path.startswith("/"):
        raise DefinitionError(each.field, "toolchain-not-absolute", each.path)
    segments = each.path.split("/")[1:]
    for reason, segment in (("parent-segment", ".."), ("dot-segment", "."), ("empty-segment", "")):
        # `/` alone is left to the rule that refuses it as too wide.
        if segment in segments and each.path != "/":
            raise DefinitionError(each.field, reason, each.path)


def _refuse_repeats(values: Sequence[Registered]) -> None:
    seen: set[str] = set()
    for each in values:
        if each.path in seen:
            raise DefinitionError(each.field, "duplicate", each.path)
        seen.add(each.path)


def _package(package: PackageDocuments) -> Iterator[Registered]:
    yield from _numbered(package.requirements, "package.requirements")
    yield from _numbered(package.instructions, "package.instructions")


def _numbered(values: Sequence[str], field: str) -> Iterator[Registered]:
    return (Registered(value, f"{field}[{place}]") for place, value in enumerate(values))
