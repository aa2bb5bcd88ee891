"""The run definition: what a run may read, run and mutate, and every reason for which one is refused."""

from firsthand.definition.credentials import (
    CREDENTIAL_EXCEPTIONS,
    CREDENTIAL_FILES,
    CREDENTIAL_FOLDERS,
    CREDENTIAL_PATTERNS,
    credential_file,
    credential_folder,
)
from firsthand.definition.definition import (
    Definition,
    fingerprint,
    load_definition,
    parse_canonical,
    parse_definition,
    refuse_in_review,
)
from firsthand.definition.document import (
    CHECKS_LIMIT,
    FILE_LIMIT_BYTES,
    FILES_LIMIT,
    TIMEOUT_LIMIT_MS,
    TOOLCHAINS_LIMIT,
    TOTAL_LIMIT_BYTES,
    Check,
    Document,
    PackageDocuments,
    ReviewVerification,
    Stage,
)
from firsthand.definition.mutation_paths import mutation_fault
from firsthand.definition.paths import refuse_collisions, refuse_path
from firsthand.definition.reasons import REASONS, DefinitionError
from firsthand.definition.rules import Registered, registered_paths
from firsthand.definition.schema import json_schema
from firsthand.definition.toolchains import DEPENDENCY_FOLDERS, home_folders, refuse_root

__all__ = [
    "CHECKS_LIMIT",
    "CREDENTIAL_EXCEPTIONS",
    "CREDENTIAL_FILES",
    "CREDENTIAL_FOLDERS",
    "CREDENTIAL_PATTERNS",
    "DEPENDENCY_FOLDERS",
    "FILES_LIMIT",
    "FILE_LIMIT_BYTES",
    "REASONS",
    "TIMEOUT_LIMIT_MS",
    "TOOLCHAINS_LIMIT",
    "TOTAL_LIMIT_BYTES",
    "Check",
    "Definition",
    "DefinitionError",
    "Document",
    "PackageDocuments",
    "Registered",
    "ReviewVerification",
    "Stage",
    "credential_file",
    "credential_folder",
    "fingerprint",
    "home_folders",
    "json_schema",
    "load_definition",
    "mutation_fault",
    "parse_canonical",
    "parse_definition",
    "refuse_collisions",
    "refuse_in_review",
    "refuse_path",
    "refuse_root",
    "registered_paths",
]
