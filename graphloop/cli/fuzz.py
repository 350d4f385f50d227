"""`graphloop fuzz`: a graph in hundreds of hostile worlds, and the simplest that it fails in."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import Final

from ..errors import ConfigError
from ..front.agent import Agent
from ..fuzz import fuzzing
from ..fuzz.report import FuzzReport
from ..providers.script import ScriptedModel
from ..temporal import Rules
from ..topology.temporal_form import rules_of_texts
from .found import draw_found, drawn_to
from .lines import safe_json
from .output import refuse_mixed, tell_found
from .request import FuzzRequest
from .status import Status, put_file
from .target import STANDARD, Loop, Target, load_target

__all__ = ["fuzz"]

SEEDS: Final = 200


def fuzz(request: FuzzRequest) -> Status:
    """Do what `request` asks, and return the exit status.

    Raises:
        ConfigError: the target cannot be loaded, or an option cannot work.
    """
    request.refuse_useless()
    drawn = drawn_to(request.draw)
    refuse_mixed({"--json": request.as_json, "--draw": drawn is not None})
    rules = rules_of_texts(request.rules, "--rule")
    model = ScriptedModel(())
    target = Target("", ready=Agent(model)) if request.target == STANDARD else _loaded(request)
    loop = target.loop(model)
    report = _report(request, loop, target, rules)
    if request.draw is not None:
        graph = loop.graph if isinstance(loop, Agent) else loop
        draw_found(graph, request.draw, report.coverage.marks)
    if request.as_json:
        put_file(f"{safe_json(report.to_json())}\n")
    else:
        again = shlex.join([request.target, *_repeated(request)])
        tell_found(report.text(again), beside=drawn)
    if not report.ok:
        return Status.FAILED
    if report.other_rules:
        raise ConfigError(
            "--replay: this token was made with other rules, and nothing was found without them. "
            "Fix: give the --rule options that it was printed with."
        )
    return Status.INTERRUPTED if report.interrupted else Status.OK


def _loaded(request: FuzzRequest) -> Target:
    return load_target(request.target, (STANDARD,))


def _report(request: FuzzRequest, loop: Loop, target: Target, rules: Rules) -> FuzzReport:
    tools = () if isinstance(loop, Agent) else target.tools
    events_max = fuzzing.EVENTS_MAX if request.events is None else request.events
    if request.replay is not None:
        return fuzzing.replay_token(
            loop,
            request.replay,
            rules=rules,
            tools=tools,
            state=target.state,
            events_max=events_max,
        )
    seeds = request.seeds if request.seeds is not None else SEEDS if request.seed is None else 1
    return fuzzing.fuzz(
        loop,
        seeds=seeds,
        first_seed=request.seed or 0,
        rules=rules,
        tools=tools,
        state=target.state,
        events_max=events_max,
    )


def _repeated(request: FuzzRequest) -> Iterator[str]:
    """Yield the options that make the same world together with a token."""
    for one in request.registers:
        yield from ("--with", one)
    for rule in request.rules:
        yield from ("--rule", rule)
    if request.events is not None:
        yield from ("--events", str(request.events))
