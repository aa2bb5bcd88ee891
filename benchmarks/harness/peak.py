"""Runs one command and prints its exit status and peak memory; standard library only, started by itself.

    python -I -S peak.py COMMAND...

The kernel starts a process's peak at that of the process that started it. This one is small, so that the figure is the
command's own. It includes the children that the command waited for (the launcher, not what runs inside its sandbox,
which is collected by the sandbox's own process 1), so it can only be too large.
"""

import json
import os
import subprocess
import sys

process = subprocess.Popen(sys.argv[1:], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
said = b"" if process.stderr is None else process.stderr.read()
_, status, usage = os.wait4(process.pid, 0)
print(
    json.dumps(
        {
            "exit": os.waitstatus_to_exitcode(status),
            "peak_bytes": usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024),
            "said": said[-2000:].decode(errors="replace"),
        }
    )
)
