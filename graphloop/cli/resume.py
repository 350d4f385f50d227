"""Resume a run where its journal stops, and watch it.

  graphloop resume 1f3a2b4c --store runs.db
  graphloop resume 1f3a2b4c --target examples/approval --store runs.db
  graphloop resume 1f3a2b4c --approve always --store runs

--record adds the model's replies to the file of graphloop run --record. A run that is recorded
from its start has its whole talk there.

Answers of graphloop approve are applied; at a terminal, you are asked for the others. The target,
its options and the model are those of graphloop run. A call that has ended never runs again. A
run that is over is shown again, and does nothing.

Exit status: 0 the run completed, 1 it failed, has no whole answer (incomplete, length, refusal,
content_filter, context_window, empty_response), was aborted by an earlier Ctrl-C, or broke or owes
a temporal rule, 2 wrong usage, 3 it is parked and waits for an answer, 4 a limit stopped it
(max_steps, max_pauses, budget, stop_condition, tool_errors, denials, timeout), 130 it was
interrupted now.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from ..agent import Agent, Model
from ..errors import ConfigError, StoreError
from ..events import ModelReplied, Started
from ..providers import SERVICES, Provider, ScriptedModel, resolve
from .ask_at_terminal import with_approver
from .display import display_for
from .driving import drive
from .errors import Status
from .modules import register
from .options import (
    BaseUrl,
    Decision,
    Json,
    MaxSteps,
    Record,
    Registers,
    RunId,
    StorePath,
    TargetOption,
    Unbounded,
)
from .run import provider_for, recorded_model
from .settings import EnvFile, Headers, headers_of, load_env_file
from .stored import Journal, Start, origin_of, read
from .target import Loop, Target, limited, load_target, refuse_options

__all__ = ["resume_command"]


def resume_command(  # noqa: PLR0913 - the options of a command are its parameters
    run: RunId,
    *,
    store: StorePath = None,
    target: TargetOption = None,
    base_url: BaseUrl = None,
    record: Record = None,
    max_steps: MaxSteps = None,
    header: Headers = None,
    env_file: EnvFile = None,
    approve: Decision = None,
    unbounded: Unbounded = None,
    registers: Registers = None,
    as_json: Json = False,
) -> Status:
    """Resume a run and show it; without `--target`, use the target and options from the store."""
    load_env_file(env_file)
    journal = asyncio.run(read(store, run))
    journal.refuse_part("resume")
    modules = register(registers)
    start = Start(target or "", base_url, max_steps, unbounded, registers or ())
    if target is None:
        start = start.over(journal.start or Start(journal.target(None)))
        # Files given by `--with` replace the files named in the store, which may have moved.
        modules = register(start.registers)
    loaded = load_target(start.target, modules)
    display = display_for(as_json=as_json)
    origin = origin_of(str(store), start)
    headers = headers_of(header)
    built, provider = _loop_and_model(loaded, journal, start.base_url, headers, record)
    loop = limited(built, start.max_steps, start.unbounded)
    loop, options = with_approver(loop, {"store": origin.store}, approve, display)
    given: dict[str, Any] = {**options, **loaded.access(headers)}
    if not isinstance(loop, Agent):
        given |= {"tools": loaded.tools, "model": provider}
    owner = loop if isinstance(loop, Agent) else provider

    async def work() -> Status:
        async with loaded.given_deps(loop) as deps:
            stream = loop.resume_stream(journal.run_id, **given, **deps)
            return await drive(stream, display, origin=origin, owner=owner)

    return asyncio.run(work())


def _loop_and_model(
    loaded: Target,
    journal: Journal,
    base_url: str | None,
    headers: Mapping[str, str] | None,
    record: str | None,
) -> tuple[Loop, Provider | None]:
    """Return the agent or graph that goes on, and the model to give it; None if it has its own."""
    own = loaded.own_model
    if own is not None:
        provider = None
        if _is_replaced(own, journal, base_url):
            provider = _provider_of(journal, base_url, None)
        else:
            refuse_options({"--base-url": base_url}, f"the agent in {loaded.place} has its model")
        provider = recorded_model(loaded, provider, record, goes_on=True)
        return loaded.loop_to_run(provider), provider
    try:
        provider = _provider_of(journal, base_url, headers)
    except ConfigError:
        # `build` may return an agent with a provider of its own, which no label tells.
        usual: Provider = ScriptedModel(())
        with suppress(ConfigError):
            usual = provider_for(loaded, None, None, base_url, headers)[0] or usual
        loop = loaded.loop_to_run(usual)
        if not isinstance(loop, Agent) or loop.model is usual:
            raise
        why = f"the agent of {loaded.place} has a provider of its own"
        refuse_options({"--record": record}, why)
        return loop, None
    provider = recorded_model(loaded, provider, record, goes_on=True)
    return loaded.loop_to_run(provider), provider


def _is_replaced(own: Model, journal: Journal, base_url: str | None) -> bool:
    """Whether the run began with a model of the command line in place of its agent's `own`."""
    label = _label_of(journal)
    if label == (own if isinstance(own, str) else own.label):
        return isinstance(own, str) and base_url is not None
    return label.partition(":")[0] in {*SERVICES, "script"}


def _label_of(journal: Journal) -> str:
    """Return the label of the model that the run began with; empty for none."""
    first = journal.events[0]
    if not isinstance(first, Started):
        raise StoreError(
            f"journal: expected Started as the first event, found {type(first).__name__}"
        )
    return first.setup.model


def _provider_of(
    journal: Journal, base_url: str | None, headers: Mapping[str, str] | None
) -> Provider | None:
    """Return the model that the journal names; None if only sub-agents of the run use models."""
    label = _label_of(journal)
    if not label:
        return None
    model = resolve(label, base_url=base_url, headers=headers, environ=os.environ)
    if isinstance(model, ScriptedModel):
        return model.after(sum(isinstance(event, ModelReplied) for event in journal.events))
    return model
