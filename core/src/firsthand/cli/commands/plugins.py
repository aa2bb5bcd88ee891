"""`firsthand plugins`."""

from __future__ import annotations

from firsthand.canonical import JSONValue
from firsthand.cli.output import answers, end, lines, print_json, table
from firsthand.errors import EXIT_GOOD, EXIT_NEGATIVE
from firsthand.plugins import BACKENDS, OBSERVERS, PROVIDERS, BrokenPlugin, Plugin, discover, inspect_plugin


def run(*, as_json: bool) -> None:
    """List every plug-in, each imported only in a process of its own; ends with 1 when one can't be used."""
    rows: list[dict[str, JSONValue]] = []
    for group in (BACKENDS, PROVIDERS, OBSERVERS):
        catalogue = discover(group)
        rows += [_usable(plugin) for plugin in catalogue.plugins]
        rows += [_unusable(broken) for broken in catalogue.broken]
    if as_json:
        print_json({"plugins": list[JSONValue](rows)})
    elif rows:
        columns = ("group", "name", "distribution", "version", "status", "reason")
        cells = [[str(row[column]) for column in columns] for row in rows]
        answers().print(table([column.upper() for column in columns], cells))
    else:
        answers().print(lines("no plug-in is installed"))
    end(EXIT_NEGATIVE if any(row["status"] == "broken" for row in rows) else EXIT_GOOD)


def _usable(plugin: Plugin) -> dict[str, JSONValue]:
    problem = inspect_plugin(plugin).problem
    return {
        "group": plugin.group,
        "name": plugin.name,
        "distribution": plugin.distribution,
        "version": plugin.version,
        "status": "available" if problem is None else "broken",
        "reason": "" if problem is None else problem.reason,
    }


def _unusable(broken: BrokenPlugin) -> dict[str, JSONValue]:
    return {
        "group": broken.group,
        "name": broken.name or "?",
        "distribution": " and ".join(broken.owners),
        "version": "",
        "status": "broken",
        "reason": broken.reason,
    }
