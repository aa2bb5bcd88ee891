"""The private state directory, and the register of what must be ended or destroyed, whenever a crash comes."""

from firsthand.residues.identity import ProcessIdentity, boot_id, identify
from firsthand.residues.residue import Residue
from firsthand.residues.session import Session
from firsthand.residues.state import StateDirectory
from firsthand.residues.sweep import list_residues, sweep

__all__ = [
    "ProcessIdentity",
    "Residue",
    "Session",
    "StateDirectory",
    "boot_id",
    "identify",
    "list_residues",
    "sweep",
]
