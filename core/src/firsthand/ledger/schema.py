"""The tables, and the way from each version to the next. Append-only: a step that was published never changes."""

from __future__ import annotations

from typing import Final

APPLICATION_ID: Final = 0x46484C47
"""`FHLG`: what file(1) and a reader see in the database's header."""

MIGRATIONS: Final[tuple[tuple[str, ...], ...]] = (
    (
        """
        CREATE TABLE run (
            run_id TEXT NOT NULL PRIMARY KEY,
            fingerprint TEXT NOT NULL CHECK (length(fingerprint) = 64),
            package_digest TEXT
        ) STRICT
        """,
        """
        CREATE TABLE round (
            run_id TEXT NOT NULL REFERENCES run (run_id),
            stage TEXT NOT NULL,
            round INTEGER NOT NULL CHECK (round >= 1),
            nonce TEXT NOT NULL UNIQUE CHECK (length(nonce) = 64),
            fence INTEGER NOT NULL,
            state TEXT NOT NULL CHECK (state IN ('claimed', 'dispatched', 'sealed', 'approved', 'rejected', 'blocked',
                                                 'failed', 'abandoned', 'unknown')),
            verdict TEXT CHECK (verdict IN ('approved', 'rejected', 'blocked')),
            code TEXT NOT NULL,
            manifest_digest TEXT NOT NULL,
            content_digest TEXT NOT NULL,
            tests TEXT NOT NULL,
            evidence_digest TEXT,
            evidence_name TEXT,
            closed_as TEXT CHECK (closed_as IN ('failed', 'abandoned')),
            reason TEXT NOT NULL,
            owner_pid INTEGER NOT NULL,
            owner_start TEXT NOT NULL,
            owner_boot TEXT NOT NULL,
            lease_until_ms INTEGER NOT NULL,
            PRIMARY KEY (run_id, stage, round)
        ) STRICT
        """,
        # At most one round of a stage goes on: what the code sees to, held once more by the database.
        """
        CREATE UNIQUE INDEX round_going_on ON round (run_id, stage)
        WHERE state IN ('claimed', 'dispatched', 'sealed')
        """,
        """
        CREATE TABLE entry (
            seq INTEGER NOT NULL PRIMARY KEY CHECK (seq >= 1),
            run_id TEXT NOT NULL,
            kind TEXT NOT NULL,
            body TEXT NOT NULL,
            head TEXT NOT NULL UNIQUE CHECK (length(head) = 64)
        ) STRICT
        """,
        "CREATE INDEX entry_of_run ON entry (run_id, seq)",
        # The log only grows.
        "CREATE TRIGGER entry_stays BEFORE UPDATE ON entry BEGIN SELECT raise(ABORT, 'entries never change'); END",
        "CREATE TRIGGER entry_remains BEFORE DELETE ON entry BEGIN SELECT raise(ABORT, 'entries never go'); END",
    ),
)
"""Step k leads from version k to k + 1. Version 0 is an empty file."""
