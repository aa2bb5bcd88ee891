"""Plug-ins: finding them without importing, loading exactly one, inspecting them from outside, telling observers.

This room knows only errors and records: what a backend or a provider is, the rooms that own those contracts say.
"""

from firsthand.plugins.discovery import Catalogue, discover
from firsthand.plugins.hooks import ObserverHooks, hookimpl
from firsthand.plugins.inspection import Observation, inspect_plugin
from firsthand.plugins.loading import load
from firsthand.plugins.observers import ObserverFailure, Observers
from firsthand.plugins.plugin import BACKENDS, OBSERVERS, PROVIDERS, BrokenPlugin, Plugin

__all__ = [
    "BACKENDS",
    "OBSERVERS",
    "PROVIDERS",
    "BrokenPlugin",
    "Catalogue",
    "Observation",
    "ObserverFailure",
    "ObserverHooks",
    "Observers",
    "Plugin",
    "discover",
    "hookimpl",
    "inspect_plugin",
    "load",
]
