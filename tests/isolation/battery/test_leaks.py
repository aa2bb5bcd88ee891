"""The battery catches backends with a hole: exactly the probes that ask about the hole fail, and selection refuses."""

from __future__ import annotations

import importlib
import os
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from firsthand.isolation.battery import platform_probes
from firsthand.isolation.battery.probes import limits as limit_probes
from firsthand.isolation.interface import Backend, Enclosure, IsolationError, Limits, Request, Result, Workspace
from firsthand.isolation.selection import Candidate, select
from firsthand.records import BatteryReport, Outcome

pytestmark = pytest.mark.skipif(not os.path.isdir("/proc/self/ns"), reason="these holes are made in a Linux sandbox")

LIMITS = {"fork-storm", "memory", "large-file", "scratch", "copy-size", "flood"}
ENDS = {"starts", "truthful-end", "could-not-start", "daemon", "deadline"}
SLOW = {"daemon", "deadline", "fork-storm", "memory", "copy-size", "flood"}

Options = list[str]
Examine = Callable[..., BatteryReport]


def failing(report: BatteryReport) -> set[str]:
    """Probes that make the backend unavailable."""
    return {probe.id for probe in report.probes if probe.required and probe.result != "passed"}


@pytest.fixture
def holes(sound: Backend, sound_report: BatteryReport, examine: Examine) -> Callable[..., set[str]]:
    """What fails on a leaky backend and not on the sound one.

    Probes of limits and of daemons take most of a battery's time and are asked only where the hole may concern them.
    """
    quick = {probe.id for probe in platform_probes()} - SLOW

    def call(backend: Backend = sound, *, asked: set[str] = quick) -> set[str]:
        return failing(examine(backend, only=sorted(asked))) & asked - failing(sound_report)

    return call


@pytest.fixture
def with_options(monkeypatch: pytest.MonkeyPatch, sound: Backend) -> Callable[[Callable[[Options], Options]], None]:
    """Change the options that the sound backend hands to its launcher."""

    def call(change: Callable[[Options], Options]) -> None:
        enclosure = importlib.import_module("firsthand_bubblewrap.enclosure")
        honest = enclosure.options
        monkeypatch.setattr(enclosure, "options", lambda *given, **named: change(honest(*given, **named)))

    return call


@pytest.fixture
def with_start(monkeypatch: pytest.MonkeyPatch, sound: Backend) -> Callable[..., None]:
    """Change how the sound backend starts its launcher."""

    def call(**changed: Callable[[Any], Any]) -> None:
        from firsthand_bubblewrap import process  # noqa: PLC0415 - not there on every platform

        def start(*given: Any, **named: Any) -> subprocess.Popen[bytes]:
            return subprocess.Popen(*given, **{**named, **{key: change(named) for key, change in changed.items()}})

        names = {name: getattr(subprocess, name) for name in ("PIPE", "DEVNULL", "TimeoutExpired")}
        monkeypatch.setattr(process, "subprocess", SimpleNamespace(Popen=start, **names))

    return call


def without(options: Options, *words: str) -> Options:
    return [option for option in options if option not in words]


def remounted(options: Options, place: str, *instead: str) -> Options:
    """Replace the scratch file system at a place by another mount."""
    at = next(i for i in range(len(options)) if options[i : i + 2] == ["--tmpfs", place])
    # It is preceded by its permission bits and its size.
    start = at - 4
    return [*options[:start], *instead, *options[at + 2 :]]


def test_no_namespace_for_the_network(holes: Callable[..., set[str]], with_options: Callable[..., None]) -> None:
    with_options(lambda options: without(options, "--unshare-net"))
    assert holes() == {"tcp-ipv4", "tcp-ipv6", "udp", "unix-abstract"}


def test_no_namespace_for_ipc(holes: Callable[..., set[str]], with_options: Callable[..., None]) -> None:
    with_options(lambda options: without(options, "--unshare-ipc"))
    assert holes() == {"shared-segment"}


def test_the_hosts_tmp_is_shared(holes: Callable[..., set[str]], with_options: Callable[..., None]) -> None:
    with_options(lambda options: remounted(options, "/tmp", "--bind", "/tmp", "/tmp"))
    found = holes()
    assert {"read-tmp", "read-sibling", "unix-pathname", "write-outside", "list-parent"} <= found
    assert "read-shared-memory" not in found
    assert "tcp-ipv4" not in found


def test_the_hosts_shared_memory_is_shared(holes: Callable[..., set[str]], with_options: Callable[..., None]) -> None:
    with_options(lambda options: remounted(options, "/dev/shm", "--bind", "/dev/shm", "/dev/shm"))
    assert holes() == {"read-shared-memory", "previous-command", "scratch"}
    assert not list(Path("/dev/shm").glob(f".firsthand-battery-{os.getpid()}-*"))


def test_home_is_kept_from_command_to_command(
    holes: Callable[..., set[str]], with_options: Callable[..., None], tmp_path: Path
) -> None:
    home = Path("/tmp", f"firsthand-kept-{os.getpid()}")
    home.mkdir()
    home.chmod(0o777)
    try:
        from firsthand_bubblewrap.system import HOME  # noqa: PLC0415 - not there on every platform

        with_options(lambda options: remounted(options, HOME, "--bind", str(home), HOME))
        assert holes() == {"previous-command", "scratch"}
    finally:
        shutil.rmtree(home)


def test_a_file_of_the_source_shows(holes: Callable[..., set[str]], with_options: Callable[..., None]) -> None:
    def change(options: Options) -> Options:
        at = max(i for i in range(len(options)) if options[i] == "--bind")
        shown = options[at + 2]
        outer = f"{shown}/only-in-source.txt"
        return [*options[: at + 3], "--ro-bind", outer, outer, *options[at + 3 :]]

    with_options(change)
    assert holes() == {"read-source"}


def test_the_source_itself_is_entered(holes: Callable[..., set[str]], with_options: Callable[..., None]) -> None:
    """Work done in the source instead of the copy: not even the probe's program is found."""

    def change(options: Options) -> Options:
        at = max(i for i in range(len(options)) if options[i] == "--bind")
        return [*options[: at + 1], options[at + 2], *options[at + 2 :]]

    with_options(change)
    assert {"shows-copy", "work-area", "tcp-ipv4"} <= holes()


def test_granted_roots_are_writable(holes: Callable[..., set[str]], with_options: Callable[..., None]) -> None:
    def change(options: Options) -> Options:
        at = next(i for i in range(len(options)) if options[i].endswith("/tools") and options[i - 1] == "--ro-bind")
        return [*options[: at - 1], "--bind", *options[at:]]

    with_options(change)
    assert holes() == {"write-root"}


def test_the_hosts_processes_show(holes: Callable[..., set[str]], with_options: Callable[..., None]) -> None:
    """The namespace stays, its view does not: the host's /proc in place of the sandbox's."""

    def change(options: Options) -> Options:
        at = options.index("--proc")
        return [*options[:at], "--ro-bind", "/proc", "/proc", *options[at + 2 :]]

    with_options(change)
    found = holes()
    assert "other-processes" in found
    assert "tcp-ipv4" not in found


def test_no_filter_of_system_calls(
    holes: Callable[..., set[str]], monkeypatch: pytest.MonkeyPatch, sound: Backend
) -> None:
    from firsthand_bubblewrap import seccomp  # noqa: PLC0415 - not there on every platform

    allow_all = bytes.fromhex("0600000000 00ff7f".replace(" ", ""))
    monkeypatch.setattr(seccomp, "program", lambda machine: allow_all)
    found = holes()
    assert {"vsock", "io_uring", "keyrings"} <= found
    assert not found & {"tcp-ipv4", "read-home", "other-processes", "daemon"}


def test_the_environment_is_inherited(
    holes: Callable[..., set[str]], with_options: Callable[..., None], with_start: Callable[..., None]
) -> None:
    with_options(lambda options: without(options, "--clearenv"))
    with_start(env=lambda named: dict(os.environ))
    assert {"environment-leak", "other-processes"} <= holes() <= {"environment-leak", "other-processes", "environment"}


def test_a_descriptor_is_inherited(holes: Callable[..., set[str]], with_start: Callable[..., None]) -> None:
    def inheritable(named: dict[str, Any]) -> tuple[int, ...]:
        numbers = [int(name) for name in os.listdir("/proc/self/fd")]
        open_ones = [number for number in numbers if os.path.exists(f"/proc/self/fd/{number}")]
        return (*named["pass_fds"], *(number for number in open_ones if number > 2 and os.get_inheritable(number)))

    with_start(pass_fds=inheritable)
    assert holes() == {"descriptors"}


def test_the_launcher_leaves_a_descriptor_of_its_own(
    holes: Callable[..., set[str]], with_start: Callable[..., None]
) -> None:
    descriptor = os.open("/", os.O_RDONLY)
    try:
        with_start(pass_fds=lambda named: (*named["pass_fds"], descriptor))
        assert holes() == {"descriptors"}
    finally:
        os.close(descriptor)


def test_limits_are_ignored(
    holes: Callable[..., set[str]], sound: Backend, wrapped: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limit_probes, "_PATIENCE_S", 1.0)
    leaky = wrapped(sound, limits=lambda limits: Limits())
    # Output is cut in any case, at another size.
    assert holes(leaky, asked={"starts", "work-area", *LIMITS}) == LIMITS


class Liar:
    """Tells another end than the true one."""

    def __init__(self, inner: Enclosure, lie: Callable[[Outcome], Outcome]) -> None:
        self._inner, self._lie = inner, lie

    def run(self, request: Request) -> Result:
        result = self._inner.run(request)
        return replace(result, outcome=self._lie(result.outcome))

    def rewrite(self, path: str, data: bytes, mode: int) -> None:
        self._inner.rewrite(path, data, mode)


def _always_green(outcome: Outcome) -> Outcome:
    return outcome.model_copy(update={"exit_code": 0}) if outcome.kind == "exited" else outcome


def _signals_as_exits(outcome: Outcome) -> Outcome:
    if outcome.signal is None:
        return outcome
    return outcome.model_copy(update={"kind": "exited", "signal": None, "exit_code": 128 + outcome.signal})


def _exits_as_signals(outcome: Outcome) -> Outcome:
    if outcome.exit_code is None or outcome.exit_code <= 128:
        return outcome
    return outcome.model_copy(update={"kind": "signalled", "exit_code": None, "signal": outcome.exit_code - 128})


def _unknown_cleanup(outcome: Outcome) -> Outcome:
    return outcome.model_copy(update={"cleanup": "unknown"})


@pytest.mark.parametrize(
    ("lie", "caught"),
    [
        (_always_green, {"truthful-end"}),
        (_signals_as_exits, {"truthful-end"}),
        (_exits_as_signals, {"truthful-end"}),
        (_unknown_cleanup, {"starts", "truthful-end", "daemon", "deadline"}),
    ],
)
def test_ends_are_told_wrongly(
    holes: Callable[..., set[str]],
    sound: Backend,
    wrapped: Any,
    lie: Callable[[Outcome], Outcome],
    caught: set[str],
) -> None:
    assert holes(wrapped(sound, enclosure=lambda inner, _: Liar(inner, lie)), asked=ENDS) == caught


class Careless(Liar):
    """Rewrites on the host, by path."""

    def __init__(self, inner: Enclosure, workspace: Workspace) -> None:
        super().__init__(inner, lambda outcome: outcome)
        self._copy = workspace.copy

    def rewrite(self, path: str, data: bytes, mode: int) -> None:
        (self._copy / path).write_bytes(data)
        os.chmod(self._copy / path, mode)


def test_a_rewrite_follows_links(holes: Callable[..., set[str]], sound: Backend, wrapped: Any) -> None:
    assert holes(wrapped(sound, enclosure=Careless)) == {"rewrite"}


class Raising(Liar):
    def run(self, request: Request) -> Result:
        raise RuntimeError("no")


def test_a_backend_that_raises_passes_nothing(sound: Backend, wrapped: Any, examine: Examine) -> None:
    report = examine(wrapped(sound, enclosure=lambda inner, _: Raising(inner, _always_green)))
    assert not report.passed
    # A rewrite is no command, and works.
    assert [probe.id for probe in report.probes if probe.required and probe.result == "passed"] == ["rewrite"]


class Silent(Liar):
    """Says that every command ran well, and runs none."""

    def run(self, request: Request) -> Result:
        result = self._inner.run(replace(request, argv=("/bin/true",), executable="/bin/true"))
        return replace(result, outcome=result.outcome.model_copy(update={"exit_code": 0}))


def test_a_backend_that_runs_nothing_passes_no_negative_probe(sound: Backend, wrapped: Any, examine: Examine) -> None:
    report = examine(wrapped(sound, enclosure=lambda inner, _: Silent(inner, _always_green)))
    passed = {probe.id for probe in report.probes if probe.required and probe.result == "passed"}
    assert passed <= {"starts", "rewrite"}
    assert not report.passed


def test_nothing_is_confined(
    unconfined: Any, examine: Examine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(limit_probes, "_PATIENCE_S", 1.0)
    backend = unconfined()
    report = examine(backend)
    found = failing(report)
    assert {
        "environment-leak",
        "other-processes",
        "signals",
        "previous-command",
        "environment",
        "shows-copy",
        "tcp-ipv4",
        "udp",
        "unix-pathname",
        "unix-abstract",
        "read-sibling",
        "read-beside-copy",
        "read-tmp",
        "read-source",
        "list-parent",
        "write-outside",
        "rename-and-link",
        "write-root",
        "rewrite",
        "no-new-privileges",
        "fork-storm",
        "memory",
        "large-file",
        "scratch",
        "copy-size",
    } <= found
    # What it does do it does: nothing is failed for being failed. Its tidying of daemons is a race, and not asked here.
    assert not found & {"starts", "truthful-end", "could-not-start", "work-area", "flood"}
    with pytest.raises(IsolationError, match="unconfined"):
        select([Candidate("unconfined", "tests", "0", backend)], tmp_path / "cache", lambda: tmp_path)


def test_daemons_live_on(unconfined: Any, examine: Examine, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = ["daemon", "deadline", "fork-storm", "starts"]
    # That a backend which ends them passes these two is what the contract tests show of real ones.
    untidy = failing(examine(unconfined(tidy=False), only=asked))
    assert {"daemon", "deadline"} <= untidy
    assert "starts" not in untidy


def test_selection_refuses_a_leaky_backend_by_the_probes_name(
    sound: Backend, with_options: Callable[..., None], tmp_path: Path
) -> None:
    with_options(lambda options: without(options, "--unshare-net"))
    with pytest.raises(IsolationError, match=r"tcp-ipv4") as caught:
        select([Candidate("leaky", "tests", "0", sound)], tmp_path / "cache", lambda: tmp_path)
    assert caught.value.exit_status == 3
