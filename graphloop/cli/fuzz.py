"""Test a graph in hundreds of hostile worlds; show the simplest failure.

  graphloop fuzz examples/custom_topology
  graphloop fuzz my_package.desk:graph --seeds 5000 --draw coverage.svg
  graphloop fuzz desk/topology.py --rule '{never: tool:pay, before: review}'
  graphloop fuzz my_package.desk:graph --replay f1-TLgpcAAAAAAAAAEB

An adversary plays the model, the tools, the people, the child runs and your own functions; it kills
processes and stops runs at any moment. No real model or tool is called. A seed always makes the
same world; a token does so while the graph and its tools stay the same. TOOLS and STATE of the file
are used as in graphloop run. Ctrl-C prints the findings so far.

Exit status: 0 no failure, 1 a run broke a promise, 2 wrong usage, 130 it was interrupted.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from typing import Annotated, Final, TypeAlias

import typer

from ..agent import Agent
from ..errors import ConfigError
from ..testing import fuzzing
from ..topology import rules_of_texts
from ..views import picture
from .errors import Status
from .modules import register
from .options import Json, Registers, RuleTexts, TargetArgument, Text
from .output import findings_file, print_report, refuse_mixed
from .target import load_target

__all__ = ["fuzz_command"]

SEEDS: Final = 200

Seeds: TypeAlias = Annotated[int | None, typer.Option(metavar="N", help="How many worlds (200).")]
Seed: TypeAlias = Annotated[
    int | None, typer.Option(metavar="S", help="The first seed; without --seeds, the only seed.")
]
Token: TypeAlias = Annotated[
    Text,
    typer.Option("--replay", metavar="TOKEN", help="Run the world of a printed token again."),
]
Events: TypeAlias = Annotated[
    int, typer.Option(metavar="N", help="How many events a run may have; a longer run is endless.")
]
Draw: TypeAlias = Annotated[
    Text, typer.Option(metavar="FILE", help="Draw the coverage: svg, png, pdf, mmd or dot.")
]


def fuzz_command(  # noqa: PLR0913 - the options of a command are its parameters
    target: TargetArgument,
    *,
    seeds: Seeds = None,
    seed: Seed = None,
    rule: RuleTexts = None,
    token: Token = None,
    events: Events = fuzzing.EVENTS_MAX,
    draw: Draw = None,
    registers: Registers = None,
    as_json: Json = False,
) -> Status:
    """Fuzz the graph of a target, and print the report."""
    modules = register(registers)
    if token is not None and (seeds, seed) != (None, None):
        raise ConfigError(
            "--seeds and --seed would have no effect beside --replay, which names its world. "
            "Fix: leave one of them out."
        )
    drawing = findings_file(draw)
    refuse_mixed(drawing, as_json=as_json)
    loaded = load_target(target, modules)
    loop = loaded.loop()
    graph, tools = (loop.graph, ()) if isinstance(loop, Agent) else (loop, loaded.tools)
    rules, state = rules_of_texts(rule or (), "--rule"), loaded.state
    if token is not None:
        report = fuzzing.replay_token(
            loop, token, rules=rules, tools=tools, state=state, events_max=events
        )
    else:
        number = seeds if seeds is not None else SEEDS if seed is None else 1
        report = fuzzing.fuzz(
            loop,
            seeds=number,
            first_seed=seed or 0,
            rules=rules,
            tools=tools,
            state=state,
            events_max=events,
        )
    if drawing is not None:
        drawing.draw(picture(graph, report.coverage.marks))
    again = _replay_command(target, registers or (), rule or (), events)
    print_report(report.text(again), report.to_json(), as_json=as_json, beside=drawing)
    if report.ok and report.other_rules:
        raise ConfigError(
            "--replay: this token was made with other rules, and no failure was found without "
            "them. Fix: give the --rule options that it was printed with."
        )
    if report.ok and report.interrupted:
        return Status.INTERRUPTED
    return Status.OK if report.ok else Status.FAILED


def _replay_command(
    target: str, registers: Iterable[str], rules: Iterable[str], events: int
) -> str:
    """Return the command line arguments that, with a run's token, replay a run of this world."""
    words = [target, *[word for file in registers for word in ("--with", file)]]
    words += [word for rule in rules for word in ("--rule", rule)]
    words += [] if events == fuzzing.EVENTS_MAX else ["--events", str(events)]
    return shlex.join(words)
