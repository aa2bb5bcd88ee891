"""From the one template to a profile: the text names parameters, the paths travel beside it."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from importlib import resources
from typing import TYPE_CHECKING, Final

from firsthand.isolation.interface import IsolationError
from firsthand_seatbelt.paths import ancestors, contains, refuse_inexpressible

if TYPE_CHECKING:
    import jinja2

TEMPLATE: Final = "profile.sb.jinja"
_PARAMETER: Final = re.compile(r'\(param "([A-Z0-9_]+)"\)')
_PARAMETERS_LIMIT: Final = 500
"""Far above any real set of roots, and far below what a command line can hold."""


@dataclass(frozen=True, slots=True)
class Grants:
    """What one command may touch, in the kernel's spelling.

    Attributes:
        copy, home, tmpdir: read, written, executed.
        roots: read and executed.
        links: symbolic links on the way to roots; only their metadata.
    """

    copy: str
    home: str
    tmpdir: str
    roots: tuple[str, ...] = ()
    links: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Profile:
    """A profile as `sandbox-exec` takes it."""

    text: str
    parameters: tuple[tuple[str, str], ...]

    def options(self) -> list[str]:
        """The options of `sandbox-exec`: the text, then each parameter."""
        return ["-p", self.text, *(word for name, path in self.parameters for word in ("-D", f"{name}={path}"))]


class ProfileTemplate:
    """The template, compiled once."""

    def __init__(self, source: str) -> None:
        self.source = source
        self._compiled: jinja2.Template | None = None

    @classmethod
    def shipped(cls) -> ProfileTemplate:
        """The template of this distribution."""
        return cls(resources.files(__package__).joinpath(TEMPLATE).read_text(encoding="ascii"))

    @property
    def digest(self) -> str:
        """SHA-256 of the template's text."""
        return hashlib.sha256(self.source.encode("ascii")).hexdigest()

    def render(self, grants: Grants) -> Profile:
        """The profile for these grants.

        Raises:
            IsolationError: a path can't be expressed; a read-only root holds the place where a command writes, or the
                other way round; or the text names a parameter that has no value.
        """
        _refuse_overlap(grants)
        named = {
            "roots": _numbered("ROOT", grants.roots),
            "links": _numbered("LINK", grants.links),
            "ancestors": _numbered("ABOVE", _all_ancestors(grants)),
        }
        parameters = {"COPY": grants.copy, "HOME": grants.home, "TMPDIR": grants.tmpdir}
        for group in named.values():
            parameters.update(group)
        text = self._template().render({name: list(group) for name, group in named.items()})
        refuse_unset(text, parameters)
        for name, path in parameters.items():
            refuse_inexpressible(path, what=f"the profile's parameter {name}")
        return Profile(text=text, parameters=tuple(parameters.items()))

    def _template(self) -> jinja2.Template:
        if self._compiled is None:
            import jinja2  # noqa: PLC0415 # slow to import, and most commands of the program render nothing

            environment = jinja2.Environment(
                undefined=jinja2.StrictUndefined,
                autoescape=False,  # noqa: S701 # not HTML, and nothing but parameter names goes in
                keep_trailing_newline=True,
            )
            self._compiled = environment.from_string(self.source)
        return self._compiled


def refuse_unset(text: str, parameters: Iterable[str]) -> None:
    """Refuse a text that names a parameter without a value, or the reverse.

    `sandbox-exec` would refuse the first too (exit 65), but only once a command is due; the second means that a path
    someone meant to grant is not granted.

    Raises:
        IsolationError: with the names.
    """
    used, given = set(_PARAMETER.findall(text)), set(parameters)
    if used != given:
        raise IsolationError(
            f"the profile's parameters do not fit its text: {', '.join(sorted(used ^ given))}",
            where=TEMPLATE,
            next_step="reinstall firsthand-seatbelt: its template and its code do not belong together",
        )
    if len(given) > _PARAMETERS_LIMIT:
        raise IsolationError(
            f"the profile would need {len(given)} paths, at most {_PARAMETERS_LIMIT} are accepted",
            where=TEMPLATE,
            next_step="name fewer toolchain roots",
        )


def _numbered(prefix: str, paths: Iterable[str]) -> dict[str, str]:
    return {f"{prefix}_{number}": path for number, path in enumerate(dict.fromkeys(paths))}


def _all_ancestors(grants: Grants) -> list[str]:
    found = {
        folder
        for path in (grants.copy, grants.home, grants.tmpdir, *grants.roots, *grants.links)
        for folder in ancestors(path)
    }
    return sorted(found)


def _refuse_overlap(grants: Grants) -> None:
    work = (grants.copy, grants.home, grants.tmpdir)
    for path in (*work, *grants.roots, *grants.links):
        first, *parts = path.split("/")
        if first or not parts or any(part in {"", ".", ".."} for part in parts):
            raise IsolationError(
                "the profile takes resolved absolute paths, and never the root folder",
                where=ascii(path),
                next_step="name a folder below it",
            )
    for root in grants.roots:
        for path in work:
            if contains(root, path) or contains(path, root):
                raise IsolationError(
                    "a read-only root and a folder that commands write to lie inside one another",
                    where=f"{root!a} and {path!a}",
                    next_step="name a narrower toolchain root, or keep Firsthand's state elsewhere (--state DIR)",
                )
