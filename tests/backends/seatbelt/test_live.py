"""Seatbelt itself, on a Mac. Everywhere else this is skipped, and nothing else in these tests stands in for it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from firsthand.isolation.battery.run import NoWatch, run_battery
from firsthand.isolation.interface import Available, IsolationError, Limits, Request, Workspace
from firsthand.records import BackendIdentity
from firsthand_seatbelt.backend import SeatbeltBackend

pytestmark = pytest.mark.skipif(sys.platform != "darwin", reason="only a Mac can show what Seatbelt does")


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    for name in ("copy", "private"):
        (tmp_path / name).mkdir(mode=0o700)
    return Workspace(copy=tmp_path / "copy", shown_at=tmp_path / "copy", private=tmp_path / "private", token="live")


def run(workspace: Workspace, script: str) -> tuple[str, int | None, bytes, str]:
    with SeatbeltBackend().enclose(workspace, Limits(), NoWatch()) as enclosure:
        result = enclosure.run(Request(argv=("sh", "-c", script), executable="/bin/sh", timeout_s=20))
    return result.outcome.kind, result.outcome.exit_code, result.stdout.data + result.stderr.data, result.outcome.detail


class TestAMac:
    def test_passes_the_battery(self, tmp_path: Path) -> None:
        available = SeatbeltBackend().availability()
        assert isinstance(available, Available), available
        identity = BackendIdentity(
            name="seatbelt",
            distribution="firsthand-seatbelt",
            version="0.1.0",
            level="os-sandbox",
            profile_digest=available.profile_digest,
            launcher=available.launcher,
        )
        workplace = tmp_path / "work"
        workplace.mkdir(mode=0o700)
        report = run_battery(SeatbeltBackend(), identity, workplace)
        assert [probe for probe in report.probes if probe.required and probe.result != "passed"] == []
        assert report.passed

    @pytest.mark.parametrize("code", [0, 1, 65, 71])
    def test_exit_codes_are_the_commands_own(self, workspace: Workspace, code: int) -> None:
        assert run(workspace, f"echo out; exit {code}")[:3] == ("exited", code, b"out\n")

    def test_temporary_files_work_where_the_system_keeps_them(self, workspace: Workspace) -> None:
        """pytest's own folder lies under /var/folders, whose resolved spelling is the only one that matches."""
        script = 'd=$(mktemp -d) && echo x >"$d/a" && mv "$d/a" "$d/b" && rm -r "$d" && echo done'
        assert run(workspace, script)[:3] == ("exited", 0, b"done\n")

    @pytest.mark.parametrize("name", ['a"b', "a\\b", "a (b) c", "a=b"])
    def test_odd_but_plain_names_can_be_copies(self, tmp_path: Path, name: str) -> None:
        copy = tmp_path / name / "copy"
        copy.mkdir(parents=True)
        (tmp_path / "private").mkdir(mode=0o700)
        workspace = Workspace(copy=copy, shown_at=copy, private=tmp_path / "private", token="live")
        assert run(workspace, "echo x >made && cat made")[:3] == ("exited", 0, b"x\n")

    def test_a_file_beside_the_copy_is_out_of_reach(self, workspace: Workspace) -> None:
        secret = workspace.copy.parent / "secret"
        secret.write_text("canary")
        kind, code, said, _ = run(workspace, f"cat '{secret}'; echo x >'{secret}'")
        assert (kind, b"canary" in said) == ("exited", False)
        assert code != 0
        assert secret.read_text() == "canary"

    def test_rewriting_gives_exact_bytes_and_follows_no_link(self, workspace: Workspace) -> None:
        (workspace.copy / "a").write_bytes(b"old")
        (workspace.copy / "link").symlink_to(workspace.copy.parent / "outside")
        with SeatbeltBackend().enclose(workspace, Limits(), NoWatch()) as enclosure:
            enclosure.rewrite("a", b"\xffnew\r\n", 0o640)
            with pytest.raises(IsolationError):
                enclosure.rewrite("link", b"evil", 0o644)
        assert (workspace.copy / "a").read_bytes() == b"\xffnew\r\n"
        assert not (workspace.copy.parent / "outside").exists()
