"""The demonstration's steps; each gives what it saw, and the command line shows it."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from firsthand.canonical import JSONValue, canonical_bytes
from firsthand.engine.checking import run_checks
from firsthand.engine.demo.targets import ATTEMPTS, TOKEN, reports, targets, unconfined
from firsthand.engine.gating import GateAnswer, gate
from firsthand.engine.mutating import run_mutations
from firsthand.engine.providers import this_host
from firsthand.engine.reviewing import Reviewing, run_preflight, run_review
from firsthand.engine.sealing import Sealed
from firsthand.evidence.keyfiles import load_public_key, new_key
from firsthand.evidence.storing import read_sealed
from firsthand.evidence.verification import Verification
from firsthand.evidence.verifying import verify
from firsthand.isolation.battery.run import Progress
from firsthand.plugins import PROVIDERS, Observers, Plugin, discover, load
from firsthand.records import Budget, Mutation
from firsthand.review.interface import Scripted

_SAMPLE: Final = Path(__file__).parent / "project"
_HONEST_FILES: Final = (
    "README.md",
    "cart.py",
    "tests/__init__.py",
    "tests/test_total.py",
    "tests/test_discount.py",
)
MUTATIONS: Final = (
    Mutation(check="total", path="cart.py", old="return sum(prices)", new="return sum(prices[1:])"),
    Mutation(check="discount", path="cart.py", old="pieces >= 10", new="pieces > 10"),
)


@dataclass(frozen=True, slots=True)
class Attempt:
    """One thing that the hostile check tried, outside and inside the sandbox."""

    what: str
    outside: str
    inside: str
    stopped: bool


class Story:
    """The demonstration in one folder: a project, a private state directory, targets.

    Args:
        folder: existing and empty.
        observers: told what the engine does.
        progress: told each probe when the battery runs.
    """

    def __init__(self, folder: Path, observers: Observers, progress: Progress | None = None) -> None:
        self.folder = folder
        self.project = folder / "project"
        self.state = folder / "state"
        self._observers = observers
        self._progress = progress
        self._interpreter = os.path.realpath(sys.executable)
        shutil.copytree(_SAMPLE, self.project, ignore=shutil.ignore_patterns("__pycache__"))
        self._define("firsthand.json", "demo-honest", list(_HONEST_FILES), self._checks(), ["cart.py"])

    def honest(self) -> Sealed:
        """Run the sample's two checks."""
        return run_checks(
            self.project / "firsthand.json",
            state_path=self.state,
            out=self.folder / "check.json",
            key=None,
            observers=self._observers,
            progress=self._progress,
        )

    def hostile(self) -> tuple[Sealed, tuple[Attempt, ...]]:
        """Run the hostile check: plainly as the control, then in the sandbox; judged by what the host saw."""
        with targets(self.folder / "user") as aims:
            aims.write(self.project / "targets.json")
            outside = unconfined(self.project / "hostile.py", self._interpreter)
            seen_outside = {
                "send_it_out": aims.heard(),
                "change_a_file_of_the_user": aims.changed(),
                "leave_a_process_behind": bool(aims.lingering()),
            }
            for pid in aims.lingering():
                os.kill(pid, signal.SIGKILL)
            while aims.lingering():
                pass
            check: JSONValue = {"id": "hostile", "command": [self._interpreter, "hostile.py"], "runner": "exit"}
            self._define("hostile.json", "demo-hostile", ["hostile.py", "targets.json"], [check], [])
            os.environ[TOKEN] = "a token"
            try:
                sealed = run_checks(
                    self.project / "hostile.json",
                    state_path=self.state,
                    out=self.folder / "hostile.json",
                    key=None,
                    observers=self._observers,
                )
            finally:
                del os.environ[TOKEN]
            seen_inside = {
                "send_it_out": aims.heard(),
                "change_a_file_of_the_user": aims.changed(),
                "leave_a_process_behind": bool(aims.lingering()),
            }
        inside = reports(sealed.evidence.runs[0].command.stdout.head)
        leftovers = sealed.evidence.runs[0].command.outcome.leftovers
        return sealed, tuple(
            _attempt(name, what, outside, seen_outside, inside, seen_inside, leftovers) for name, what in ATTEMPTS
        )

    def mutations(self) -> tuple[Sealed, Path]:
        """Break two lines, watch the two checks; signed with a new key. Gives the evidence and the public key."""
        key = self.folder / "key.pem"
        public = self.folder / "key.pub"
        public.write_text(new_key(key).pem)
        sealed = run_mutations(
            self.project / "firsthand.json",
            MUTATIONS,
            jobs=1,
            state_path=self.state,
            out=self.folder / "mutations.json",
            key=key,
            observers=self._observers,
        )
        return sealed, public

    def reviewer(self) -> Plugin | None:
        """An installed provider that can play a script, for the two reviews; None where there is none."""
        for plugin in discover(PROVIDERS).plugins:
            if isinstance(load(plugin), Scripted):
                return plugin
        return None

    def review(self, reviewer: Plugin, scenario: str) -> Reviewing:
        """One review by the provider's real program against its scripted model; no login of this machine is used.

        Raises:
            ReviewError: the program is not installed, or does not show what it should.
        """
        provider = load(reviewer)
        assert isinstance(provider, Scripted)  # noqa: S101 # `reviewer` saw to that
        name = f"review-{scenario}.json"
        self._define(
            name,
            f"demo-review-{scenario}",
            list(_HONEST_FILES),
            self._checks(),
            ["cart.py"],
            reviewRuntime=reviewer.name,
            stages=["final"],
            package={"requirements": ["README.md"]},
        )
        config = self.project / name
        # Nothing but the way to programs: no key, no login, no settings of the user's.
        bare = {"PATH": os.environ.get("PATH", os.defpath), "HOME": str(self.folder / "home")}
        diagnosis = self.folder / f"diagnosis-{scenario}.json"
        diagnosis.write_bytes(
            canonical_bytes(
                run_preflight(
                    config,
                    model=provider.scripted_model,
                    effort="",
                    budget=Budget(timeout_ms=300_000, max_turns=20),
                    program=None,
                    state_path=self.state,
                    host=this_host(None, bare),
                ).as_json()
            )
        )
        with provider.play(_SAMPLE.parent / "scenarios" / f"{scenario}.toml") as variables:
            return run_review(
                config,
                diagnosis,
                "final",
                state_path=self.state,
                out=self.folder / name,
                key=None,
                observers=self._observers,
                host=this_host(None, {**bare, **variables}),
            )

    def gated(self, scenario: str) -> GateAnswer:
        """What a merge would be told after the review."""
        return gate(
            self.project / f"review-{scenario}.json",
            state_path=self.state,
            expected_fingerprint=None,
            requirements=["execution"],
            trusted_keys=(),
        )

    def verified(self, sealed: Sealed, public: Path) -> Verification:
        """Verify the evidence with the public key and the project as it is now."""
        return verify(read_sealed(sealed.path), trusted_keys=[load_public_key(public)], root=self.project)

    def tampered(self, sealed: Sealed, public: Path) -> Verification:
        """Turn the mutation that survived into a catch, as a forger would, and verify that."""
        raw = read_sealed(sealed.path)
        forged = raw.replace(b'"verdict":"survived"', b'"verdict":"detected"')
        copy = self.folder / "tampered.json"
        copy.write_bytes(forged)
        return verify(read_sealed(copy), trusted_keys=[load_public_key(public)])

    def _checks(self) -> list[JSONValue]:
        return [
            {"id": name, "command": [self._interpreter, "-m", "unittest", "-v", f"tests.test_{name}"]}
            for name in ("total", "discount")
        ]

    def _define(
        self,
        name: str,
        run_id: str,
        files: list[str],
        checks: list[JSONValue],
        mutation_paths: list[str],
        **more: JSONValue,
    ) -> None:
        definition: dict[str, JSONValue] = {
            "runId": run_id,
            "runtime": "demo",
            **more,
            "reviewVerification": {
                "files": list[JSONValue](files),
                "checks": checks,
                "mutationPaths": list[JSONValue](mutation_paths),
            },
        }
        (self.project / name).write_text(json.dumps(definition, indent=2) + "\n")


def _attempt(
    name: str,
    what: str,
    outside: list[dict[str, JSONValue]],
    seen_outside: dict[str, bool],
    inside: list[dict[str, JSONValue]],
    seen_inside: dict[str, bool],
    leftovers: int,
) -> Attempt:
    """What became of one attempt; what the host could see itself counts before what the script says."""
    said_outside = next((one for one in outside if one["attempt"] == name), {})
    said_inside = next((one for one in inside if one["attempt"] == name), {})
    did_outside = seen_outside.get(name, bool(said_outside.get("did")))
    did_inside = seen_inside.get(name, bool(said_inside.get("did")))
    told = str(said_inside.get("saw", "nothing was said"))
    if name == "leave_a_process_behind" and not did_inside:
        told = f"{leftovers} process ended with its command"
    return Attempt(
        what=what,
        outside="works" if did_outside else "does not work here",
        inside=told,
        stopped=did_outside and not did_inside,
    )
