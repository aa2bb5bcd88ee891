"""Reports that lie, or that are no reports."""

from __future__ import annotations

from checks.yard import PYTEST
from truth.case import BREAK, Case, check, pytest, report_of, script

REPORTS: tuple[Case, ...] = (
    *(
        check(
            f"a report that is {what}",
            PYTEST,
            {"conftest.py": report_of(program), "test_value.py": "def test_a(): pass\n"},
            f"inconclusive {cause}",
            quick=what in {"a link", "a document type"},
        )
        for what, program, cause in (
            ("a link", "os.remove(report); os.symlink('/etc/passwd', report)", "report-unreadable"),
            ("a pipe", "os.remove(report); os.mkfifo(report)", "report-unreadable"),
            ("a folder", "os.remove(report); os.mkdir(report)", "report-unreadable"),
            ("huge", "open(report, 'ab').write(b' ' * 17_000_000)", "report-unreadable"),
            (
                "a document type",
                "t = open(report).read(); open(report, 'w').write('<!DOCTYPE x []>' + t[t.index('<testsuites') :])",
                "report-unreadable",
            ),
            ("something else", "open(report, 'w').write('<html/>')", "report-unreadable"),
            ("cut off", "text = open(report).read(); open(report, 'w').write(text[:-20])", "ended-early"),
            ("empty", "open(report, 'w').close()", "ended-early"),
        )
    ),
    check(
        "exit 0 with a failed test",
        PYTEST,
        {
            "conftest.py": "def pytest_sessionfinish(session):\n    session.exitstatus = 0\n",
            "test_value.py": "def test_a(): assert 0\n",
        },
        "inconclusive report-contradicts-exit",
        quick=True,
    ),
    check(
        "a forged report of success with exit 1",
        PYTEST,
        {
            "conftest.py": report_of("open(report, 'w').write('<testsuites><testcase name=\"a\"/></testsuites>')"),
            "test_value.py": "def test_a(): assert 0\n",
        },
        "failed exit-nonzero",
    ),
    pytest(
        "exit 1 with no failed test",
        BREAK,
        "inconclusive report-contradicts-exit",
        test="def test_a(): pass\n",
        files={
            "conftest.py": "import value\n\n\ndef pytest_sessionfinish(session):\n"
            "    if value.add(1, 2) != 3:\n        session.exitstatus = 1\n"
        },
    ),
    pytest(
        "a failed test that the baseline never had",
        BREAK,
        "inconclusive failed-test-not-in-baseline",
        test="import pytest, value\n\n\n@pytest.mark.parametrize('x', [value.add(1, 2)])\n"
        "def test_a(x):\n    assert x == 3\n",
    ),
    script(
        "a summary without any test run",
        "echo 'Ran 3 tests in 0.1s' >&2; echo >&2; echo OK >&2; exit 1\n",
        None,
        "failed exit-nonzero",
        runner="unittest",
    ),
)
