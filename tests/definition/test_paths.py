from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firsthand.definition import DefinitionError, mutation_fault, refuse_collisions, refuse_path
from firsthand.definition.paths import PATH_PATTERN
from firsthand.files import Folding


def reason_of(path: str) -> str | None:
    try:
        refuse_path(path, "reviewVerification.files[0]")
    except DefinitionError as error:
        return error.reason
    return None


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("", "empty"),
        ("/etc/passwd", "absolute-path"),
        ("/", "absolute-path"),
        ("..", "parent-segment"),
        ("a/../b", "parent-segment"),
        ("a/..", "parent-segment"),
        (".", "dot-segment"),
        ("./a", "dot-segment"),
        ("a/./b", "dot-segment"),
        ("a//b", "empty-segment"),
        ("a/", "empty-segment"),
        ("a\\b", "backslash"),
        ("..\\a", "backslash"),
        ("a\0b", "nul"),
        ("a\nb", "control-character"),
        ("a\x1b[2Jb", "control-character"),
        ("a\x7f", "control-character"),
        ("a\x85", "control-character"),
        ("n" * 256, "name-too-long"),
        ("\N{GREEK SMALL LETTER ALPHA}" * 128, "name-too-long"),
        ("n/" * 2048 + "n", "name-too-long"),
        ("node_modules/a.js", "dependency-folder"),
        ("a/node_modules", "dependency-folder"),
        ("Node_Modules/a.js", "dependency-folder"),
        (".git/config", "history"),
        ("sub/.git", "history"),
        (".GIT/config", "history"),
        (".g\N{ZERO WIDTH NON-JOINER}it/config", "history"),
        (".git./config", "history"),
        (".hg/store", "history"),
        (".svn/entries", "history"),
        ("a.pyc", "bytecode"),
        ("A.PYC", "bytecode"),
        ("a.pyo", "bytecode"),
        ("__pycache__/a.cpython-311.pyc", "bytecode"),
        ("src/__pycache__/note.txt", "bytecode"),
        (".ssh/config", "credential-path"),
        ("home/.SSH/known_hosts", "credential-path"),
        (".aws/config", "credential-path"),
        (".gnupg/x", "credential-path"),
        (".netrc", "credential-path"),
        ("deep/.netrc", "credential-path"),
        (".env", "credential-path"),
        (".env.production", "credential-path"),
        ("app/.env.local", "credential-path"),
        (".claude/settings.json", "credential-path"),
        (".claude", "credential-path"),
        (".claude.json", "credential-path"),
        (".config/gcloud/x", "credential-path"),
        (".docker/config.json", "credential-path"),
        ("id_rsa", "credential-path"),
        ("keys/id_ed25519", "credential-path"),
        ("tls/server.key", "credential-path"),
        ("tls/server.PEM", "credential-path"),
        ("store.p12", "credential-path"),
        (".npmrc", "credential-path"),
        (".git-credentials", "credential-path"),
    ],
)
def test_a_path_that_may_not_be_registered_says_why(path: str, reason: str) -> None:
    assert reason_of(path) == reason


@pytest.mark.parametrize(
    "path",
    [
        "a",
        "src/value.mjs",
        "...",
        "..a",
        "a..",
        ".gitignore",
        ".github/workflows/ci.yml",
        ".env.example",
        "envs/environment.py",
        "id_rsa.pub",
        "pyc",
        "a.pyc.txt",
        "node_modules.txt",
        "git/config",
        "ssh/config",
        "config/gcloud/x",
        "with space",
        "caf\N{LATIN SMALL LETTER E WITH ACUTE}",
        "a:b",
        "n" * 255,
        "line\N{LINE SEPARATOR}separator",
    ],
)
def test_a_plain_path_is_accepted(path: str) -> None:
    assert reason_of(path) is None


FORM = (
    "empty",
    "nul",
    "control-character",
    "backslash",
    "absolute-path",
    "parent-segment",
    "dot-segment",
    "empty-segment",
)


@given(st.text(st.sampled_from("ab./\\\0\n\x85 \N{LATIN SMALL LETTER E WITH ACUTE}"), max_size=8))
def test_the_published_pattern_says_the_same_as_the_rules_of_form(path: str) -> None:
    matches = re.fullmatch(PATH_PATTERN.removeprefix("^").removesuffix("$"), path) is not None
    assert matches == (reason_of(path) not in FORM)


@given(st.text(max_size=30))
def test_whatever_is_accepted_stays_below_the_root(path: str) -> None:
    if reason_of(path) is None:
        assert not path.startswith("/")
        assert not {"", ".", ".."} & set(path.split("/"))


@pytest.mark.parametrize(
    ("paths", "folding", "place", "reason"),
    [
        (["a", "b", "a"], Folding(), 2, "duplicate"),
        (["a/b", "a"], Folding(), 1, "file-and-folder"),
        (["a", "a/b"], Folding(), 1, "file-and-folder"),
        (["a/b/c", "x", "a/b"], Folding(), 2, "file-and-folder"),
        (["README", "readme"], Folding(case=True), 1, "name-collision"),
        (["src/a", "SRC/b"], Folding(case=True), 1, "name-collision"),
        (["a", "A/b"], Folding(case=True), 1, "name-collision"),
        (["caf\u00e9", "cafe\u0301"], Folding(unicode=True), 1, "name-collision"),
        (["CAF\u00c9/a", "cafe\u0301/b"], Folding(case=True, unicode=True), 1, "name-collision"),
    ],
)
def test_two_names_that_would_be_one_are_refused(paths: list[str], folding: Folding, place: int, reason: str) -> None:
    fields = [f"f[{number}]" for number in range(len(paths))]
    with pytest.raises(DefinitionError) as caught:
        refuse_collisions(paths, fields, folding)
    assert (caught.value.field, caught.value.reason) == (f"f[{place}]", reason)


def test_names_that_stay_apart_are_accepted() -> None:
    paths = ["README", "readme", "caf\u00e9", "cafe\u0301", "a/b", "a/c", "ab"]
    refuse_collisions(paths, paths, Folding())
    refuse_collisions(["a/b", "a/c", "A2"], ["x", "y", "z"], Folding(case=True, unicode=True))


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("test/a.py", "test-file"),
        ("src/tests/a.py", "test-file"),
        ("Tests/a.py", "test-file"),
        ("a/__tests__/b.js", "test-file"),
        ("spec/a.rb", "test-file"),
        ("pkg/testdata/a.go", "test-file"),
        ("fixtures/a.py", "test-file"),
        ("src/test_a.py", "test-file"),
        ("src/a_test.go", "test-file"),
        ("src/a.test.ts", "test-file"),
        ("src/a.spec.ts", "test-file"),
        ("conftest.py", "test-file"),
        ("src/test", "test-file"),
        ("package.json", "configuration-file"),
        ("pyproject.toml", "configuration-file"),
        ("a.ini", "configuration-file"),
        ("setup.cfg", "configuration-file"),
        ("a.yml", "configuration-file"),
        ("a.YAML", "configuration-file"),
        ("Makefile", "configuration-file"),
        ("src/makefile", "configuration-file"),
        (".eslintrc", "configuration-file"),
        (".github/run.sh", "configuration-file"),
        ("src/value.mjs", None),
        ("src/testing.py", None),
        ("src/contest.py", None),
        ("src/latest.py", None),
        ("src/specs.py", None),
        ("json.py", None),
        ("src/makefile.py", None),
    ],
)
def test_only_implementation_may_be_mutated(path: str, reason: str | None) -> None:
    fault = mutation_fault(path)
    assert (fault[0] if fault else None) == reason
