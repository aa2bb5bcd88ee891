from __future__ import annotations

import ctypes
import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest

from firsthand.isolation.interface import Backend, IsolationError, Limits, Unavailable, Workspace
from firsthand_seatbelt import darwin
from firsthand_seatbelt.backend import SANDBOX_EXEC, SeatbeltBackend, inside_text, launcher_refusal, profile_digest
from firsthand_seatbelt.profile import ProfileTemplate

OFF_MACOS = pytest.mark.skipif(sys.platform == "darwin", reason="says what the backend does elsewhere")


class Nobody:
    def started(self, pid: int) -> None:
        raise AssertionError("nothing may be started")

    def ended(self, pid: int) -> None:
        raise AssertionError("nothing may be ended")


class TestElsewhere:
    def test_it_is_a_backend(self) -> None:
        assert isinstance(SeatbeltBackend(), Backend)
        assert SeatbeltBackend().name == "seatbelt"
        assert not hasattr(SeatbeltBackend, "confine_reviewer")

    @OFF_MACOS
    def test_it_says_what_it_needs(self) -> None:
        found = SeatbeltBackend().availability()
        assert isinstance(found, Unavailable)
        assert platform.system() in found.reason
        assert found.next_step

    @OFF_MACOS
    def test_it_encloses_nothing(self, tmp_path: Path) -> None:
        workspace = Workspace(copy=tmp_path, shown_at=tmp_path, private=tmp_path)
        with (
            pytest.raises(IsolationError, match="part of macOS"),
            SeatbeltBackend().enclose(workspace, Limits(), Nobody()),
        ):
            raise AssertionError("an enclosure off macOS")

    def test_importing_it_loads_neither_jinja_nor_posix_only_modules(self) -> None:
        code = (
            "import sys\n"
            "for name in ('fcntl', 'resource', 'pwd', 'grp', 'termios'): sys.modules[name] = None\n"
            "import firsthand_seatbelt.backend\n"
            "assert 'jinja2' not in sys.modules\n"
        )
        # pydantic and subprocess probe for some of these and cope; our own code must not need them at import.
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr


class TestLauncher:
    def test_the_path_is_fixed(self) -> None:
        assert SANDBOX_EXEC == "/usr/bin/sandbox-exec"

    def test_a_program_of_the_system_is_accepted(self) -> None:
        assert launcher_refusal(os.path.realpath("/bin/sh")) == ""

    def test_a_missing_one_is_refused(self) -> None:
        assert "can't be found" in launcher_refusal("/nonexistent/sandbox-exec")

    @pytest.mark.parametrize("kind", ["writable", "link", "folder", "plain"])
    def test_one_that_could_be_anything_is_refused(self, tmp_path: Path, kind: str) -> None:
        path = tmp_path / "sandbox-exec"
        if kind == "link":
            path.symlink_to("/bin/sh")
        elif kind == "folder":
            path.mkdir()
        else:
            path.write_text('#!/bin/sh\nexec "$@"\n')
            path.chmod(0o777 if kind == "writable" else 0o644)
        assert launcher_refusal(str(path)) != ""

    @pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="giving a file away needs root")
    def test_one_of_another_owner_is_refused(self, tmp_path: Path) -> None:
        path = tmp_path / "sandbox-exec"
        path.write_text("#!/bin/sh\n")
        path.chmod(0o755)
        assert launcher_refusal(str(path)) == ""
        os.chown(path, 12345, 12345)
        assert "others than root" in launcher_refusal(str(path))


class TestOnAMac:
    """What availability decides there, with the system's answers put in place."""

    @pytest.fixture(autouse=True)
    def mac(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(platform, "system", lambda: "Darwin")
        monkeypatch.setattr("firsthand_seatbelt.backend.launcher_refusal", lambda path: "")
        monkeypatch.setattr(os, "geteuid", lambda: 501)
        monkeypatch.setattr(darwin, "inside_a_sandbox", lambda: False)
        monkeypatch.setattr(darwin, "loaded_images", lambda: iter(()))

    def refusal(self) -> str:
        found = SeatbeltBackend().availability()
        assert isinstance(found, Unavailable)
        return found.reason

    def test_a_sandbox_inside_a_sandbox_is_isolation_unavailable(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(darwin, "inside_a_sandbox", lambda: True)
        assert "inside a sandbox" in self.refusal()

    def test_root_is_refused(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(os, "geteuid", lambda: 0)
        assert "root" in self.refusal()

    def test_an_odd_launcher_is_refused(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("firsthand_seatbelt.backend.launcher_refusal", lambda path: f"{path} is odd")
        assert self.refusal() == "/usr/bin/sandbox-exec is odd"

    def test_a_python_that_cant_be_shown_is_refused(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(sys, "base_prefix", "/usr/local")
        assert "holds other things" in self.refusal()


class TestDigest:
    def test_it_covers_the_template_and_the_launcher_inside(self) -> None:
        template, inside = ProfileTemplate.shipped(), inside_text()
        digest = profile_digest(template, inside)
        assert digest == profile_digest(ProfileTemplate.shipped(), inside_text())
        assert digest != profile_digest(ProfileTemplate(template.source + " "), inside)
        assert digest != profile_digest(template, inside + " ")


class TestDarwinsRecords:
    """The layouts that libproc fills, against its published structures; the calls themselves need a Mac."""

    def test_the_short_record_is_as_long_as_its_fields(self) -> None:
        class ShortInfo(ctypes.Structure):
            _fields_ = (
                ("pid", ctypes.c_uint32),
                ("ppid", ctypes.c_uint32),
                ("pgid", ctypes.c_uint32),
                ("status", ctypes.c_uint32),
                ("comm", ctypes.c_char * 16),
                ("flags", ctypes.c_uint32),
                ("ids", ctypes.c_uint32 * 6),
                ("rfu", ctypes.c_uint32),
            )

        assert ctypes.sizeof(ShortInfo) == darwin._SHORT_INFO_BYTES
        assert ShortInfo.status.offset == darwin._STATUS_AT * 4

    @pytest.mark.skipif(sys.platform != "darwin", reason="asks the running macOS")
    def test_the_running_macos_answers(self) -> None:
        kernel = darwin.Darwin()
        child = subprocess.Popen(["/bin/sh", "-c", "read line"], stdin=subprocess.PIPE, start_new_session=True)
        watch = kernel.watch_exit(child.pid)
        assert not watch.ended()
        assert kernel.group(child.pid) == (child.pid,)
        assert (kernel.processes_of(os.getuid()) or 0) > 1
        kernel.kill_group(child.pid)
        while not watch.ended():
            pass
        assert kernel.group(child.pid) == ()
        watch.close()
        assert child.wait() == -9
        assert not darwin.inside_a_sandbox()
        assert any(os.path.realpath(image) for image in darwin.loaded_images())
