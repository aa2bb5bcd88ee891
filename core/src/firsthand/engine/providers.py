"""From the definition's label to the one provider that reviews."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final, cast

from firsthand.definition import Document
from firsthand.errors import PluginError
from firsthand.plugins import PROVIDERS, discover, load
from firsthand.review.interface import AuthLeg, Host, Incapable, PluginIdentity, Provider, ReviewError

FIELD: Final = "reviewRuntime"


def find_provider(document: Document) -> tuple[Provider, PluginIdentity]:
    """Load the provider that the definition names.

    Raises:
        ReviewError: the definition names none, or it is not installed or can't be loaded.
    """
    name = document.review_runtime
    if name is None:
        raise ReviewError(
            "the definition names no reviewer",
            where=FIELD,
            next_step=f'add "{FIELD}" with the name of an installed provider (`firsthand plugins` lists them)',
        )
    try:
        plugin = discover(PROVIDERS).find(name)
        # `load` has checked that it has the members of a provider.
        provider = cast("Provider", load(plugin))
    except PluginError as error:
        raise ReviewError(error.message, where=FIELD, next_step=error.next_step) from error
    return provider, PluginIdentity(name=plugin.name, distribution=plugin.distribution, version=plugin.version)


def this_host(program: Path | None, environment: Mapping[str, str] = os.environ) -> Host:
    """What a provider may look at on this machine."""
    home = environment.get("HOME") or environment.get("USERPROFILE")
    return Host(environment=environment, home=Path(home) if home else None, program=program)


def choose_leg(provider: Provider, host: Host) -> AuthLeg | None:
    """The first usable way to authenticate, or None: the provider itself refuses to leave loopback without one.

    Raises:
        ReviewError: the provider can't review on this machine.
    """
    capability = provider.capability(host)
    if isinstance(capability, Incapable):
        raise ReviewError(capability.reason, where=FIELD, next_step=capability.next_step, code=capability.code)
    return next((leg for leg in capability.auth if leg.usable), None)
