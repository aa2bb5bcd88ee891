"""Verification of a sealed plan of 32 mutations, and what a signature adds to sealing."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from benchmarks.harness.bench import Bench
from benchmarks.harness.clock import in_turns, timed
from benchmarks.harness.row import CannotRunError, Row, Samples
from benchmarks.projects.cart import cart_project

from firsthand.evidence import load_public_key, load_signing_key, open_sealed, read_sealed, seal, verify

_MUTATIONS = 32
_LIBRARY_LIMIT_MS = 20.0
_PROCESS_LIMIT_MS = 400.0
_SIGNATURE_LIMIT_MS = 5.0


def verify_evidence(bench: Bench) -> Iterator[Row]:
    """Real evidence of 32 caught mutations: verified by the library and by the program, sealed and signed."""
    program, environment = bench.program(), bench.environment()
    config, plan = cart_project(bench.scratch / "cart", mutations=_MUTATIONS)
    key_file, evidence_file = bench.scratch / "key.pem", bench.scratch / "evidence.json"

    def firsthand(*arguments: str | Path) -> None:
        ended = subprocess.run(
            [program, *arguments], env=environment, stdin=subprocess.DEVNULL, capture_output=True, check=False
        )
        if ended.returncode != 0:
            raise CannotRunError(f"firsthand {arguments[0]}: {(ended.stderr or ended.stdout).decode()[-300:]}")

    firsthand("keys", "new", key_file)
    common = ("--config", config, "--state", bench.state, "--json")
    firsthand("mutate", *common, "--plan", plan, "--out", evidence_file, "--sign", key_file)
    raw = read_sealed(evidence_file)
    key = load_signing_key(key_file, source=config.parent)
    public_file = bench.scratch / "key.pub.pem"
    public_file.write_text(key.public.pem, encoding="ascii")
    trusted = (load_public_key(public_file),)
    found = verify(raw, trusted_keys=trusted)
    if not found.signed or found.evidence is None or len(found.evidence.mutations) != _MUTATIONS:
        raise CannotRunError(f"the evidence does not verify: {found}")
    evidence = open_sealed(raw).evidence
    (library_s,) = in_turns((timed(lambda: verify(raw, trusted_keys=trusted)),), bench.times(30), warm_up=3)
    plain_s, signed_s = in_turns(
        (timed(lambda: seal(evidence)), timed(lambda: seal(evidence, key))), bench.times(30), warm_up=3
    )
    process_s, imports_s = in_turns(
        (
            timed(lambda: firsthand("verify", evidence_file, "--key", public_file, "--state", bench.state)),
            timed(lambda: subprocess.run([sys.executable, "-c", _IMPORTS], env=environment, check=True)),
        ),
        bench.times(15),
        warm_up=2,
    )
    size = f"{len(raw) / 1024:.0f} KiB, {len(evidence.runs)} runs"
    yield Row(
        about="verify 32 mutations, library",
        own=Samples.of_seconds("verify()", library_s),
        other=None,
        figure="own",
        limit=_LIBRARY_LIMIT_MS,
        note=f"{size}; every digest and rule recomputed, signature included",
    )
    process = Samples.of_seconds("firsthand verify", process_s)
    yield Row(
        about="verify 32 mutations, program",
        own=process,
        other=None,
        figure="own",
        limit=_PROCESS_LIMIT_MS,
        note="from its start to its end, with a trusted key",
    )
    yield Row(
        about="the same beside importing its libraries",
        own=process,
        other=Samples.of_seconds("imports", imports_s),
        figure="ratio",
        note=f"other side: python -c '{_IMPORTS}'",
    )
    yield Row(
        about="a signature while sealing",
        own=Samples.of_seconds("signed", signed_s),
        other=Samples.of_seconds("unsigned", plain_s),
        figure="added",
        limit=_SIGNATURE_LIMIT_MS,
    )


_IMPORTS = "import typer, rich.table, pydantic, cryptography.hazmat.primitives.asymmetric.ed25519"
