"""Nothing goes anywhere but loopback: watched from the far end of the only way out of a network namespace."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ALONE = Path(__file__).with_name("alone.py")


def test_nothing_leaves_during_preflight_and_review(cli: Path, tmp_path: Path) -> None:
    if not hasattr(os, "getuid") or os.getuid() != 0:
        pytest.skip("a network namespace with an interface that can be listened to needs root")
    for tool in ("unshare", "ip"):
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is not installed")
    apart = (str(shutil.which("unshare")), "-n")
    if subprocess.run([*apart, sys.executable, "-c", ""], check=False, capture_output=True).returncode != 0:
        pytest.skip("no network namespace can be made here")
    done = subprocess.run(
        [*apart, sys.executable, str(ALONE), str(cli), str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout)
    assert seen["failure"] == ""
    assert len(seen["tools"]) == 4
    assert seen["preflight"] == []
    assert seen["review"] == []
    # The control: the same CLI, asked plainly, does try to leave.
    assert seen["bare"] != []
