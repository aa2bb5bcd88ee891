"""One confined process group from its start to its end: readiness, release, draining, kill.

Signals go out only while the group's leader is uncollected, so its pid, which is also the group's id, can't have been
recycled; it is collected last, after nothing else of the group was left.
"""

from __future__ import annotations

import contextlib
import os
import select
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from firsthand.isolation.interface import ProcessWatch
from firsthand.records import Cleanup
from firsthand_seatbelt.kernel import Kernel
from firsthand_seatbelt.stream import Stream

READY_S: Final = 10.0
"""How long the launcher may take to say that the sandbox holds."""
END_S: Final = 1.0
"""How long the end of a killed group may take before it counts as unknown."""

_PAUSE_S: Final = 0.005
_WORD_BYTES_LIMIT: Final = 4096


class ConfinedGroup:
    """A started launcher and whatever it becomes. Always `end()` and `close()` it.

    Attributes:
        streams: the command's output.
        exited: whether the leader has ended.
        said: the words that `inside.py` wrote so far.
    """

    def __init__(
        self,
        argv: Callable[[int, int], Sequence[str]],
        *,
        environment: Mapping[str, str],
        stdin: int,
        output_bytes: int,
        kernel: Kernel,
        processes: ProcessWatch,
    ) -> None:
        """Start it; it waits for `release` before it becomes the command.

        Args:
            argv: gives the launcher with all its arguments, `argv[0]` absolute, for the two descriptors that it
                inherits: the one that it writes its words to, and the one that it waits on.
            environment: all of it; nothing is inherited.
            stdin: descriptor of standard input.
            output_bytes: cap of each of stdout and stderr.
            kernel: the system's answers.
            processes: told of the process before it is released.

        Raises:
            OSError: the launcher itself could not be started.
        """
        self._kernel = kernel
        self._processes = processes
        self._cleanup: Cleanup | None = None
        self._returncode: int | None = None
        self.said = b""
        self._status_closed = False
        self._status, its_status = os.pipe()
        its_control, self._control = os.pipe()
        try:
            self._popen = subprocess.Popen(
                list(argv(its_status, its_control)),
                env=dict(environment),
                cwd="/",
                stdin=stdin,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                pass_fds=(its_status, its_control),
                start_new_session=True,
                umask=0o022,
                bufsize=0,
            )
        except OSError:
            os.close(self._status)
            os.close(self._control)
            raise
        finally:
            os.close(its_status)
            os.close(its_control)
        out, err = self._popen.stdout, self._popen.stderr
        assert out is not None and err is not None  # noqa: S101, PT018 # for the type checker
        self.streams = (Stream("stdout", out.fileno(), output_bytes), Stream("stderr", err.fileno(), output_bytes))
        os.set_blocking(self._status, False)
        self._exit = kernel.watch_exit(self._popen.pid)
        try:
            processes.started(self._popen.pid)
        except BaseException:
            self.end()
            self.close()
            raise

    @property
    def exited(self) -> bool:
        """Whether the leader has ended (it may still be uncollected)."""
        return self._cleanup is not None or self._exit.ended()

    @property
    def returncode(self) -> int | None:
        """As `subprocess` has it: negative for a signal; None when `end` could not collect the leader."""
        return self._returncode

    @property
    def words(self) -> list[str]:
        """The launcher's complete lines."""
        return self.said.decode("ascii", "replace").split("\n")[:-1]

    def await_ready(self, timeout_s: float = READY_S) -> bool:
        """Wait until the launcher says that the sandbox holds; False when it ended or took too long."""
        deadline = time.monotonic() + timeout_s
        while "ready" not in self.words and not self._status_closed and time.monotonic() < deadline:
            self.step(deadline - time.monotonic())
        return "ready" in self.words

    def release(self) -> None:
        """Let the launcher go on."""
        # A broken pipe: it was killed while it waited, and its exit status tells.
        with contextlib.suppress(BrokenPipeError):
            os.write(self._control, b"g")
        os.close(self._control)
        self._control = -1

    def step(self, timeout_s: float) -> None:
        """Take what the group printed or said, waiting at most this long for something to happen."""
        poll = select.poll()
        if not self._status_closed:
            poll.register(self._status, select.POLLIN)
        for stream in self.streams:
            if not stream.closed:
                poll.register(stream.descriptor, select.POLLIN)
        if not self.exited:
            poll.register(self._exit.fileno(), select.POLLIN)
        ready = {descriptor for descriptor, _ in poll.poll(max(0.0, timeout_s) * 1000)}
        for stream in self.streams:
            if stream.descriptor in ready:
                stream.read()
        if self._status in ready:
            word = os.read(self._status, _WORD_BYTES_LIMIT)
            self._status_closed = not word
            self.said = (self.said + word)[:_WORD_BYTES_LIMIT]

    def drain(self, timeout_s: float) -> None:
        """Take what is left in the pipes. Bounded: one who left the group may hold them open for ever."""
        deadline = time.monotonic() + timeout_s
        while not all(stream.closed or stream.over for stream in self.streams) or not self._status_closed:
            if time.monotonic() >= deadline:
                return
            self.step(deadline - time.monotonic())

    def others(self) -> int:
        """How many live processes of the group there are beside its leader; 0 when they can't be listed."""
        return len(self._others())

    def end(self) -> Cleanup:
        """Kill the group, wait until nothing of it is left, collect the leader. Safe to call again.

        Returns:
            `complete`: the group is empty. Whether a member left it for a session of its own is not known here.
            `unknown`: something of the group could not be ended. The entry of the leader stays, and the others that
            are still seen are entered too, since a group outlives its leader.
        """
        if self._cleanup is None:
            self._cleanup = "complete" if self._kill() else "unknown"
            if self._cleanup == "unknown":
                for pid in self._others():
                    self._processes.started(pid)
            if self._exit.ended():
                self._returncode = self._popen.wait()
            if self._cleanup == "complete":
                self._processes.ended(self._popen.pid)
        return self._cleanup

    def close(self) -> None:
        """Give all descriptors back."""
        for descriptor in (self._status, self._control):
            if descriptor >= 0:
                os.close(descriptor)
        self._status = self._control = -1
        for stream in (self._popen.stdout, self._popen.stderr):
            if stream is not None:
                stream.close()
        self._exit.close()
        if self._popen.returncode is None:
            # Its end is unknown and recorded as such; a Popen without a status would warn when it is dropped, and
            # collect the process at a moment of its own choosing. Nobody reads this number.
            self._popen.returncode = 0

    def _others(self) -> list[int]:
        return [pid for pid in self._kernel.group(self._popen.pid) or () if pid != self._popen.pid]

    def _kill(self) -> bool:
        deadline = time.monotonic() + END_S
        while True:
            # 1. The order matters: whether the leader was dead *before* the signal decides what EPERM means.
            leader_was_dead = self._exit.ended()
            try:
                self._kernel.kill_group(self._popen.pid)
            except ProcessLookupError:
                if leader_was_dead:
                    return True
            except PermissionError:
                # 2. On macOS a group of nothing but zombies answers like this. With a live leader it is a refusal.
                if leader_was_dead:
                    return True
            # 3. Signalled; a group that can't be listed needs the answers above to count as empty.
            if leader_was_dead and self._listed_empty():
                return True
            if time.monotonic() >= deadline:
                return False
            self._pause()

    def _listed_empty(self) -> bool:
        members = self._kernel.group(self._popen.pid)
        return members is not None and all(pid == self._popen.pid for pid in members)

    def _pause(self) -> None:
        poll = select.poll()
        if not self._exit.ended():
            poll.register(self._exit.fileno(), select.POLLIN)
        poll.poll(_PAUSE_S * 1000)
