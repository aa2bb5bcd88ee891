"""Reports of batteries that passed, kept for as long as nothing changes that they depend on.

A report is only a saving of time. What can't be read, was not written by this user, is not exactly what this version
would write, or belongs to other circumstances is treated as if it were not there.
"""

from __future__ import annotations

import json
import os
import secrets
import stat
from contextlib import suppress
from pathlib import Path
from typing import Final

from firsthand.canonical import JSONValue, StrictJSONError, canonical_bytes, canonical_digest, parse_strict
from firsthand.errors import FirsthandError
from firsthand.files.reading import read_open_file
from firsthand.files.writing import make_private_folder, open_private_folder, write_fresh
from firsthand.isolation.battery.catalogue import battery_digest
from firsthand.isolation.battery.interpreter import host_interpreter
from firsthand.isolation.battery.machine import boot_id, circumstances, kernel
from firsthand.isolation.battery.run import platform_probes, verdict
from firsthand.records import BackendIdentity, BatteryReport, ProbeResult

_LIMIT_BYTES: Final = 1024 * 1024
_KEPT: Final = 32
_PREFIX: Final = "battery-"
_FILE_MODE: Final = 0o600


class ReportCache:
    """Reports in a private folder, a file for each set of circumstances; the folder may hold other things beside."""

    def __init__(self, folder: Path) -> None:
        """Name the folder; it is made (0700) when something is first kept."""
        self._folder = folder

    def find(self, identity: BackendIdentity) -> BatteryReport | None:
        """The report of a passed battery of this backend under exactly today's circumstances, if there is one."""
        key = cache_key(identity)
        try:
            raw = self._read(_name(key))
            return None if raw is None else _understand(raw, key, identity)
        except (OSError, ValueError, FirsthandError):
            # Damaged, foreign or of another shape: never trusted, never mended.
            return None

    def keep(self, report: BatteryReport) -> None:
        """Write a passed report. A cache that can't be written costs time, not correctness: nothing is raised."""
        if not report.passed:
            return
        key = cache_key(report.backend)
        data = canonical_bytes({"key": key, "report": report.as_json()})
        with suppress(OSError, FirsthandError):
            if not self._folder.exists():
                make_private_folder(self._folder)
            folder = open_private_folder(self._folder)
            try:
                fresh = f"{_PREFIX}{secrets.token_hex(8)}.new".encode()
                write_fresh(folder, fresh, data, _FILE_MODE)
                os.replace(fresh, _name(key), src_dir_fd=folder, dst_dir_fd=folder)
                _forget_oldest(folder)
            finally:
                os.close(folder)

    def _read(self, name: bytes) -> bytes | None:
        """The file's bytes, if folder and file are this user's alone and no links."""
        folder = open_private_folder(self._folder)
        try:
            descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
        finally:
            os.close(folder)
        try:
            found = os.fstat(descriptor)
            alone = (found.st_uid, stat.S_IMODE(found.st_mode), found.st_nlink) == (os.geteuid(), _FILE_MODE, 1)
            return read_open_file(descriptor, _LIMIT_BYTES, os.fsdecode(name)).data if alone else None
        finally:
            os.close(descriptor)


def cache_key(identity: BackendIdentity) -> dict[str, JSONValue]:
    """Everything that a report depends on: backend, launcher, profile, battery, boot, kernel and its limits, user."""
    return {
        "backend": identity.as_json(),
        "battery": battery_digest(),
        "boot": boot_id(),
        "kernel": kernel(),
        "uid": os.geteuid(),
        "python": host_interpreter().path,
        "home": os.path.expanduser("~"),
        "circumstances": circumstances(),
    }


def _name(key: dict[str, JSONValue]) -> bytes:
    return f"{_PREFIX}{canonical_digest(key)}.json".encode()


def _understand(raw: bytes, key: dict[str, JSONValue], identity: BackendIdentity) -> BatteryReport | None:
    """The report in a file, if each of these holds; raises or gives None otherwise.

    1. The file is canonical JSON of a key and a report, and the key is today's.
    2. The report is of this backend, this battery, this boot, this kernel and this user.
    3. It answers exactly this platform's probes, with the weights that they have.
    4. Every required probe passed, whatever the report itself says.
    """
    value = parse_strict(raw, limit_bytes=_LIMIT_BYTES)
    if not isinstance(value, dict) or set(value) != {"key", "report"} or value["key"] != key:
        return None
    # All keys are ASCII and no number is a float: the standard writer's sorted form is the canonical one, and faster.
    if json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode() != raw:
        raise StrictJSONError("not canonical")
    report = BatteryReport.model_validate_json(json.dumps(value["report"]))
    of_today = (report.backend, report.battery_digest, report.boot_id, report.kernel, report.uid) == (
        identity,
        key["battery"],
        key["boot"],
        key["kernel"],
        key["uid"],
    )
    return report if of_today and report.passed and _answers_all(report.probes) and verdict(report.probes) else None


def _answers_all(results: tuple[ProbeResult, ...]) -> bool:
    probes = platform_probes()
    if [probe.id for probe in probes] != [result.id for result in results]:
        return False
    for probe, result in zip(probes, results, strict=True):
        weight = probe.weight()
        may_be_optional = weight == "shown" or (weight == "where-offered" and result.result == "no-control")
        if not result.required and not may_be_optional:
            return False
    return True


def _forget_oldest(folder: int) -> None:
    """Keep few reports: each boot leaves one that will never be asked for again. Other files are not ours."""
    ages = []
    for name in filter(lambda name: name.startswith(_PREFIX), os.listdir(folder)):
        with suppress(FileNotFoundError):
            ages.append((os.stat(name, dir_fd=folder, follow_symlinks=False).st_mtime_ns, name))
    for _, name in sorted(ages, reverse=True)[_KEPT:]:
        with suppress(OSError):
            os.unlink(name, dir_fd=folder)
