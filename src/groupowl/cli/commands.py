"""The table of commands, and what all of them share: options in bundles, errors that end as one line."""

from __future__ import annotations

import inspect
import traceback
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import MISSING, fields
from functools import wraps
from typing import Any, get_args, get_type_hints

from ..tables import MissingTargetsError, TableError
from .messages import Failure, fail, tell

#: Commands with an example of each.
COMMANDS: dict[Callable[..., None], str] = {}
#: What was typed after ``groupowl``.
arguments: ContextVar[tuple[str, ...]] = ContextVar("arguments", default=())


def command(*, example: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Make the function a command of the application; ``example`` ends its help.

    A parameter whose annotation is a dataclass stands for one option per field. What goes wrong inside is one line, and
    a traceback only with the option ``debug``.
    """

    def register(function: Callable[..., None]) -> Callable[..., None]:
        made = _guarded(_with_bundles(function))
        COMMANDS[made] = example
        return made

    return register


def _with_bundles(function: Callable[..., None]) -> Callable[..., None]:
    """The same command with the fields of its bundles as parameters, as Typer wants them."""
    hints = get_type_hints(function, include_extras=True)
    bundles = {name: hints[name] for name in inspect.signature(function).parameters}

    @wraps(function)
    def call(**options: Any) -> None:
        made = {
            name: kind(**{item.name: options[item.name] for item in fields(kind)}) for name, kind in bundles.items()
        }
        function(**made)

    parameters = [parameter for kind in bundles.values() for parameter in _parameters(kind)]
    parameters.sort(key=lambda parameter: parameter.default is not parameter.empty)
    del call.__wrapped__  # its signature is not ours
    call.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    call.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return call


def _parameters(bundle: Any) -> list[inspect.Parameter]:
    hints = get_type_hints(bundle, include_extras=True)
    for hint in hints.values():
        kind, option = get_args(hint)
        if kind in (bool, bool | None):  # a flag takes no value, so the help should name none
            option.metavar = ""
    return [
        inspect.Parameter(
            item.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=inspect.Parameter.empty if item.default is MISSING else item.default,
            annotation=hints[item.name],
        )
        for item in fields(bundle)
    ]


def _guarded(function: Callable[..., None]) -> Callable[..., None]:
    @wraps(function)
    def call(**options: Any) -> None:
        try:
            function(**options)
        except KeyboardInterrupt:
            tell("stopped; nothing was written.")
            raise SystemExit(130) from None
        except Exception as error:
            if options.get("debug"):
                traceback.print_exc()
            fail(*_explained(error))

    del call.__wrapped__
    call.__signature__ = inspect.signature(function)  # type: ignore[attr-defined]
    return call


def _explained(error: Exception) -> tuple[str, int]:
    """What to say of an error, and the exit code."""
    if isinstance(error, MissingTargetsError):
        return str(error), 2
    if isinstance(error, Failure):
        return str(error), error.code
    if isinstance(error, TableError):
        return str(error), 1
    if isinstance(error, MemoryError):
        return "there is not enough memory for these data. Use fewer columns (--drop), or a machine with more.", 1
    words = " ".join(str(error).split())
    return (
        f"unexpected {type(error).__name__}: {words}. This is a bug of groupowl: run the command again with --debug, "
        "and report what it prints.",
        1,
    )
