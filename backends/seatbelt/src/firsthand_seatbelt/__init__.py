"""Firsthand's isolation backend for macOS."""
