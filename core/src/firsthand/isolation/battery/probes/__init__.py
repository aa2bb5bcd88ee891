"""The probes, by what they ask about. Each file gives its probes as one tuple, `PROBES`."""
