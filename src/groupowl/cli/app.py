"""The application: all commands, and the way from what was typed to an exit code."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from contextlib import suppress
from importlib.metadata import entry_points
from typing import Annotated

import typer

from .. import __version__
from . import demo, fit_command, predict_command
from .commands import COMMANDS, Options, arguments, command
from .messages import Failure, say, tell

# As the help lists them: from data to a report first.
_ORDER = (fit_command.fit, fit_command.path, fit_command.cv, predict_command.predict, predict_command.verify, demo.demo)


class _AnyOptions(Options):
    """Whatever was typed."""

    given: list[str] | None = typer.Argument(None, hidden=True)


@command(example="groupowl reproduce --data downloads --out results --quick")
def reproduce(options: _AnyOptions) -> None:
    """Repeat the paper's experiments, once they are installed: pip install ./harness ./paper in a clone of groupowl."""
    raise Failure(
        "the paper's experiments are a project of their own, which is not installed; "
        "in a clone of groupowl run: pip install ./harness ./paper"
    )


def build_app() -> typer.Typer:
    """The application with all its commands."""
    app = typer.Typer(name="groupowl", no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)
    app.callback(epilog="Example: groupowl cv train.csv --targets y1,y2 --out model")(_groupowl)
    paper: Callable[..., None] = reproduce
    for point in entry_points(group="groupowl.commands", name="reproduce"):
        with suppress(ImportError):  # a project that is only half installed
            paper = point.load()
    for function in (*_ORDER, paper):
        paragraphs = inspect.cleandoc(function.__doc__ or "").split("\n\n")
        app.command(
            help="\n\n".join(" ".join(part.split()) for part in paragraphs),  # to be folded by whoever prints them
            epilog=f"Example: {COMMANDS[function]}",
            context_settings={"ignore_unknown_options": function is reproduce},
        )(function)
    return app


def run(given: list[str]) -> int:
    """Do what was typed; returns the exit code. A command line that cannot be understood is one line."""
    arguments.set(tuple(given))
    try:
        outcome = build_app()(given, prog_name="groupowl", standalone_mode=False)
    except Exception as error:
        if not hasattr(error, "format_message"):  # no mistake on the command line, so a bug before any command
            raise
        if type(error).__name__ == "NoArgsIsHelpError":
            say(error.format_message())
            return 2
        message = str(error.format_message()).strip()
        context = getattr(error, "ctx", None)
        where = context.command_path if context is not None else "groupowl"
        tell(f"{message}{'' if message[-1:] in '.?!' else '.'} See: {where} --help")
        return int(getattr(error, "exit_code", 2))
    return outcome if isinstance(outcome, int) else 0


def _print_version(wanted: bool) -> None:
    if wanted:
        say(f"groupowl {__version__}")
        raise typer.Exit()


def _groupowl(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Group OWL models: sparse multi-task regression and classification with certified answers."""
