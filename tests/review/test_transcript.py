from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from firsthand.canonical import sha256_hex
from firsthand.review.transcript import LIMIT_TRANSCRIPT_BYTES, TranscriptError, overrun, read_transcript


@pytest.fixture
def run(tmp_path: Path) -> Path:
    folder = tmp_path / "run"
    folder.mkdir(mode=0o700)
    return folder


def test_the_limit_itself_is_accepted_and_one_byte_more_is_not(run: Path) -> None:
    (run / "deep").mkdir()
    with (run / "deep" / "a").open("wb") as file:
        file.truncate(LIMIT_TRANSCRIPT_BYTES - 1)
    (run / "b").write_bytes(b"x")
    assert overrun(run) == ""
    (run / "b").write_bytes(b"xx")
    assert "bytes" in overrun(run)
    with pytest.raises(TranscriptError, match="bytes"):
        read_transcript(run, [run / "b"])


def test_a_sparse_file_counts_as_what_a_reader_would_read(run: Path) -> None:
    with (run / "a").open("wb") as file:
        file.truncate(10 * 1024**3)
    assert overrun(run)


def test_more_entries_than_a_program_needs_are_too_many(run: Path) -> None:
    for number in range(3):
        (run / str(number) / "deep").mkdir(parents=True)
    assert overrun(run, limit_entries=6) == ""
    assert "files and folders" in overrun(run, limit_entries=5)


def test_what_lies_behind_a_link_is_not_counted(run: Path, tmp_path: Path) -> None:
    with (tmp_path / "large").open("wb") as file:
        file.truncate(LIMIT_TRANSCRIPT_BYTES + 1)
    (run / "link").symlink_to(tmp_path)
    (run / "other").symlink_to(tmp_path / "large")
    assert overrun(run) == ""


def test_records_end_at_line_feeds_only(run: Path) -> None:
    raw = '{"a": "\u2028\u2029\x85"}\n\x0b\x0c\x1c\r\n\nlast'.encode()
    (run / "t").write_bytes(raw)
    (run / "u").write_bytes(b"more\n")
    read = read_transcript(run, [run / "t", run / "u"])
    assert read is not None
    assert list(read.records()) == [*raw.split(b"\n"), b"more"]
    assert read.record.sha256 == sha256_hex(raw + b"more\n")
    assert read.record.bytes == len(raw) + 5


def outside(run: Path) -> Path:
    (run.parent / "t").write_text("")
    return run.parent / "t"


def dotted(run: Path) -> Path:
    (run.parent / "t").write_text("")
    return run / ".." / "t"


def linked(run: Path) -> Path:
    (run / "t").symlink_to(outside(run))
    return run / "t"


def behind_a_link(run: Path) -> Path:
    outside(run)
    (run / "d").symlink_to(run.parent)
    return run / "d" / "t"


def piped(run: Path) -> Path:
    os.mkfifo(run / "t")
    return run / "t"


def folder(run: Path) -> Path:
    (run / "t").mkdir()
    return run / "t"


@pytest.mark.parametrize(
    "make", [outside, dotted, linked, behind_a_link, piped, folder, lambda run: run, lambda run: run / "x"]
)
def test_what_is_no_file_of_the_run_is_refused(run: Path, make: Callable[[Path], Path]) -> None:
    with pytest.raises(TranscriptError):
        read_transcript(run, [make(run)])


def test_no_file_is_no_transcript(run: Path) -> None:
    assert read_transcript(run, []) is None
