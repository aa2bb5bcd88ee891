from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from firsthand.plugins import BACKENDS, Observation, discover, inspect_plugin


def inspect_named(name: str, timeout_s: float = 20.0) -> Observation:
    return inspect_plugin(discover(BACKENDS).find(name), timeout_s=timeout_s)


def reason_of(site: Any, source: str, *, attribute: str = "Backend", timeout_s: float = 20.0) -> str:
    site.install("acme-box", "acme", source, attribute=attribute)
    problem = inspect_named("acme", timeout_s).problem
    assert problem is not None
    assert problem.owners == ("acme-box 1.0",)
    assert problem.name == "acme"
    assert problem.next_step
    assert problem.reason.isprintable()
    return problem.reason


GOOD = """
class Backend:
    name = "acme"
    def availability(self): ...
    def enclose(self, workspace, limits, processes): ...
"""


def test_a_sound_plugin_has_no_problem_and_stays_out_of_this_process(site: Any) -> None:
    module = site.install("acme-box", "acme")
    assert inspect_named("acme").problem is None
    assert module not in sys.modules


def test_the_shipped_backends_are_sound() -> None:
    for plugin in discover(BACKENDS).plugins:
        if plugin.shipped:
            assert inspect_plugin(plugin, timeout_s=60).problem is None


@pytest.mark.parametrize(
    ("source", "attribute", "expected"),
    [
        ("", "Backend", "importing it failed: AttributeError"),
        ("def broken(:\n", "Backend", "importing it failed: SyntaxError"),
        ("import no_such_dependency_of_acme\n", "Backend", "ModuleNotFoundError: No module named 'no_such_dependency"),
        ("from os import no_such_name\n", "Backend", "importing it failed: ImportError"),
        ("def Backend(): raise OSError('no device')\n", "Backend", "constructing it failed: OSError: no device"),
        ("Backend = 3\n", "Backend", "constructing it failed: TypeError"),
        ("class Backend: name = 'acme'\n", "Backend", "lacks availability, enclose"),
        (GOOD.replace('"acme"', '"other"'), "Backend", "calls itself 'other'"),
        (
            GOOD + "    @property\n    def name(self): raise SystemExit(0)\n",
            "Backend",
            "it fails when asked: SystemExit",
        ),
        ("import sys; sys.exit(0)\n", "Backend", "importing it failed: SystemExit: 0"),
        ("raise KeyboardInterrupt\n", "Backend", "importing it failed: KeyboardInterrupt"),
        ("class E(Exception):\n    def __str__(self): raise SystemExit(0)\nraise E\n", "Backend", "can't be read"),
        ("raise Exception('\\x1b]0;evil\\x07' + 'x' * 100000)\n", "Backend", r"Exception: \x1b]0;evil\x07xxx"),
    ],
)
def test_a_failure_is_told_with_its_reason(site: Any, source: str, attribute: str, expected: str) -> None:
    assert expected in reason_of(site, source, attribute=attribute)


def test_a_module_that_is_gone(site: Any) -> None:
    module = site.install("acme-box", "acme")
    (site.folder / f"{module}.py").unlink()
    problem = inspect_named("acme").problem
    assert problem is not None
    assert f"No module named '{module}'" in problem.reason


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("import os; os._exit(0)\n", "ended the process that imported it (exit status 0)"),
        ("import os; os.kill(os.getpid(), 9)\n", "ended the process that imported it (SIGKILL)"),
        ("import os\nfor fd in range(3, 256):\n    try: os.close(fd)\n    except OSError: pass\n" + GOOD, "ended the"),
    ],
)
def test_a_silent_end_is_a_failure_even_with_status_0(site: Any, source: str, expected: str) -> None:
    assert expected in reason_of(site, source)


@pytest.mark.parametrize("source", ["while True: pass\n", "import time; time.sleep(600)\n", "input()\ninput()\n"])
def test_it_is_bounded_in_time(site: Any, source: str) -> None:
    started = time.monotonic()
    reason = reason_of(site, source, timeout_s=2.0)
    assert "did not end within 2 s" in reason or "EOFError" in reason
    assert time.monotonic() - started < 10


def test_it_is_bounded_in_memory(site: Any) -> None:
    assert "importing it failed: MemoryError" in reason_of(site, "keep = bytearray(8 * 1024**3)\n" + GOOD)


@pytest.mark.parametrize(
    ("statement", "effect"),
    [
        ("print('{}')", "standard output"),
        ("os.write(1, b'{}')", "standard output"),
        ("subprocess.run(['/bin/echo', 'x'])", "standard output"),
        ("os.chdir('/tmp')", "the working directory"),
        ("os.umask(0)", "the umask"),
        ("os.environ['PATH'] = '/evil'", "the environment"),
        ("signal.signal(signal.SIGALRM, print)", "the handler of SIGALRM"),
        ("signal.alarm(100)", "the timer of SIGALRM"),
        ("subprocess.Popen = print", "subprocess.Popen"),
        ("subprocess.Popen.__init__ = print", "subprocess.Popen.__init__"),
        ("sys.stdout = sys.stderr", "sys.stdout"),
        ("sys.excepthook = print", "sys.excepthook"),
        ("import builtins; builtins.open = print", "open"),
    ],
)
def test_an_effect_on_the_process_is_named(site: Any, statement: str, effect: str) -> None:
    reason = reason_of(site, f"import os, signal, subprocess, sys\n{statement}\n{GOOD}")
    assert "importing it alters the process" in reason
    assert effect in reason


def host_state() -> tuple[object, ...]:
    umask = os.umask(0o022)
    os.umask(umask)
    handlers = tuple(repr(signal.getsignal(number)) for number in signal.valid_signals())
    limits = tuple(resource.getrlimit(limit) for limit in (resource.RLIMIT_DATA, resource.RLIMIT_CPU))
    descriptors = tuple(sorted(os.listdir("/dev/fd"))) if Path("/dev/fd").exists() else ()
    return (
        Path.cwd(),
        umask,
        handlers,
        limits,
        dict(os.environ),
        subprocess.Popen,
        signal.getitimer(signal.ITIMER_REAL)[1],
        descriptors,
        threading.active_count(),
    )


def test_the_host_is_left_as_it_was(site: Any, capfd: pytest.CaptureFixture[str]) -> None:
    site.install(
        "acme-box",
        "acme",
        "import os, signal, subprocess, sys\n"
        "print('{}'); os.chdir('/'); os.umask(0); signal.signal(signal.SIGALRM, print); subprocess.Popen = print\n"
        "os.environ['A'] = 'B'; sys.stderr.write('noise'); os.kill(os.getppid(), 0)\n" + GOOD,
    )
    before = host_state()
    problem = inspect_named("acme").problem
    assert problem is not None
    assert host_state() == before
    assert capfd.readouterr() == ("", "")


def test_a_forged_message_does_not_count(site: Any) -> None:
    source = (
        "import os\n"
        'message = b\'{"stage": "loaded", "missing": [], "name": "acme", "effects": []}\'\n'
        "framed = b'firsthand-inspection ' + b'0' * 32 + b' %d\\n' % len(message) + message\n"
        "for fd in range(64):\n"
        "    try: os.write(fd, framed)\n"
        "    except OSError: pass\n"
        "os._exit(0)\n"
    )
    assert "ended the process that imported it" in reason_of(site, source)


def test_what_it_leaves_behind_in_its_group_is_killed_and_holds_nothing_up(site: Any, tmp_path: Path) -> None:
    pidfile = tmp_path / "pid"
    source = (
        "import os, time\n"
        "pid = os.fork()\n"
        "if pid == 0:\n"
        "    time.sleep(600)\n"
        f"open({str(pidfile)!r}, 'w').write(str(pid))\n" + GOOD
    )
    site.install("acme-box", "acme", source)
    started = time.monotonic()
    observation = inspect_named("acme", timeout_s=60)
    assert time.monotonic() - started < 30
    assert observation.problem is None
    pid = int(pidfile.read_text())
    # The kill was sent before the inspection returned; the process table may take a moment to show it.
    deadline = time.monotonic() + 10
    while _running(pid):
        assert time.monotonic() < deadline


def _running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_it_sees_no_secret_of_the_environment(site: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACME_TOKEN", "s3cret")
    reason = reason_of(site, "import os\nraise Exception(sorted(os.environ))\n")
    assert "ACME_TOKEN" not in reason


def test_the_child_ends_with_the_inspecting_process(site: Any, tmp_path: Path) -> None:
    pidfile = tmp_path / "pid"
    site.install(
        "acme-box",
        "acme",
        f"import os, time\nopen({str(pidfile)!r} + '.new', 'w').write(str(os.getpid()))\n"
        f"os.rename({str(pidfile)!r} + '.new', {str(pidfile)!r})\ntime.sleep(600)\n",
    )
    program = (
        f"import sys; sys.path[:] = {sys.path!r}\n"
        "from firsthand.plugins import *\n"
        "inspect_plugin(discover(BACKENDS).find('acme'), timeout_s=600)\n"
    )
    host = subprocess.Popen([sys.executable, "-c", program])
    deadline = time.monotonic() + 60
    while not pidfile.exists():
        assert time.monotonic() < deadline
        assert host.poll() is None
    host.kill()
    host.wait()
    pid = int(pidfile.read_text())
    while _running(pid):
        assert time.monotonic() < deadline
