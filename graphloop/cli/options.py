"""Options: the arguments and options that several commands share, with their help texts."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, TypeAlias

import typer

__all__ = [
    "TARGET",
    "ApproveMode",
    "BaseUrl",
    "Decision",
    "Json",
    "Level",
    "MaxSteps",
    "Near",
    "Record",
    "Registers",
    "RuleTexts",
    "RunId",
    "StorePath",
    "TargetArgument",
    "TargetOption",
    "Text",
    "ThemeName",
    "Themed",
    "Unbounded",
]

Text: TypeAlias = str | None

ApproveMode = StrEnum("ApproveMode", {"ASK": "ask", "ALWAYS": "always", "NEVER": "never"})
ThemeName = StrEnum("ThemeName", {"LIGHT": "light", "DARK": "dark"})
Level = StrEnum("Level", {"PHASE": "phase", "NODE": "node", "DETAIL": "detail"})

TARGET = typer.Argument(
    metavar="TARGET",
    help="`agent` (the standard loop), a directory, a .py or .yaml file, FILE.py:NAME or "
    "module:name. Python is executed.",
)
TargetArgument: TypeAlias = Annotated[str, TARGET]
TargetOption: TypeAlias = Annotated[
    Text,
    typer.Option(
        "--target",
        metavar="TARGET",
        help="The target of the run, if the store does not know it; executed.",
    ),
]
RunId: TypeAlias = Annotated[
    str, typer.Argument(metavar="RUN", help="The run's id, or a beginning that no other run has.")
]
StorePath: TypeAlias = Annotated[
    Text,
    typer.Option(
        "--store",
        metavar="PATH",
        envvar="GRAPHLOOP_STORE",
        help="Where runs are kept: runs.db, or a folder.",
    ),
]
Registers: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--with",
        metavar="FILE",
        help="A .py file or a module, executed: it registers names for topologies; repeatable.",
    ),
]
Record: TypeAlias = Annotated[
    Text,
    typer.Option(metavar="FILE", help="Write the model's replies to a script, for --script."),
]
RuleTexts: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--rule", metavar="RULE", help="A temporal rule that must hold; repeatable."),
]
MaxSteps: TypeAlias = Annotated[
    int | None, typer.Option(metavar="N", help="How many turns an agent takes at most.")
]
BaseUrl: TypeAlias = Annotated[
    Text, typer.Option(metavar="URL", help="Your own server, which speaks the provider's wire.")
]
Decision: TypeAlias = Annotated[
    ApproveMode | None,
    typer.Option(
        "--approve",
        help="What happens to calls that need approval; without a terminal, ask parks them.",
    ),
]
Unbounded: TypeAlias = Annotated[
    Text,
    typer.Option(metavar="REASON", help="Why a graph with an unbounded cycle may run."),
]
Themed: TypeAlias = Annotated[ThemeName, typer.Option(help="The colours.")]
Near: TypeAlias = Annotated[
    Level, typer.Option(help="How much is drawn: phases, nodes, or nodes with their contracts.")
]
Json: TypeAlias = Annotated[bool, typer.Option("--json", help="Print JSON, and nothing else.")]
