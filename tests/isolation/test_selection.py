from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

from firsthand.canonical import canonical_bytes
from firsthand.isolation.battery import battery_digest, platform_probes, verdict
from firsthand.isolation.battery import cache as cache_module
from firsthand.isolation.battery.cache import ReportCache, cache_key
from firsthand.isolation.battery.machine import boot_id, kernel
from firsthand.isolation.interface import (
    Availability,
    Available,
    Enclosure,
    IsolationError,
    Limits,
    ProcessWatch,
    Unavailable,
    Workspace,
)
from firsthand.isolation.selection import BrokenCandidate, Candidate, Selected, select, survey
from firsthand.records import BackendIdentity, BatteryReport, Launcher, ProbeResult

pytestmark = pytest.mark.skipif(os.name != "posix", reason="no backend exists here, so nothing can be selected")

_DIGEST = "ab" * 32


class Backend:
    def __init__(self, name: str, answer: Availability | BaseException) -> None:
        self.name = name
        self.answer = answer

    def availability(self) -> Availability:
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer

    def enclose(
        self, workspace: Workspace, limits: Limits, processes: ProcessWatch
    ) -> AbstractContextManager[Enclosure]:
        raise AssertionError("selection itself runs nothing")


class Battery:
    """Stands in for the live battery, which has tests of its own: passes unless told which probe fails."""

    def __init__(self, failing: dict[str, str] | None = None, error: BaseException | None = None) -> None:
        self.failing = failing or {}
        self.error = error
        self.asked: list[str] = []

    def __call__(
        self, backend: Any, identity: BackendIdentity, workplace: Path, *, progress: Any = None, processes: Any = None
    ) -> BatteryReport:
        self.asked.append(identity.name)
        if self.error is not None:
            raise self.error
        return report_of(identity, self.failing.get(identity.name))


def report_of(identity: BackendIdentity, failing: str | None = None) -> BatteryReport:
    probes = tuple(
        ProbeResult(
            id=probe.id,
            required=probe.weight() != "shown",
            result="failed" if probe.id == failing else "passed",
            observed="seen",
            control="worked",
        )
        for probe in platform_probes()
    )
    return BatteryReport(
        backend=identity,
        battery_digest=battery_digest(),
        boot_id=boot_id(),
        kernel=kernel(),
        uid=os.geteuid(),
        probes=probes,
        passed=verdict(probes),
    )


def candidate(name: str, priority: int = 10, version: str = "1", sha256: str = _DIGEST) -> Candidate:
    launcher = Launcher(path=f"/usr/bin/{name}", version="1", sha256=sha256)
    return Candidate(
        name, f"dist-{name}", version, Backend(name, Available(launcher, _DIGEST, priority, ends_all=True))
    )


Select = Callable[..., Selected]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "cache"
    path.mkdir(mode=0o700)
    return path


@pytest.fixture
def choose(folder: Path, tmp_path: Path) -> Select:
    def call(*candidates: Candidate | BrokenCandidate, battery: Battery) -> Selected:
        return select(candidates, folder, lambda: tmp_path, battery=battery)

    return call


def test_the_highest_priority_that_passes_is_selected(choose: Select) -> None:
    battery = Battery()
    selected = choose(candidate("low", 1), candidate("high", 9), candidate("middle", 5), battery=battery)
    assert selected.identity.name == "high"
    assert battery.asked == ["high"]
    assert selected.rejected == ()
    assert not selected.cached


def test_the_next_one_is_tried_when_a_battery_fails_and_the_rejection_is_kept(choose: Select) -> None:
    battery = Battery(failing={"high": "tcp-ipv4"})
    selected = choose(candidate("low", 1), candidate("high", 9), battery=battery)
    assert selected.identity.name == "low"
    (rejected,) = selected.rejected
    assert rejected.name == "high"
    assert "tcp-ipv4 failed" in rejected.reason


def test_the_same_priority_goes_by_name_whatever_the_order_of_registration(choose: Select) -> None:
    names = ["gamma", "alpha", "beta"]
    battery = Battery(failing={"alpha": "starts", "beta": "starts"})
    assert choose(*map(candidate, names), battery=battery).identity.name == "gamma"
    assert battery.asked == ["alpha", "beta", "gamma"]


def test_refuses_without_any_candidate(choose: Select) -> None:
    with pytest.raises(IsolationError, match="no isolation backend is installed") as caught:
        choose(battery=Battery())
    assert caught.value.code == "review_verification_isolation_unavailable"
    assert caught.value.next_step


def test_refuses_and_names_every_reason(choose: Select) -> None:
    candidates = (
        candidate("leaky"),
        BrokenCandidate("broken", "dist-broken", "3", "ImportError: no module named x", "reinstall dist-broken"),
        Candidate("absent", "dist-absent", "2", Backend("absent", Unavailable("no launcher", "install it"))),
        Candidate("raising", "dist-raising", "2", Backend("raising", RuntimeError("oh"))),
        Candidate("exiting", "dist-exiting", "2", Backend("exiting", SystemExit(0))),
    )
    with pytest.raises(IsolationError) as caught:
        choose(*candidates, battery=Battery(failing={"leaky": "unix-abstract"}))
    message = str(caught.value)
    assert "leaky (dist-leaky 1): probe unix-abstract failed" in message
    assert "broken (dist-broken 3): ImportError: no module named x" in message
    assert "absent (dist-absent 2): no launcher" in message
    assert "raising (dist-raising 2): availability raised RuntimeError: oh" in message
    assert "exiting (dist-exiting 2): availability raised SystemExit: 0" in message


def test_an_explanation_alone_is_still_a_refusal(choose: Select) -> None:
    explaining = Candidate("unavailable", "d", "1", Backend("unavailable", Unavailable("no bubblewrap", "install it")))
    with pytest.raises(IsolationError, match="no bubblewrap") as caught:
        choose(explaining, battery=Battery())
    assert caught.value.next_step == "install it"


def test_a_battery_that_raises_is_a_rejection(choose: Select) -> None:
    for error in (RuntimeError("broke"), SystemExit(0), IsolationError("no stage", next_step="make room")):
        with pytest.raises(IsolationError, match=r"broke|SystemExit|no stage"):
            choose(candidate("one"), battery=Battery(error=error))


def test_an_interrupt_is_the_users_and_passes(choose: Select) -> None:
    with pytest.raises(KeyboardInterrupt):
        choose(candidate("one"), battery=Battery(error=KeyboardInterrupt()))


def test_a_report_without_required_probes_is_no_pass(choose: Select) -> None:
    class Empty(Battery):
        def __call__(self, backend: Any, identity: BackendIdentity, *args: Any, **more: Any) -> BatteryReport:
            return report_of(identity).model_copy(update={"probes": (), "passed": verdict(())})

    with pytest.raises(IsolationError, match="no required probe"):
        choose(candidate("one"), battery=Empty())


def test_a_backend_with_nonsense_for_an_answer_is_rejected(choose: Select) -> None:
    nonsense: Any = Available(None, "not a digest", 1, ends_all=True)
    with pytest.raises(IsolationError, match="availability raised ValidationError"):
        choose(Candidate("odd", "d", "1", Backend("odd", nonsense)), battery=Battery())
    for answer in (None, 7):
        with pytest.raises(IsolationError, match="availability raised AttributeError"):
            choose(Candidate("odd", "d", "1", Backend("odd", answer)), battery=Battery())  # type: ignore[arg-type]
    unordered: Any = Available(None, _DIGEST, "high", ends_all=True)  # type: ignore[arg-type]
    with pytest.raises(IsolationError, match="priority"):
        choose(Candidate("odd", "d", "1", Backend("odd", unordered)), battery=Battery())


def test_a_passed_report_is_kept_and_asked_for_only_once(choose: Select, folder: Path) -> None:
    battery = Battery()
    first = choose(candidate("one"), battery=battery)
    second = choose(candidate("one"), battery=battery)
    assert battery.asked == ["one"]
    assert (first.cached, second.cached) == (False, True)
    assert second.report == first.report
    (file,) = folder.iterdir()
    assert file.stat().st_mode & 0o7777 == 0o600


def test_the_cache_folder_is_made_private(tmp_path: Path) -> None:
    folder = tmp_path / "fresh"
    before = os.umask(0)
    try:
        select([candidate("one")], folder, lambda: tmp_path, battery=Battery())
    finally:
        os.umask(before)
    assert folder.stat().st_mode & 0o7777 == 0o700
    assert len(list(folder.iterdir())) == 1


def test_a_failed_report_is_never_kept(choose: Select, folder: Path) -> None:
    battery = Battery(failing={"one": "starts"})
    for _ in range(2):
        with pytest.raises(IsolationError):
            choose(candidate("one"), battery=battery)
    assert battery.asked == ["one", "one"]
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize(
    "other",
    [
        candidate("one", version="2"),
        candidate("one", sha256="cd" * 32),
        Candidate("one", "other-dist", "1", candidate("one").backend),
        Candidate("one", "dist-one", "1", Backend("one", Available(None, _DIGEST, 10, ends_all=True))),
    ],
    ids=["version", "launcher", "distribution", "no-launcher"],
)
def test_another_backend_is_asked_anew(choose: Select, other: Candidate) -> None:
    battery = Battery()
    choose(candidate("one"), battery=battery)
    assert not choose(other, battery=battery).cached


@pytest.mark.parametrize("name", ["boot_id", "kernel", "circumstances", "battery_digest"])
def test_other_circumstances_are_asked_anew(choose: Select, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    battery = Battery()
    choose(candidate("one"), battery=battery)
    other: Any = {"limits": {}} if name == "circumstances" else "cd" * 32
    monkeypatch.setattr(cache_module, name, lambda: other)
    assert not choose(candidate("one"), battery=battery).cached
    assert battery.asked == ["one", "one"]


def test_the_key_holds_what_the_kernel_allows(choose: Select) -> None:
    identity = choose(candidate("one"), battery=Battery()).identity
    circumstances: Any = cache_key(identity)["circumstances"]
    if os.path.exists("/proc/sys/user/max_user_namespaces"):
        assert circumstances["limits"]["user/max_user_namespaces"] != ""
        assert circumstances["namespaces"]["user"].startswith("user:")
        assert "CapEff" in circumstances["status"]


def _spoil_bytes(file: Path) -> None:
    file.write_bytes(b"{")


def _spoil_spelling(file: Path) -> None:
    file.write_bytes(file.read_bytes() + b"\n")


def _spoil_duplicate(file: Path) -> None:
    file.write_bytes(b'{"key":{},' + file.read_bytes()[1:])


def _spoil_mode(file: Path) -> None:
    file.chmod(0o644)


def _spoil_link(file: Path) -> None:
    real = file.parent.parent / "elsewhere.json"
    file.rename(real)
    file.symlink_to(real)


def _spoil_hard_link(file: Path) -> None:
    os.link(file, file.parent.parent / "second-name.json")


def _spoil_folder(file: Path) -> None:
    file.parent.chmod(0o755)


def _spoil_kind(file: Path) -> None:
    file.unlink()
    os.mkfifo(file, 0o600)


def _spoil_size(file: Path) -> None:
    file.write_bytes(file.read_bytes() + b" " * (1 << 20))


def _rewrite(file: Path, change: Callable[[Any], None]) -> None:
    value = json.loads(file.read_bytes())
    change(value)
    file.write_bytes(canonical_bytes(value))


def _spoil_verdict(file: Path) -> None:
    _rewrite(file, lambda value: value["report"]["probes"][3].update(result="failed"))


def _spoil_weight(file: Path) -> None:
    def change(value: Any) -> None:
        value["report"]["probes"][3].update(result="failed", required=False)

    _rewrite(file, change)


def _spoil_probes(file: Path) -> None:
    _rewrite(file, lambda value: value["report"]["probes"].pop())


def _spoil_battery(file: Path) -> None:
    _rewrite(file, lambda value: value["report"].update(batteryDigest="00" * 32))


def _spoil_identity(file: Path) -> None:
    _rewrite(file, lambda value: value["report"]["backend"].update(version="0"))


def _spoil_boot(file: Path) -> None:
    _rewrite(file, lambda value: value["report"].update(bootId="another"))


def _spoil_key(file: Path) -> None:
    _rewrite(file, lambda value: value["key"].update(uid=4242))


def _spoil_extra(file: Path) -> None:
    _rewrite(file, lambda value: value["report"].update(trusted=True))


SPOILING = [value for name, value in sorted(globals().items()) if name.startswith("_spoil_")]


@pytest.mark.parametrize("spoil", SPOILING, ids=lambda spoil: spoil.__name__.removeprefix("_spoil_"))
def test_a_spoiled_or_foreign_report_is_never_trusted(
    choose: Select, folder: Path, spoil: Callable[[Path], None]
) -> None:
    battery = Battery()
    choose(candidate("one"), battery=battery)
    (file,) = folder.iterdir()
    spoil(file)
    selected = choose(candidate("one"), battery=battery)
    assert not selected.cached
    assert battery.asked == ["one", "one"]


def test_an_unspoiled_report_survives_rewriting_with_the_same_content(choose: Select, folder: Path) -> None:
    """The counterpart of the test above: what it changes is what matters, not that it writes."""
    battery = Battery()
    choose(candidate("one"), battery=battery)
    (file,) = folder.iterdir()
    _rewrite(file, lambda value: None)
    assert choose(candidate("one"), battery=battery).cached


@pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="only root can give a file away")
def test_a_report_of_another_users_is_never_trusted(choose: Select, folder: Path) -> None:
    battery = Battery()
    choose(candidate("one"), battery=battery)
    (file,) = folder.iterdir()
    os.chown(file, 65534, 65534)
    assert not choose(candidate("one"), battery=battery).cached


def test_a_cache_that_cannot_be_used_costs_only_time(tmp_path: Path) -> None:
    occupied = tmp_path / "occupied"
    occupied.write_text("a file")
    selected = select([candidate("one")], occupied, lambda: tmp_path, battery=Battery())
    assert not selected.cached
    assert occupied.read_text() == "a file"


def test_the_cache_stays_small(choose: Select, folder: Path) -> None:
    others = [folder / f"toolchain-{number}.json" for number in range(40)]
    for path in others:
        path.write_text("{}")
    for number in range(40):
        choose(candidate("one", version=str(number)), battery=Battery())
    assert len(list(folder.glob("battery-*"))) == 32
    assert all(path.exists() for path in others)
    assert choose(candidate("one", version="39"), battery=Battery()).cached


def test_a_warm_cache_answers_in_five_milliseconds(choose: Select) -> None:
    choose(candidate("one"), battery=Battery())
    times = []
    for _ in range(15):
        started = time.perf_counter()
        assert choose(candidate("one"), battery=Battery()).cached
        times.append(time.perf_counter() - started)
    # The quietest of them: the others measure the machine's other work.
    assert min(times) < 0.005


def test_survey_examines_every_available_one_live(tmp_path: Path) -> None:
    battery = Battery(failing={"two": "udp"})
    broken = BrokenCandidate("broken", "d", "1", "no module", "reinstall")
    found = survey([broken, candidate("two", 20), candidate("one", 10)], lambda: tmp_path, battery=battery)
    assert [one.name for one in found] == ["two", "one", "broken"]
    assert battery.asked == ["two", "one"]
    assert ["udp" in found[0].reason, found[1].reason, found[2].reason] == [True, "", "no module"]


def test_reports_are_found_only_by_the_identity_that_passed(folder: Path) -> None:
    identity = BackendIdentity(
        name="one", distribution="d", version="1", level="os-sandbox", profile_digest=_DIGEST, launcher=None
    )
    cache = ReportCache(folder)
    cache.keep(report_of(identity))
    assert cache.find(identity) is not None
    assert cache.find(identity.model_copy(update={"profile_digest": "cd" * 32})) is None
