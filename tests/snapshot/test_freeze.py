from __future__ import annotations

import hashlib
import json
import os
import socket
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from files.flipping import INSIDE, OUTSIDE, flipping
from firsthand.definition import DefinitionError, parse_definition
from firsthand.errors import StateError
from firsthand.files import Folding, remove_path
from firsthand.snapshot import CopyDriftError, freeze, survey
from snapshot.conftest import Define


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


@contextmanager
def umask(value: int) -> Iterator[None]:
    before = os.umask(value)
    try:
        yield
    finally:
        os.umask(before)


BYTES = {
    "crlf": b"a\r\nb\rc\nx = 1",
    "bom": b"\xef\xbb\xbfa",
    "invalid": b"\xff\xc3\x28\xed\xa0\x80\xc0\xaf",
    "separators": "a\u2028b\u2029c\x85d\x0b\x0c\x1c".encode(),
    "empty": b"",
    "nul": b"\0" * 1000,
    "all": bytes(range(256)),
}


def test_bytes_are_exact(source: Path, define: Define, place: Path) -> None:
    for name, data in BYTES.items():
        (source / name).write_bytes(data)
    snapshot = freeze(define(list(BYTES)), place)
    copy = snapshot.working_copy(place / "copy")
    for name, data in BYTES.items():
        entry = snapshot.manifest.entry(name)
        assert entry is not None
        assert (entry.sha256, entry.size) == (hashlib.sha256(data).hexdigest(), len(data))
        assert (snapshot.pristine / name).read_bytes() == (copy.path / name).read_bytes() == data
        assert snapshot.read(name) == data


@pytest.mark.parametrize("value", [0o000, 0o022, 0o077, 0o777])
def test_modes_are_exact_and_folders_private(source: Path, define: Define, place: Path, value: int) -> None:
    modes = [0o644, 0o755, 0o600, 0o444, 0o400, 0o777, 0o640, 0o1644]
    (source / "deep" / "er").mkdir(parents=True)
    names = [f"deep/er/{mode:04o}" for mode in modes]
    for name, mode in zip(names, modes, strict=True):
        (source / name).write_bytes(b"x")
        (source / name).chmod(mode)
    with umask(value):
        snapshot = freeze(define(names), place)
        copy = snapshot.working_copy(place / "copy")
    assert [entry.mode for entry in snapshot.manifest.entries] == modes
    assert [mode_of(snapshot.pristine / name) for name in names] == modes
    assert [mode_of(copy.path / name) for name in names] == modes
    assert {mode_of(path) for path in (place, snapshot.pristine, copy.path)} == {0o700}
    assert {mode_of(copy.path / "deep"), mode_of(copy.path / "deep" / "er")} == {0o755}


def test_the_manifest_has_the_definitions_order_and_missing_files(source: Path, define: Define, place: Path) -> None:
    (source / "b").write_bytes(b"b")
    (source / "a").write_bytes(b"a")
    snapshot = freeze(define(["b", "later/c", "a", "d"]), place)
    assert [(entry.path, entry.state) for entry in snapshot.manifest.entries] == [
        ("b", "present"),
        ("later/c", "missing"),
        ("a", "present"),
        ("d", "missing"),
    ]
    missing = snapshot.manifest.entries[1]
    assert (missing.mode, missing.size, missing.links, missing.sha256) == (None, None, None, None)
    assert sorted(path.name for path in snapshot.pristine.iterdir()) == ["a", "b"]
    assert survey(define(["b", "later/c", "a", "d"])) == snapshot.manifest


def test_hard_links_give_fresh_inodes_both_ways(source: Path, define: Define, place: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside.txt"
    outside.write_bytes(b"outside")
    os.link(outside, source / "a")
    (source / "one").write_bytes(b"one")
    os.link(source / "one", source / "two")
    snapshot = freeze(define(["a", "one", "two"]), place)
    copy = snapshot.working_copy(place / "copy")
    assert [entry.links for entry in snapshot.manifest.entries] == [2, 2, 2]
    roots = (source, snapshot.pristine, copy.path)
    assert len({(root / name).stat().st_ino for root in roots[1:] for name in ("a", "one", "two")}) == 6
    for root in roots[1:]:
        assert {(root / name).stat().st_nlink for name in ("a", "one", "two")} == {1}
    (copy.path / "a").write_bytes(b"changed")
    (copy.path / "one").write_bytes(b"changed")
    assert outside.read_bytes() == b"outside"
    assert (source / "two").read_bytes() == (copy.path / "two").read_bytes() == b"one"


def make_fifo(path: Path) -> None:
    os.mkfifo(path)


def make_socket(path: Path) -> None:
    here = Path.cwd()
    os.chdir(path.parent)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path.name)
    os.chdir(here)


def make_set_id(path: Path) -> None:
    path.write_bytes(b"x")
    path.chmod(0o4755)


def make_large(path: Path) -> None:
    with path.open("wb") as stream:
        stream.truncate(2 * 1024 * 1024 + 1)


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (make_fifo, "fifo"),
        (make_socket, "socket"),
        (lambda path: path.symlink_to("/dev/zero"), "symlink"),
        (lambda path: path.symlink_to("nowhere"), "dangling-link"),
        (lambda path: path.symlink_to(path.name), "link-loop"),
        (lambda path: path.mkdir(), "directory"),
        (make_set_id, "set-id"),
        (make_large, "too-large"),
    ],
)
def test_a_refused_file_names_its_field_and_leaves_nothing(
    source: Path, define: Define, place: Path, make: Callable[[Path], object], reason: str
) -> None:
    (source / "good").write_bytes(b"x")
    (source / "d").mkdir()
    make(source / "d" / "bad")
    begun = time.monotonic()
    with pytest.raises(DefinitionError) as caught:
        freeze(define(["good", "d/bad"]), place)
    assert time.monotonic() - begun < 1
    assert (caught.value.field, caught.value.reason) == ("reviewVerification.files[1]", reason)
    assert list(place.iterdir()) == []


def test_the_first_refused_file_is_named_however_many_lanes(source: Path, define: Define, place: Path) -> None:
    names = [f"f{number:03d}" for number in reversed(range(200))]
    for name in names:
        (source / name).symlink_to("nowhere")
    with pytest.raises(DefinitionError) as caught:
        freeze(define(names), place)
    assert caught.value.field == "reviewVerification.files[0]"


def test_a_toolless_definition_names_the_packages_field(source: Path, place: Path) -> None:
    document = {"runId": "a", "runtime": "b", "package": {"instructions": ["A.md", "B.md"]}}
    (source / "A.md").write_bytes(b"a")
    (source / "B.md").mkdir()
    definition = parse_definition(json.dumps(document).encode(), source, homes=[])
    with pytest.raises(DefinitionError) as caught:
        freeze(definition, place)
    assert (caught.value.field, caught.value.reason) == ("package.instructions[1]", "directory")


def test_sizes_are_limited_each_and_in_all(source: Path, define: Define, place: Path) -> None:
    whole = b"x" * (2 * 1024 * 1024)
    names = [f"f{number}" for number in range(8)]
    for name in names:
        (source / name).write_bytes(whole)
    freeze(define(names), place)
    remove_path(place)
    (source / "more").write_bytes(b"x")
    with pytest.raises(DefinitionError) as caught:
        freeze(define([*names, "more"]), place)
    assert (caught.value.field, caught.value.reason) == ("reviewVerification.files", "total-too-large")
    assert list(place.iterdir()) == []
    with pytest.raises(DefinitionError, match="total-too-large"):
        survey(define([*names, "more"]))


def test_a_source_that_is_gone_is_refused(source: Path, define: Define, place: Path) -> None:
    definition = define(["a"])
    source.rmdir()
    with pytest.raises(DefinitionError) as caught:
        freeze(definition, place)
    assert caught.value.field == "root"


def test_copies_may_not_lie_in_the_source_nor_around_it(source: Path, define: Define, tmp_path: Path) -> None:
    (source / "a").write_bytes(b"a")
    (tmp_path / "link").symlink_to(source)
    for destination in (source / "copies", source, tmp_path / "link" / "copies", tmp_path):
        with pytest.raises(StateError, match="the source"):
            freeze(define(["a"]), destination)
    assert [path.name for path in source.iterdir()] == ["a"]


def test_a_destination_that_is_not_private_is_refused(source: Path, define: Define, tmp_path: Path) -> None:
    (tmp_path / "wide").mkdir()
    (tmp_path / "wide").chmod(0o755)
    (tmp_path / "private").mkdir()
    (tmp_path / "private").chmod(0o700)
    (tmp_path / "link").symlink_to("private")
    for name in ("wide", "link", "absent/below"):
        with pytest.raises(StateError):
            freeze(define(["a"]), tmp_path.resolve() / name)
    with pytest.raises(StateError, match="absolute"):
        freeze(define(["a"]), Path("relative"))
    freeze(define(["a"]), tmp_path.resolve() / "private")
    with pytest.raises(StateError, match="exists"):
        freeze(define(["a"]), tmp_path.resolve() / "private")


def test_names_that_collide_at_the_destination_are_refused(
    source: Path, define: Define, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Few machines here have a folding file system, so its answer is given; that the real one is asked is tested
    where it is asked."""
    monkeypatch.setattr("firsthand.snapshot.snapshot.probe_folding", lambda fd: Folding(case=True))
    with pytest.raises(DefinitionError) as caught:
        freeze(define(["a", "A"]), place)
    assert (caught.value.field, caught.value.reason) == ("reviewVerification.files[1]", "name-collision")


def test_a_changed_pristine_copy_is_never_copied_or_read(source: Path, define: Define, place: Path) -> None:
    (source / "a").write_bytes(b"aaaa")
    (source / "b").write_bytes(b"b")
    snapshot = freeze(define(["a", "b", "c"]), place)
    snapshot.check_pristine()

    def drift() -> list[tuple[str, str]]:
        with pytest.raises(CopyDriftError) as caught:
            snapshot.check_pristine()
        assert caught.value.code == "review_verification_copy_drift"
        return [(each.path, each.kind) for each in caught.value.differences]

    (snapshot.pristine / "a").write_bytes(b"bbbb")
    assert drift() == [("a", "bytes")]
    with pytest.raises(CopyDriftError):
        snapshot.working_copy(place / "copy")
    assert not (place / "copy").exists()
    with pytest.raises(CopyDriftError):
        snapshot.read("a")
    (snapshot.pristine / "a").write_bytes(b"aaaa")
    snapshot.check_pristine()
    (snapshot.pristine / "b").chmod(0o600 if mode_of(snapshot.pristine / "b") != 0o600 else 0o644)
    assert drift() == [("b", "mode")]
    (snapshot.pristine / "b").unlink()
    assert drift() == [("b", "missing")]
    with pytest.raises(CopyDriftError):
        snapshot.working_copy(place / "copy")
    (snapshot.pristine / "b").symlink_to("a")
    (snapshot.pristine / "c").write_bytes(b"")
    assert drift() == [("b", "kind"), ("c", "appeared")]


def test_something_added_to_the_pristine_copy_is_drift(source: Path, define: Define, place: Path) -> None:
    (source / "d").mkdir()
    (source / "d" / "a").write_bytes(b"a")
    snapshot = freeze(define(["d/a"]), place)
    (snapshot.pristine / "d" / "more").mkdir()
    with pytest.raises(CopyDriftError, match="d/more: appeared"):
        snapshot.check_pristine()


def test_only_registered_present_files_are_read(source: Path, define: Define, place: Path) -> None:
    snapshot = freeze(define(["absent"]), place)
    for path in ("absent", "other", "../source/a"):
        with pytest.raises(KeyError):
            snapshot.read(path)


def test_no_outside_byte_is_frozen_while_a_folder_flips(source: Path, define: Define, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "f").write_bytes(OUTSIDE)
    (source / "dir").mkdir()
    (source / "dir" / "f").write_bytes(INSIDE)
    (source / "evil").symlink_to(outside)
    definition = define(["dir/f"])
    frozen = refused = 0
    with flipping(source / "dir", source / "evil"):
        for number in range(100):
            place = tmp_path.resolve() / f"copies-{number}"
            try:
                snapshot = freeze(definition, place)
            except DefinitionError:
                refused += 1
            else:
                (entry,) = snapshot.manifest.entries
                if entry.state == "present":
                    frozen += 1
                    assert entry.sha256 == hashlib.sha256(INSIDE).hexdigest()
                    assert (snapshot.pristine / "dir" / "f").read_bytes() == INSIDE
            remove_path(place)
    assert frozen > 0
    assert refused > 0


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    files=st.dictionaries(
        st.from_regex(r"[a-d](/[e-h]){0,3}\.t", fullmatch=True),
        st.one_of(st.none(), st.tuples(st.binary(max_size=300), st.integers(0o400, 0o777))),
        min_size=1,
        max_size=40,
    )
)
def test_any_tree_is_frozen_and_copied_exactly(
    source: Path, define: Define, place: Path, files: dict[str, tuple[bytes, int] | None]
) -> None:
    for name, content in files.items():
        if content is not None:
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            (source / name).write_bytes(content[0])
            (source / name).chmod(content[1] | 0o400)
    try:
        snapshot = freeze(define(list(files)), place)
        copy = snapshot.working_copy(place / "copy")
        copy.settle()
        snapshot.check_pristine()
        for entry, (name, content) in zip(snapshot.manifest.entries, files.items(), strict=True):
            assert entry.path == name
            if content is None:
                assert entry.state == "missing"
                assert not (copy.path / name).exists()
            else:
                assert (copy.path / name).read_bytes() == content[0]
                assert mode_of(copy.path / name) == entry.mode == content[1] | 0o400
    finally:
        remove_path(place)
        remove_path(source)
        source.mkdir()
