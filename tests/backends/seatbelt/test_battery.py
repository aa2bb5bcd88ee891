"""The battery's macOS part as far as it runs elsewhere, and the battery against a launcher that confines nothing."""

from __future__ import annotations

import errno
import importlib
import inspect
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from firsthand.isolation.battery.catalogue import PROBES
from firsthand.isolation.battery.inside import macos as inside
from firsthand.isolation.battery.inside.main import PACKAGE, make
from firsthand.isolation.battery.probes import macos
from firsthand.isolation.battery.run import platform_probes
from firsthand.isolation.battery.stage import Stage

NOT_DARWIN = pytest.mark.skipif(sys.platform == "darwin", reason="the real system answers there")
LINUX = pytest.mark.skipif(sys.platform != "linux", reason="drives the backend with Linux's own process table")


class TestTheList:
    def test_macos_is_asked_what_the_contract_names(self) -> None:
        asked = {probe.id for probe in platform_probes("darwin")}
        assert {probe.id for probe in macos.PROBES} < asked
        assert len(asked) >= 40
        assert not {probe.id for probe in macos.PROBES} & {probe.id for probe in platform_probes("linux")}

    def test_what_only_a_mac_can_show_is_required_there(self) -> None:
        required = {probe.id for probe in macos.PROBES if probe.weight("darwin") == "must"}
        assert required >= {
            "process-arguments",
            "process-information",
            "mach-services",
            "data-volume",
            "temporary-folders",
            "nested-sandbox",
            "broken-profile",
            "listen",
            "new-terminal",
        }

    def test_names_are_unique_in_the_whole_battery(self) -> None:
        ids = [probe.id for probe in PROBES]
        assert len(set(ids)) == len(ids)
        attempts = [attempt.id for probe in PROBES for attempt in probe.attempts]
        assert len(set(attempts)) == len(attempts)

    def test_every_attempt_calls_something_that_exists(self) -> None:
        for probe in macos.PROBES:
            for attempt in probe.attempts:
                module, _, name = attempt.call.partition(".")
                assert inspect.isfunction(getattr(importlib.import_module(f"{PACKAGE}.{module}"), name)), attempt.id


class TestInside:
    @NOT_DARWIN
    @pytest.mark.parametrize(
        "call",
        [
            {"call": "macos.information", "pid": 1},
            {"call": "macos.list_pids", "pid": 1},
            {"call": "macos.task", "pid": 1, "ask": "task_name_for_pid"},
            {"call": "macos.look_up", "service": "com.apple.logd"},
            {"call": "macos.kernel_value", "name": "hw.ncpu"},
            {"call": "macos.clone_in", "path": "/etc/passwd", "own": "x"},
        ],
        ids=lambda call: call["call"],
    )
    def test_a_call_that_this_system_lacks_is_a_broken_probe_and_no_refusal(self, call: dict[str, Any]) -> None:
        line = make({**call, "id": "x"})
        assert "error" in line
        assert "errno" not in line

    def test_a_process_is_found_in_the_table_by_its_number(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def record(pid: int) -> bytes:
            return bytes(40) + pid.to_bytes(4, "little") + bytes(648 - 44)

        monkeypatch.setattr(inside, "_sysctl", lambda *numbers: record(1) + record(70_000) + b"rest")
        assert inside.table({"pid": 70_000}) == "found"
        assert inside.table({"pid": 4}) == "not among 2"

    def test_canaries_are_found_in_arguments(self, monkeypatch: pytest.MonkeyPatch) -> None:
        canary = "fhcanary-" + "0" * 32
        monkeypatch.setattr(inside, "_sysctl", lambda *numbers: b"\x01\0\0\0python\0HELD=" + canary.encode() + b"\0")
        assert inside.arguments({"pid": 4}) == f'["{canary}"]'

    @pytest.mark.skipif(os.name != "posix", reason="runs programs of a POSIX system")
    def test_programs_are_told_apart_by_what_they_print(self) -> None:
        def run(script: str, **more: Any) -> str:
            return inside.program({"argv": ["/bin/sh", "-c", script], "lines": 1, **more})

        assert run("echo secret") == "printed 7 bytes"
        assert run("echo 12 34; echo 56", find="34", lines=2) == "printed 9 bytes"
        assert run("true", lines=0) == "printed 0 bytes"
        for script, more in (
            ("echo 345", {"find": "34"}),
            ("true", {}),
            ("echo x; exit 1", {}),
            ("echo x", {"lines": 2}),
        ):
            with pytest.raises(OSError) as caught:  # noqa: PT011 # the errno below is the point
                run(script, **more)
            assert caught.value.errno == errno.ENODATA
        with pytest.raises(FileNotFoundError):
            inside.program({"argv": ["/nonexistent/program"], "lines": 0})

    @pytest.mark.skipif(os.name != "posix", reason="makes terminals and sockets")
    def test_what_an_unconfined_process_can_do_is_done(self, tmp_path: Path) -> None:
        assert inside.new_terminal({}) == "made"
        assert inside.listen({}) == "listening"
        with pytest.raises(FileNotFoundError):
            inside.resolver({"path": str(tmp_path / "none")})


class TestJudging:
    stage = cast(
        "Stage",
        SimpleNamespace(
            tokens={
                "held-argument-inside": "a",
                "held-environment-inside": "b",
                "held-argument-control": "c",
                "held-environment-control": "d",
                "home": "h",
            },
            canaries={},
        ),
    )

    def test_arguments_are_reached_inside_by_any_answer_and_outside_by_both_canaries(self) -> None:
        assert macos._held_seen(self.stage, "inside", {"did": True, "saw": "[]"})
        assert not macos._held_seen(self.stage, "inside", {"did": False, "errno": "EPERM"})
        assert macos._held_seen(self.stage, "control", {"did": True, "saw": '["c", "d", "e"]'})
        assert not macos._held_seen(self.stage, "control", {"did": True, "saw": '["c"]'})
        assert not macos._held_seen(self.stage, "inside", {})

    def test_a_process_is_reached_only_when_found(self) -> None:
        attempt = macos._on_holder("x", "macos.table")
        assert attempt.reached(self.stage, "inside", {"did": True, "saw": "found"})
        assert not attempt.reached(self.stage, "inside", {"did": True, "saw": "not among 7"})
        assert not attempt.reached(self.stage, "inside", {"did": False, "errno": "EPERM"})

    def test_a_canary_that_could_not_be_planted_is_not_asked_for(self) -> None:
        assert macos._DATA[0].detail(self.stage, "inside") is None

    def test_other_spellings_are_other_spellings(self, tmp_path: Path) -> None:
        assert macos._other_case("/Users/ann/.firsthand-x") == "/Users/ann/.FIRSTHAND-X"
        found = tmp_path.stat()
        assert macos._by_number(str(tmp_path)) == f"/.vol/{found.st_dev}/{found.st_ino}"


@LINUX
class TestALauncherThatConfinesNothing:
    """A shim in the launcher's place runs everything and exits 0: only what the host sees of the attempts tells."""

    def test_does_not_pass(self, tmp_path: Path) -> None:
        from backends.seatbelt import standins  # noqa: PLC0415 # Linux only, as below
        from backends.seatbelt.linux import Linux  # noqa: PLC0415
        from firsthand.isolation.battery.run import run_battery  # noqa: PLC0415
        from firsthand.isolation.interface import (  # noqa: PLC0415
            Available,
            Enclosure,
            Limits,
            ProcessWatch,
            Workspace,
        )
        from firsthand.records import BackendIdentity  # noqa: PLC0415
        from firsthand_seatbelt.backend import inside_text  # noqa: PLC0415
        from firsthand_seatbelt.enclosure import Means, SeatbeltEnclosure  # noqa: PLC0415
        from firsthand_seatbelt.interpreter import Interpreter  # noqa: PLC0415
        from firsthand_seatbelt.profile import ProfileTemplate  # noqa: PLC0415

        means = Means(
            sandbox_exec=standins.stand_in(tmp_path, standins.PASS_THROUGH),
            template=ProfileTemplate.shipped(),
            inside=inside_text(),
            interpreter=Interpreter(os.path.realpath(sys.executable), (os.path.realpath(sys.base_prefix),), ()),
            kernel=Linux(),
        )

        class Shim:
            name = "shim"

            def availability(self) -> Available:
                return Available(launcher=None, profile_digest="0" * 64, priority=1, ends_all=False)

            @contextmanager
            def enclose(self, workspace: Workspace, limits: Limits, processes: ProcessWatch) -> Iterator[Enclosure]:
                enclosure = SeatbeltEnclosure(means, workspace, limits, processes)
                try:
                    yield enclosure
                finally:
                    enclosure.end()

        identity = BackendIdentity(
            name="shim", distribution="shim", version="0", level="os-sandbox", profile_digest="0" * 64, launcher=None
        )
        workplace = tmp_path / "work"
        workplace.mkdir(mode=0o700)
        # Only what is harmless unconfined. It is the host's own listeners and canaries that find the shim out.
        caught = ("tcp-ipv4", "udp", "unix-pathname", "read-sibling", "read-tmp", "write-outside", "signals")
        report = run_battery(Shim(), identity, workplace, only=(*caught, *_DRIVING))
        results = {probe.id: probe for probe in report.probes}
        assert not report.passed
        assert {name: results[name].result for name in caught} == dict.fromkeys(caught, "failed")
        # What does not hang on confinement holds: the driving itself is sound.
        assert [results[name] for name in _DRIVING if results[name].result != "passed"] == []


_DRIVING = (
    "starts",
    "truthful-end",
    "could-not-start",
    "work-area",
    "grandchild",
    "kill-own-child",
    "streams",
    "environment",
    "environment-leak",
    "descriptors",
    "daemon",
    "deadline",
    "rewrite",
    "large-file",
    "copy-size",
    "flood",
)
