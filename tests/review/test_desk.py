"""The desk where a sandbox does not end as it should: nothing is served any more, and nothing counts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from checks.yard import Yard, real_backend
from firsthand.checks import CleanupUnknownError
from firsthand.isolation.interface import Backend, Enclosure, Limits, ProcessWatch, Request, Result, Workspace
from firsthand.records import Cleanup
from firsthand.review.server import CallLog, Desk
from firsthand.review.server.log import LIMIT_RECORDED, arguments_text
from review.court import FILES, Logged, open_court
from review.fake import APPROVAL, FakeProvider, use
from review.rounds import open_hall

YardMaker = Callable[..., Yard]


class Lingering:
    """The real backend, which after a command can't say whether all has ended."""

    name = "lingering"

    def __init__(self, inner: Backend, cleanup: Cleanup) -> None:
        self._inner = inner
        self._cleanup = cleanup

    def availability(self) -> Any:
        return self._inner.availability()

    def enclose(
        self, workspace: Workspace, limits: Limits, processes: ProcessWatch
    ) -> AbstractContextManager[Enclosure]:
        return self._enclose(workspace, limits, processes)

    @contextmanager
    def _enclose(self, workspace: Workspace, limits: Limits, processes: ProcessWatch) -> Iterator[Enclosure]:
        with self._inner.enclose(workspace, limits, processes) as enclosure:
            yield _Enclosure(enclosure, self._cleanup)


class _Enclosure:
    def __init__(self, inner: Enclosure, cleanup: Cleanup) -> None:
        self._inner = inner
        self._cleanup = cleanup

    def run(self, request: Request) -> Result:
        result = self._inner.run(request)
        return replace(result, outcome=result.outcome.model_copy(update={"cleanup": self._cleanup}))

    def rewrite(self, path: str, data: bytes, mode: int) -> None:
        self._inner.rewrite(path, data, mode)


def lingering(cleanup: Cleanup) -> Backend:
    backend = real_backend()
    if isinstance(backend, str):
        pytest.skip(backend)
    return Lingering(backend, cleanup)


def test_after_an_unknown_end_no_call_is_served_and_the_copy_is_kept(yard: YardMaker) -> None:
    with open_court(yard, command=("/bin/true",), runner="exit", backend=lingering("unknown")) as court:
        answers = court.ask(
            ("run_check", {"checkId": "c"}), ("read_file", {"path": "value.py"}), ("run_check", {"checkId": "c"})
        )
        assert answers[0].value["status"] == "unknown"
        assert [(call.result, call.code) for call in court.server.calls[1:]] == [
            ("refused", "review_verification_cleanup_unknown")
        ] * 2
        assert court.kept.voids == ["review_verification_cleanup_unknown"]
        spoiled = court.desk.spoiled
        assert isinstance(spoiled, CleanupUnknownError)
    assert spoiled.copy.is_dir()


def test_no_success_after_an_unknown_end(tmp_path: Path, yard: YardMaker) -> None:
    with open_hall(tmp_path, yard, command=("/bin/true",), backend=lingering("unknown")) as hall:
        reviewed = hall.hold(FakeProvider({"calls": [use("run_check", checkId="c")], "answer": APPROVAL}))
        assert isinstance(reviewed.spoiled, CleanupUnknownError)
        assert hall.conclude(reviewed)[0] != "passed"
        assert hall.kept.voids == ["review_verification_cleanup_unknown"]


def test_calls_are_answered_from_frozen_bytes_whatever_happens_to_the_source(yard: YardMaker) -> None:
    made = yard(FILES, ("/bin/true",), runner="exit")
    with Desk(made.ground, made.registered, Logged()) as desk:
        (made.project / "value.py").write_text("changed")
        assert "return x * 2" in desk.read_file({"path": "value.py"}).text
        (made.project / "value.py").write_text(FILES["value.py"])


def test_a_flood_of_calls_is_counted_and_its_records_are_bounded(yard: YardMaker) -> None:
    made = yard(FILES, ("/bin/true",), runner="exit")
    with Desk(made.ground, made.registered, Logged()) as desk:
        log = CallLog(desk.recorder)
        for _ in range(LIMIT_RECORDED + 5):
            log.answer(log.arrive("nothing", {}), "refused", "usage", "")
        assert (log.arrived, len(log.records)) == (LIMIT_RECORDED + 5, LIMIT_RECORDED)


def test_a_call_is_answered_once(yard: YardMaker) -> None:
    made = yard(FILES, ("/bin/true",), runner="exit")
    with Desk(made.ground, made.registered, Logged()) as desk:
        log = CallLog(desk.recorder)
        ticket = log.arrive("read_file", None)
        assert ticket.arguments == "{}"
        log.answer(ticket, "ok", "", "")
        with pytest.raises(ValueError, match="answered already"):
            log.answer(ticket, "ok", "", "")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"b": 1, "a": "é"}, '{"a":"é","b":1}'),
        ({"a": 1.5}, '{"a":1.5}'),
        ({"a": "\ud800"}, '{"a":"\\ud800"}'),
        ({"a": 2**60}, '{"a":1152921504606846976}'),
        ("text", '"text"'),
    ],
)
def test_arguments_have_one_text_whatever_they_hold(value: object, text: str) -> None:
    assert arguments_text(value) == text
    assert text.encode()
