"""Firsthand's reviewer plug-in for the Claude Code CLI."""
