"""`firsthand demo`."""

from __future__ import annotations

import tempfile
from pathlib import Path

from firsthand.cli.commands import check, gate, mutate, review, verify
from firsthand.cli.output import answers, end, lines, table
from firsthand.cli.progress import ProgressLine
from firsthand.engine.demo.story import Story
from firsthand.errors import EXIT_GOOD, EXIT_NEGATIVE, UsageError
from firsthand.plugins import OBSERVERS, Observers, discover
from firsthand.review.interface import ReviewError


def run(keep: Path | None) -> None:
    """Tell the story; ends with 0 when every step came out as it should."""
    if keep is not None:
        try:
            keep.mkdir(mode=0o700)
        except OSError as error:
            raise UsageError(
                f"the folder can't be made: {error.strerror}",
                where=str(keep),
                next_step="name a new folder with --keep",
            ) from error
        _tell(keep.resolve(), kept=True)
    with tempfile.TemporaryDirectory(prefix="firsthand-demo-") as folder:
        _tell(Path(folder).resolve(), kept=False)


def _tell(folder: Path, *, kept: bool) -> None:
    console = answers()
    line = ProgressLine()
    watching = Observers()
    watching.add_installed(discover(OBSERVERS).plugins)
    story = Story(folder, watching, line.probe)

    _heading("1. Two checks of a small project, in a sandbox that has just passed its battery")
    try:
        honest = story.honest()
    finally:
        line.close()
    check.show(honest)

    _heading("2. A check that says 'all tests pass' and helps itself, first without and then inside the sandbox")
    hostile, attempts = story.hostile()
    rows = [
        (attempt.what, attempt.outside, "stopped" if attempt.stopped else "NOT STOPPED", attempt.inside)
        for attempt in attempts
    ]
    console.print(table(("IT TRIES TO", "UNCONFINED", "IN THE SANDBOX", "WHAT IT MET"), rows))
    console.print(lines(f"evidence: {hostile.path}"))

    _heading("3. One line broken for each check: does it notice?")
    mutations, public = story.mutations()
    mutate.show(mutations)

    _heading("4. The evidence, verified from the file alone, and a forgery of it")
    genuine = story.verified(mutations, public)
    verify.show(genuine)
    console.print(lines("\nwith the survived mutation rewritten as detected:"))
    forged = story.tampered(mutations, public)
    verify.show(forged)

    reviewed = _reviews(story)

    verdicts = [run.verdict for run in mutations.evidence.mutations]
    good = (
        honest.evidence.status == "passed"
        and all(attempt.stopped for attempt in attempts)
        and verdicts == ["detected", "survived"]
        and genuine.signed
        and not forged.valid
        and reviewed
    )
    console.print()
    console.print(lines("as it should be" if good else "something came out differently: see above"))
    console.print(lines(f"everything is in {folder}" if kept else "to look at the files: firsthand demo --keep DIR"))
    end(EXIT_GOOD if good else EXIT_NEGATIVE)


def _reviews(story: Story) -> bool:
    """The last three chapters: whether they came out as they should, or were left out for a reason that is said."""
    console = answers()
    reviewer = story.reviewer()
    if reviewer is None:
        console.print(lines("\nno installed reviewer can play a script, so the reviews are left out"))
        return True
    _heading(f"5. A reviewer ({reviewer.name}, its real program, a scripted model) reads, checks, mutates and judges")
    try:
        honest = story.review(reviewer, "honest")
    except ReviewError as error:
        console.print(lines(f"left out: {error.message}\n  next: {error.next_step}"))
        return True
    review.show(honest)
    _heading("6. A reviewer that calls no tool and says that all tests pass")
    lying = story.review(reviewer, "lying")
    review.show(lying)
    _heading("7. What a merge is told: after the honest review, and after the lying one")
    merged, refused = story.gated("honest"), story.gated("lying")
    gate.show(merged)
    console.print()
    gate.show(refused)
    return (
        honest.sealed.evidence.status == "passed"
        and lying.sealed.evidence.code == "review_verification_evidence"
        and merged.conclusion[0] == "passed"
        and refused.conclusion[0] == "failed"
    )


def _heading(text: str) -> None:
    answers().print(lines(f"\n{text}\n"), style="bold")
