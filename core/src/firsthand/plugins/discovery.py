"""Which plug-ins are installed: read afresh each time, importing none of them."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from email.parser import HeaderParser
from importlib.metadata import Distribution, distributions

from firsthand.errors import PluginError
from firsthand.plugins.plugin import (
    OBSERVERS,
    SHIPPED,
    BrokenPlugin,
    Plugin,
    canonical_name,
    describe_exception,
    is_plain_name,
    one_line,
)


@dataclass(frozen=True, slots=True)
class Catalogue:
    """All plug-ins of one group, usable and not, each sorted by name."""

    group: str
    plugins: tuple[Plugin, ...]
    broken: tuple[BrokenPlugin, ...]

    def find(self, name: str) -> Plugin:
        """The one plug-in of this name; case and `-`, `_`, `.` do not matter.

        Raises:
            PluginError: it is missing, refused or in conflict. A distribution that could not be read is named too:
                it may be the one that holds the plug-in.
        """
        wanted = canonical_name(name)
        for plugin in self.plugins:
            if canonical_name(plugin.name) == wanted:
                return plugin
        for broken in self.broken:
            if broken.name and canonical_name(broken.name) == wanted:
                raise broken.error()
        unread = [broken for broken in self.broken if not broken.name]
        hint = "".join(f"; {' and '.join(broken.owners)} could not be read: {broken.reason}" for broken in unread)
        known = ", ".join(plugin.name for plugin in self.plugins) or "none"
        raise PluginError(
            f"no plug-in named {one_line(name)!r} is installed for {self.group} (installed: {known}){hint}",
            where=f"{self.group}: {one_line(name)}",
            next_step=unread[0].next_step if unread else "check the spelling, or install the distribution that has it",
        )


def discover(group: str) -> Catalogue:
    """List the plug-ins of one entry point group on the current `sys.path`.

    Reads metadata files only. Nothing is cached between calls, so a distribution installed a moment ago is seen.
    Two copies of one fact (same distribution, same value, as an editable install has in its egg-info and dist-info)
    count once. Two distributions with one name are a conflict: neither is usable, whatever the order of the path.
    A shipped name belongs to its distribution; another distribution that offers it is refused and shadows nothing.
    """
    # The import system remembers each folder by its mtime, which is too coarse for two installs in one tick.
    importlib.invalidate_caches()
    offers: list[Plugin] = []
    broken: list[BrokenPlugin] = []
    for distribution in distributions():
        for found in _read(distribution, group):
            if isinstance(found, Plugin):
                offers.append(found)
            else:
                broken.append(found)
    plugins: list[Plugin] = []
    for rivals in _by_name(offers).values():
        usable, refused = _settle(group, rivals)
        plugins.extend(usable)
        broken.extend(refused)
    return Catalogue(
        group=group,
        plugins=tuple(sorted(plugins, key=lambda plugin: canonical_name(plugin.name))),
        broken=tuple(sorted(set(broken), key=lambda one: (canonical_name(one.name), one.owners, one.reason))),
    )


def _by_name(offers: Iterable[Plugin]) -> dict[str, list[Plugin]]:
    """Offers by compared name, true duplicates folded into the first on the path, which is the one that imports."""
    unique: dict[tuple[str, str, str], Plugin] = {}
    for plugin in offers:
        unique.setdefault((canonical_name(plugin.name), canonical_name(plugin.distribution), plugin.value), plugin)
    rivals: dict[str, list[Plugin]] = {}
    for (name, _, _), plugin in unique.items():
        rivals.setdefault(name, []).append(plugin)
    return rivals


def _settle(group: str, rivals: list[Plugin]) -> tuple[list[Plugin], list[BrokenPlugin]]:
    name = canonical_name(rivals[0].name)
    owner = SHIPPED.get(name) if group != OBSERVERS else None
    refused: list[BrokenPlugin] = []
    if owner is not None:
        strangers = [plugin for plugin in rivals if canonical_name(plugin.distribution) != owner]
        rivals = [plugin for plugin in rivals if plugin not in strangers]
        refused = [
            plugin.broken(
                f"the name {plugin.name!r} belongs to {owner}",
                f"uninstall {plugin.distribution}, or ask its authors for another plug-in name",
            )
            for plugin in strangers
        ]
    if len(rivals) < 2:
        return rivals, refused
    owners = tuple(sorted({plugin.owner for plugin in rivals}, key=canonical_name))
    places = ", ".join(sorted(f"{plugin.owner} as {plugin.value}" for plugin in rivals))
    conflict = BrokenPlugin(
        group=group,
        name=min(plugin.name for plugin in rivals),
        owners=owners,
        reason=one_line(f"one name is offered more than once: {places}"),
        next_step="uninstall all but one of them",
    )
    return [], [*refused, conflict]


def _read(distribution: Distribution, group: str) -> Iterator[Plugin | BrokenPlugin]:
    """What one distribution offers to the group; the files are foreign and may be anything."""
    # The folder of the metadata has no public name; without it only the hints below are poorer.
    folder = getattr(distribution, "_path", None)
    try:
        text = distribution.read_text("entry_points.txt")
    except Exception as error:  # noqa: BLE001 - an undecodable file, a broken archive: all the same to us
        yield _unreadable(distribution, group, f"entry_points.txt can't be read ({describe_exception(error)})")
        return
    if text is None:
        yield from _without_entry_points(distribution, group, folder)
        return
    if group not in text:
        return
    try:
        declared = [entry_point for entry_point in distribution.entry_points if entry_point.group == group]
    except Exception as error:  # noqa: BLE001 - the standard parser raises whatever its internals stumble over
        yield _unreadable(distribution, group, f"entry_points.txt is malformed ({describe_exception(error)})")
        return
    name, version = _identity(distribution)
    for entry_point in declared:
        plugin = Plugin(group, entry_point.name, entry_point.value, name, version, entry_point)
        if not is_plain_name(plugin.name):
            yield _unreadable(distribution, group, one_line(f"a plug-in can't be named {plugin.name!r}"))
        elif entry_point.pattern.match(plugin.value) is None:
            yield plugin.broken(one_line(f"{plugin.value!r} does not say module:attribute"))
        else:
            yield plugin


def _without_entry_points(distribution: Distribution, group: str, folder: object) -> Iterator[BrokenPlugin]:
    """No entry points is the rule; a folder that was left behind, or a file that is locked away, is not."""
    if folder is None:
        return
    try:
        names = {child.name for child in folder.iterdir()}  # type: ignore[attr-defined]
    except OSError:
        return  # a single-file egg-info of old tools: complete, and without entry points
    if not names:
        yield _unreadable(distribution, group, "its metadata folder is empty, left behind by a broken uninstall")
    elif "entry_points.txt" in names:
        yield _unreadable(distribution, group, "entry_points.txt can't be read (no permission, or not a file)")


def _unreadable(distribution: Distribution, group: str, reason: str) -> BrokenPlugin:
    name, version = _identity(distribution)
    return BrokenPlugin(
        group=group,
        name="",
        owners=(f"{name} {version}".rstrip(),),
        reason=reason,
        next_step=f"reinstall or remove the distribution {name}",
    )


def _identity(distribution: Distribution) -> tuple[str, str]:
    """Name and version, from the metadata or, where there is none, from the name of its folder.

    Read here rather than through `Distribution.metadata`, which answers a missing file or field differently in each
    version of Python: None, a warning, a TypeError, a KeyError.
    """
    try:
        text = next(
            (found for file in ("METADATA", "PKG-INFO", "") if (found := distribution.read_text(file))),
            "",
        )
        headers = HeaderParser().parsestr(text)
        name, version = str(headers.get("Name") or ""), str(headers.get("Version") or "")
    except Exception:  # noqa: BLE001 - undecodable metadata: the folder's name still says whose it is
        name, version = "", ""
    if name:
        return one_line(name), one_line(version)
    stem = str(getattr(getattr(distribution, "_path", None), "stem", "")) or "(unnamed)"
    name, _, version = stem.partition("-")
    return one_line(name), one_line(version)
