"""A program in the CLI's place that hangs, floods, lies or dies: ended in time, in little memory, never a review."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Self, TypeAlias

import pytest

from firsthand.residues import Session
from firsthand_claude.provider import ClaudeProvider
from providers.claude import standin
from providers.claude.driving import Driver, Reviewed, scenario

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the stand-in is a script with a shebang")

Review: TypeAlias = Callable[..., Reviewed]


@pytest.fixture
def review(session: Session, tmp_path: Path) -> Review:
    """A review by the stand-in of one mode."""

    def run(mode: str, seconds: float = 30.0, start_limit_s: float = 20.0) -> Reviewed:
        program = tmp_path / f"claude-{mode}"
        program.write_text(f"#!{sys.executable} -I\n" + Path(standin.__file__).read_text())
        program.chmod(0o755)
        provider = ClaudeProvider(managed=(), start_limit_s=start_limit_s)
        return Driver(provider, session, tmp_path, program).review(scenario({"text": "never asked"}), seconds=seconds)

    return run


def test_the_stand_in_can_be_good(review: Review) -> None:
    """Else every refusal below would prove nothing."""
    done = review("good")
    assert done.failure == "", done.detail
    assert done.record.structured_output == standin.ANSWER


@pytest.mark.parametrize(
    ("mode", "kind"),
    [
        ("silent", "no-result"),
        ("garbage", "stream-broken"),
        ("torn", "stream-broken"),
        ("no-init", "stream-broken"),
        ("pending", "tools-missing"),
        ("failed", "tools-missing"),
        ("two-of-three", "tools-missing"),
        ("one-more", "tools-extra"),
        ("another-server", "tools-extra"),
        ("skilled", "tools-extra"),
        ("other-version", "setup-differs"),
        ("other-mode", "setup-differs"),
        ("no-structure", "no-answer"),
        ("unasked", "no-answer"),
        ("not-taken", "no-answer"),
        ("two-results", "no-result"),
        ("error", "model-error"),
        ("silent-error", "model-error"),
        ("max-turns", "no-answer"),
        ("denied", "permission-denied"),
        ("exit-3", "died"),
        ("killed", "died"),
    ],
)
def test_anything_but_a_whole_success_is_no_review(review: Review, mode: str, kind: str) -> None:
    done = review(mode)
    assert done.failure == kind, done.detail
    assert done.record.exit.clean


def test_separators_inside_a_line_do_not_cut_it(review: Review) -> None:
    assert review("separators").failure == ""


def test_a_hang_at_the_start_is_ended_long_before_the_budget(review: Review) -> None:
    begun = time.monotonic()
    done = review("hang", seconds=60, start_limit_s=1.5)
    assert done.failure == "timed-out"
    assert "set-up" in done.detail
    assert time.monotonic() - begun < 10


def test_who_ignores_the_request_to_end_is_ended(review: Review, tmp_path: Path) -> None:
    begun = time.monotonic()
    done = review("deaf", seconds=1.5)
    assert done.failure == "timed-out"
    assert done.record.exit.clean
    assert time.monotonic() - begun < 8
    assert not Path(f"/proc/{(tmp_path / 'pid').read_text()}").exists()


@pytest.mark.parametrize(("mode", "kind"), [("flood", "output-limit"), ("long-line", "output-limit")])
def test_a_flood_is_cut_off_in_little_memory(review: Review, mode: str, kind: str) -> None:
    with Peak() as peak:
        done = review(mode, seconds=60)
    assert done.failure == kind, done.detail
    assert peak.grown_bytes < 96 * 1024 * 1024


@pytest.mark.parametrize("mode", ["sparse", "many"])
def test_a_transcript_beyond_its_limit_is_a_breach(review: Review, mode: str) -> None:
    with Peak() as peak:
        done = review(mode, seconds=60)
    assert done.failure == "transcript-limit", done.detail
    assert peak.grown_bytes < 32 * 1024 * 1024


class Peak:
    """How much this process's resident memory grew at most, sampled; 0 where /proc is not there."""

    def __init__(self) -> None:
        self.grown_bytes = 0
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._sample, daemon=True)
        self._before = self._resident()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    def _sample(self) -> None:
        while not self._done.wait(0.005):
            self.grown_bytes = max(self.grown_bytes, self._resident() - self._before)

    @staticmethod
    def _resident() -> int:
        try:
            return int(Path("/proc/self/statm").read_text().split()[1]) * 4096
        except OSError:
            return 0
