"""A program with the same commands, options and texts as another typer program, and nothing behind them."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import get_args, get_origin, get_type_hints

import typer
from typer.models import ArgumentInfo, OptionInfo

_HEAD = '''"""Generated."""
from __future__ import annotations
from pathlib import Path
from typing import Annotated, Optional
import typer
app = typer.Typer(
    name="bare", help={help!r}, no_args_is_help=True, pretty_exceptions_enable=False,
    rich_markup_mode={markup!r}, context_settings={settings!r},
)
'''
_FIELDS = ("help", "metavar", "envvar", "min", "max")


def bare_program(app: typer.Typer) -> str:
    """Python source of a typer program that mirrors another one, with `app` as its typer object."""
    settings = {key: value for key, value in (app.info.context_settings or {}).items() if isinstance(value, list)}
    text = _HEAD.format(help=app.info.help, markup=app.rich_markup_mode, settings=settings)
    return text + "\n".join(_of(app, "app"))


def _of(app: typer.Typer, variable: str) -> list[str]:
    lines = []
    if app.registered_callback is not None and app.registered_callback.callback is not None:
        lines.append(_function(app.registered_callback.callback, f"@{variable}.callback()", f"{variable}_root"))
    for command in app.registered_commands:
        assert command.callback is not None  # noqa: S101 # typer never registers one without
        name = command.name or command.callback.__name__.replace("_", "-")
        lines.append(_function(command.callback, f"@{variable}.command({name!r})", f"{variable}_{len(lines)}"))
    for group in app.registered_groups:
        assert group.typer_instance is not None  # noqa: S101 # the same
        inner = f"{variable}_{group.name}"
        help_text = group.typer_instance.info.help
        lines.append(f"{inner} = typer.Typer(help={help_text!r}, no_args_is_help=True)")
        lines.append(f"{variable}.add_typer({inner}, name={group.name!r})")
        lines += _of(group.typer_instance, inner)
    return lines


def _function(original: Callable[..., object], decorator: str, name: str) -> str:
    hints = get_type_hints(original, include_extras=True)
    parameters = [_parameter(each, hints[each.name]) for each in inspect.signature(original).parameters.values()]
    return f"{decorator}\ndef {name}({', '.join(parameters)}) -> None:\n    {original.__doc__!r}"


def _parameter(parameter: inspect.Parameter, hint: object) -> str:
    """One parameter as source; callbacks are left out, they would be bodies."""
    kind, *extras = get_args(hint) or (hint,)
    declared = next((extra for extra in extras if isinstance(extra, OptionInfo | ArgumentInfo)), None)
    if declared is None:
        raise ValueError(f"{parameter.name} is not declared as an option or an argument")
    # typer keeps the first name in `default` until it reads the annotation.
    names = [declared.default, *(declared.param_decls or ())]
    words = [repr(name) for name in names if isinstance(name, str) and name.startswith("-")]
    words += [f"{field}={getattr(declared, field)!r}" for field in _FIELDS if getattr(declared, field) is not None]
    maker = "Option" if isinstance(declared, OptionInfo) else "Argument"
    default = "" if parameter.default is inspect.Parameter.empty else f" = {_value(parameter.default)}"
    return f"{parameter.name}: Annotated[{_type(kind)}, typer.{maker}({', '.join(words)})]{default}"


def _type(kind: object) -> str:
    if isinstance(kind, type) and get_origin(kind) is None:
        return kind.__name__
    inner = [each for each in get_args(kind) if each is not type(None)]
    if get_origin(kind) is list:
        return f"list[{_type(inner[0])}]"
    return f"Optional[{_type(inner[0])}]"


def _value(value: object) -> str:
    return f"Path({str(value)!r})" if isinstance(value, Path) else repr(value)
