"""The code that docs/plugins/README.md shows does what the text says."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from firsthand.plugins import ObserverHooks, Observers
from firsthand.plugins.plugin import BACKENDS, MEMBERS, OBSERVERS, PROVIDERS, SHIPPED

DOCS = Path(__file__).parents[2] / "docs"
GUIDE = (DOCS / "plugins" / "README.md").read_text()


def block(language: str, containing: str) -> str:
    blocks = re.findall(rf"^```{language}\n(.*?)^```$", GUIDE, re.MULTILINE | re.DOTALL)
    (found,) = [text for text in blocks if containing in text]
    return str(found)


def test_the_shown_observer_can_be_registered_and_called(capsys: pytest.CaptureFixture[str]) -> None:
    namespace: dict[str, type] = {}
    exec(block("python", "hookimpl"), namespace)  # noqa: S102 - the documentation's own code
    observers = Observers()
    observers.add(namespace["Watcher"](), name="watcher", owner="docs 1.0")
    observers.check_started("value", "baseline", 0)
    assert observers.failures == ()
    assert "value" in capsys.readouterr().err


def test_the_shown_entry_points_are_those_that_are_read() -> None:
    shown = tomllib.loads(block("toml", "entry-points"))["project"]["entry-points"]
    assert set(shown) == {BACKENDS, OBSERVERS}


def test_the_guide_names_every_group_member_hook_and_shipped_name() -> None:
    hooks = [name for name in vars(ObserverHooks) if not name.startswith("_")]
    for word in (BACKENDS, PROVIDERS, OBSERVERS, *MEMBERS[BACKENDS], *hooks, *SHIPPED):
        assert f"`{word}`" in GUIDE, word
