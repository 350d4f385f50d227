"""Run an agent or graph and watch it.

  graphloop run examples/weather
  graphloop run examples/weather "And in Paris?" --model openai:gpt-5
  graphloop run "Why is the sky blue?" --model anthropic:claude-opus-4-8
  graphloop run "What does it cost?" --file receipt.png --model openai:gpt-5
  graphloop run my_package.desk:build "Refund order 7" --store runs.db
  graphloop run examples/custom_topology --explain

A file defines the target:

  def build(model: Model) -> Agent: ...   or a ready `agent`, or a `graph`
  PROMPT = "..."     the question, if the command line has none
  TOOLS = [...]      the tools of a graph's model; an agent has its own
  STATE = ...        the first state of a graph that carries one
  DEPS = ...         the deps of a run, or a function that makes them: also async, or a context
                     manager, which is left after the run

In a directory this file is agent.py, topology.py or topology.yaml (a graph as data: graphloop
schema). Without an API key, a script.yaml beside it gives the replies. Python registers your own
names of a topology, and may define its DEPS and STATE: --with desk.py.

A ready `agent` has a model, which --model and --script replace. Elsewhere, without --model, the
environment decides: GRAPHLOOP_MODEL, ANTHROPIC_API_KEY, then OPENAI_API_KEY or OPENAI_BASE_URL;
--env-file reads them from a file. Ctrl-C ends the run with all calls answered, a second Ctrl-C
kills the process. If you are asked about a call, Ctrl-D leaves the question open if --store keeps
the run; else it means no.

--store keeps the run's journal in a database (runs.db), or as JSON lines in a directory. graphloop
runs, approve, resume, replay and fork read it, with the same --store or with GRAPHLOOP_STORE.

--record writes the model's replies to a YAML script, with the requests that they answer; --script
replays them. The file holds no key and no header.

--explain prints the worst case of the run (model calls, tool calls, tokens, cost) and its reasons
on stderr, then runs the graph; with --json it is the first line. A graph with an unbounded cycle
runs only with --unbounded REASON, or with the reason in its `ignore`. --json prints one JSON object
for each part of the stream.

Exit status: 0 the run completed, 1 it failed, has no whole answer (incomplete, length, refusal,
content_filter, context_window, empty_response), or broke or owes a temporal rule, 2 wrong usage,
3 it is parked and waits for an answer, 4 a limit stopped it (max_steps, max_pauses, budget,
stop_condition, tool_errors, denials, timeout), 130 it was interrupted.
"""

from __future__ import annotations

import asyncio
import os
import shlex
import sys
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any, Final, TypeAlias, cast

import typer
from msgspec.json import encode

from ..agent import Agent, RunOptions, RunStream
from ..errors import ConfigError
from ..proofs import Bound, result_data
from ..providers import Provider, resolve, usual_model
from ..testing import recorded
from .ask_at_terminal import with_approver
from .display import display_for
from .driving import drive
from .errors import Status, tell_error
from .modules import register
from .options import (
    BaseUrl,
    Decision,
    Json,
    MaxSteps,
    Record,
    Registers,
    StorePath,
    Text,
    Unbounded,
)
from .settings import (
    EnvFile,
    Headers,
    MaxTokens,
    OwnOptions,
    Temperature,
    headers_of,
    load_env_file,
    run_options,
)
from .stored import Start, origin_of, refuse_unreachable
from .target import STANDARD, Loop, Target, limited, load_target, names_target, refuse_options
from .text import safe_json

__all__ = ["agent_for", "provider_for", "recorded_model", "run_command"]

SCRIPT: Final = "script:"

Question: TypeAlias = Annotated[
    str,
    typer.Argument(
        metavar="FILE_OR_PROMPT", help="DIR, FILE.py or module:name (executed), or a question."
    ),
]
Prompt: TypeAlias = Annotated[
    Text, typer.Argument(metavar="PROMPT", help="The question, in place of the file's PROMPT.")
]
ModelName: TypeAlias = Annotated[
    Text, typer.Option(metavar="PROVIDER:NAME", help="The model to ask (or set GRAPHLOOP_MODEL).")
]
Script: TypeAlias = Annotated[
    Text, typer.Option(metavar="FILE", help="Replay recorded replies instead of a model.")
]
Attached: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--file", metavar="FILE", help="A picture or document, asked with the question; repeatable."
    ),
]
Instructions: TypeAlias = Annotated[Text, typer.Option(metavar="TEXT", help="The system message.")]
Explain: TypeAlias = Annotated[
    bool, typer.Option("--explain", help="First print the worst case of the run.")
]


def run_command(  # noqa: PLR0913 - the options of a command are its parameters
    target: Question,
    prompt: Prompt = None,
    *,
    file: Attached = None,
    model: ModelName = None,
    script: Script = None,
    record: Record = None,
    base_url: BaseUrl = None,
    instructions: Instructions = None,
    temperature: Temperature = None,
    max_tokens: MaxTokens = None,
    option: OwnOptions = None,
    header: Headers = None,
    env_file: EnvFile = None,
    max_steps: MaxSteps = None,
    store: StorePath = None,
    approve: Decision = None,
    explain: Explain = False,
    unbounded: Unbounded = None,
    registers: Registers = None,
    as_json: Json = False,
) -> Status:
    """Run a target, or the standard agent if `target` is a question; return the exit status."""
    load_env_file(env_file)
    if store is not None:
        refuse_unreachable(store)
    if target == STANDARD and names_target(target):
        target = f"./{target}"  # A file named like the standard loop goes first.
    loaded, question = _load_target(target, prompt, register(registers))
    display = display_for(as_json=as_json)
    headers = headers_of(header)
    provider, notice = provider_for(loaded, model, script, base_url, headers)
    provider = recorded_model(loaded, provider, record)
    if notice:
        display.note(notice)
    loop = loaded.loop_to_run(provider)
    _refuse_state(loop, loaded.state)
    loop = limited(loop, max_steps, unbounded)
    kept = store or (loop.options.get("store") if isinstance(loop, Agent) else None)
    options = run_options(instructions, temperature, max_tokens, option)
    named = target if names_target(target) else STANDARD
    start = Start(named, base_url, max_steps, unbounded, registers or ())
    origin = None if kept is None else origin_of(kept, start)
    if origin is not None:
        options["store"] = origin.store
    loop, options = with_approver(loop, options, approve, display)
    if loaded.tools and not isinstance(loop, Agent):
        options["tools"] = loaded.tools
    if explain:
        _print_bound(loop, provider, options, as_json=as_json)
    given: dict[str, Any] = {**options, **loaded.access(headers)}
    owner = loop if isinstance(loop, Agent) else provider
    asked = None if prompt else loaded.prompt

    async def work() -> Status:
        async with loaded.given_deps(loop) as deps:
            stream = _start_stream(loop, loaded, provider, question, file or (), given | deps)
            return await drive(stream, display, origin=origin, owner=owner, asked=asked)

    return asyncio.run(work())


def _start_stream(
    loop: Loop,
    loaded: Target,
    provider: Provider | None,
    question: str,
    files: Sequence[str],
    given: dict[str, Any],
) -> RunStream[Any, Any]:
    """Return the stream of a new run; an agent has all other options already."""
    prompt: str | list[str | Path] = [question, *map(Path, files)] if files else question
    if isinstance(loop, Agent):
        return loop.stream(prompt, **given)
    # `_refuse_state` has checked that a state is given if and only if the graph carries one.
    state = cast("None", loaded.state)
    return loop.stream(state, model=provider, prompt=prompt or None, **given)


def _load_target(
    target: str, prompt: str | None, modules: Sequence[ModuleType]
) -> tuple[Target, str]:
    """Return the loaded target, and the question to start the run with."""
    if prompt is None and not names_target(target):
        return load_target(STANDARD, modules), target
    loaded = load_target(target, modules)
    question = loaded.prompt if prompt is None else prompt
    if not question and loaded.state is None:
        raise ConfigError(
            f"{loaded.place}: expected a question, found no PROMPT in it. Fix: add one, or ask it "
            f'here: graphloop run {shlex.quote(target)} "…"'
        )
    return loaded, question or ""


def provider_for(
    loaded: Target,
    model: str | None,
    script: str | None,
    base_url: str | None,
    headers: Mapping[str, str] | None,
) -> tuple[Provider | None, str]:
    """Return the model for the run, and a message about how the model was chosen.

    The model is None for an agent with its own model, or a graph that uses no model.
    """
    if script is not None and model is not None:
        raise ConfigError(
            f"--script: expected it or --model, found both ({script} and {model}). Fix: leave one "
            "out."
        )
    named = f"{SCRIPT}{script}" if script is not None else model
    own, asks = loaded.own_model, loaded.takes_model
    environ: Mapping[str, str] = os.environ
    if own is not None:
        named = named or (own if base_url and isinstance(own, str) else None)
        environ = {}
        asks = named is not None or (loaded.lacks_own_key and loaded.script is not None)
    if not asks:
        why = f"{loaded.place} has its model already, or asks none"
        refuse_options({"--model": model, "--script": script, "--base-url": base_url}, why)
        return None, ""
    name, notice = _choose_model(named, base_url, environ, loaded.script)
    given = headers if own is None else None  # The run of a ready agent takes them itself.
    provider = resolve(name, base_url=base_url, headers=given, environ=os.environ)
    return provider, notice


def agent_for(
    target: str,
    registers: Sequence[str] | None,
    model: str | None,
    script: str | None,
    base_url: str | None,
) -> tuple[Agent[Any, Any], AbstractAsyncContextManager[Mapping[str, object]]]:
    """Load the agent that a server or a worker runs, and return it with what makes its `deps`.

    Raises:
        ConfigError: the target is a graph, or cannot be loaded.
    """
    loaded = load_target(target, register(registers))
    provider, notice = provider_for(loaded, model, script, base_url, None)
    agent = loaded.loop_to_run(provider)
    if not isinstance(agent, Agent):
        raise ConfigError(
            f"{target}: expected an agent, found a graph. Fix: give it to an agent as a tool."
        )
    if notice:
        tell_error(notice)
    return agent, loaded.given_deps(agent)


def recorded_model(
    loaded: Target, provider: Provider | None, file: str | None, *, goes_on: bool = False
) -> Provider | None:
    """Return the model of the run; with a `file`, its replies are written to the file.

    If the run `goes_on`, the file keeps its earlier replies.

    Raises:
        ConfigError: the target has no model of its own, or the file is no YAML file.
    """
    if file is None:
        return provider
    if not file.endswith((".yaml", ".yml")):
        raise ConfigError(f"--record: expected a .yaml file, found {file!r}. Fix: name one.")
    if provider is None and isinstance(loaded.ready, Agent):
        terms = loaded.ready.as_tool(name="recorded").opener.terms
        provider = terms.resources.models[terms.resources.label]  # With its key and URL.
    if provider is None:
        raise ConfigError(
            f"--record: expected a target that asks one model, and {loaded.place} asks none, or "
            "its agents have their own, and a recording is of one model. Fix: in the file, give "
            "each agent recorded(MODEL, PATH) of graphloop.testing."
        )
    return recorded(provider, file, mode="append" if goes_on else "record")


def _choose_model(
    named: str | None, base_url: str | None, environ: Mapping[str, str], beside: Path | None
) -> tuple[str, str]:
    """Return the name of the model to use, and a message about how the model was chosen.

    The first source that is set wins: `--script`, `--model`, GRAPHLOOP_MODEL, `--base-url`, the
    keys and URLs of the known services, the `script.yaml` beside the target.
    """
    if named := named or environ.get("GRAPHLOOP_MODEL"):
        path = named.removeprefix(SCRIPT)
        # An absolute path, because the run may be resumed in another directory.
        return (named if path == named else f"{SCRIPT}{Path(path).absolute()}"), ""
    if usual := usual_model(environ, own_server=bool(base_url)):
        return usual, ""
    if beside is not None:
        return f"{SCRIPT}{beside.absolute()}", (
            f"no API key found: replaying {beside}; set ANTHROPIC_API_KEY or use --model to ask a "
            "real model"
        )
    raise ConfigError(
        "expected a model to ask, found no API key. Fix: set ANTHROPIC_API_KEY or OPENAI_API_KEY, "
        "or use --base-url for a server of your own, or --script for recorded replies."
    )


def _refuse_state(graph: Loop, state: object) -> None:
    """Raise an error if a state is missing, or is given for a graph that carries no state."""
    if isinstance(graph, Agent):
        return
    kind = cast("object", graph.state_type)
    word = kind.__name__ if isinstance(kind, type) else kind
    if kind is not None and state is None:
        raise ConfigError(
            f"STATE: expected the first state of graph {graph.name!r}, of type {word}, found none. "
            f"Fix: define it in its file, or in a file of --with: `STATE = {word}(…)`."
        )
    if kind is None and state is not None:
        raise ConfigError(
            f"STATE would have no effect: graph {graph.name!r} carries no state. Fix: leave it out."
        )


def _print_bound(
    loop: Loop, provider: Provider | None, options: RunOptions[Any], *, as_json: bool
) -> None:
    """Print the upper bound of a run (calls, tokens, cost): on stderr, or as JSON on stdout."""
    bound: Bound = (
        loop.bound() if isinstance(loop, Agent) else loop.run_bound(model=provider, **options)
    )
    if as_json:
        sys.stdout.write(safe_json(encode({"type": "bound", **result_data(bound)}).decode()) + "\n")
        sys.stdout.flush()
    else:
        tell_error(str(bound))
