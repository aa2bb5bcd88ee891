"""Isolation: the backend contract, the battery that grades backends, and the selection that fails closed."""
