"""Looking at a project and drafting a definition for it, without executing anything of it."""

from firsthand.engine.detection.draft import Draft, DraftError, draft

__all__ = ["Draft", "DraftError", "draft"]
