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

from ..agent import Agent, RunOptions
from ..errors import ConfigError, StoreError
from ..events import ModelReplied, Started
from ..providers import Provider, ScriptedModel, resolve
from .approval import approver
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
from .stored import Journal, origin_of, read
from .target import limited, load_target, refuse_options, register
from .watch import screen_for, watch

__all__ = ["resume"]


def resume(  # noqa: PLR0913 - the options of a command are its parameters
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
    """Drive a run on, with the answers that came for it, and return the exit status.

    Options that are not given are those that the run was started with, unless it gets a target.

    Raises:
        ConfigError: an option cannot work; nothing has been sent.
        StoreError: the run's journal cannot be read.
    """
    journal = asyncio.run(read(store, run))
    _refuse_child(journal.run_id)
    register(registers)
    if target is None:
        base_url = base_url or next(iter(journal.options("--base-url")), None)
        unbounded = unbounded or next(iter(journal.options("--unbounded")), None)
        steps = journal.options("--max-steps")
        max_steps = int(steps[0]) if max_steps is None and steps else max_steps
        registers = registers or journal.options("--with")
        register(registers)
        # Given anew, they take the place of what was noted: files may have moved.
        target = journal.noted[0] if journal.noted else journal.target(None)
    found = load_target(target)
    screen = screen_for(as_json=as_json)
    origin = origin_of(
        str(store),
        target,
        base_url=base_url,
        max_steps=max_steps,
        unbounded=unbounded,
        registers=registers,
    )
    provider = None
    if isinstance(found.ready, Agent):
        refuse_options({"--base-url": base_url}, f"the agent in {found.place} has its model")
    else:
        provider = _provider(journal, base_url)
    loop = limited(found.loop(provider or ScriptedModel(())), max_steps, unbounded)
    options: RunOptions = {"store": origin.store}
    if approve or not isinstance(loop, Agent) or loop.options.get("approve_tool_call") is None:
        options["approve_tool_call"] = approver(approve, screen, kept=True)
    if isinstance(loop, Agent):
        loop = loop.with_options(**options)
        stream = loop.resume_stream(journal.run_id)
        return asyncio.run(watch(stream, screen, origin=origin, owner=loop))
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
    """Return the model that the run has asked up to here; a script goes on where it was.

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
