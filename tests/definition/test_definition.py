from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import rfc8785

from firsthand.definition import (
    DefinitionError,
    fingerprint,
    load_definition,
    parse_canonical,
    parse_definition,
    refuse_in_review,
)
from firsthand.files import Folding

Change = Callable[[dict[str, Any]], object]
Refusal = Callable[[Change], tuple[str, str]]


def encode(document: object) -> bytes:
    return json.dumps(document).encode()


def verification(document: dict[str, Any]) -> dict[str, Any]:
    part: dict[str, Any] = document["reviewVerification"]
    return part


def refused(raw: bytes, folder: Path) -> tuple[str, str]:
    begun = time.monotonic()
    with pytest.raises(DefinitionError) as caught:
        parse_definition(raw, folder, homes=[])
    assert time.monotonic() - begun < 1
    return caught.value.field, caught.value.reason


def test_the_sound_definition_is_taken_as_written(sound: dict[str, Any], tmp_path: Path) -> None:
    found = parse_definition(encode(sound), tmp_path, homes=[])
    document = found.document
    assert (document.run_id, document.runtime, document.review_runtime) == ("fix-1234", "codex", "claude")
    assert (document.stages, document.max_rounds) == (("root-cause", "final"), 5)
    assert document.package.requirements == ("REQUIREMENTS.md",)
    assert document.review_verification is not None
    assert document.review_verification.checks[0].command == ("node", "--test", "tests/value.test.mjs")
    assert document.review_verification.timeout_ms == 60000
    assert found.root == tmp_path.resolve()
    assert [each.field for each in found.registered][:2] == [
        "reviewVerification.files[0]",
        "reviewVerification.files[1]",
    ]


def test_the_fingerprint_is_of_the_definition_as_written(sound: dict[str, Any], tmp_path: Path) -> None:
    found = parse_definition(encode(sound), tmp_path, homes=[])
    assert found.canonical == rfc8785.dumps(sound)
    assert found.fingerprint == hashlib.sha256(rfc8785.dumps(sound)).hexdigest() == fingerprint(encode(sound))


def test_order_of_keys_spaces_and_schema_line_do_not_change_the_fingerprint(
    sound: dict[str, Any], tmp_path: Path
) -> None:
    plain = parse_definition(encode(sound), tmp_path, homes=[])
    turned = dict(reversed(sound.items())) | {"$schema": "./firsthand.schema.json"}
    again = parse_definition(json.dumps(turned, indent=4).encode(), tmp_path, homes=[])
    assert again.fingerprint == plain.fingerprint


def test_a_default_written_out_changes_the_fingerprint(sound: dict[str, Any], tmp_path: Path) -> None:
    plain = parse_definition(encode(sound), tmp_path, homes=[])
    verification(sound)["toolchains"] = []
    written = parse_definition(encode(sound), tmp_path, homes=[])
    assert written.document == plain.document
    assert written.fingerprint != plain.fingerprint


@pytest.mark.parametrize(
    "change",
    [
        lambda document: document.update(runId="fix-1235"),
        lambda document: document.update(runtime="other"),
        lambda document: document.update(stages=["final", "root-cause"]),
        lambda document: document.update(maxRounds=4),
        lambda document: document["package"].update(requirements=[]),
        lambda document: verification(document).update(timeoutMs=59999),
        lambda document: verification(document).update(mutationPaths=[]),
        lambda document: verification(document)["files"].reverse(),
        lambda document: verification(document)["checks"][0].update(runner="node-test"),
        lambda document: verification(document)["checks"][0].update(id="other"),
        lambda document: verification(document)["checks"][0]["command"].append("-v"),
        lambda document: document.pop("reviewVerification"),
    ],
)
def test_every_change_changes_the_fingerprint(sound: dict[str, Any], change: Change) -> None:
    before = fingerprint(encode(sound))
    change(sound)
    assert fingerprint(encode(sound)) != before


def test_a_recorded_definition_is_read_without_the_file_system(sound: dict[str, Any], tmp_path: Path) -> None:
    verification(sound)["toolchains"] = ["/nowhere/at/all"]
    sound["root"] = "nowhere"
    canonical = rfc8785.dumps(sound).decode()
    document = parse_canonical(canonical)
    assert document.review_verification is not None
    assert document.review_verification.toolchains == ("/nowhere/at/all",)
    for changed, reason in [
        (" " + canonical, "not-canonical"),
        (json.dumps(sound), "not-canonical"),
        (canonical.replace('"runId"', '"$schema":"x","runId"'), "unknown-field"),
        (canonical.replace('"maxRounds":5', '"maxRounds":5.0'), "float"),
        (canonical.replace("src/value.mjs", "../value.mjs"), "parent-segment"),
        (canonical + "\ud800", "lone-surrogate"),
    ]:
        with pytest.raises(DefinitionError) as caught:
            parse_canonical(changed)
        assert caught.value.reason == reason


def test_a_toolless_definition_registers_its_documents(tmp_path: Path) -> None:
    document = {"runId": "a", "runtime": "b", "package": {"requirements": ["R.md"], "instructions": ["A.md", "B.md"]}}
    found = parse_definition(encode(document), tmp_path, homes=[])
    assert [(each.path, each.field) for each in found.registered] == [
        ("R.md", "package.requirements[0]"),
        ("A.md", "package.instructions[0]"),
        ("B.md", "package.instructions[1]"),
    ]


STRICT: list[tuple[bytes, str, str]] = [
    (b"", "", "not-json"),
    (b"{", "", "not-json"),
    (b"nonsense", "", "not-json"),
    (b"{} {}", "", "not-json"),
    (b"[]", "", "wrong-type"),
    (b"7", "", "wrong-type"),
    (b'"text"', "", "wrong-type"),
    (b"\xef\xbb\xbf{}", "", "byte-order-mark"),
    (b'{"runId": "\xff"}', "", "not-utf8"),
    (b'{"runId": "\xed\xa0\x80"}', "", "not-utf8"),
    (b'{"runId": "a", "runId": "b"}', "runId", "duplicate-key"),
    (b'{"runId": "a", "run\\u0049d": "b"}', "runId", "duplicate-key"),
    (
        b'{"reviewVerification": {"checks": [{"id": "a", "id": "b"}]}}',
        "reviewVerification.checks[0].id",
        "duplicate-key",
    ),
    (b'{"maxRounds": 5.0}', "maxRounds", "float"),
    (b'{"maxRounds": 5e0}', "maxRounds", "float"),
    (b'{"reviewVerification": {"timeoutMs": 1.5}}', "reviewVerification.timeoutMs", "float"),
    (b'{"maxRounds": 9007199254740992}', "maxRounds", "unsafe-integer"),
    (b'{"maxRounds": -9007199254740993}', "maxRounds", "unsafe-integer"),
    (b'{"maxRounds": ' + b"9" * 10_000 + b"}", "maxRounds", "unsafe-integer"),
    (b'{"maxRounds": -0}', "maxRounds", "unsafe-integer"),
    (b'{"maxRounds": NaN}', "maxRounds", "not-a-number"),
    (b'{"maxRounds": -Infinity}', "maxRounds", "not-a-number"),
    (b'{"maxRounds": 1e999}', "maxRounds", "float"),
    (b'{"runId": "\\ud800"}', "runId", "lone-surrogate"),
    (b'{"\\udfff": 1}', "", "lone-surrogate"),
    (b'{"reviewVerification": {"files": ["a", "\\udc00"]}}', "reviewVerification.files[1]", "lone-surrogate"),
    (b"[" * 100_000, "", "too-deep"),
    (b'{"a":' * 20 + b"1" + b"}" * 20, ".".join("a" * 16), "too-deep"),
    (b" " * (2 * 1024 * 1024 + 1), "", "document-too-large"),
]


@pytest.mark.parametrize(("raw", "field", "reason"), STRICT, ids=[f"{row[2]}-{at}" for at, row in enumerate(STRICT)])
def test_what_is_not_strict_json_is_refused_by_field_and_reason(
    raw: bytes, field: str, reason: str, tmp_path: Path
) -> None:
    assert refused(raw, tmp_path) == (field, reason)


def mutating(path: str) -> Change:
    return lambda document: verification(document)["mutationPaths"].append(path)


SHAPE: list[tuple[Change, str, str]] = [
    (lambda d: d.update(extra=1), "extra", "unknown-field"),
    (lambda d: d.update(run_id=d.pop("runId")), "run_id", "unknown-field"),
    (lambda d: d.update(RunId="x"), "RunId", "unknown-field"),
    (lambda d: verification(d).update(expectedFailure=True), "reviewVerification.expectedFailure", "unknown-field"),
    (
        lambda d: verification(d)["checks"][0].update(expect="fail"),
        "reviewVerification.checks[0].expect",
        "unknown-field",
    ),
    (lambda d: d["package"].update(other=[]), "package.other", "unknown-field"),
    (lambda d: d.pop("runId"), "runId", "missing-field"),
    (lambda d: d.pop("runtime"), "runtime", "missing-field"),
    (lambda d: verification(d).pop("files"), "reviewVerification.files", "missing-field"),
    (lambda d: verification(d).pop("checks"), "reviewVerification.checks", "missing-field"),
    (lambda d: verification(d)["checks"][0].pop("id"), "reviewVerification.checks[0].id", "missing-field"),
    (lambda d: verification(d)["checks"][0].pop("command"), "reviewVerification.checks[0].command", "missing-field"),
    (lambda d: d.update(runId=7), "runId", "wrong-type"),
    (lambda d: d.update(maxRounds="5"), "maxRounds", "wrong-type"),
    (lambda d: d.update(maxRounds=True), "maxRounds", "wrong-type"),
    (lambda d: d.update({"$schema": 1}), "$schema", "wrong-type"),
    (lambda d: d.update(reviewVerification=None), "reviewVerification", "wrong-type"),
    (lambda d: d.update(reviewRuntime=None), "reviewRuntime", "wrong-type"),
    (lambda d: verification(d)["checks"][0].update(runner=None), "reviewVerification.checks[0].runner", "wrong-type"),
    (lambda d: d.update(reviewVerification=[]), "reviewVerification", "wrong-type"),
    (lambda d: verification(d).update(files="src"), "reviewVerification.files", "wrong-type"),
    (lambda d: verification(d).update(files=[1]), "reviewVerification.files[0]", "wrong-type"),
    (
        lambda d: verification(d)["checks"][0].update(command="node --test"),
        "reviewVerification.checks[0].command",
        "wrong-type",
    ),
    (lambda d: verification(d).update(files=[]), "reviewVerification.files", "empty"),
    (lambda d: verification(d).update(checks=[]), "reviewVerification.checks", "empty"),
    (lambda d: verification(d)["checks"][0].update(command=[]), "reviewVerification.checks[0].command", "empty"),
    (
        lambda d: verification(d)["checks"][0].update(command=["a", ""]),
        "reviewVerification.checks[0].command[1]",
        "empty",
    ),
    (lambda d: verification(d)["files"].append(""), "reviewVerification.files[5]", "empty"),
    (lambda d: d.update(root=""), "root", "empty"),
    (lambda d: d.update(stages=[]), "stages", "empty"),
    (lambda d: verification(d).update(files=[f"f{n}" for n in range(257)]), "reviewVerification.files", "too-many"),
    (
        lambda d: verification(d).update(checks=[{"id": f"c{n}", "command": ["x"]} for n in range(9)]),
        "reviewVerification.checks",
        "too-many",
    ),
    (
        lambda d: verification(d).update(toolchains=[f"/t/{n}" for n in range(33)]),
        "reviewVerification.toolchains",
        "too-many",
    ),
    (lambda d: d.update(stages=["final", "final", "final"]), "stages", "too-many"),
    (lambda d: d.update(stages=["final", "final"]), "stages", "duplicate"),
    (lambda d: d.update(stages=["middle"]), "stages[0]", "unknown-value"),
    (
        lambda d: verification(d)["checks"][0].update(runner="jest"),
        "reviewVerification.checks[0].runner",
        "unknown-value",
    ),
    (lambda d: d.update(maxRounds=0), "maxRounds", "out-of-range"),
    (lambda d: d.update(maxRounds=101), "maxRounds", "out-of-range"),
    (lambda d: verification(d).update(timeoutMs=0), "reviewVerification.timeoutMs", "out-of-range"),
    (lambda d: verification(d).update(timeoutMs=-1), "reviewVerification.timeoutMs", "out-of-range"),
    (lambda d: verification(d).update(timeoutMs=300001), "reviewVerification.timeoutMs", "out-of-range"),
    (lambda d: d.update(runId=""), "runId", "bad-name"),
    (lambda d: d.update(runId="a" * 129), "runId", "bad-name"),
    (lambda d: d.update(runId="-a"), "runId", "bad-name"),
    (lambda d: d.update(runId="a/b"), "runId", "bad-name"),
    (lambda d: d.update(runId="a\n"), "runId", "bad-name"),
    (lambda d: d.update(runId="\N{FULLWIDTH DIGIT ONE}"), "runId", "bad-name"),
    (lambda d: d.update(runtime="two words"), "runtime", "bad-name"),
    (lambda d: d.update(reviewRuntime=""), "reviewRuntime", "bad-name"),
    (lambda d: verification(d)["checks"][0].update(id="Value"), "reviewVerification.checks[0].id", "bad-name"),
    (lambda d: verification(d)["checks"][0].update(id="-a"), "reviewVerification.checks[0].id", "bad-name"),
    (lambda d: verification(d)["checks"][0].update(id="a" * 65), "reviewVerification.checks[0].id", "bad-name"),
    (lambda d: verification(d)["checks"][0].update(id="a\n"), "reviewVerification.checks[0].id", "bad-name"),
    (
        lambda d: verification(d)["checks"].append({"id": "value", "command": ["x"]}),
        "reviewVerification.checks[1].id",
        "duplicate",
    ),
    (
        lambda d: verification(d)["checks"][0].update(command=["a\0b"]),
        "reviewVerification.checks[0].command[0]",
        "nul",
    ),
    (lambda d: d.update(root="a\0b"), "root", "nul"),
    (lambda d: (d.pop("reviewVerification"), d.pop("package")), "package", "nothing-registered"),
    (
        lambda d: (d.pop("reviewVerification"), d.update(package={"requirements": [], "instructions": []})),
        "package",
        "nothing-registered",
    ),
    (lambda d: d["package"]["requirements"].append("OTHER.md"), "package.requirements[1]", "not-in-files"),
    (lambda d: d["package"]["instructions"].append("../A.md"), "package.instructions[1]", "parent-segment"),
    (lambda d: d["package"]["instructions"].append("AGENTS.md"), "package.instructions[1]", "duplicate"),
    (lambda d: d["package"]["instructions"].append("REQUIREMENTS.md"), "package.instructions[1]", "duplicate"),
    (mutating("src/other.mjs"), "reviewVerification.mutationPaths[1]", "not-in-files"),
    (mutating("src/value.mjs"), "reviewVerification.mutationPaths[1]", "duplicate"),
    (mutating("AGENTS.md"), "reviewVerification.mutationPaths[1]", "package-document"),
    (mutating("tests/value.test.mjs"), "reviewVerification.mutationPaths[1]", "test-file"),
    (mutating("package.json"), "reviewVerification.mutationPaths[1]", "configuration-file"),
    (lambda d: verification(d)["files"].append("src/value.mjs"), "reviewVerification.files[5]", "duplicate"),
    (lambda d: verification(d)["files"].append("src"), "reviewVerification.files[5]", "file-and-folder"),
    (lambda d: verification(d)["files"].append("package.json/a"), "reviewVerification.files[5]", "file-and-folder"),
    (lambda d: d.update(root="absent"), "root", "root-missing"),
    (lambda d: d.update(root="/"), "root", "root-too-wide"),
    (lambda d: d.update(root="../" * 40), "root", "root-too-wide"),
]


@pytest.mark.parametrize(
    ("change", "field", "reason"), SHAPE, ids=[f"{row[2]}-{row[1]}-{at}" for at, row in enumerate(SHAPE)]
)
def test_each_rule_refuses_by_field_and_reason(refusal: Refusal, change: Change, field: str, reason: str) -> None:
    assert refusal(change) == (field, reason)


def test_limits_themselves_are_accepted(sound: dict[str, Any], tmp_path: Path) -> None:
    sound["runId"] = "a" * 128
    sound["maxRounds"] = 100
    part = verification(sound)
    part["files"] += [f"more/f{number}" for number in range(251)]
    part["checks"] = [{"id": f"c{number}" + "x" * 62, "command": ["x", "\n"], "runner": "exit"} for number in range(8)]
    for timeout_ms in (1, 300_000):
        part["timeoutMs"] = timeout_ms
        parse_definition(encode(sound), tmp_path, homes=[])


def test_the_root_may_be_no_file_no_home_and_hold_none(sound: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    home = tmp_path / "homes" / "me"
    home.mkdir(parents=True)
    (home / "project").mkdir()
    (tmp_path / "link-to-home").symlink_to(home)

    def reason_of(root: str) -> str:
        with pytest.raises(DefinitionError) as caught:
            parse_definition(encode(sound | {"root": root}), tmp_path, homes=[home])
        assert caught.value.field == "root"
        return caught.value.reason

    assert reason_of("file") == "root-not-a-folder"
    assert reason_of("homes/me") == "root-is-home"
    assert reason_of("link-to-home") == "root-is-home"
    assert reason_of(str(home)) == "root-is-home"
    assert reason_of("homes") == "root-is-home"
    assert reason_of(".") == "root-is-home"
    found = parse_definition(encode(sound | {"root": "link-to-home/project"}), tmp_path, homes=[home])
    assert found.root == (home / "project").resolve()


def test_homes_are_this_users_by_default(
    sound: dict[str, Any], tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(DefinitionError) as caught:
        parse_definition(encode(sound), tmp_path)
    assert caught.value.reason == "root-is-home"
    monkeypatch.setenv("HOME", str(tmp_path_factory.mktemp("elsewhere")))
    parse_definition(encode(sound), tmp_path)


def test_files_of_a_named_dependency_folder_are_not_registered_as_well(sound: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "vendor" / "lib").mkdir(parents=True)
    verification(sound)["files"].append("vendor/lib/code.go")
    parse_definition(encode(sound), tmp_path, homes=[])
    verification(sound)["toolchains"] = [str(tmp_path.resolve() / "vendor")]
    with pytest.raises(DefinitionError) as caught:
        parse_definition(encode(sound), tmp_path, homes=[])
    assert (caught.value.field, caught.value.reason) == ("reviewVerification.files[5]", "inside-toolchain")


def test_collisions_are_refused_only_where_names_are_folded(sound: dict[str, Any], tmp_path: Path) -> None:
    verification(sound)["files"].append("SRC/other.mjs")
    parse_definition(encode(sound), tmp_path, homes=[])
    with pytest.raises(DefinitionError) as caught:
        parse_definition(encode(sound), tmp_path, homes=[], folding=Folding(case=True))
    assert (caught.value.field, caught.value.reason) == ("reviewVerification.files[5]", "name-collision")


def test_a_definition_is_loaded_from_a_plain_file_only(sound: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "firsthand.json"
    path.write_bytes(encode(sound))
    assert load_definition(path, homes=[]).root == tmp_path.resolve()

    def reason_of(name: str) -> str:
        begun = time.monotonic()
        with pytest.raises(DefinitionError) as caught:
            load_definition(tmp_path / name, homes=[])
        assert time.monotonic() - begun < 1
        assert caught.value.field == ""
        return caught.value.reason

    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "zero").symlink_to("/dev/zero")
    (tmp_path / "link").symlink_to(path)
    (tmp_path / "dangling").symlink_to("nowhere")
    (tmp_path / "folder").mkdir()
    with (tmp_path / "giant").open("wb") as stream:
        stream.truncate(10 << 30)
    assert reason_of("absent") == "no-definition"
    assert reason_of("fifo") == "fifo"
    assert reason_of("zero") == "symlink"
    assert reason_of("link") == "symlink"
    assert reason_of("dangling") == "dangling-link"
    assert reason_of("folder") == "directory"
    assert reason_of("giant") == "document-too-large"
    with pytest.raises(DefinitionError) as caught:
        load_definition(Path("/dev/zero"), homes=[])
    assert caught.value.reason == "device"


def test_the_root_is_taken_from_the_definitions_folder(
    sound: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "firsthand.json").write_bytes(encode(sound))
    monkeypatch.chdir(tmp_path)
    assert load_definition(Path("project/firsthand.json"), homes=[]).root == (tmp_path / "project").resolve()


@pytest.mark.parametrize(
    ("raw", "field", "reason"),
    [
        (b'{"reviewVerification": {}}', "reviewVerification", "in-review-json"),
        (b'{"reviewVerification": null}', "reviewVerification", "in-review-json"),
        (b'{"a": [{"reviewVerification": 1}]}', "a[0].reviewVerification", "in-review-json"),
        (b'{"review\\u0056erification": {}}', "reviewVerification", "in-review-json"),
        (b'{"a": 1, "a": 2}', "a", "duplicate-key"),
        (b"{", "", "not-json"),
    ],
)
def test_review_json_may_hold_no_verification(raw: bytes, field: str, reason: str) -> None:
    with pytest.raises(DefinitionError) as caught:
        refuse_in_review(raw)
    assert (caught.value.field, caught.value.reason) == (field, reason)


def test_review_json_without_one_is_fine() -> None:
    refuse_in_review(b'{"provider": "claude", "note": "reviewVerification"}')


def test_a_refusal_changes_nothing_on_the_disk(refusal: Refusal, tmp_path: Path) -> None:
    refusal(lambda document: verification(document).update(files=["../x"]))
    assert list(tmp_path.iterdir()) == []
