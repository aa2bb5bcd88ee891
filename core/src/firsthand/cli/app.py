"""The commands and their options. Nothing here does any work: what does is imported when its command runs.

Keeping this file free of other imports is what keeps `firsthand --help` fast.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Optional

import typer

from firsthand import __version__

app = typer.Typer(
    name="firsthand",
    help="Evidence that a host saw with its own eyes: registered checks, run in an OS sandbox that just proved itself.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)
keys_app = typer.Typer(help="Make, show and trust the keys that sign evidence.", no_args_is_help=True)
app.add_typer(keys_app, name="keys")
runs_app = typer.Typer(
    help="See what the ledger knows of runs and rounds, and close what ended unclear.", no_args_is_help=True
)
app.add_typer(runs_app, name="runs")

Config = Annotated[Path, typer.Option("--config", "-c", help="The run definition.", metavar="FILE")]
Out = Annotated[
    Optional[Path],  # noqa: UP045 # typer reads annotations at run time on every supported Python
    typer.Option("--out", "-o", help="Where the evidence goes. Default: the private state directory.", metavar="FILE"),
]
State = Annotated[
    Optional[Path],  # noqa: UP045
    typer.Option("--state", help="The private state directory.", metavar="DIR", envvar="FIRSTHAND_STATE"),
]
AsJSON = Annotated[bool, typer.Option("--json", help="Answer with one JSON object on standard output.")]
Sign = Annotated[
    Optional[Path],  # noqa: UP045
    typer.Option("--sign", help="Sign the evidence with this private key (see `firsthand keys new`).", metavar="KEY"),
]
Run = Annotated[
    Optional[str],  # noqa: UP045
    typer.Argument(help="The run's id. Default: that of the definition.", metavar="[RUN]"),
]
CONFIG = Path("firsthand.json")


def _version(wanted: bool) -> None:  # noqa: FBT001 # typer's callback shape
    if wanted:
        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[  # the callback does the work
        bool, typer.Option("--version", help="Show the version and exit.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    """Options of the program itself."""


@app.command()
def init(
    folder: Annotated[Path, typer.Argument(help="The project.", metavar="[DIR]")] = Path(),
    config: Config = CONFIG,
    runtime: Annotated[str, typer.Option(help="Honest label of who did the work.")] = "unspecified",
    force: Annotated[bool, typer.Option("--force", help="Replace an existing definition.")] = False,
    as_json: AsJSON = False,
) -> None:
    """Detect a project's tests and write a run definition that works."""
    from firsthand.cli.commands.init import run

    run(folder, config, runtime=runtime, force=force, as_json=as_json)


@app.command()
def doctor(state: State = None, as_json: AsJSON = False) -> None:
    """Show what this machine can do: backends with their probes, providers, residues."""
    from firsthand.cli.commands.doctor import run

    run(state, as_json=as_json)


@app.command()
def check(
    config: Config = CONFIG,
    out: Out = None,
    sign: Sign = None,
    state: State = None,
    as_json: AsJSON = False,
) -> None:
    """Freeze the registered files and run the registered checks in the sandbox."""
    from firsthand.cli.commands.check import run

    run(config, out, sign, state, as_json=as_json)


@app.command()
def mutate(
    config: Config = CONFIG,
    check_id: Annotated[Optional[str], typer.Option("--check", help="The check to watch.", metavar="ID")] = None,  # noqa: UP045
    path: Annotated[Optional[str], typer.Option(help="The file to break.", metavar="PATH")] = None,  # noqa: UP045
    old: Annotated[Optional[str], typer.Option(help="Text that occurs exactly once.", metavar="TEXT")] = None,  # noqa: UP045
    new: Annotated[Optional[str], typer.Option(help="What replaces it.", metavar="TEXT")] = None,  # noqa: UP045
    old_file: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option(help="Read the old text from a file.", metavar="FILE"),
    ] = None,
    new_file: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option(help="Read the new text from a file.", metavar="FILE"),
    ] = None,
    plan: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option(help="A JSON list of {check, path, old, new}.", metavar="FILE"),
    ] = None,
    jobs: Annotated[int, typer.Option(help="Working copies that run side by side.", min=1, max=64)] = 1,
    out: Out = None,
    sign: Sign = None,
    state: State = None,
    as_json: AsJSON = False,
) -> None:
    """Break the code on purpose, watch the same check fail, restore it."""
    from firsthand.cli.commands.mutate import Texts, run

    texts = Texts(check_id=check_id, path=path, old=old, new=new, old_file=old_file, new_file=new_file)
    run(config, texts, plan, jobs, out, sign, state, as_json=as_json)


@app.command()
def preflight(
    model: Annotated[str, typer.Option(help="The reviewer's model.", metavar="MODEL")],
    config: Config = CONFIG,
    effort: Annotated[str, typer.Option(help="The reviewer's effort; its own choice by default.")] = "",
    timeout_ms: Annotated[int, typer.Option(help="Budget of a whole review, in milliseconds.", min=1)] = 1_800_000,
    max_turns: Annotated[int, typer.Option(help="Most turns of the model.", min=1)] = 100,
    program: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option(help="The reviewer's program; looked for by default.", metavar="FILE"),
    ] = None,
    state: State = None,
) -> None:
    """Prove, on this machine alone, what the reviewer's program shows to a model; writes review.json to stdout."""
    from firsthand.cli.commands.preflight import run

    run(config, model, effort, timeout_ms, max_turns, program, state)


@app.command()
def review(
    stage: Annotated[str, typer.Option(help="root-cause or final.", metavar="STAGE")],
    review_file: Annotated[Path, typer.Option("--review", help="What `firsthand preflight` wrote.", metavar="FILE")],
    config: Config = CONFIG,
    out: Out = None,
    sign: Sign = None,
    state: State = None,
    as_json: AsJSON = False,
) -> None:
    """Let a reviewer read, check and mutate the frozen files; accept its approval only by what the host saw."""
    from firsthand.cli.commands.review import run

    run(config, review_file, stage, out, sign, state, as_json=as_json)


@app.command()
def verify(
    evidence: Annotated[Path, typer.Argument(help="The evidence.", metavar="EVIDENCE")],
    root: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option(help="The project: are its files still the ones of the evidence?", metavar="DIR"),
    ] = None,
    key: Annotated[
        Optional[list[Path]],  # noqa: UP045
        typer.Option("--key", help="A public key to trust (repeatable).", metavar="PUB"),
    ] = None,
    state: State = None,
    as_json: AsJSON = False,
) -> None:
    """Recompute every rule of an evidence file, offline."""
    from firsthand.cli.commands.verify import run

    run(evidence, root, key or [], state, as_json=as_json)


@app.command()
def gate(
    config: Config = CONFIG,
    expect_fingerprint: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(help="The definition's fingerprint, taken from the base branch.", metavar="H"),
    ] = None,
    require: Annotated[
        Optional[list[str]],  # noqa: UP045
        typer.Option("--require", help="os-sandbox, execution, probed or signed (repeatable).", metavar="WHAT"),
    ] = None,
    key: Annotated[
        Optional[list[Path]],  # noqa: UP045
        typer.Option("--key", help="A public key to trust; requires a signature (repeatable).", metavar="PUB"),
    ] = None,
    state: State = None,
    as_json: AsJSON = False,
) -> None:
    """Say whether every stage of a run is approved by valid, fresh evidence. Runs nothing."""
    from firsthand.cli.commands.gate import run

    run(config, expect_fingerprint, require or [], key or [], state, as_json=as_json)


@app.command()
def conformance(
    backend: Annotated[str, typer.Argument(help="Name of an installed backend.", metavar="BACKEND")],
    out: Out = None,
    state: State = None,
    as_json: AsJSON = False,
) -> None:
    """Put one backend through the whole battery, live, and show every probe."""
    from firsthand.cli.commands.conformance import run

    run(backend, out, state, as_json=as_json)


@app.command()
def plugins(as_json: AsJSON = False) -> None:
    """List installed backends, providers and observers, broken ones with their reason."""
    from firsthand.cli.commands.plugins import run

    run(as_json=as_json)


@app.command()
def residues(
    clean: Annotated[bool, typer.Option("--clean", help="End and remove what can be, kept copies included.")] = False,
    state: State = None,
    as_json: AsJSON = False,
) -> None:
    """List what crashed sessions left behind."""
    from firsthand.cli.commands.residues import run

    run(state, clean=clean, as_json=as_json)


@app.command()
def schema() -> None:
    """Print the JSON Schema of the run definition."""
    from firsthand.cli.commands.schema import run

    run()


@app.command()
def demo(
    keep: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option("--keep", help="Work in this new folder and leave it there.", metavar="DIR"),
    ] = None,
) -> None:
    """See it work on a sample project: an honest check, a hostile one that is stopped, and what the evidence shows."""
    from firsthand.cli.commands.demo import run

    run(keep)


@runs_app.command("list")
def runs_list(state: State = None, as_json: AsJSON = False) -> None:
    """List runs with the latest round of each stage."""
    from firsthand.cli.commands.runs import list_runs

    list_runs(state, as_json=as_json)


@runs_app.command("show")
def runs_show(run_id: Run = None, config: Config = CONFIG, state: State = None, as_json: AsJSON = False) -> None:
    """Show all that is known of one run: rounds, reasons, heads, usage."""
    from firsthand.cli.commands.runs import show

    show(run_id, config, state, as_json=as_json)


@runs_app.command("recover")
def runs_recover(
    stage: Annotated[str, typer.Option(help="The stage.", metavar="STAGE")],
    number: Annotated[int, typer.Option("--round", help="The round.", metavar="N", min=1)],
    closed_as: Annotated[str, typer.Option("--as", help="failed or abandoned.", metavar="WHAT")],
    reason: Annotated[str, typer.Option(help="Why; the gate shows it.", metavar="TEXT")],
    run_id: Run = None,
    config: Config = CONFIG,
    state: State = None,
    as_json: AsJSON = False,
) -> None:
    """Close a round that ended unclear, or a rejection. Approves nothing, gives no round back."""
    from firsthand.cli.commands.runs import Which, recover

    recover(Which(run_id, config, state), stage, number, closed_as, reason, as_json=as_json)


@runs_app.command("backup")
def runs_backup(
    file: Annotated[Path, typer.Argument(help="Where the copy goes; must not exist.", metavar="FILE")],
    state: State = None,
    as_json: AsJSON = False,
) -> None:
    """Copy the ledger by the database's own means, also while others write."""
    from firsthand.cli.commands.runs import backup

    backup(file, state, as_json=as_json)


@keys_app.command("new")
def keys_new(
    file: Annotated[Path, typer.Argument(help="Where the private key goes; must not exist.", metavar="FILE")],
    as_json: AsJSON = False,
) -> None:
    """Make an Ed25519 key."""
    from firsthand.cli.commands.keys import new

    new(file, as_json=as_json)


@keys_app.command("show")
def keys_show(
    file: Annotated[Path, typer.Argument(help="A private or public key.", metavar="FILE")],
    as_json: AsJSON = False,
) -> None:
    """Print a key's public half and its key id."""
    from firsthand.cli.commands.keys import show

    show(file, as_json=as_json)


@keys_app.command("trust")
def keys_trust(
    file: Annotated[Path, typer.Argument(help="A public key.", metavar="FILE")],
    state: State = None,
    as_json: AsJSON = False,
) -> None:
    """Trust a public key on this machine."""
    from firsthand.cli.commands.keys import trust

    trust(file, state, as_json=as_json)


def main() -> None:
    """Entry point of the installed script: runs a command, reports errors, ends with the contract's exit status."""
    from firsthand.cli.running import run_program

    run_program(app)
