from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from firsthand.errors import PluginError
from firsthand.isolation.interface import Backend
from firsthand.plugins import BACKENDS, discover, load


def load_named(name: str) -> object:
    return load(discover(BACKENDS).find(name), timeout_s=30)


def test_loading_constructs_the_plugin(site: Any) -> None:
    module = site.install("acme-box", "acme")
    backend = load_named("acme")
    assert isinstance(backend, Backend)
    assert type(backend).__module__ == module


def test_only_the_named_plugin_is_imported(site: Any) -> None:
    site.install("acme-box", "acme")
    other = site.install("other-box", "other")
    load_named("ACME")
    assert other not in sys.modules


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("import sys; sys.exit(0)\n", "SystemExit"),
        ("raise KeyboardInterrupt\n", "KeyboardInterrupt"),
        ("import os; os._exit(0)\n", "ended the process"),
        ("import os; os.umask(0)\nclass Backend:\n name='acme'\n availability=enclose=print\n", "the umask"),
        ("raise ValueError('why')\n", "ValueError: why"),
    ],
)
def test_a_broken_plugin_never_reaches_this_process_and_the_others_load(site: Any, source: str, expected: str) -> None:
    module = site.install("acme-box", "acme", source)
    site.install("good-box", "good")
    with pytest.raises(PluginError) as caught:
        load_named("acme")
    error = caught.value
    assert error.code == "plugin_invalid"
    assert error.exit_status != 0
    assert "'acme' of acme-box 1.0" in error.message
    assert expected in error.message
    assert error.next_step
    assert module not in sys.modules
    assert isinstance(load_named("good"), Backend)


ONLY_HERE = "import os\nif os.getpid() == {pid}:\n    {act}\n"


@pytest.mark.parametrize(
    ("act", "expected"),
    [
        ("raise SystemExit(0)", "SystemExit: 0"),
        ("raise AssertionError('no')", "AssertionError: no"),
        ("raise GeneratorExit", "GeneratorExit"),
        ("import no_such_module_anywhere", "ModuleNotFoundError"),
    ],
)
def test_what_fails_only_here_is_an_error_too(site: Any, act: str, expected: str) -> None:
    source = ONLY_HERE.format(pid=os.getpid(), act=act)
    source += "class Backend:\n name='acme'\n availability=enclose=print\n"
    site.install("acme-box", "acme", source)
    with pytest.raises(PluginError, match=expected) as caught:
        load_named("acme")
    assert caught.value.__cause__ is not None


def test_the_users_interruption_is_not_taken_for_a_failure(site: Any) -> None:
    source = ONLY_HERE.format(pid=os.getpid(), act="raise KeyboardInterrupt")
    source += "class Backend:\n name='acme'\n availability=enclose=print\n"
    site.install("acme-box", "acme", source)
    with pytest.raises(KeyboardInterrupt):
        load_named("acme")


def test_members_and_name_are_checked_here_as_well(site: Any) -> None:
    source = f"import os\nhere = os.getpid() == {os.getpid()}\nclass Backend:\n availability=print\n"
    site.install("acme-box", "acme", source + " name='acme'\n if not here: enclose=print\n")
    with pytest.raises(PluginError, match="lacks enclose"):
        load_named("acme")
    site.install("beta-box", "beta", source + " name='other' if here else 'beta'\n enclose=print\n")
    with pytest.raises(PluginError, match="another name"):
        load_named("beta")


def test_a_plugin_that_is_falsy_is_still_the_object_and_not_its_class(site: Any) -> None:
    source = "class Backend:\n name='acme'\n availability=enclose=print\n def __bool__(self): return False\n"
    site.install("acme-box", "acme", source)
    assert not isinstance(load_named("acme"), type)


PROGRAM = """
import sys
sys.path[:] = {path!r}
from firsthand.plugins import *
print(type(load(discover(BACKENDS).find("acme"))).__module__)
"""


def run_in_new_process(cache: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", PROGRAM.format(path=sys.path)],
        env={**os.environ, "XDG_CACHE_HOME": str(cache)},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.skipif(
    sys.executable.startswith("/tmp"), reason="stevedore keeps no disk cache for an interpreter below /tmp"
)
def test_the_disk_cache_of_entry_points_is_neither_written_nor_believed(site: Any, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    module = site.install("acme-box", "acme")
    assert run_in_new_process(cache).stdout.strip() == module
    assert not cache.exists()
    # The attack: the cache as stevedore's own discovery leaves it, edited to point the name at other code.
    evil = site.install("evil-box", "evil")
    warm = f"import sys; sys.path[:] = {sys.path!r}\nfrom stevedore import _cache\n_cache.get_group_all({BACKENDS!r})"
    env = {**os.environ, "XDG_CACHE_HOME": str(cache)}
    subprocess.run([sys.executable, "-c", warm], env=env, check=True)
    for file in (cache / "python-entrypoints").iterdir():
        data = json.loads(file.read_text())
        data["groups"][BACKENDS] = [["acme", f"{evil}:Backend", BACKENDS]]
        file.write_text(json.dumps(data))
    peek = warm.replace("_cache.get_group_all", "print(_cache.get_group_all") + ")"
    believed = subprocess.run([sys.executable, "-c", peek], env=env, capture_output=True, text=True, check=True)
    assert evil in believed.stdout  # the attack works on whoever asks the cache
    assert run_in_new_process(cache).stdout.strip() == module
