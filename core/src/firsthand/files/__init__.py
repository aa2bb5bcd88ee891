"""Descriptor-relative input and output: reading, writing and removing that no swapped name can lead astray."""

from firsthand.files.below import FilesBelow, files_below
from firsthand.files.folding import Folding, probe_folding
from firsthand.files.identity import Identity, chain, identities, identity
from firsthand.files.reading import (
    Cursor,
    FileContent,
    open_folder,
    read_leaf,
    read_path,
    read_registered,
    split_path,
)
from firsthand.files.refusal import FILE_REASONS, FileReason, FileRefusedError, FileWriteError, RemovalError
from firsthand.files.removal import remove_entry, remove_path
from firsthand.files.writing import MakingCursor, make_private_folder, open_private_folder, write_fresh

__all__ = [
    "FILE_REASONS",
    "Cursor",
    "FileContent",
    "FileReason",
    "FileRefusedError",
    "FileWriteError",
    "FilesBelow",
    "Folding",
    "Identity",
    "MakingCursor",
    "RemovalError",
    "chain",
    "files_below",
    "identities",
    "identity",
    "make_private_folder",
    "open_folder",
    "open_private_folder",
    "probe_folding",
    "read_leaf",
    "read_path",
    "read_registered",
    "remove_entry",
    "remove_path",
    "split_path",
    "write_fresh",
]
