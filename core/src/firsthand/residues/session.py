"""One run of the program: its folder, and the entries of what must not outlive it."""

from __future__ import annotations

import errno
import itertools
import json
import os
import re
import secrets
import threading
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from firsthand.errors import StateError
from firsthand.files import make_private_folder, remove_path
from firsthand.residues.clearing import LOCK, OWNER, REGISTER, clear
from firsthand.residues.identity import identify, own_identity
from firsthand.residues.locks import tie_to_memory, try_lock
from firsthand.residues.private import open_private
from firsthand.residues.register import Register
from firsthand.residues.residue import Residue
from firsthand.residues.state import StateDirectory

_PURPOSE: Final = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")


class Session:
    """What one run of the program makes and must undo; a context manager.

    Its folder `sessions/ID` (0700) holds everything temporary, so that where a thing lies already registers it. A lock
    that only a living process can hold proves that the session goes on. Safe to use from several threads.

    Attributes:
        id: 16 hexadecimal digits.
        token: 32 hexadecimal digits, stands in the arguments or the environment of the session's processes and nowhere
            else: a process that carries it is found even when a crash came before it was entered. No secret.
        folder: absolute path.
    """

    def __init__(self, state: StateDirectory, folder: Path, token: str, lock: int) -> None:
        self.id = folder.name
        self.token = token
        self.folder = folder
        self._state = state
        self._lock = lock
        self._memory = tie_to_memory(lock)
        self._numbers = itertools.count(1)
        self._register = Register(folder / REGISTER)
        self._guard = threading.Lock()
        self._kept: set[Path] = set()
        self._closed: tuple[Residue, ...] | None = None

    @classmethod
    def open(cls, state: StateDirectory) -> Self:
        """Begin a session: its folder, its lock and its owner file, before anything else can be made.

        Raises:
            StateError: the folder can't be made.
        """
        token = secrets.token_hex(16)
        own = own_identity()
        owner = {"pid": own.pid, "start": own.start, "boot": own.boot, "token": token}
        with state.lock():
            folder = state.sessions / secrets.token_hex(8)
            make_private_folder(folder)
            try:
                descriptor = open_private(folder / OWNER, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
                try:
                    os.write(descriptor, json.dumps(owner).encode() + b"\n")
                finally:
                    os.close(descriptor)
                lock = try_lock(folder / LOCK)
                if lock is None:
                    raise BlockingIOError(errno.EAGAIN, "somebody else holds its lock")
                return cls(state, folder, token, lock)
            except OSError as error:
                raise StateError(
                    f"a session can't begin: {error.strerror}",
                    where=str(folder),
                    next_step="free some space for the state directory, and keep other programs out of it",
                ) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def tree(self, purpose: str) -> Path:
        """Enter and make a new private folder (0700).

        Args:
            purpose: a word for people, of lower-case letters, digits and single dashes.

        Raises:
            StateError: it can't be entered or made.
            ValueError: not such a word.
        """
        if _PURPOSE.fullmatch(purpose) is None:
            raise ValueError(f"not a purpose: {purpose!r}")
        with self._guard:
            path = self.folder / f"{next(self._numbers)}-{purpose}"
        self._register.append(kind="tree", path=path.name)
        make_private_folder(path)
        return path

    def remove(self, tree: Path) -> None:
        """Remove a tree before the session ends. A kept one stays.

        Raises:
            RemovalError: something resists; it is tried again at the end.
            ValueError: not a tree of this session.
        """
        self._own(tree)
        if tree not in self._kept:
            remove_path(tree)

    def credential(self, path: Path) -> Path:
        """Enter a file that will hold a credential; the caller makes it after this, exclusively and with mode 0600.

        Args:
            path: absolute, inside one of this session's trees.

        Returns:
            the same path.

        Raises:
            StateError: it can't be entered; the credential must not be written.
            ValueError: the path is not inside a tree of this session.
        """
        relative = path.relative_to(self.folder)
        if len(relative.parts) < 2 or ".." in relative.parts:
            raise ValueError(f"not inside a tree of this session: {path}")
        self._register.append(kind="credential", path=relative.as_posix())
        return path

    def intend(self, token: str) -> str:
        """Enter that processes will carry this token, besides the session's own, in their arguments or environment.

        Args:
            token: at least 16 characters that stand nowhere else: whoever carries it is ended by a sweep.

        Returns:
            the same token.

        Raises:
            StateError: it can't be entered; no such process must be started.
            ValueError: the token is too short to be nobody else's.
        """
        if len(token) < 16:
            raise ValueError("a token needs at least 16 characters")
        self._register.append(kind="process-intent", token=token)
        return token

    def started(self, pid: int) -> None:
        """A process exists now; see `ProcessWatch`. A pid that is gone already is not entered.

        Raises:
            StateError: it can't be entered; the process must be ended.
        """
        process = identify(pid)
        if process is not None:
            self._register.append(kind="process", pid=str(pid), start=process.start, boot=process.boot)

    def ended(self, pid: int) -> None:
        """That process and all its descendants are proved gone; see `ProcessWatch`.

        Raises:
            StateError: it can't be entered.
        """
        self._register.append(kind="ended", pid=str(pid))

    def keep(self, tree: Path, reason: str) -> None:
        """Keep a tree beyond the session, until it is cleaned on demand: the end of its processes is not established.

        Raises:
            StateError: it can't be entered.
            ValueError: not a tree of this session.
        """
        self._own(tree)
        self._register.append(kind="kept", path=tree.name, reason=reason)
        with self._guard:
            self._kept.add(tree)

    def close(self) -> tuple[Residue, ...]:
        """End what still runs, destroy credentials, remove all trees but the kept ones; further calls do nothing.

        Never raises for what resists: that is left for the next sweep.

        Returns:
            what is left: kept copies, and whatever resisted.
        """
        with self._guard:
            if self._closed is not None:
                return self._closed
            self._register.close()
            try:
                found = clear(self._state, self.folder, clean_kept=False)
            finally:
                self._release()
            self._closed = tuple(residue for residue in found if residue.state in ("kept", "unknown"))
            return self._closed

    def _release(self) -> None:
        if self._memory is not None:
            self._memory.close()
        os.close(self._lock)

    def _own(self, tree: Path) -> None:
        if tree.parent != self.folder or tree.name in (OWNER, LOCK, REGISTER) or "-" not in tree.name:
            raise ValueError(f"not a tree of this session: {tree}")
