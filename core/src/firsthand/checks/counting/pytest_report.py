"""pytest's JUnit XML: read as a stream, without document types or entities of its own."""

from __future__ import annotations

import re
from typing import Final, NoReturn
from xml.parsers import expat

from firsthand.checks.counting.tally import SingleTest, TestState, UnreadableReportError

_SETUP: Final = re.compile(r'\Afailed on (?:setup|teardown) with "', re.DOTALL)
_DEEPEST: Final = 32
_TRUNCATED: Final = frozenset(
    {
        expat.errors.codes[expat.errors.XML_ERROR_NO_ELEMENTS],
        expat.errors.codes[expat.errors.XML_ERROR_UNCLOSED_TOKEN],
        expat.errors.codes[expat.errors.XML_ERROR_PARTIAL_CHAR],
        expat.errors.codes[expat.errors.XML_ERROR_UNCLOSED_CDATA_SECTION],
    }
)


def read_junit(data: bytes) -> tuple[list[SingleTest], bool]:
    """The tests of a report, and whether it was written to its end.

    Raises:
        UnreadableReportError: it declares a document type or an encoding other than UTF-8, is nested too deep, or is
            not JUnit XML.
    """
    if b"\0" in data:
        # UTF-16 and the like, which the parser would recognise by itself.
        raise UnreadableReportError("not UTF-8")
    reader = _Reader()
    parser = expat.ParserCreate(encoding="utf-8")
    parser.StartDoctypeDeclHandler = _refuse_doctype
    parser.StartElementHandler = reader.start
    parser.EndElementHandler = reader.end
    try:
        parser.Parse(data, False)  # noqa: FBT003 # the parser takes its second argument by position only
        parser.Parse(b"", True)  # noqa: FBT003 # the same
    except expat.ExpatError as error:
        if error.code in _TRUNCATED:
            return reader.tests, False
        raise UnreadableReportError(f"not XML: {error}") from error
    return reader.tests, not reader.unfinished


class _Reader:
    """Collects test cases while the parser walks."""

    def __init__(self) -> None:
        self.tests: list[SingleTest] = []
        # pytest writes a case without a name where a test ended the session before it had a result.
        self.unfinished = False
        self._depth = 0
        self._name: str | None = None
        self._state: TestState = "passed"
        self._message = ""

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        if self._depth == 0 and tag not in {"testsuites", "testsuite"}:
            raise UnreadableReportError(f"not JUnit XML: it begins with {tag[:40]!r}")
        self._depth += 1
        if self._depth > _DEEPEST:
            raise UnreadableReportError(f"nested deeper than {_DEEPEST} levels")
        if tag == "testcase":
            group = attributes.get("classname", "")
            self._name = "::".join(part for part in (group, attributes.get("name", "")) if part)
            self._state, self._message = "passed", ""
        elif self._name is not None and tag in {"failure", "error"} and self._state != "failed":
            self._state, self._message = "failed", _cause(attributes.get("message", ""))
        elif self._name is not None and tag == "skipped" and self._state == "passed":
            self._state = "skipped"

    def end(self, tag: str) -> None:
        self._depth -= 1
        if tag == "testcase" and self._name is not None:
            if self._name:
                self.tests.append(SingleTest(self._name, self._state, self._message))
            else:
                self.unfinished = True
            self._name = None


def _cause(message: str) -> str:
    """The line that says what failed: a syntax error's text begins with the place and ends with the cause."""
    text = _SETUP.sub("", message)
    if text.lstrip().startswith('File "'):
        lines = [line.strip() for line in text.split("\n") if line.strip()]
        return lines[-1].rstrip('"')
    return text


def _refuse_doctype(*_: object) -> NoReturn:
    raise UnreadableReportError("it declares a document type")
