"""`graphloop run`: one run, watched."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from io import TextIOWrapper
from typing import TextIO, final

from rich.console import Console

from ..errors import ConfigError
from ..front.agent import Agent
from ..front.graph import Graph
from ..front.options import Model, RunOptions
from ..front.stream import RunStream
from ..providers.registry import resolve
from ..run import EndReason
from ..views.parts import ErrorPart
from .approval import approver
from .interrupt import interrupts
from .json_lines import JsonScreen
from .lines import pending_lines
from .live import LiveScreen
from .model import choose_model
from .nearby import not_found
from .plain import PlainScreen
from .request import RunRequest
from .screen import Screen
from .status import Status, complain, tell
from .target import Target, load_target, names_target

__all__ = ["run"]

INTERRUPTED = "interrupted: ending the run; Ctrl-C again to quit at once"


@final
@dataclass(frozen=True)
class _Started:
    """A run that is ready to be watched, and what to close after it."""

    stream: RunStream[None]
    close: Callable[[], Awaitable[None]]
    resumable: bool


def run(request: RunRequest) -> Status:
    """Do what `request` asks, and return the exit status.

    Raises:
        ConfigError: the request cannot work; nothing has been sent.
    """
    request.refuse_blanks()
    target, prompt = _question(request)
    screen = _screen(as_json=request.as_json)
    started = _start(request, target, prompt, screen)
    return asyncio.run(_watch(request, started, screen, "" if request.prompt else target.prompt))


def _question(request: RunRequest) -> tuple[Target, str]:
    """Return what is to run and what it is asked: a target's file, or a bare prompt."""
    if names_target(request.target):
        target = load_target(request.target)
        prompt = target.prompt if request.prompt is None else request.prompt
        if not prompt:
            raise ConfigError(
                f"{target.place}: expected a question, found no PROMPT in it: add one, or ask it "
                f'here: graphloop run {request.target} "…"'
            )
        return target, prompt
    if request.prompt is not None:
        raise not_found(request.target)
    return Target("the prompt", build=Agent), request.target


def _start(request: RunRequest, target: Target, prompt: str, screen: Screen) -> _Started:
    if isinstance(target.ready, Agent):
        _refuse_model(request, target)
        agent = _with_options(target.ready, request, screen)
        return _Started(agent.stream(prompt), agent.aclose, resumable=True)
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
        agent = _with_options(loop, request, screen)
        return _Started(agent.stream(prompt), agent.aclose, resumable=True)
    stream = _graph_stream(loop, provider, prompt, request, target, screen)
    return _Started(stream, provider.aclose, resumable=False)


def _refuse_model(request: RunRequest, target: Target) -> None:
    given = {
        "--model": request.model,
        "--script": request.script,
        "--base-url": request.base_url,
    }
    names = [name for name, value in given.items() if value is not None]
    if names:
        raise ConfigError(
            f"{' and '.join(names)} would have no effect: the agent in {target.place} has its "
            "model already. Write a function build(model) that returns the agent."
        )


def _with_options(agent: Agent, request: RunRequest, screen: Screen) -> Agent:
    own = agent.options.get("approve_tool_call") is not None
    options = _run_options(request, screen, own_approver=own)
    agent = agent.with_options(**options)
    if request.max_steps is not None:
        agent = agent.with_options(max_steps=request.max_steps)
    return agent


def _graph_stream(
    graph: Graph[None],
    model: Model,
    prompt: str,
    request: RunRequest,
    target: Target,
    screen: Screen,
) -> RunStream[None]:
    if request.max_steps is not None:
        raise ConfigError(
            f"--max-steps would have no effect: the bound of graph {graph.name!r} stands in its "
            "stop node. Change it there."
        )
    if graph.state_type is not None:
        raise ConfigError(
            f"graph {graph.name!r} carries state of type {graph.state_type.__name__}, which a "
            "command line cannot give: run it from Python, with graph.run(state, model=…)."
        )
    options = _run_options(request, screen, own_approver=False)
    options["tools"] = target.tools
    return graph.stream(None, model=model, prompt=prompt, **options)


def _run_options(request: RunRequest, screen: Screen, *, own_approver: bool) -> RunOptions:
    """Return the options that were given; what was not given stays the target's own."""
    options: RunOptions = {}
    if request.instructions is not None:
        options["instructions"] = request.instructions
    if request.store is not None:
        options["store"] = request.store
    if request.approve is not None or not own_approver:
        interactive = _is_terminal(sys.stdin) and _is_terminal(sys.stderr)
        options["approve_tool_call"] = approver(request.approve, screen, interactive=interactive)
    return options


def _is_terminal(stream: TextIO | None) -> bool:
    """Whether somebody sits there; a stream that was closed before we began is None."""
    return stream is not None and stream.isatty()


def _screen(*, as_json: bool) -> Screen:
    out = sys.stdout
    _forgive(out)
    if as_json:
        return JsonScreen(out)
    if out.isatty():
        return LiveScreen(Console(highlight=False), time.monotonic)
    return PlainScreen(out)


def _forgive(out: TextIO) -> None:
    """Show `?` for what a narrow encoding cannot say, instead of ending the run."""
    if isinstance(out, TextIOWrapper):
        out.reconfigure(errors="replace")


async def _watch(
    request: RunRequest, started: _Started, screen: Screen, asked: str | None
) -> Status:
    stream = started.stream

    def abort() -> None:
        screen.note(INTERRUPTED)
        stream.abort("interrupted")

    failure: Exception | None = None
    with interrupts(abort) as interrupt, screen.open():
        if asked:
            screen.asked(asked)
        async for part in stream.full_stream:
            interrupt.heed()
            screen.show(part, stream.run)
            if isinstance(part, ErrorPart):
                failure = part.error
    await started.close()
    if failure is not None:
        status = complain(failure)
        return _interrupted() if interrupt.came else status
    result = await stream.result()
    kept = f"run {result.run_id} in {request.store}" if request.store else ""
    screen.finish(result, kept)
    parked = result.end_reason is EndReason.PARKED
    if parked:
        for line in pending_lines(result, request.store, resumable=started.resumable):
            tell(line)
    if interrupt.came:
        return _interrupted()
    return Status.PARKED if parked else Status.OK


def _interrupted() -> Status:
    """Leave at once if a tool's thread still runs: it cannot be stopped, and exiting waits."""
    main = threading.main_thread()
    if any(not thread.daemon for thread in threading.enumerate() if thread is not main):
        sys.stdout.flush()
        os._exit(Status.INTERRUPTED)
    return Status.INTERRUPTED
