"""The command line interface, with one module for each command.

This package has the commands' options, displays and exit statuses; it contains no logic of runs.
An error is printed as one sentence and a fix, without a traceback.
"""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Iterable, Mapping
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import Annotated, Any, Final, cast

import typer
from typer.core import TyperCommand, TyperGroup

from ..errors import ConfigError
from ..providers import keys_deferred
from .errors import Status, delivered, guarded

__all__ = ["main"]

COMMANDS: Final = {
    "run": "Run an agent or graph and watch it.",
    "draw": "Draw a graph from the table that runs.",
    "check": "Prove a graph's properties, and list its problems.",
    "diff": "Compare two graphs; fail if the later is weaker.",
    "fuzz": "Test a graph in hundreds of hostile worlds.",
    "schema": "Print the JSON Schema of topology files.",
    "models": "List the model services and their keys.",
    "runs": "List the runs of a store.",
    "approve": "Answer a call that a run waits for.",
    "resume": "Resume a run of a store, and watch it.",
    "replay": "Print the events of a run.",
    "fork": "Copy the first events of a run to a new run.",
    "watch": "Follow a run that another process drives.",
    "otel": "Send the spans of a run to a trace backend.",
    "worker": "Drive the runs of a store that wait.",
    "submit": "Store a new run, which a worker drives.",
    "steer": "Say something to a run, wherever it is driven.",
    "cancel": "End a run, wherever it is driven.",
    "doctor": "Tell what a store needs, and what to do.",
    "prune": "Delete old runs that are over.",
    "mcp": "Use tools of MCP servers, or serve an agent.",
    "init": "Write a first agent, a test and a topology.",
}
OPERATING: Final = ("worker", "submit", "steer", "cancel", "doctor", "prune")
"""The commands whose modules are in the folder `operating`."""
MAY_BE_BLANK: Final = ("instructions", "reason")
HELP: Final = """Agents as explicit graphs: run an agent, see it, prove it, resume it.

  graphloop run examples/weather      run an agent, or replay its script
  graphloop draw agent -o loop.svg    draw the standard loop
  graphloop check examples/weather    prove its properties before it runs
  graphloop fuzz examples/weather     test it in hundreds of hostile worlds
  graphloop runs --store runs.db      list its runs, and what they wait for

Every command that loads a Python file executes it, even to check or to draw it: name only code that
you trust. A topology file is data; no code of it runs.
"""


class _Command(TyperCommand):
    """A typer command that refuses blank arguments, and exits with the status that it returns."""

    # `Any`: the context class depends on whether this version of typer contains its own click.
    def invoke(self, ctx: Any) -> Any:  # noqa: ANN401
        """Run the command, and exit the process with its status."""

        def status() -> Status:
            _refuse_blanks(self.params, ctx.params)
            with keys_deferred():
                done: Status = super(_Command, self).invoke(ctx)
            return done

        raise typer.Exit(guarded(status))


class _Commands(TyperGroup):
    """The group of all commands; it imports a command's module when the command is called."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:  # noqa: ANN401 - as above
        """Return the called command and its arguments."""
        name, _, rest = super().resolve_command(ctx, args)
        group = "operating" if name in OPERATING else None
        folder = self.name if self.name in COMMANDS else group
        return name, _load_command(f"{folder}.{name}" if folder else str(name)), rest


def _typer_settings() -> dict[str, object]:
    # Without `terminal_width`, click makes help at least 50 columns wide.
    width = min(shutil.get_terminal_size().columns, 100) - 2
    return {"help_option_names": ["-h", "--help"], "terminal_width": width}


def _mark_paragraphs(text: str | None) -> str:
    """Mark the indented paragraphs of a help text, so that typer does not wrap them."""
    return re.sub(r"\n\n(?=  )", "\n\n\b\n", text or "")


def _make_group(
    commands: Mapping[str, str], name: str | None = None, text: str = ""
) -> typer.Typer:
    """Return a group of commands, which `_load_command` imports when they are called."""
    group = typer.Typer(
        name=name,
        help=_mark_paragraphs(text),
        cls=_Commands,
        no_args_is_help=True,
        add_completion=name is None,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        context_settings=_typer_settings(),
    )
    for command, short in commands.items():
        group.command(command, short_help=short)(lambda: None)
    return group


app = _make_group(COMMANDS)


def main() -> None:
    """Run the command that the arguments name, and exit with its status."""
    delivered(lambda: app(prog_name="graphloop"))


def _print_version(wanted: bool) -> None:  # noqa: FBT001 - typer's callback signature
    if wanted:
        try:
            number = version("graphloop")
        except PackageNotFoundError:
            number = "(not installed)"
        sys.stdout.write(f"graphloop {number}\n")
        raise typer.Exit


@app.callback(help=_mark_paragraphs(HELP))
def _graphloop(
    *,
    shown: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Declare the options that `graphloop` takes without a command, such as `--version`."""


def _load_command(path: str) -> object:
    """Import the module of a command or of a group, and return its command for typer.

    A group, such as `mcp`, is a package with a table `COMMANDS` of its own.
    """
    module = import_module(f".{path}", __package__)
    name = path.rpartition(".")[2]
    if hasattr(module, "COMMANDS"):
        return typer.main.get_command(_make_group(module.COMMANDS, name, str(module.__doc__)))
    single = typer.Typer(add_completion=False, rich_markup_mode=None)
    settings = _typer_settings()
    single.command(
        name, cls=_Command, help=_mark_paragraphs(module.__doc__), context_settings=settings
    )(getattr(module, f"{name}_command"))
    return typer.main.get_command(single)


def _refuse_blanks(params: Iterable[Any], values: Mapping[str, object]) -> None:
    """Raise one error that names all blank arguments, if there are any."""
    blank = [
        param.opts[0] if param.opts[0].startswith("-") else param.metavar
        for param in params
        if param.name not in MAY_BE_BLANK and _is_blank(values.get(param.name))
    ]
    if blank:
        raise ConfigError(
            f"{' and '.join(blank)}: expected text, found none (an unset shell variable?). Fix: "
            "fill it in, or leave it out."
        )


def _is_blank(value: object) -> bool:
    texts = cast("list[object]", value) if isinstance(value, list) else [value]
    return any(isinstance(text, str) and not text.strip() for text in texts)
