"""SIGKILL of the program, of the reviewer's CLI and of the relay, each at random instants of a whole round.

The ledger opens, is sound and says what is known; what may have been sent is not sent again; the source is untouched,
no process lives on, no credential stays; evidence is whole or not there. How many rounds: FIRSTHAND_ROUND_KILLS, a
third for each victim.
"""

from __future__ import annotations

import logging
import os
import random
import select
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

from e2e.fixtures import Tree
from e2e.program import Answer, carrying
from e2e.reviewer import ACCESS_TOKEN, HONEST, REFRESH_TOKEN, Reviewed, dispatches, played, prepare
from e2e.test_kill import Kin, kin_of
from firsthand.engine.gating import gate
from firsthand.evidence.storing import read_sealed
from firsthand.evidence.verifying import verify
from firsthand_claude.program import bundled_program
from firsthand_claude.scripted import Fault, ScriptedEndpoint, Turn

KILLS: Final = int(os.environ.get("FIRSTHAND_ROUND_KILLS", "6"))
SEED: Final = int(os.environ.get("FIRSTHAND_ROUND_KILLS_SEED", "20261130"))
GONE_WITHIN_S: Final = 2.0
_LOOK_S: Final = 0.004
_EXIT: Final = {"approved": 0, "rejected": 1, "blocked": 1, "failed": 1, "unknown": 4}

Victim = Callable[[int], "int | None"]
"""From the program's pid to the process that is killed, or None while it is not there."""


def the_program(program: int) -> int | None:
    return program


def the_cli(program: int) -> int | None:
    """The CLI of the round; not the one that only says its version."""
    return _below(program, lambda argv, executable: executable == _cli_path() and "--version" not in argv)


def the_relay(program: int) -> int | None:
    return _below(program, lambda argv, _: any(word.endswith("review/relay.py") for word in argv))


def _cli_path() -> str:
    return os.path.realpath(str(bundled_program()))


def _below(program: int, fits: Callable[[list[str], str], bool]) -> int | None:
    for kin in kin_of(program):
        try:
            argv = Path(f"/proc/{kin.pid}/cmdline").read_bytes().decode(errors="replace").split("\0")
            if fits(argv, os.readlink(f"/proc/{kin.pid}/exe")):
                return kin.pid
        except OSError:
            continue
    return None


VICTIMS: Final[tuple[Victim, ...]] = (the_program, the_cli, the_relay)


@dataclass(frozen=True)
class Whole:
    """A round that nobody disturbed: how long each victim lives in it, and how often the model is asked."""

    lives_s: dict[str, float]
    requests: int


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Whole:
    reviewed = prepare(tmp_path_factory.mktemp("whole"), tmp_path_factory)
    appeared: dict[str, tuple[Kin, float]] = {}
    lives_s: dict[str, float] = {}
    # Once before, so that everything is compiled and in the file cache when it counts.
    assert reviewed.review("root-cause", HONEST).status == 0
    with played(HONEST) as model:
        running = reviewed.start("final", model)
        while running.poll() is None:
            for victim in VICTIMS:
                name = victim.__name__
                pid = victim(running.pid) if name not in appeared else None
                if pid is not None:
                    appeared[name] = (Kin(pid, _start_of(pid)), time.monotonic())
            now = time.monotonic()
            lives_s |= {name: now - since for name, (kin, since) in appeared.items() if kin.lives()}
            # Looking costs the round its processor; a rough measure serves.
            select.select([], [], [], 5 * _LOOK_S)
        out, err = running.communicate()
        assert running.returncode == 0, (out, err)
        return Whole(lives_s, len(model.messages()))


@pytest.fixture
def reviewed(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Reviewed:
    """A project under review, by a user with a login: its copy must not outlive a kill."""
    ready = prepare(tmp_path, tmp_path_factory)
    ready.log_in()
    return ready


@pytest.mark.slow
@pytest.mark.timeout(120 + 30 * KILLS)
@pytest.mark.parametrize("victim", VICTIMS)
def test_a_kill_at_any_instant_of_a_round(
    reviewed: Reviewed, whole: Whole, victim: Victim, tree: Tree, record_testsuite_property: Any
) -> None:
    source = _source(reviewed, tree)
    chance = random.Random(f"{SEED} {victim.__name__}")
    kills = KILLS // len(VICTIMS)
    met: Counter[str] = Counter()
    slowest_s = 0.0
    for number in range(kills):
        reviewed.define(f"kill-{number}", stages=["final"])
        about = f"{victim.__name__}, kill {number}"
        with played(HONEST) as model:
            # Evenly over its life, one slice a kill, at a random instant of the slice.
            at_s = whole.lives_s[victim.__name__] * 1.03 * (number + chance.random()) / kills
            gone_s, answer = _killed(reviewed, model, victim, at_s, about)
            slowest_s = max(slowest_s, gone_s)
            state = _judged(reviewed, model, answer, about)
            met[state] += 1
            met["in time"] += victim is not the_program or answer is None
            met["sent something"] += bool(model.messages())
            met["left a session"] += bool(reviewed.program.sessions())
            met["left a credential"] += bool(reviewed.holding(ACCESS_TOKEN))
            _asked_again(reviewed, model, state, about)
            # The one authority on what reached the model: it was asked once, and asking again asked nothing.
            assert dispatches(model) <= 1, about
            assert len(model.messages()) <= whole.requests, about
        assert _source(reviewed, tree) == source, about
        assert carrying(str(reviewed.program.state)) == [], about
        assert reviewed.program.sessions() == [], about
        assert reviewed.holding(ACCESS_TOKEN) == reviewed.holding(REFRESH_TOKEN) == [], about
        assert list((reviewed.folder / "tmp").iterdir()) == [], about
    told = f"{dict(met)}; the last process gone after {slowest_s * 1000:.0f} ms; lives {whole.lives_s}"
    record_testsuite_property(f"round kills, {victim.__name__}", told)
    logging.getLogger(__name__).info("%d kills of %s: %s", kills, victim.__name__, told)
    if kills >= 4:
        assert met["unknown"] or met["failed"], told


def test_the_cli_does_not_outlive_a_killed_program(reviewed: Reviewed) -> None:
    with played([Turn(fault=Fault("silence"), times=0)]) as model:
        running = reviewed.start("final", model)
        assert model.wait_for(1, 60)
        kin = kin_of(running.pid)
        running.kill()
        running.communicate()
        begun = time.monotonic()
        while any(map(Kin.lives, kin)) and time.monotonic() - begun < GONE_WITHIN_S:
            select.select([], [], [], _LOOK_S)
        left = [*filter(Kin.lives, kin)]
        # Its copy of the login goes with the next start, which asks nobody.
        assert reviewed(*reviewed.command("final"), model=model).json["code"] == "round_unknown"
        assert (carrying(str(reviewed.program.state)), reviewed.holding(ACCESS_TOKEN)) == ([], [])
        assert dispatches(model) == 1
    assert left == [], _told(left)


def _source(reviewed: Reviewed, tree: Tree) -> dict[str, object]:
    """All of the project but the definition, which each kill writes anew."""
    return {path: entry for path, entry in tree(reviewed.project.root).items() if path not in {".", "firsthand.json"}}


def _start_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])


def _await(running: subprocess.Popen[bytes], victim: Victim) -> int | None:
    while running.poll() is None:
        pid = victim(running.pid)
        if pid is not None:
            return pid
        select.select([], [], [], _LOOK_S)
    return None


def _killed(
    reviewed: Reviewed, model: ScriptedEndpoint, victim: Victim, at_s: float, about: str
) -> tuple[float, Answer | None]:
    """Kill the victim so long after it appeared; how long the rest took to be gone, and what the program said.

    The answer is None where the program itself was killed in time.
    """
    running = reviewed.start("final", model)
    pid = _await(running, victim)
    assert pid is not None, running.communicate()
    # The instant: a timer; an earlier end does not shorten it.
    select.select([], [], [], at_s)
    kin = kin_of(running.pid)
    if pid == running.pid or pid in {one.pid for one in kin}:
        os.kill(pid, signal.SIGKILL)
    if pid != running.pid:
        # The program lives: it ends the rest itself, and says what it knows.
        out, err = running.communicate(timeout=60)
        answer: Answer | None = Answer(running.returncode, out.decode(), err.decode())
    else:
        running.wait()
        answer = None if running.returncode == -signal.SIGKILL else Answer(running.returncode, "", "")
    begun = time.monotonic()
    while left := _left(reviewed, kin):
        assert time.monotonic() - begun < GONE_WITHIN_S, f"{about}: {_told(left)}"
        select.select([], [], [], _LOOK_S)
    for stream in (running.stdout, running.stderr):
        assert stream is not None
        stream.close()
    return time.monotonic() - begun, answer


def _left(reviewed: Reviewed, kin: list[Kin]) -> list[Kin | int]:
    return [*filter(Kin.lives, kin), *carrying(str(reviewed.program.state))]


def _judged(reviewed: Reviewed, model: ScriptedEndpoint, answer: Answer | None, about: str) -> str:
    """The state that the ledger knows, held against what was sent, the program's answer and the evidence."""
    rounds = reviewed.rounds()
    evidence = reviewed.program.state / "evidence"
    mine = {path.name for path in evidence.iterdir() if path.name.startswith(f"{reviewed.run_id}-")}
    if not rounds:
        assert (model.messages(), mine) == ([], set()), about
        assert answer is None or answer.status == 3, (about, answer)
        return "none"
    (one,) = rounds
    state = one.facts.state
    assert state in _EXIT, about
    assert one.stored_state != "claimed" or not model.messages(), about
    if answer is not None:
        assert answer.status == _EXIT[state], (about, answer, one)
    # Whole or not there; a rejection or an approval that counts is there.
    assert mine <= {one.evidence_name}, about
    if state in {"approved", "failed"} or (state == "unknown" and answer is not None):
        assert mine == {one.evidence_name}, (about, answer, one)
    for name in mine:
        found = verify(read_sealed(evidence / name), root=reviewed.project.root)
        assert (found.valid, found.stale, found.digest) == (True, False, one.facts.evidence_digest), (about, found)
        assert found.evidence is not None
        assert found.evidence.nonce == one.facts.nonce, about
    conclusion, _ = gate(reviewed.project.config, state_path=reviewed.program.state).conclusion
    assert conclusion == {"approved": "passed"}.get(state, state), about
    return state


def _asked_again(reviewed: Reviewed, model: ScriptedEndpoint, state: str, about: str) -> None:
    """The next start: it clears up, and asks the reviewer only where nothing was ever claimed."""
    if state in {"approved", "failed"}:
        # A new round would be a new question, rightly asked; only what was left is looked at.
        assert reviewed("residues", "--clean", "--json").status == 0, about
        return
    again = reviewed(*reviewed.command("final"), model=model)
    if state == "none":
        assert (again.status, again.json["round"]) == (0, 1), (about, again)
        return
    assert (again.status, again.json["code"]) == (4, "round_unknown"), (about, again)
    assert len(reviewed.rounds()) == 1, about


def _told(left: Sequence[Kin | int]) -> str:
    pids = {one.pid if isinstance(one, Kin) else one for one in left}
    arguments = {pid: Path(f"/proc/{pid}/cmdline") for pid in pids}
    return "; ".join(f"{pid} {file.read_bytes()!r}" for pid, file in arguments.items() if file.exists())
