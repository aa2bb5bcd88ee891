"""Sealed evidence: stored bytes, signatures, keys and offline verification. No sandbox code is imported here."""
