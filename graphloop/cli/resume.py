"""Resume a run where its journal stops, and watch it.

  graphloop resume 1f3a2b4c --store runs.db
  graphloop resume 1f3a2b4c --target examples/approval --store runs.db
  graphloop resume 1f3a2b4c --approve always --store runs

Answers that were left with graphloop approve are taken; what is still open is asked here, if this
is a terminal. The target and the model are those that the run was started with; what has finished
never runs again.

Exit status: as for graphloop run.
"""

from __future__ import annotations

import asyncio
import os

from ..agent import Agent
from ..errors import ConfigError, StoreError
from ..events import ModelReplied, Started
from ..providers import Provider, ScriptedModel, resolve
from .approval import with_approver
from .errors import Status
from .options import (
    BaseUrl,
    Decision,
    Json,
    MaxSteps,
    Registers,
    RunId,
    StorePath,
    TargetOption,
    Unbounded,
)
from .screen import screen_for
from .stored import Journal, Start, origin_of, read
from .target import limited, load_target, refuse_options, register
from .watch import watch

__all__ = ["resume_command"]


def resume_command(  # noqa: PLR0913 - the options of a command are its parameters
    run: RunId,
    *,
    store: StorePath = None,
    target: TargetOption = None,
    base_url: BaseUrl = None,
    max_steps: MaxSteps = None,
    approve: Decision = None,
    unbounded: Unbounded = None,
    registers: Registers = None,
    as_json: Json = False,
) -> Status:
    """Drive a run on, with the answers that came for it.

    Options that are not given are those that the run was started with, unless it gets a target.
    """
    journal = asyncio.run(read(store, run))
    _refuse_child(journal.run_id)
    register(registers)
    start = Start(target or "", base_url, max_steps, unbounded, registers or ())
    if target is None:
        start = start.over(journal.start or Start(journal.target(None)))
        # Given anew, they take the place of noted ones: files may have moved.
        register(start.registers)
    found = load_target(start.target)
    screen = screen_for(as_json=as_json)
    origin = origin_of(str(store), start)
    provider = None
    if isinstance(found.ready, Agent):
        refuse_options({"--base-url": start.base_url}, f"the agent in {found.place} has its model")
    else:
        provider = _provider(journal, start.base_url)
    loop = limited(found.loop(provider), start.max_steps, start.unbounded)
    loop, options = with_approver(loop, {"store": origin.store}, approve, screen)
    if isinstance(loop, Agent):
        return asyncio.run(
            watch(loop.resume_stream(journal.run_id), screen, origin=origin, owner=loop)
        )
    options["tools"] = found.tools
    stream = loop.resume_stream(journal.run_id, model=provider, **options)
    return asyncio.run(watch(stream, screen, origin=origin, owner=provider))


def _refuse_child(run_id: str) -> None:
    root, slash, _ = run_id.partition("/")
    if slash:
        raise ConfigError(
            f"run {run_id!r} is a part of run {root!r}, and goes on with it. Fix: "
            f"graphloop resume {root}"
        )


def _provider(journal: Journal, base_url: str | None) -> Provider | None:
    """Return the model that the run has asked up to here.

    There is none where only agents of the graph ask models, which are their own.
    """
    first = journal.events[0]
    if not isinstance(first, Started):
        raise StoreError(f"a journal begins with Started, found {type(first).__name__}")
    if not first.setup.model:
        return None
    model = resolve(first.setup.model, base_url=base_url, environ=os.environ)
    if isinstance(model, ScriptedModel):
        return model.after(sum(isinstance(event, ModelReplied) for event in journal.events))
    return model
