from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from firsthand.definition import DefinitionError
from firsthand.snapshot import SourceDriftError, check_source, survey
from snapshot.conftest import Define


@pytest.fixture
def registered(source: Path) -> list[str]:
    (source / "d").mkdir()
    (source / "a").write_bytes(b"aaaa")
    (source / "d" / "b").write_bytes(b"bbbb")
    (source / "a").chmod(0o644)
    return ["a", "late", "d/b"]


def replace_by_link(source: Path) -> None:
    (source / "a").rename(source / "moved")
    (source / "a").symlink_to("moved")


def replace_folder_by_link(source: Path) -> None:
    (source / "d").rename(source / "moved")
    (source / "d").symlink_to("moved")


@pytest.mark.parametrize(
    ("change", "found"),
    [
        (lambda source: (source / "a").write_bytes(b"AAAA"), [("a", "bytes")]),
        (lambda source: (source / "a").write_bytes(b"aaaaa"), [("a", "size")]),
        (lambda source: (source / "a").write_bytes(b"aaa"), [("a", "size")]),
        (lambda source: (source / "a").chmod(0o755), [("a", "mode")]),
        (lambda source: (source / "a").chmod(0o4644), [("a", "kind")]),
        (lambda source: (source / "a").unlink(), [("a", "missing")]),
        (lambda source: (source / "late").write_bytes(b""), [("late", "appeared")]),
        (lambda source: os.truncate(source / "a", 1 << 30), [("a", "size")]),
        (lambda source: (source / "late").mkdir(), [("late", "kind")]),
        (replace_by_link, [("a", "kind")]),
        (replace_folder_by_link, [("d/b", "kind")]),
        (
            lambda source: [(source / name).write_bytes(b"other") for name in ("d/b", "late", "a")],
            [("a", "size"), ("late", "appeared"), ("d/b", "size")],
        ),
    ],
)
def test_each_kind_of_drift_is_named(
    source: Path,
    define: Define,
    registered: list[str],
    change: Callable[[Path], object],
    found: list[tuple[str, str]],
) -> None:
    definition = define(registered)
    manifest = survey(definition)
    check_source(definition, manifest)
    change(source)
    with pytest.raises(SourceDriftError) as caught:
        check_source(definition, manifest)
    assert caught.value.code == "review_verification_source_drift"
    assert [(each.path, each.kind) for each in caught.value.differences] == found


def test_another_name_for_the_file_or_another_file_beside_it_is_no_drift(
    source: Path, define: Define, registered: list[str]
) -> None:
    definition = define(registered)
    manifest = survey(definition)
    os.link(source / "a", source / "second-name")
    (source / "unregistered").write_bytes(b"")
    os.utime(source / "a", ns=(1, 1))
    check_source(definition, manifest)


def test_a_path_that_the_manifest_does_not_know_is_drift(define: Define, registered: list[str]) -> None:
    manifest = survey(define(registered[:2]))
    with pytest.raises(SourceDriftError, match="d/b: appeared"):
        check_source(define(registered), manifest)


def test_a_source_that_is_gone_is_named(source: Path, define: Define) -> None:
    definition = define(["a"])
    manifest = survey(definition)
    source.rmdir()
    with pytest.raises(DefinitionError):
        check_source(definition, manifest)


def test_a_long_list_of_differences_is_shortened_in_the_message_only(source: Path, define: Define) -> None:
    names = [f"f{number:02d}" for number in range(40)]
    definition = define(names)
    manifest = survey(definition)
    for name in names:
        (source / name).write_bytes(b"")
    with pytest.raises(SourceDriftError, match="and 35 more") as caught:
        check_source(definition, manifest)
    assert [each.path for each in caught.value.differences] == names
