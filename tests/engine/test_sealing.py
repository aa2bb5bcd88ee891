"""From records to a sealed file: what is written verifies, and what changed meanwhile voids it."""

from __future__ import annotations

import json
import os
import secrets
import stat
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from e2e.program import Answer, Program, carrying
from e2e.project import Project
from firsthand.engine.checking import run_checks
from firsthand.engine.mutating import run_mutations
from firsthand.engine.sealing import Sealed
from firsthand.errors import FirsthandError
from firsthand.evidence.keyfiles import load_public_key, new_key
from firsthand.evidence.storing import read_sealed
from firsthand.evidence.verifying import verify
from firsthand.plugins import Observers, hookimpl
from firsthand.records import Mutation


def check(project: Project, program: Program, out: Path | None = None, key: Path | None = None) -> Sealed:
    return run_checks(project.config, state_path=program.state, out=out, key=key, observers=Observers())


def test_evidence_of_a_check_verifies_fresh(program: Program, honest: Project) -> None:
    sealed = check(honest, program)
    assert sealed.exit_status == 0
    assert sealed.path.parent == program.state / "evidence"
    assert stat.S_IMODE(sealed.path.stat().st_mode) == 0o600
    found = verify(read_sealed(sealed.path), root=honest.root)
    assert (found.valid, found.stale, found.signed) == (True, False, False)
    assert found.evidence == sealed.evidence
    assert found.digest == sealed.sha256


def test_evidence_of_mutations_in_two_lanes_verifies_fresh_and_signed(
    program: Program, honest: Project, tmp_path: Path
) -> None:
    public = tmp_path / "key.pub"
    public.write_text(new_key(tmp_path / "key.pem").pem)
    mutations = [
        Mutation(check="total", path="cart.py", old="sum(prices)", new=f"sum(prices) {change}")
        for change in ("+ 1", "- 1", "+ 0")
    ]
    sealed = run_mutations(
        honest.config,
        mutations,
        jobs=2,
        state_path=program.state,
        out=tmp_path / "mutations.json",
        key=tmp_path / "key.pem",
        observers=Observers(),
    )
    assert [run.verdict for run in sealed.evidence.mutations] == ["detected", "detected", "survived"]
    assert (sealed.evidence.code, sealed.exit_status) == ("mutation_survived", 1)
    found = verify(read_sealed(sealed.path), trusted_keys=[load_public_key(public)], root=honest.root)
    assert (found.valid, found.stale, found.signed) == (True, False, True)


def test_what_could_not_be_sealed_is_refused_before_anything_runs(
    program: Program, honest: Project, tmp_path: Path
) -> None:
    taken = tmp_path / "taken.json"
    taken.write_text("mine")
    (tmp_path / "dangling.json").symlink_to("absent")
    loose = tmp_path / "loose.pem"
    new_key(loose)
    loose.chmod(0o644)
    inside = honest.root / "key.pem"
    new_key(inside)
    ran: list[str] = []

    class Watching:
        @hookimpl
        def check_finished(self, run: object) -> None:
            ran.append("run")

    observers = Observers()
    observers.add(Watching(), name="watching", owner="test")
    for out, key in (
        (taken, None),
        (tmp_path / "dangling.json", None),
        (tmp_path / "absent" / "out.json", None),
        (taken / "out.json", None),
        (None, tmp_path / "absent.pem"),
        (None, loose),
        (None, taken),
        (None, inside),
    ):
        with pytest.raises(FirsthandError) as refused:
            run_checks(honest.config, state_path=program.state, out=out, key=key, observers=observers)
        assert refused.value.exit_status == 2, (out, key)
        assert refused.value.next_step
    assert ran == []
    assert taken.read_text() == "mine"
    assert not (tmp_path / "absent").exists()
    assert os.listdir(program.state / "evidence") == []


def during(program: Program, project: Project, number: str, deed: Callable[[], object]) -> Answer:
    """Run `check`, do something while its command sleeps, and give the answer."""
    with program.start("check", "--json", cwd=project.root) as running:
        begun = time.monotonic()
        while not _sleeps(number):
            assert running.poll() is None, running.communicate()
            assert time.monotonic() - begun < 60
        deed()
        out, err = running.communicate(timeout=60)
    return Answer(running.returncode, out.decode(), err.decode())


def _sleeps(number: str) -> bool:
    return any(
        Path(f"/proc/{pid}/comm").read_text() == "sleep\n" for pid in carrying(number) if Path(f"/proc/{pid}").exists()
    )


@pytest.fixture
def sleeper(project: Project) -> str:
    """A check that sleeps for a moment, and by what it is recognised."""
    number = f"0.7{10**9 + secrets.randbelow(10**9)}"
    project.shell(("sleeps", f"sleep {number}"))
    return number


@pytest.mark.parametrize(
    "deed",
    [
        lambda file: file.write_text("A note\n"),
        lambda file: file.chmod(0o600),
        lambda file: (file.rename(file.with_name("other")), file.symlink_to("other")),
    ],
    ids=["bytes", "mode", "link"],
)
def test_a_source_that_changes_meanwhile_voids_the_evidence(
    deed: Callable[[Path], object], sleeper: str, program: Program, project: Project
) -> None:
    answer = during(program, project, sleeper, lambda: deed(project.root / "note.txt"))
    assert (answer.status, answer.json["code"]) == (1, "review_verification_source_drift"), answer.err
    assert answer.json["checks"][0]["status"] == "passed"
    found = verify(read_sealed(Path(answer.json["evidence"])))
    assert found.valid
    assert found.evidence is not None
    assert found.evidence.voided == ("review_verification_source_drift",)


@pytest.mark.parametrize("what", ["a file's bytes", "a new file", "the program"])
def test_a_toolchain_that_changes_meanwhile_voids_the_evidence(
    what: str, program: Program, project: Project, tmp_path: Path
) -> None:
    number = f"0.7{10**9 + secrets.randbelow(10**9)}"
    tools = tmp_path / "tools"
    (tools / "bin").mkdir(parents=True)
    (tools / "table").write_text("one")
    runner = tools / "bin" / "run-it"
    runner.write_text(f"#!/bin/sh\nexec sleep {number}\n")
    runner.chmod(0o755)
    project.write("note.txt", "a note\n")
    project.define(("sleeps", ["run-it"]), files=["note.txt"], runner="exit", toolchains=[str(tools)])
    deeds: dict[str, Callable[[], object]] = {
        "a file's bytes": lambda: (tools / "table").write_text("two"),
        "a new file": lambda: (tools / "another").write_text("x"),
        "the program": lambda: runner.write_text("#!/bin/sh\nexit 0\n"),
    }
    answer = during(program, project, number, deeds[what])
    assert answer.status == 4, answer
    assert answer.json["status"] == "unknown"
    found = verify(read_sealed(Path(answer.json["evidence"])))
    assert found.valid
    assert found.evidence is not None
    assert found.evidence.voided == ("review_verification_evidence",)


def test_an_unchanged_toolchain_voids_nothing(program: Program, project: Project, tmp_path: Path) -> None:
    tools = tmp_path / "tools"
    (tools / "bin").mkdir(parents=True)
    runner = tools / "bin" / "run-it"
    runner.write_text("#!/bin/sh\nexit 0\n")
    runner.chmod(0o755)
    project.write("note.txt", "a note\n")
    project.define(("runs", ["run-it"]), files=["note.txt"], runner="exit", toolchains=[str(tools)])
    sealed = check(project, program)
    assert sealed.exit_status == 0
    assert sealed.evidence.enclosing is not None
    (root,) = (one for one in sealed.evidence.enclosing.toolchains if one.named)
    assert (root.path, root.named) == (str(tools), True)
    assert root.digest is not None


def test_the_evidence_names_its_circumstances(program: Program, honest: Project) -> None:
    evidence = check(honest, program).evidence
    assert evidence.kind == "check"
    assert evidence.definition_digest == check(honest, program).evidence.definition_digest
    assert evidence.enclosing is not None
    assert evidence.enclosing.backend.level == "os-sandbox"
    assert [entry.path for entry in evidence.manifest.entries] == ["cart.py", "test_cart.py"]
    assert json.loads(evidence.definition)["runId"] == "run-1"
    assert evidence.unprobed == ("cart.py",)
