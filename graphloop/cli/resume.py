"""`graphloop resume`: a run of a store taken up again, and watched."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from dataclasses import replace

from ..errors import ConfigError, StoreError
from ..events import Event, ModelReplied, Started
from ..front.agent import Agent
from ..front.options import RunOptions
from ..providers.base import Provider
from ..providers.registry import resolve
from ..providers.script import ScriptedModel
from ..stores.opening import open_store
from .bounds import allowed, refuse_unbounded
from .journal import Journal, read
from .place import Place, repeated
from .request import ResumeRequest
from .screen import Screen
from .status import Status
from .stored import closing
from .target import STANDARD, Target, load_target, standard_target
from .watch import Watched, decider, screen_for, watch

__all__ = ["resume"]


def resume(request: ResumeRequest) -> Status:
    """Drive a run on, with the answers that came for it, and return the exit status.

    Raises:
        ConfigError: the request cannot work; nothing has been sent.
        StoreError: the run's journal cannot be read.
    """
    request.refuse_blanks()
    found = asyncio.run(read(request.store, request.run))
    _refuse_child(found.run_id)
    if request.registers:
        # Given anew, it takes the place of what was noted: files may have moved.
        found = replace(found, noted=found.noted.without("--with"))
    request = _as_started(request, found)
    text = found.target_or(request.target)
    target = standard_target() if text == STANDARD else load_target(text)
    screen = screen_for(as_json=request.as_json)
    watched = _start(request, found, target, screen)
    return asyncio.run(watch(watched, screen, None))


def _as_started(request: ResumeRequest, found: Journal) -> ResumeRequest:
    """Return the request with the options that the run was started with, but for those given."""
    if request.target is not None:
        return request
    noted, steps = found.noted, found.noted.value("--max-steps")
    return replace(
        request,
        base_url=request.base_url or noted.value("--base-url"),
        max_steps=int(steps) if request.max_steps is None and steps else request.max_steps,
        unbounded=request.unbounded or noted.value("--unbounded"),
        registers=request.registers or tuple(noted.values("--with")),
    )


def _refuse_child(run_id: str) -> None:
    root, slash, _ = run_id.partition("/")
    if slash:
        raise ConfigError(
            f"run {run_id!r} is a part of run {root!r}, and goes on with it: "
            f"graphloop resume {root}"
        )


def _start(request: ResumeRequest, found: Journal, target: Target, screen: Screen) -> Watched:
    assert request.store is not None, "the run was found in it"
    store = open_store(request.store)
    place = Place(
        store,
        request.store,
        found.target_or(request.target),
        repeated(
            request.base_url, request.max_steps, request.unbounded, registers=request.registers
        ),
    )
    if isinstance(target.ready, Agent):
        target.refuse_model({"--base-url": request.base_url})
        return _resumed(target.ready, request, found.run_id, place, screen)
    provider = _provider(request, found.events)
    loop = target.loop(ScriptedModel(()) if provider is None else provider)
    if isinstance(loop, Agent):
        return _resumed(loop, request, found.run_id, place, screen)
    if request.max_steps is not None:
        raise ConfigError(
            f"--max-steps would have no effect: the bound of graph {loop.name!r} stands in its "
            "stop node. Change it there."
        )
    loop = allowed(loop, request.unbounded)
    options: RunOptions = {"store": store, "tools": target.tools}
    options["approve_tool_call"] = decider(request.approve, screen, kept=True)
    stream = loop.resume_stream(found.run_id, model=provider, **options)
    # Agents that the graph brings along are closed with the stream.
    closes = _nothing if provider is None else provider.aclose
    return Watched(stream, closing(closes, store), place)


async def _nothing() -> None:
    """Close what was never opened."""


def _resumed(
    agent: Agent, request: ResumeRequest, run_id: str, place: Place, screen: Screen
) -> Watched:
    refuse_unbounded(request.unbounded)
    agent = agent.with_options(store=place.store)
    if request.max_steps is not None:
        agent = agent.with_options(max_steps=request.max_steps)
    if request.approve is not None or agent.options.get("approve_tool_call") is None:
        decides = decider(request.approve, screen, kept=True)
        agent = agent.with_options(approve_tool_call=decides)
    return Watched(agent.resume_stream(run_id), closing(agent.aclose, place.store), place)


def _provider(request: ResumeRequest, events: Sequence[Event]) -> Provider | None:
    """Return the model that the run has asked up to here; a script goes on where it was.

    There is none where only agents of the graph ask models, which are their own.
    """
    first = events[0]
    if not isinstance(first, Started):
        raise StoreError(f"a journal begins with Started, found {type(first).__name__}")
    if not first.setup.model:
        return None
    model = resolve(first.setup.model, base_url=request.base_url, environ=os.environ)
    if isinstance(model, ScriptedModel):
        return model.after(sum(isinstance(one, ModelReplied) for one in events))
    return model
