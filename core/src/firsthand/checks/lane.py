"""A lane: one working copy behind one enclosure, settled before and after every command.

Nothing is carried from one command to the next: leftovers go, registered files are compared, and where the end of all
descendants can't be proved every command gets a copy that no earlier process was ever shown.
"""

from __future__ import annotations

import contextlib
import itertools
import os
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Self

from firsthand.canonical import sha256_hex
from firsthand.checks.counting import REPORT_BYTES
from firsthand.checks.errors import CleanupUnknownError, LaneInterruptedError
from firsthand.checks.ground import Ground
from firsthand.errors import FirsthandError
from firsthand.files import FileRefusedError, make_private_folder, open_folder, read_registered, remove_path
from firsthand.isolation.interface import Enclosure, Request, Result, RunCancelledError
from firsthand.records import Mode
from firsthand.snapshot import Content, CopyDriftError, WorkingCopy


@dataclass(frozen=True, slots=True)
class Executed:
    """One command and what it left where it was asked to.

    Attributes:
        result: the outcome and the captured streams.
        report: the report file's bytes; None when there is none.
        report_refused: whether something stands at the report's place that may not be read.
    """

    result: Result
    report: bytes | None
    report_refused: bool


@dataclass(frozen=True, slots=True)
class Standing:
    """What a registered file of the copy holds right now, as the host reads it; None where it can't be read."""

    sha256: str | None
    mode: Mode | None


@dataclass(frozen=True, slots=True)
class _Overridden:
    data: bytes
    mode: Mode


class Lane(AbstractContextManager["Lane"]):
    """One working copy that commands run in, one at a time. Not thread-safe.

    Entering the context makes the copy and opens the enclosure; it raises StateError or IsolationError when it can't.

    Attributes:
        number: its number in the evidence.
        copy_path: where the present working copy lies on the host.
        spoiled: why it takes no further command; None while it does.
    """

    def __init__(self, ground: Ground, number: int) -> None:
        self.number = number
        self.copy_path = ground.folder
        self.spoiled: FirsthandError | None = None
        self._ground = ground
        self._generation = itertools.count()
        self._stack = ExitStack()
        self._copy: WorkingCopy | None = None
        self._enclosure: Enclosure | None = None
        self._used = False
        self._void_taken = False
        self._kept: ExitStack | None = None
        self._overrides: dict[str, _Overridden] = {}

    def __enter__(self) -> Self:
        try:
            self._open()
        except BaseException:
            self._stack.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the enclosure and remove the copy, unless it is kept because a command's end is unknown.

        Raises:
            RemovalError: the copy resisted.
        """
        self._discard()

    def execute(self, request: Request, report_file: str = "") -> Executed:
        """Run one command between two settlements.

        Args:
            request: the command.
            report_file: name in the copy's root that is read afterwards, before it is removed as a leftover.

        Raises:
            FirsthandError: `spoiled`, when the lane takes no further command.
            CopyDriftError: the copy was not as it should be before the command; nothing ran.
            StateError: a working copy could not be made.
            IsolationError: the workspace can't be confined.
            RunCancelledError: the request was cancelled; the lane takes further commands, if the end is known.
        """
        copy, enclosure = self._ready()
        self._settle(copy)
        self._used = True
        try:
            result = enclosure.run(request)
        except RunCancelledError as cancelled:
            if cancelled.cleanup == "unknown":
                self.spoiled = CleanupUnknownError(copy.path)
            raise
        except BaseException:
            self.break_off()
            raise
        if result.outcome.cleanup == "unknown":
            # What still runs may write: nothing of the copy can be read with meaning.
            self.spoiled = CleanupUnknownError(copy.path)
            return Executed(result, None, report_refused=False)
        report, refused = _read_report(copy, report_file)
        # Drift spoils the lane; the command's own result stands all the same.
        with contextlib.suppress(CopyDriftError):
            self._settle(copy)
        return Executed(result, report, refused)

    def break_off(self) -> None:
        """Take no further command: something ended in the middle, and what the copy holds is not known."""
        if self.spoiled is None:
            self.spoiled = LaneInterruptedError(self.copy_path)

    def take_void(self) -> str | None:
        """The code by which the lane's end voids what was recorded before it; given once, None where there is none."""
        if self._void_taken or not isinstance(self.spoiled, CopyDriftError | CleanupUnknownError):
            return None
        self._void_taken = True
        return self.spoiled.code

    def put(self, path: str, data: bytes) -> None:
        """Give a registered, present file other bytes, in the same confinement as commands; its mode stays.

        Raises:
            IsolationError: it could not be written; the lane is as it was, or `restore` puts it right.
            FirsthandError: as `execute`.
        """
        mode = self._frozen_mode(path)
        _, enclosure = self._ready()
        self._overrides[path] = _Overridden(data, mode)
        self._rewrite(enclosure, path, data, mode)

    def restore(self, path: str) -> Standing:
        """Give the file its frozen bytes and mode back, and read what then stands there.

        Raises:
            IsolationError: it could not be written.
            FirsthandError: as `execute`.
        """
        mode = self._frozen_mode(path)
        data = self._ground.snapshot.read(path)
        # The override goes first: a fresh copy, where one is due, then holds the frozen bytes by itself.
        self._overrides.pop(path, None)
        copy, enclosure = self._ready()
        if self._ground.ends_all:
            self._rewrite(enclosure, path, data, mode)
        return _standing(copy.path, path, len(data))

    def _frozen_mode(self, path: str) -> Mode:
        entry = self._ground.snapshot.manifest.entry(path)
        if entry is None or entry.mode is None:
            raise KeyError(path)
        return entry.mode

    def _ready(self) -> tuple[WorkingCopy, Enclosure]:
        """The copy and enclosure for the next command; fresh ones where the old ones may not be used again."""
        if self.spoiled is not None:
            raise self.spoiled
        if self._used and not self._ground.ends_all:
            self._discard()
        if self._copy is None or self._enclosure is None:
            return self._open()
        return self._copy, self._enclosure

    def _open(self) -> tuple[WorkingCopy, Enclosure]:
        place = self._ground.folder / f"lane-{self.number}-{next(self._generation)}"
        make_private_folder(place)
        self._stack.callback(remove_path, place)
        make_private_folder(place / "private")
        copy = self._ground.snapshot.working_copy(place / "copy")
        self.copy_path = copy.path
        workspace = replace(self._ground.template, copy=copy.path, private=place / "private")
        enclosure = self._stack.enter_context(
            self._ground.backend.enclose(workspace, self._ground.limits, self._ground.processes)
        )
        self._copy, self._enclosure, self._used = copy, enclosure, False
        for path, overridden in self._overrides.items():
            self._rewrite(enclosure, path, overridden.data, overridden.mode)
        return copy, enclosure

    def _discard(self) -> None:
        if isinstance(self.spoiled, CleanupUnknownError):
            # Kept with its enclosure's files: only `residues --clean` may remove it, once its processes are gone.
            self._kept = self._stack.pop_all()
            return
        self._copy = self._enclosure = None
        self._stack.close()

    def _rewrite(self, enclosure: Enclosure, path: str, data: bytes, mode: Mode) -> None:
        try:
            enclosure.rewrite(path, data, mode)
        except FirsthandError:
            raise
        except BaseException:
            self.break_off()
            raise

    def _settle(self, copy: WorkingCopy) -> None:
        expected = {path: Content.of(overridden.data, overridden.mode) for path, overridden in self._overrides.items()}
        try:
            copy.settle(expected)
        except CopyDriftError as drift:
            self.spoiled = drift
            raise


def _read_report(copy: WorkingCopy, name: str) -> tuple[bytes | None, bool]:
    """The report's bytes, and whether something stands there that may not be read: a link, a pipe, too much."""
    if not name:
        return None, False
    try:
        root_fd = open_folder(copy.path)
        try:
            content = read_registered(root_fd, name, REPORT_BYTES)
        finally:
            os.close(root_fd)
    except FileRefusedError:
        return None, True
    return (content.data if content is not None else None), False


def _standing(root: Path, path: str, size: int) -> Standing:
    """Digest and mode of one file of the copy; one byte more than it should hold is enough to tell it apart."""
    try:
        root_fd = open_folder(root)
        try:
            content = read_registered(root_fd, path, size + 1)
        finally:
            os.close(root_fd)
    except FileRefusedError:
        return Standing(None, None)
    return Standing(None, None) if content is None else Standing(sha256_hex(content.data), content.mode)
