"""Isolation for Linux: bubblewrap with a seccomp program of its own.

How a command runs, from the outside in: the host starts `bwrap` with an empty environment; bwrap makes the namespaces
and mounts and starts a shell as process 1, which starts a *keeper* and then becomes `cat` on the guard pipe: when the
host closes that pipe, or dies, process 1 ends and the kernel ends the whole namespace with it. The keeper starts the
*gate* and also becomes `cat`, so it never collects the gate's exit status: the host reads it, exactly as the kernel
keeps it, from the zombie's entry in /proc. The gate announces itself, waits for the host's go, and becomes the command.
"""
