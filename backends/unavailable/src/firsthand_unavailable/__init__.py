"""The backend that never isolates: it explains the refusal, which is the core's own."""
