"""The battery: questions to an isolation backend, asked and judged by the core."""

from firsthand.isolation.battery.catalogue import PROBES, battery_digest
from firsthand.isolation.battery.probe import Attempt, Finding, Probe, Weight
from firsthand.isolation.battery.run import platform_probes, run_battery, verdict
from firsthand.isolation.battery.traces import sweep, usual_places

__all__ = [
    "PROBES",
    "Attempt",
    "Finding",
    "Probe",
    "Weight",
    "battery_digest",
    "platform_probes",
    "run_battery",
    "sweep",
    "usual_places",
    "verdict",
]
