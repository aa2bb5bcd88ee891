"""Programs that stand in for sandbox-exec: they confine nothing, and are only ever given to tests."""

from __future__ import annotations

from pathlib import Path

# Takes the options that sandbox-exec takes and executes the rest.
PASS_THROUGH = """#!/bin/sh
while [ $# -gt 0 ]; do
  case "$1" in
    -p|-D) [ $# -ge 2 ] || exit 64; shift 2 ;;
    *) break ;;
  esac
done
unset PWD OLDPWD  # the shell's own addition
exec "$@"
"""
PROFILE_ERROR = """#!/bin/sh
echo 'sandbox-exec: profile.sb:12: unbound variable: fyle' >&2
exit 65
"""
APPLY_ERROR = """#!/bin/sh
echo 'sandbox-exec: sandbox_apply: Operation not permitted' >&2
exit 71
"""
DENIED_EXEC = """#!/bin/sh
echo "sandbox-exec: execvp() of 'python' failed: Operation not permitted" >&2
exit 71
"""
SILENT = """#!/bin/sh
exit 0
"""
HANGING = """#!/bin/sh
exec sleep 600
"""
KILLED = """#!/bin/sh
kill -SEGV $$
"""
# Claims to be ready by printing the word where a command can print, not where only the launcher can.
LYING = """#!/bin/sh
echo ready; echo ready >&2
exit 0
"""


def stand_in(folder: Path, text: str) -> str:
    path = folder / "sandbox-exec"
    path.write_text(text)
    path.chmod(0o755)
    return str(path)
