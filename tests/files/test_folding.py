from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from firsthand.files import Folding, probe_folding

NFC = "caf\N{LATIN SMALL LETTER E WITH ACUTE}"
NFD = "cafe\N{COMBINING ACUTE ACCENT}"


@pytest.mark.parametrize(
    ("folding", "one", "other", "same"),
    [
        (Folding(), "a", "A", False),
        (Folding(), NFC, NFD, False),
        (Folding(case=True), "README", "readme", True),
        (Folding(case=True), "stra\N{LATIN SMALL LETTER SHARP S}e", "STRASSE", True),
        (Folding(case=True), NFC, NFD, False),
        (Folding(unicode=True), NFC, NFD, True),
        (Folding(unicode=True), "a", "A", False),
        (Folding(case=True, unicode=True), NFC.upper(), NFD, True),
    ],
)
def test_names_are_folded_as_the_file_system_does(folding: Folding, one: str, other: str, *, same: bool) -> None:
    assert (folding.fold(one) == folding.fold(other)) is same


def test_the_file_system_is_asked_and_left_clean(tmp_path: Path) -> None:
    fd = os.open(tmp_path, os.O_RDONLY)
    found = probe_folding(fd)
    os.close(fd)
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "name").write_bytes(b"")
    assert found.case == (tmp_path / "NAME").exists()


def test_a_folding_folder_is_recognised(tmp_path: Path) -> None:
    """On ext4 with the casefold feature, which few machines have switched on."""
    if sys.platform != "linux":
        pytest.skip("Linux only")
    chattr = shutil.which("chattr")
    if chattr is None or subprocess.run([chattr, "+F", tmp_path], check=False, capture_output=True).returncode != 0:
        pytest.skip("no file system here that folds case")
    fd = os.open(tmp_path, os.O_RDONLY)
    found = probe_folding(fd)
    os.close(fd)
    assert found == Folding(case=True, unicode=True)
