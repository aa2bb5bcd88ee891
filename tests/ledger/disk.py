"""A disk that forgets: what a traced process wrote, replayed so that everything that was not synced is lost.

The strictest disk that POSIX allows. A file's bytes are durable as of the last fsync or fdatasync of that file; a
name's coming and going is durable as of the last sync of its folder. A cut keeps what is durable and nothing else.
The calls come from strace, so they are those of the real SQLite on the real file system.
"""

from __future__ import annotations

import codecs
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

CALLS = (
    "openat,open,creat,close,write,pwrite64,pwritev,writev,fsync,fdatasync,sync_file_range,ftruncate,truncate,"
    "fallocate,unlink,unlinkat,rename,renameat,renameat2,link,linkat,lseek,mkdir,mkdirat,dup,dup2,dup3,mmap"
)
_LINE = re.compile(r"^(\w+)\((.*)\)\s+= (-?\d+|0x[0-9a-f]+)")
_TEXT = re.compile(r'"((?:\\x[0-9a-f]{2})*)"')
ACKNOWLEDGED = b"ACK "


@dataclass
class Node:
    """A file: its bytes now, and those that a cut leaves."""

    now: bytearray = field(default_factory=bytearray)
    durable: bytes = b""


@dataclass
class Opened:
    """A descriptor."""

    path: str
    node: Node | None
    offset: int = 0


class Disk:
    """Folders below one root, as a process sees them and as a cut leaves them."""

    def __init__(self, root: Path) -> None:
        self.root = str(root)
        self.names: dict[str, Node] = {}
        self.kept: dict[str, Node] = {}
        self.folders: list[str] = []
        for path in sorted(root.rglob("*")):
            if path.is_dir():
                self.folders.append(str(path))
            else:
                raw = path.read_bytes()
                self.names[str(path)] = Node(bytearray(raw), raw)
        self.kept.update(self.names)

    def sync_file(self, node: Node) -> None:
        node.durable = bytes(node.now)

    def sync_folder(self, folder: str) -> None:
        for path in {*self.names, *self.kept}:
            if os.path.dirname(path) == folder:
                if path in self.names:
                    self.kept[path] = self.names[path]
                else:
                    del self.kept[path]

    def cut(self, target: Path) -> None:
        """Write what a power cut leaves into a new folder."""
        target.mkdir(0o700)
        for folder in self.folders:
            (target / os.path.relpath(folder, self.root)).mkdir(0o700)
        for path, node in self.kept.items():
            place = target / os.path.relpath(path, self.root)
            place.write_bytes(node.durable)
            place.chmod(0o600)


def trace(program: str, *arguments: str, log: Path) -> None:
    """Run a Python program under strace; skip where that can't be."""
    strace = shutil.which("strace")
    if strace is None or sys.platform != "linux":
        pytest.skip("there is no strace here to record the calls with")
    done = subprocess.run(
        [
            strace,
            "-f",
            "-o",
            str(log),
            "-e",
            f"trace={CALLS}",
            "-xx",
            "-s",
            "1000000",
            sys.executable,
            "-c",
            program,
            *arguments,
        ],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
    )
    if "ptrace" in done.stderr and "not permitted" in done.stderr:
        pytest.skip(f"strace may not trace here: {done.stderr.strip()}")
    assert done.returncode == 0, done.stderr


def replay(disk: Disk, log: Path) -> Iterator[bytes | None]:
    """Do every call again on the model; yields after each call: what was acknowledged by it, else None."""
    opened: dict[int, Opened] = {}
    with open(log, encoding="ascii", errors="strict") as lines:
        for line in lines:
            text = line.split(" ", 1)[1].lstrip() if line[0].isdigit() else line
            match = _LINE.match(text)
            if match is None or match[3].startswith(("-", "0x")):
                assert match is not None or "exited" in text or "resumed" not in text, text
                continue
            yield _do(disk, opened, match[1], match[2], int(match[3]))


def _texts(arguments: str) -> list[bytes]:
    return [codecs.decode(found.replace("\\x", ""), "hex") for found in _TEXT.findall(arguments)]


def _do(  # noqa: C901 # one branch a call
    disk: Disk, opened: dict[int, Opened], call: str, arguments: str, result: int
) -> bytes | None:
    plain = _TEXT.sub('""', arguments).split(", ")
    texts = _texts(arguments)
    if call in {"openat", "open"}:
        path = os.fsdecode(texts[0])
        if not path.startswith(disk.root):
            opened.pop(result, None)
            return None
        if path == disk.root or path in disk.folders:
            opened[result] = Opened(path, None)
            return None
        if "O_CREAT" in arguments and path not in disk.names:
            disk.names[path] = Node()
        opened[result] = Opened(path, disk.names[path])
        if "O_TRUNC" in arguments:
            disk.names[path].now.clear()
        return None
    if call in {"unlink", "rename"}:
        path = os.fsdecode(texts[0])
        if path in disk.names:
            node = disk.names.pop(path)
            if call == "rename":
                disk.names[os.fsdecode(texts[1])] = node
        return None
    if call in {"close", "write", "pwrite64", "fsync", "fdatasync", "ftruncate", "lseek"}:
        return _on_descriptor(disk, opened, call, plain, texts, result)
    touched = [text for text in texts if os.fsdecode(text).startswith(disk.root)]
    assert not touched, f"the model does not know {call}({arguments[:200]})"
    if call in {"dup", "dup2", "dup3"}:
        assert int(plain[0]) not in opened, "the model does not know second descriptors"
    return None


def _on_descriptor(  # noqa: C901 # the same
    disk: Disk, opened: dict[int, Opened], call: str, plain: list[str], texts: list[bytes], result: int
) -> bytes | None:
    descriptor = int(plain[0])
    if call == "write" and descriptor == 1:
        return texts[0].removeprefix(ACKNOWLEDGED).strip() if texts[0].startswith(ACKNOWLEDGED) else None
    file = opened.get(descriptor)
    if file is None:
        return None
    if call == "close":
        del opened[descriptor]
    elif file.node is None:
        if call in {"fsync", "fdatasync"}:
            disk.sync_folder(file.path)
    elif call == "lseek":
        file.offset = result
    elif call in {"write", "pwrite64"}:
        place = int(plain[3]) if call == "pwrite64" else file.offset
        data = texts[0][:result]
        if len(file.node.now) < place:
            file.node.now.extend(bytes(place - len(file.node.now)))
        file.node.now[place : place + result] = data
        if call == "write":
            file.offset += result
    elif call == "ftruncate":
        size = int(plain[1])
        del file.node.now[size:]
        file.node.now.extend(bytes(size - len(file.node.now)))
    else:
        disk.sync_file(file.node)
    return None
