"""One plug-in as its distribution declares it, and one that can't be used."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from importlib.metadata import EntryPoint
from typing import Final

from firsthand.errors import PluginError

BACKENDS: Final = "firsthand.backends"
PROVIDERS: Final = "firsthand.providers"
OBSERVERS: Final = "firsthand.observers"

MEMBERS: Final[dict[str, tuple[str, ...]]] = {
    BACKENDS: ("name", "availability", "enclose"),
    PROVIDERS: ("name", "capability", "preflight", "review", "tool_uses"),
    OBSERVERS: (),
}
"""What a loaded plug-in must have, by group. Names only: this room does not know the contracts themselves."""

SHIPPED: Final[dict[str, str]] = {
    "bubblewrap": "firsthand-bubblewrap",
    "seatbelt": "firsthand-seatbelt",
    "unavailable": "firsthand-unavailable",
    "claude": "firsthand-claude",
}
"""Names of shipped plug-ins and the only distribution that may offer each."""

LONGEST_REASON: Final = 500

_SEPARATORS: Final = re.compile(r"[-_.]+")
_NAME: Final = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,62}[A-Za-z0-9])?")


@dataclass(frozen=True, slots=True)
class Plugin:
    """A plug-in that is installed; nothing of it was imported."""

    group: str
    name: str
    value: str
    """Where it stands, as `module:attribute`."""
    distribution: str
    version: str
    entry_point: EntryPoint = field(compare=False, repr=False)
    """Keeps its `.dist`."""

    @property
    def owner(self) -> str:
        """Distribution and version, as messages name them."""
        return f"{self.distribution} {self.version}".rstrip()

    @property
    def shipped(self) -> bool:
        """Whether the distribution is one of Firsthand's own."""
        return canonical_name(self.distribution) in SHIPPED.values()

    def broken(self, reason: str, next_step: str = "") -> BrokenPlugin:
        """This plug-in as one that can't be used, for this reason."""
        return BrokenPlugin(
            group=self.group,
            name=self.name,
            owners=(self.owner,),
            reason=reason,
            next_step=next_step or f"repair, update or uninstall the distribution {self.distribution}",
        )


@dataclass(frozen=True, slots=True)
class BrokenPlugin:
    """A plug-in, or what is left of one, that can't be used."""

    group: str
    name: str
    """Empty when the distribution does not let itself be read far enough to know."""
    owners: tuple[str, ...]
    """Each distribution concerned, with its version, sorted."""
    reason: str
    """One line, at most 500 characters, without control characters."""
    next_step: str

    def error(self) -> PluginError:
        """The same as an error, for whoever needs this very plug-in."""
        what = f"the plug-in {self.name!r}" if self.name else "a plug-in"
        return PluginError(
            f"{what} of {' and '.join(self.owners)} can't be used: {self.reason}",
            where=f"{self.group}: {self.name or ', '.join(self.owners)}",
            next_step=self.next_step,
        )


def canonical_name(name: str) -> str:
    """The form in which names are compared: lower case, and `-`, `_` and `.` are one."""
    return _SEPARATORS.sub("-", name).lower()


def is_plain_name(name: str) -> bool:
    """Whether a plug-in may be called so: at most 64 letters, digits, `.`, `_`, `-`, as every surface can show."""
    return _NAME.fullmatch(name) is not None


def one_line(text: str) -> str:
    """Foreign text as one bounded line: white space folded, what can't be printed as an escape."""
    plain = " ".join(text[: 4 * LONGEST_REASON].split())
    shown = "".join(char if char.isprintable() else ascii(char)[1:-1] for char in plain)
    return shown if len(shown) <= LONGEST_REASON else shown[: LONGEST_REASON - 1] + "…"


def describe_exception(error: BaseException) -> str:
    """Type and message of a foreign exception, as one line; its own `__str__` is not trusted to work."""
    try:
        message = str(error)
    except BaseException as second:  # noqa: BLE001 - foreign code; whatever it raises, we still have a reason to tell
        message = f"its message can't be read ({type(second).__name__})"
    return one_line(f"{type(error).__name__}: {message}" if message else type(error).__name__)
