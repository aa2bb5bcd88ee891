"""The stage of a battery: canaries, listeners, target folders and holders, all the core's own.

Layout. In the private workplace: `copies/`, `private/`, `control/` and the file behind the inheritable descriptor. In
the system's folder for temporary files, under an unguessable name: `source/` (what the copy pretends to be),
`sibling/`, one target folder for each side and `tools/` (granted as a root, writable by everyone but for the sandbox).
These are open to every user on purpose: where commands run under another user, file permissions must not be what
stops them.
"""

from __future__ import annotations

import os
import secrets
import shutil
import stat
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Self

from firsthand.isolation.battery import traces
from firsthand.isolation.battery.holder import Holder
from firsthand.isolation.battery.interpreter import Interpreter, host_interpreter
from firsthand.isolation.battery.listeners import Listeners
from firsthand.isolation.battery.probe import Side

SIDES: tuple[Side, ...] = ("inside", "control")

_ENVIRONMENT_CANARY = "FIRSTHAND_BATTERY_CANARY"
_OLD_CONTENT = b"as the host left it\n"


class Stage:
    """Everything that attacks aim at. A context manager: nothing of it outlives the battery.

    Attributes:
        workplace: private folder; copies and the backend's files go here.
        source: where the copy is shown; holds other bytes than the copy.
        tools: a folder granted as a root.
        tokens: name of a canary to its value.
        canaries: name of a canary's place to the path of its file.
        interpreter: what probes run under.
        listeners: sockets of the host.
        holders: a process of the host's for each side.
    """

    def __init__(self, workplace: Path) -> None:
        """Name everything; nothing exists before the context is entered.

        Args:
            workplace: existing private folder, used by nobody else meanwhile.
        """
        self.workplace = Path(os.path.realpath(workplace))
        self.nonce = secrets.token_hex(8)
        self.interpreter: Interpreter = host_interpreter()
        self.tokens: dict[str, str] = {}
        self.canaries: dict[str, str] = {}
        self.holders: dict[Side, Holder] = {}
        self._stack = ExitStack()
        self._copies = 0

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            self._build(stack)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def tag(self, side: Side, attempt: str) -> str:
        """What an attempt hands to a listener, so that the listener can tell who called."""
        return f"{self.nonce}-{side}-{attempt}"

    def target(self, side: Side, name: str) -> str:
        """A path outside that attempts of one side may try to change: `old-…` exists, `new-…` does not."""
        return os.path.join(self.targets[side], name)

    def changed(self, side: Side, name: str) -> bool:
        """Whether anything about that path outside is not as the host left it."""
        path = self.target(side, name)
        if name.startswith("new-"):
            return os.path.lexists(path)
        try:
            found = os.lstat(path)
            with open(path, "rb") as file:
                content = file.read(1024)
        except OSError:
            return True
        return (content, stat.S_IMODE(found.st_mode), found.st_nlink) != (_OLD_CONTENT, 0o666, 1)

    def foreign(self, folder: str, entries: Mapping[str, Sequence[int] | None]) -> list[str]:
        """Names in a folder that are the host's and on the way to nothing that was granted.

        Args:
            folder: absolute path.
            entries: name to device and inode as listed; a sandbox may have an entry of its own by the same name. Null
                where they could not be had: then the name alone decides.
        """
        granted = (self.source, self.tools, *self.interpreter.roots)
        on_the_way: set[str] = set()
        for path in granted:
            with suppress(ValueError):
                on_the_way.update(path.relative_to(os.path.realpath(folder)).parts[:1])
        found = []
        for name, identity in entries.items():
            with suppress(OSError):
                theirs = os.lstat(os.path.join(folder, name))
                if name not in on_the_way and (identity is None or [*identity] == [theirs.st_dev, theirs.st_ino]):
                    found.append(name)
        return sorted(found)

    def new_copy(self) -> Path:
        """A fresh working copy that holds the program inside and a marked file."""
        self._copies += 1
        copy = self.workplace / "copies" / str(self._copies)
        copy.mkdir(parents=True)
        (copy / "marker.txt").write_text(self.tokens["copy"], encoding="ascii")
        program = copy / "probe"
        package = program / "firsthand" / "isolation" / "battery" / "inside"
        package.mkdir(parents=True)
        for folder in (package.parent, package.parent.parent, package.parent.parent.parent):
            (folder / "__init__.py").touch()
        for file in (Path(__file__).parent / "inside").glob("*.py"):
            shutil.copyfile(file, package / file.name)
        (program / "__main__.py").write_text(
            "import sys\nfrom firsthand.isolation.battery.inside.main import main\nsys.exit(main(sys.argv))\n",
            encoding="ascii",
        )
        return copy

    def plant(self, name: str, path: str) -> None:
        """Write a canary file that everyone may read."""
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.write(self.token(name) + "\n")
        self.canaries[name] = path

    def token(self, name: str) -> str:
        """The canary of that name, made at the first call."""
        return self.tokens.setdefault(name, f"fhcanary-{secrets.token_hex(16)}")

    def _build(self, stack: ExitStack) -> None:
        traces.sweep(traces.usual_places())
        for name in ("copies", "private", "control"):
            (self.workplace / name).mkdir(mode=0o700)
        public = self._public_folder(stack)
        self.source, self.tools = public / "source", public / "tools"
        self.targets: Mapping[Side, str] = {side: str(public / f"target-{side}") for side in SIDES}
        for folder in (self.source, public / "sibling"):
            folder.mkdir()
        (self.source / "marker.txt").write_text(self.token("source"), encoding="ascii")
        self.token("copy")
        self.plant("only-in-source", str(self.source / "only-in-source.txt"))
        self.plant("sibling", str(public / "sibling" / "canary.txt"))
        self.plant("beside-the-copy", str(self.workplace / "canary.txt"))
        for folder in (self.tools, *map(Path, self.targets.values())):
            folder.mkdir()
            os.chmod(folder, 0o777)  # noqa: S103 - the module's text says why
        for side in SIDES:
            for name in ("write", "link-in", "rename-in", "mode", "rewrite", "rewrite-below"):
                self._leave_old(self.target(side, f"old-{name}"))
        self._plant_far(stack)
        self._open_descriptor(stack)
        stack.enter_context(_in_environment(self.token("environment")))
        self.listeners = stack.enter_context(Listeners(str(public)))
        for side in SIDES:
            self.holders[side] = stack.enter_context(
                Holder(self.interpreter, self.token(f"held-argument-{side}"), self.token(f"held-environment-{side}"))
            )
        for side in SIDES:
            self.holders[side].wait_ready()

    def _public_folder(self, stack: ExitStack) -> Path:
        base = os.path.realpath("/tmp")  # noqa: S108 - the place itself is under test
        outer = Path(base, traces.fresh_name())
        outer.mkdir(mode=0o711)
        stack.callback(shutil.rmtree, outer, ignore_errors=True)
        os.chmod(outer, 0o711)  # noqa: S103 - the module's text says why
        public = outer / secrets.token_hex(8)
        public.mkdir()
        os.chmod(public, 0o755)  # noqa: S103 - the module's text says why
        self.plant("tmp", str(outer / "canary.txt"))
        return public

    def _plant_far(self, stack: ExitStack) -> None:
        """Canaries in the real home and in shared memory, where they can be had."""
        places = {"home": os.path.expanduser("~"), "shared-memory": "/dev/shm"}  # noqa: S108 - the place is under test
        if sys.platform == "darwin":
            del places["shared-memory"]
        for name, place in places.items():
            path = os.path.join(os.path.realpath(place), traces.fresh_name())
            stack.callback(_unlink, path)
            with suppress(OSError):
                self.plant(name, path)

    def _open_descriptor(self, stack: ExitStack) -> None:
        """A descriptor that every child inherits whose starter does not take care."""
        path = self.workplace / "descriptor.txt"
        self.plant("descriptor", str(path))
        descriptor = os.open(path, os.O_RDONLY)
        stack.callback(os.close, descriptor)
        os.set_inheritable(descriptor, True)  # noqa: FBT003 - the standard library's signature
        self.descriptor = descriptor

    @staticmethod
    def _leave_old(path: str) -> None:
        with open(path, "wb") as file:
            file.write(_OLD_CONTENT)
        os.chmod(path, 0o666)  # noqa: S103 - the module's text says why


@contextmanager
def _in_environment(token: str) -> Iterator[None]:
    """Hold a canary in this process's environment, from which every careless child gets it."""
    os.environ[_ENVIRONMENT_CANARY] = token
    try:
        yield
    finally:
        # Another battery in another thread may have put its own there meanwhile.
        if os.environ.get(_ENVIRONMENT_CANARY) == token:
            del os.environ[_ENVIRONMENT_CANARY]


def _unlink(path: str) -> None:
    with suppress(OSError):
        os.unlink(path)
