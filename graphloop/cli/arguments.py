"""Arguments that several commands take, each with its help."""

from __future__ import annotations

from typing import Annotated, Final, TypeAlias

import typer

__all__ = [
    "GRAPH",
    "STORE",
    "Json",
    "Level",
    "Proven",
    "Registers",
    "RuleTexts",
    "RunId",
    "StorePath",
    "TargetOption",
    "Text",
    "Theme",
    "Unbounded",
]

STORE = "GRAPHLOOP_STORE"

Text: TypeAlias = str | None
RunId: TypeAlias = Annotated[
    str, typer.Argument(metavar="RUN", help="The run's id, or a beginning that only it has.")
]
StorePath: TypeAlias = Annotated[
    Text, typer.Option("--store", metavar="PATH", envvar=STORE, help="Where the run is kept.")
]
TargetOption: TypeAlias = Annotated[
    Text,
    typer.Option(
        "--target", metavar="TARGET", help="What the run was started from, if not noted; executed."
    ),
]
GRAPH: Final = typer.Argument(
    metavar="TARGET",
    help="`agent` (the standard loop), a directory, a .py or .yaml file, or module:name. "
    "Python is executed.",
)
Theme: TypeAlias = Annotated[str, typer.Option(metavar="THEME", help="light or dark.")]
Level: TypeAlias = Annotated[
    str,
    typer.Option(metavar="LEVEL", help="phase (from far), node, or detail (what is promised)."),
]
Proven: TypeAlias = Annotated[
    Text, typer.Option(metavar="CODES", help="Fail unless these are proven: GL2,GL3, or all.")
]
RuleTexts: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--rule", metavar="RULE", help="A temporal rule that must hold; may be repeated."),
]
Registers: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--with",
        metavar="FILE",
        help="A .py file, or a module, executed: it registers what a topology names; repeatable.",
    ),
]
"""Executed before the command, in `cli._exit`."""
Unbounded: TypeAlias = Annotated[
    Text,
    typer.Option(metavar="REASON", help="Why a graph may run in which a cycle has no bound."),
]
Json: TypeAlias = Annotated[bool, typer.Option("--json", help="Print JSON lines.")]
