"""What a sandboxed check costs beyond bwrap's own start."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace

from benchmarks.harness.bench import Bench
from benchmarks.harness.clock import in_turns, timed
from benchmarks.harness.row import CannotRunError, Row, Samples
from benchmarks.projects.plain import plain_project

from firsthand.checks import Lane
from firsthand.engine.preparation import prepare
from firsthand.isolation.interface import Limits, Request, Workspace
from firsthand.plugins import Observers

_FILES = 20
_BYTES = 1024 * 1024
_TRUE = "/usr/bin/true"
_LIMIT_MS = 15.0


def check(bench: Bench) -> Iterator[Row]:
    """`true` in a lane (settle, run, settle) against bwrap alone with the same options and the same program."""
    if sys.platform != "linux":
        raise CannotRunError("bwrap exists on Linux only")
    root = bench.scratch / "project"
    config = plain_project(root, files=_FILES, total_bytes=_BYTES)
    with prepare(config, bench.state, Observers()) as prepared, Lane(prepared.ground, 0) as lane:
        if prepared.selected.identity.name != "bubblewrap":
            raise CannotRunError(f"the selected backend is {prepared.selected.identity.name}")
        request = Request(argv=("true",), executable=_TRUE, timeout_s=60.0)
        workspace = replace(prepared.ground.template, copy=lane.copy_path, private=lane.copy_path.parent / "private")
        settled = prepared.snapshot.working_copy(bench.scratch / "settled")

        def own() -> None:
            outcome = lane.execute(request).result.outcome
            if outcome.exit_code != 0:
                raise CannotRunError(f"`true` in the sandbox: {outcome}")

        bwrap = _Bwrap(workspace)
        seconds = in_turns(
            (timed(own), timed(bwrap.run), timed(bwrap.run_limited), timed(settled.settle)), bench.times(60), warm_up=3
        )
    lane_ms, bwrap_ms, limited_ms = (
        Samples.of_seconds(name, values)
        for name, values in zip(("lane", "bwrap", "bwrap, limits, uid"), seconds, strict=False)
    )
    yield Row(
        about="a check of `true`, 20 files, 1 MiB",
        own=lane_ms,
        other=bwrap_ms,
        figure="added",
        limit=_LIMIT_MS,
        note="settle, run, settle, against bwrap with the same options, seccomp program and status file, and `true`",
    )
    yield Row(
        about="the same beside a chain with limits and uid",
        own=lane_ms,
        other=limited_ms,
        figure="added",
        note="here bwrap also goes through prlimit and, as root, setpriv, which every hardened command line needs",
    )
    yield Row(
        about="of it: one settlement",
        own=Samples.of_seconds("settle", seconds[3]),
        other=None,
        figure="own",
        note="leftovers removed, 20 files read and hashed; a check has two",
    )


class _Bwrap:
    """bwrap run plainly, with the option set, seccomp program and status file that the backend gives it."""

    def __init__(self, workspace: Workspace) -> None:
        from firsthand_bubblewrap import seccomp  # noqa: PLC0415 # Linux only
        from firsthand_bubblewrap.launcher import Unusable, find_launcher  # noqa: PLC0415 # the same
        from firsthand_bubblewrap.options import Account, options  # noqa: PLC0415 # the same
        from firsthand_bubblewrap.system import runtime_options  # noqa: PLC0415 # the same

        launcher = find_launcher()
        if isinstance(launcher, Unusable):
            raise CannotRunError(launcher.reason)
        self._launcher = launcher.path
        uid = os.stat(workspace.copy).st_uid if os.geteuid() == 0 else None
        arguments = options(workspace, Limits(), Account(uid), runtime_options(), environment={})
        self._options = "".join(f"{option}\0" for option in arguments).encode()
        self._seccomp = seccomp.program(os.uname().machine)
        self._chain = ["/usr/bin/prlimit", "--nproc=512", "--core=0", "--"]
        if uid is not None:
            self._chain += ["/usr/bin/setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups"]
            self._chain += ["--bounding-set=-all", "--inh-caps=-all", "--no-new-privs", "--"]

    def run(self) -> None:
        """`true` right behind bwrap."""
        self._run([_TRUE])

    def run_limited(self) -> None:
        """`true` behind the programs that set limits and account."""
        self._run([*self._chain, _TRUE])

    def _run(self, command: list[str]) -> None:
        files = [_memory_file(content) for content in (self._options, self._seccomp, b"")]
        try:
            head = ["--args", str(files[0]), "--seccomp", str(files[1]), "--json-status-fd", str(files[2])]
            ended = subprocess.run(
                [self._launcher, *head, "--", *command],
                env={},
                cwd="/",
                stdin=subprocess.DEVNULL,
                capture_output=True,
                pass_fds=files,
                start_new_session=True,
                check=False,
            )
        finally:
            for file in files:
                os.close(file)
        if ended.returncode != 0:
            raise CannotRunError(f"plain bwrap: {ended.stderr.decode(errors='replace').strip()}")


def _memory_file(content: bytes) -> int:
    descriptor = os.memfd_create("bench", os.MFD_CLOEXEC)
    os.write(descriptor, content)
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor
