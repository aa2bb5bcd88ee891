"""Loading exactly one plug-in into this process."""

from __future__ import annotations

from importlib.metadata import EntryPoint
from typing import TYPE_CHECKING, NoReturn

from firsthand.plugins.inspection import inspect_plugin
from firsthand.plugins.plugin import MEMBERS, Plugin, canonical_name, describe_exception

if TYPE_CHECKING:
    from stevedore import ExtensionManager


def load(plugin: Plugin, *, timeout_s: float = 10.0) -> object:
    """Import one plug-in, call what its entry point names without arguments, and return the result.

    1. A plug-in that is not shipped is first inspected in a process of its own: what ends, hangs, floods or alters
       the process that imports it never gets into this one.
    2. It is imported here and called.
    3. The result has the members that its group demands, and answers to the name that it is registered under.

    From then on the plug-in runs with all rights of this process: loading is trust, inspection only keeps accidents
    out.

    Args:
        plugin: as `discover` found it.
        timeout_s: for the inspection.

    Raises:
        PluginError: with distribution, name, reason and next step, for any failure of step 1 to 3. `SystemExit` is
            such a failure; `KeyboardInterrupt` in this process is the user's and passes.
    """
    if not plugin.shipped:
        problem = inspect_plugin(plugin, timeout_s=timeout_s).problem
        if problem is not None:
            raise problem.error()
    try:
        loaded = _drive(plugin)
        missing = [member for member in MEMBERS.get(plugin.group, ()) if not hasattr(loaded, member)]
        name = str(getattr(loaded, "name", plugin.name))
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise plugin.broken(describe_exception(error)).error() from error
    if missing:
        raise plugin.broken(f"{plugin.value} lacks {', '.join(missing)}").error()
    if canonical_name(name) != canonical_name(plugin.name):
        raise plugin.broken("it calls itself by another name than its entry point").error()
    return loaded


def _drive(plugin: Plugin) -> object:
    # Imported late: listing plug-ins must not pay for it.
    from stevedore.driver import DriverManager  # noqa: PLC0415

    # stevedore's driver does the importing and calling. All that goes wrong with it comes from its own discovery and
    # its lenience, so each is replaced: its list of entry points (cached on disk, where it misses new installs and
    # can be edited to point a name elsewhere, and without the distribution) by the one entry point already chosen;
    # its handling of failures (logged, or re-raised from a bare `raise`) by one that always raises; its `driver`
    # property (which answers with the class when the object happens to be falsy) by the object itself.
    class OneDriver(DriverManager[object]):
        def list_entry_points(self) -> list[EntryPoint]:
            return [plugin.entry_point]

    manager = OneDriver(
        plugin.group,
        plugin.entry_point.name,
        invoke_on_load=True,
        on_load_failure_callback=_raise,
        on_missing_entrypoints_callback=None,
    )
    return manager.extensions[0].obj


def _raise(_manager: ExtensionManager[object], _entry_point: EntryPoint, error: BaseException) -> NoReturn:
    raise error
