from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from firsthand.isolation.battery.traces import fresh_name, sweep

pytestmark = pytest.mark.skipif(os.name != "posix", reason="batteries run on POSIX systems only")

_NAME_IT = "from firsthand.isolation.battery.traces import fresh_name; print(fresh_name())"


def name_of_a_dead_process() -> str:
    done = subprocess.run([sys.executable, "-c", _NAME_IT], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_traces_of_a_dead_battery_go(tmp_path: Path) -> None:
    file, folder = tmp_path / name_of_a_dead_process(), tmp_path / name_of_a_dead_process()
    file.write_text("canary")
    (folder / "below").mkdir(parents=True)
    (folder / "below" / "canary").write_text("canary")
    assert sorted(sweep([str(tmp_path)])) == sorted([str(file), str(folder)])
    assert list(tmp_path.iterdir()) == []


def test_traces_of_a_living_battery_stay(tmp_path: Path) -> None:
    file = tmp_path / fresh_name()
    file.write_text("canary")
    assert sweep([str(tmp_path)]) == []
    assert file.exists()


def test_a_recycled_pid_is_told_apart(tmp_path: Path) -> None:
    name = fresh_name()
    if f"-{os.getpid()}-0-" in name:
        pytest.skip("this system does not tell when a process started")
    prefix, pid, start, mark = name.rsplit("-", 3)
    file = tmp_path / "-".join((prefix, pid, str(int(start) + 1), mark))
    file.write_text("canary")
    assert sweep([str(tmp_path)]) == [str(file)]


def test_other_names_stay_and_no_link_is_followed(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "precious").write_text("x")
    place = tmp_path / "place"
    place.mkdir()
    for other in ("notes", ".firsthand-battery", ".firsthand-battery-1-2-x", f"{name_of_a_dead_process()}.txt"):
        (place / other).write_text("x")
    link = place / name_of_a_dead_process()
    link.symlink_to(outside)
    assert sweep([str(place), str(tmp_path / "absent")]) == [str(link)]
    assert (outside / "precious").exists()
    assert len(list(place.iterdir())) == 4


@pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="only root can give a file away")
def test_what_belongs_to_another_user_stays(tmp_path: Path) -> None:
    file = tmp_path / name_of_a_dead_process()
    file.write_text("x")
    os.chown(file, 65534, 65534)
    assert sweep([str(tmp_path)]) == []
    assert file.exists()
