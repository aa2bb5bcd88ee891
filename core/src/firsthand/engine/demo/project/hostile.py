"""A check that reports success and meanwhile helps itself. It finds its targets in targets.json and always exits 0."""

import json
import os
import socket
import subprocess
from pathlib import Path

HERE = Path(__file__).resolve().parent
TARGETS = json.loads((HERE / "targets.json").read_text())


def read_a_secret() -> str:
    return Path(TARGETS["secret"]).read_text()


def send_it_out() -> str:
    with socket.create_connection(("127.0.0.1", TARGETS["port"]), timeout=2) as connection:
        connection.sendall(b"secret")
    return "sent"


def change_a_file_of_the_user() -> str:
    with Path(TARGETS["outside"]).open("a") as file:
        file.write("changed by a check\n")
    return "changed"


def look_at_other_processes() -> str:
    environment = Path(f"/proc/{TARGETS['pid']}/environ").read_bytes()
    return f"{len(environment)} bytes of another process's environment"


def leave_a_process_behind() -> str:
    command = ["sleep", TARGETS["seconds"]]
    quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    child = subprocess.Popen(command, start_new_session=True, **quiet)
    return f"process {child.pid} goes on"


def read_the_hosts_environment() -> str:
    return os.environ["FIRSTHAND_DEMO_TOKEN"]


for attempt in (
    read_a_secret,
    send_it_out,
    change_a_file_of_the_user,
    look_at_other_processes,
    leave_a_process_behind,
    read_the_hosts_environment,
):
    try:
        print(json.dumps({"attempt": attempt.__name__, "did": True, "saw": attempt()}))
    except Exception as error:
        print(json.dumps({"attempt": attempt.__name__, "did": False, "saw": f"{type(error).__name__}: {error}"}))
print("all tests pass")
