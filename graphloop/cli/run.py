"""`graphloop run`: one run, watched."""

from __future__ import annotations

import asyncio
import os
import shlex
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import cast

from ..errors import ConfigError
from ..front.agent import Agent
from ..front.bindings import asks_model
from ..front.graph import Graph
from ..front.options import RunOptions
from ..front.topology import Topology
from ..providers.base import Provider
from ..providers.registry import resolve
from ..stores.base import Store
from ..stores.opening import open_store
from .bounds import allowed, explain, refuse_unbounded
from .model import choose_model
from .nearby import not_found
from .place import Place, repeated, target_text
from .request import RunRequest
from .screen import Screen
from .status import Status
from .stored import closing, refuse_unreachable
from .target import STANDARD, Target, load_target, names_target, standard_target
from .watch import Watched, decider, screen_for, watch

__all__ = ["run"]


def run(request: RunRequest) -> Status:
    """Do what `request` asks, and return the exit status.

    Raises:
        ConfigError: the request cannot work; nothing has been sent.
    """
    request.refuse_blanks()
    if request.store is not None:
        refuse_unreachable(request.store)
    target, prompt = _question(request)
    screen = screen_for(as_json=request.as_json)
    watched = _start(request, target, prompt, screen)
    return asyncio.run(watch(watched, screen, "" if request.prompt else target.prompt))


def _question(request: RunRequest) -> tuple[Target, str]:
    """Return what is to run and what it is asked: a target's file, or a bare prompt."""
    if names_target(request.target):
        target = load_target(request.target)
        prompt = target.prompt if request.prompt is None else request.prompt
        if not prompt and target.state is None:
            raise ConfigError(
                f"{target.place}: expected a question, found no PROMPT in it: add one, or ask it "
                f'here: graphloop run {shlex.quote(request.target)} "…"'
            )
        return target, prompt or ""
    if request.prompt is not None:
        raise not_found(request.target)
    return standard_target(), request.target


def _start(request: RunRequest, target: Target, prompt: str, screen: Screen) -> Watched:
    if isinstance(target.ready, Agent):
        target.refuse_model(_model_options(request))
        return _asked(target.ready, request, prompt, screen)
    if target.ready is not None and not _needs_model(target.ready):
        _refuse_graph(target.ready, request, target.state)
        given = [name for name, value in _model_options(request).items() if value is not None]
        if given:
            raise ConfigError(
                f"{' and '.join(given)} would have no effect: no node of graph "
                f"{target.ready.name!r} asks a model, but for those of its agents."
            )
        return _followed(target.ready, None, request, target, prompt, screen)
    choice = choose_model(
        model=request.model,
        script=request.script,
        base_url=request.base_url,
        environ=os.environ,
        beside=target.script,
    )
    provider = resolve(choice.model, base_url=request.base_url, environ=os.environ)
    if choice.notice:
        screen.note(choice.notice)
    loop = target.loop(provider)
    if isinstance(loop, Agent):
        return _asked(loop, request, prompt, screen)
    return _followed(loop, provider, request, target, prompt, screen)


def _needs_model(graph: Graph[None]) -> bool:
    return graph.needs_model if isinstance(graph, Topology) else asks_model(graph)


def _model_options(request: RunRequest) -> dict[str, str | None]:
    return {"--model": request.model, "--script": request.script, "--base-url": request.base_url}


def _followed(
    graph: Graph[None],
    provider: Provider | None,
    request: RunRequest,
    target: Target,
    prompt: str,
    screen: Screen,
) -> Watched:
    _refuse_graph(graph, request, target.state)
    graph = allowed(graph, request.unbounded)
    place = _place(request, None)
    options = _run_options(request, place, screen, own_approver=False)
    options["tools"] = target.tools
    # A target is looked at, not type-checked: its graph has asked for a state of its own type.
    state = cast("None", target.state)
    if request.explain:
        explain(graph.run_bound(model=provider, **options), as_json=request.as_json)
    stream = graph.stream(state, model=provider, prompt=prompt or None, **options)
    # Agents that the graph brings along are closed with the stream.
    return Watched(
        stream, _closing(_nothing if provider is None else provider.aclose, place), place
    )


async def _nothing() -> None:
    """Close what was never opened."""


def _asked(agent: Agent, request: RunRequest, prompt: str, screen: Screen) -> Watched:
    refuse_unbounded(request.unbounded)
    own = agent.options.get("store")
    place = _place(request, own)
    own_approver = agent.options.get("approve_tool_call") is not None
    agent = agent.with_options(**_run_options(request, place, screen, own_approver=own_approver))
    if request.max_steps is not None:
        agent = agent.with_options(max_steps=request.max_steps)
    if request.explain:
        explain(agent.bound(), as_json=request.as_json)
    return Watched(agent.stream(prompt), _closing(agent.aclose, place), place)


def _refuse_graph(graph: Graph[None], request: RunRequest, state: object) -> None:
    if request.max_steps is not None:
        raise ConfigError(
            f"--max-steps would have no effect: the bound of graph {graph.name!r} stands in its "
            "stop node. Change it there."
        )
    kind = cast("object", graph.state_type)
    word = kind.__name__ if isinstance(kind, type) else kind
    if kind is not None and state is None:
        raise ConfigError(
            f"graph {graph.name!r} carries state of type {word}, which a command line cannot "
            f"give: say in its file what it begins with, `STATE = {word}(…)`."
        )
    if kind is None and state is not None:
        raise ConfigError(
            f"STATE would have no effect: graph {graph.name!r} carries no state. Leave it out."
        )


def _place(request: RunRequest, own: Store | str | Path | None) -> Place | None:
    """Return where the run is kept: where the command line says, else the agent's own store."""
    given = own if request.store is None else request.store
    if given is None:
        return None
    target = target_text(request.target) if names_target(request.target) else STANDARD
    options = repeated(
        request.base_url, request.max_steps, request.unbounded, registers=request.registers
    )
    if isinstance(given, str | Path):
        return Place(open_store(given), str(given), target, options)
    return Place(given, "", target)


def _run_options(
    request: RunRequest, place: Place | None, screen: Screen, *, own_approver: bool
) -> RunOptions:
    """Return the options that were given; what was not given stays the target's own."""
    options: RunOptions = {}
    if request.instructions is not None:
        options["instructions"] = request.instructions
    if place is not None:
        options["store"] = place.store
    if request.approve is not None or not own_approver:
        options["approve_tool_call"] = decider(request.approve, screen, kept=place is not None)
    return options


def _closing(
    loop_closes: Callable[[], Awaitable[None]], place: Place | None
) -> Callable[[], Awaitable[None]]:
    """Return what closes the run's connections, and the store if it was opened here."""
    return closing(loop_closes, place.store) if place is not None and place.path else loop_closes
