"""Which registered files may be broken on purpose: implementation only, judged by name."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import Final

TEST_FOLDERS: Final = frozenset({"test", "tests", "__tests__", "spec", "testdata", "fixtures"})
TEST_NAMES: Final = ("test_*", "*_test.*", "*.test.*", "*.spec.*", "conftest.py")
CONFIGURATION_NAMES: Final = ("*.json", "*.toml", "*.ini", "*.cfg", "*.yml", "*.yaml", "makefile", "gnumakefile")


def mutation_fault(path: str) -> tuple[str, str] | None:
    """Why a path is not implementation (reason, what it matched), or None. Case does not count."""
    names = path.casefold().split("/")
    for name in names:
        if name in TEST_FOLDERS:
            return "test-file", name
    test = next((pattern for pattern in TEST_NAMES if fnmatchcase(names[-1], pattern)), None)
    if test is not None:
        return "test-file", test
    if any(name.startswith(".") for name in names):
        return "configuration-file", "a name that starts with a dot"
    configuration = next((pattern for pattern in CONFIGURATION_NAMES if fnmatchcase(names[-1], pattern)), None)
    return None if configuration is None else ("configuration-file", configuration)
