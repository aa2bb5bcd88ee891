from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from firsthand.residues.identity import boot_id, identify, is_over, own_identity

linux = pytest.mark.skipif(sys.platform != "linux", reason="/proc is Linux")


def test_this_process_is_identified_the_same_way_each_time() -> None:
    own = identify(os.getpid())
    assert own is not None
    assert own == identify(os.getpid()) == own_identity()
    assert own.start.isdecimal()
    assert own.boot == boot_id()


@linux
def test_the_boot_has_a_name() -> None:
    assert len(boot_id()) == 36


def test_two_processes_differ_and_one_that_is_gone_is_nobody(sleeper: Any) -> None:
    one, two = sleeper(), sleeper()
    assert identify(one.pid) != identify(two.pid)
    one.kill()
    one.wait()
    assert identify(one.pid) is None
    assert identify(0) is None
    assert identify(-1) is None


@linux
def test_a_hostile_name_confuses_nothing(tmp_path: Path) -> None:
    program = tmp_path / ") Z 1 1 (x"
    program.symlink_to("/bin/sleep")
    process = subprocess.Popen([str(program), "600"])
    try:
        identity = identify(process.pid)
        assert identity is not None
        assert int(identity.start) >= int(own_identity().start)
        assert not is_over(process.pid)
    finally:
        process.kill()
        # Ended and not collected: still itself, and over.
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert identify(process.pid) == identity
        assert is_over(process.pid)
        process.wait()
