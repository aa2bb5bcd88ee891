"""What every provider must keep: the installed ones, and a fake one without a model.

The first half asks what can be asked of any provider. The second half plays scripts through the provider's own
program, by its rig (`rigs.py`), with the host's real tool server, launcher and sandbox behind it.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from checks.yard import Yard, yard
from contract.rigs import Rigged, Script, rig_of
from firsthand.review.interface import Capability, Host, Incapable, Launch, Launcher, PluginIdentity, Provider
from firsthand.review.session import Reviewed
from review.fake import PLUGIN, FakeProvider
from review.rounds import Hall, open_hall

__all__ = ["yard"]

YardMaker = Callable[..., Yard]
GROUP = "firsthand.providers"
APPROVED = {"verdict": "approved", "summary": "It doubles.", "findings": []}
READ = ("read_file", {"path": "value.py"})
CHECK = ("run_check", {"checkId": "c"})
MUTATE = ("mutate_check", {"checkId": "c", "path": "value.py", "old": "x * 2", "new": "x * 3"})
HONEST = Script((READ, CHECK, MUTATE), APPROVED)


@dataclass(frozen=True)
class Known:
    """One provider under test."""

    make: Callable[[], Provider]
    plugin: PluginIdentity


def known() -> list[Any]:
    found: dict[str, Known] = {"fake": Known(FakeProvider, PLUGIN)}
    for entry in entry_points(group=GROUP):
        assert entry.dist is not None
        plugin = PluginIdentity(name=entry.name, distribution=entry.dist.name, version=entry.dist.version)
        found[entry.name] = Known(lambda entry=entry: entry.load()(), plugin)  # type: ignore[misc]
    return [pytest.param(each, id=name) for name, each in sorted(found.items())]


pytestmark = [
    pytest.mark.skipif(os.name != "posix", reason="reviewers are run on POSIX systems only"),
    pytest.mark.parametrize("each", known()),
]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "home"
    folder.mkdir()
    return folder


def test_it_is_a_provider_of_its_own_name(each: Known) -> None:
    provider = each.make()
    assert isinstance(provider, Provider)
    assert provider.name == each.plugin.name


def test_its_capability_is_a_value_and_leaves_nothing(each: Known, home: Path) -> None:
    answer = each.make().capability(Host(environment={}, home=home))
    if isinstance(answer, Incapable):
        assert answer.reason
        assert answer.next_step
    else:
        assert isinstance(answer, Capability)
        assert Path(answer.program.path).is_absolute()
        assert answer.program.version
    assert list(home.iterdir()) == []


def test_without_a_home_or_an_environment_it_answers_all_the_same(each: Known) -> None:
    assert isinstance(each.make().capability(Host(environment={}, home=None)), Capability | Incapable)


def test_a_program_that_is_not_there_is_named_or_not_needed(each: Known, home: Path) -> None:
    host = Host(environment={}, home=home, program=home / "no-such-program")
    answer = each.make().capability(host)
    if isinstance(answer, Incapable):
        assert answer.code == "review_verification_provider"
        assert answer.next_step
    else:
        assert answer.program.path != str(host.program)


def test_an_empty_transcript_has_no_tool_uses_and_garbage_is_no_transcript(each: Known) -> None:
    provider = each.make()
    assert tuple(provider.tool_uses([])) == ()
    for garbage in (b"\xff\xfe", b"{half", b"[]", b'"text"', b"1"):
        with pytest.raises(ValueError, match=r"\S"):
            tuple(provider.tool_uses([garbage]))


class Watching:
    """A launcher that notes what it starts and passes everything on."""

    def __init__(self, inner: Launcher, started: list[Launch]) -> None:
        self._inner = inner
        self._started = started
        self.level = inner.level

    def start(self, launch: Launch) -> Any:
        self._started.append(launch)
        return self._inner.start(launch)

    def credential(self, path: Path) -> Path:
        return self._inner.credential(path)


@dataclass
class Stage:
    """A hall with a rigged provider."""

    hall: Hall
    rigged: Rigged
    plugin: PluginIdentity
    started: list[Launch]

    def review(self, timeout_ms: int | None = None) -> Reviewed:
        """A preflight, and a round with what it brought."""
        hall, rigged = self.hall, self.rigged
        plain = hall.launcher
        hall.open_launcher = lambda private, deadline: Watching(plain(private, deadline), self.started)
        diagnosis = hall.preflight(rigged.provider, self.plugin, host=rigged.host)
        return hall.hold(
            rigged.provider, diagnosis, plugin=self.plugin, host=rigged.host, auth=self._leg(), timeout_ms=timeout_ms
        )

    def _leg(self) -> Any:
        capability = self.rigged.provider.capability(self.rigged.host)
        assert isinstance(capability, Capability)
        return next((leg for leg in capability.auth if leg.usable), None)


@contextmanager
def staged(each: Known, script: Script, tmp_path: Path, make: YardMaker | None, **fields: Any) -> Iterator[Stage]:
    rig = rig_of(each.plugin.name)
    if rig is None:
        pytest.skip(f"the provider {each.plugin.name} brought no rig (entry point group firsthand.provider-rigs)")
    folder = tmp_path / "rig"
    folder.mkdir()
    with rig(script, folder) as rigged, open_hall(tmp_path, make, **fields) as hall:
        yield Stage(hall, rigged, each.plugin, [])


def test_a_script_is_reviewed_and_accepted_by_the_rules(each: Known, tmp_path: Path, yard: YardMaker) -> None:
    with staged(each, HONEST, tmp_path, yard) as stage:
        reviewed = stage.review()
        assert (reviewed.code, reviewed.failure) == ("", None)
        assert [call.tool for call in reviewed.dispatch.tool_calls] == ["read_file", "run_check", "mutate_check"]
        assert reviewed.dispatch.provider.session_id
        assert reviewed.dispatch.transcript is not None
        assert stage.hall.conclude(reviewed) == ("passed", "")
        session = stage.hall.session
        for launch in stage.started:
            # Nothing of the host's environment or argv secrets, and nothing outside the private folder.
            assert launch.cwd.is_relative_to(session.folder)
            assert "PYTEST_CURRENT_TEST" not in launch.environment
            assert not any("TOKEN" in argument or "KEY" in argument for argument in launch.argv[:1])


def test_a_liar_is_refused(each: Known, tmp_path: Path, yard: YardMaker) -> None:
    lie = {**APPROVED, "summary": "All tests pass and every mutation was detected."}
    with staged(each, Script((READ,), lie), tmp_path, yard) as stage:
        reviewed = stage.review()
        assert stage.hall.conclude(reviewed) == ("failed", "review_verification_evidence")


def test_calls_that_fail_are_calls_in_both_logs(each: Known, tmp_path: Path, yard: YardMaker) -> None:
    calls = (
        ("read_file", {"path": "../secret"}),
        ("read_file", {"path": "value.py", "offset": 10_000}),
        ("run_check", {"checkId": "nothing"}),
        ("read_file", {"path": "README.md", "unknown": [1, {"a": None}]}),
    )
    rejected = {**APPROVED, "verdict": "rejected"}
    with staged(each, Script(calls, rejected), tmp_path, yard) as stage:
        reviewed = stage.review()
        assert (reviewed.code, reviewed.failure) == ("", None)
        assert [call.result for call in reviewed.dispatch.tool_calls] == ["error"] * 4


def test_a_thirty_third_call_is_refused_and_in_both_logs(each: Known, tmp_path: Path, yard: YardMaker) -> None:
    rejected = {**APPROVED, "verdict": "rejected"}
    with staged(each, Script((READ,) * 33, rejected), tmp_path, yard) as stage:
        reviewed = stage.review()
        assert (reviewed.code, reviewed.failure) == ("", None)
        assert [call.result for call in reviewed.dispatch.tool_calls] == ["ok"] * 32 + ["refused"]


def test_without_an_answer_there_is_no_review(each: Known, tmp_path: Path, yard: YardMaker) -> None:
    with staged(each, Script((READ,), None), tmp_path, yard) as stage:
        reviewed = stage.review()
        assert (reviewed.code, reviewed.dispatch.judgement) == ("round_unknown", None)


def test_a_login_that_is_refused_is_no_review(each: Known, tmp_path: Path, yard: YardMaker) -> None:
    with staged(each, Script((), APPROVED, refused=True), tmp_path, yard) as stage:
        reviewed = stage.review()
        assert reviewed.code == "round_unknown"
        assert reviewed.failure is not None


def test_a_model_that_never_answers_is_ended_with_the_budget(each: Known, tmp_path: Path, yard: YardMaker) -> None:
    with staged(each, Script((), APPROVED, hangs=True), tmp_path, yard) as stage:
        begun = time.monotonic()
        reviewed = stage.review(timeout_ms=6_000)
        assert time.monotonic() - begun < 60
        assert reviewed.code == "round_unknown"
        assert reviewed.failure is not None
        assert reviewed.failure.kind == "timed-out"


def test_a_tool_less_review_is_one(each: Known, tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "REQ.md").write_text("It doubles.\n")
    document = {"runId": "r", "root": "project", "runtime": "t", "package": {"requirements": ["REQ.md"]}}
    with staged(each, Script((), APPROVED), tmp_path, None) as stage:
        stage.hall.document = document
        reviewed = stage.review()
        assert (reviewed.code, reviewed.failure) == ("", None)
        assert (reviewed.dispatch.server_instances, reviewed.dispatch.unread) == (0, ())
