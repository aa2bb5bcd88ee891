"""Mutations: break a line, see the same check fail, restore, see it pass; every verdict by the rules."""

from firsthand.mutation.control import control_of
from firsthand.mutation.controls import Controls
from firsthand.mutation.errors import PlanError
from firsthand.mutation.plan import LIMIT_MUTATIONS, LIMIT_PLAN_BYTES, parse_plan
from firsthand.mutation.replacement import Replacement, replace_once
from firsthand.mutation.series import Registered, run_series

__all__ = [
    "LIMIT_MUTATIONS",
    "LIMIT_PLAN_BYTES",
    "Controls",
    "PlanError",
    "Registered",
    "Replacement",
    "control_of",
    "parse_plan",
    "replace_once",
    "run_series",
]
