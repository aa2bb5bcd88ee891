"""What can be wrong with a request for mutations."""

from __future__ import annotations

from firsthand.errors import FirsthandError


class PlanError(FirsthandError):
    """A plan of mutations can't be read, or asks for nothing that could be tried."""

    default_code = "plan_invalid"
