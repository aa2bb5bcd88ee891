"""A model endpoint on loopback that plays a scenario file: reviews without an account, and honest about it."""

from firsthand_claude.scripted.endpoint import MODEL_PREFIX, ScriptedEndpoint
from firsthand_claude.scripted.exchange import Exchange
from firsthand_claude.scripted.reading import ScenarioError, parse_scenario, read_scenario
from firsthand_claude.scripted.scenario import Call, Fault, Scenario, Turn

__all__ = [
    "MODEL_PREFIX",
    "Call",
    "Exchange",
    "Fault",
    "Scenario",
    "ScenarioError",
    "ScriptedEndpoint",
    "Turn",
    "parse_scenario",
    "read_scenario",
]
