from __future__ import annotations

import os
import select
import subprocess
import sys
from pathlib import Path

import pytest

from checks.yard import real_backend

CHILD = Path(__file__).with_name("kill_child.py")
ENDS_WITHIN_S = 2.0


@pytest.mark.skipif(isinstance(real_backend(), str), reason=f"no sandbox here: {real_backend()}")
def test_a_kill_while_the_mutation_stands_leaves_the_source_and_no_process(tmp_path: Path) -> None:
    folder = tmp_path / "yard"
    child = subprocess.Popen([sys.executable, CHILD, folder], stdout=subprocess.PIPE, text=True)
    try:
        assert child.stdout is not None
        running = [os.pidfd_open(int(pid)) for pid in child.stdout.readline().split()]
    finally:
        child.kill()
        child.communicate()
    assert running, "the mutated check was running"
    (copy,) = folder.glob("session/lane-*/copy")
    assert (copy / "value.sh").read_text() == "X=9\n"
    assert (folder / "project" / "value.sh").read_text() == "X=1\n"
    for descriptor in running:
        ended, _, _ = select.select([descriptor], [], [], ENDS_WITHIN_S)
        os.close(descriptor)
        assert ended, "a process outlived the kill"
