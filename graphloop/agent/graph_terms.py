"""Graph terms: build the terms and the streams of runs from a graph and its options."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from ..driver import Callback
from ..errors import ConfigError
from ..graph import NodeGraph
from ..limits import ModelPrice
from ..policy import Policy
from .bindings import asks_model, with_deps
from .graph_checks import endless_refusal, looked_up
from .inputs import (
    AnswersInput,
    ConversationInput,
    Model,
    ModelSettings,
    PromptInput,
    QuestionInput,
)
from .options import PASSED_ON, Options, RunOptions, refuse_unknown_options
from .result import RunResult
from .start_and_resume import resume_run, start_run
from .stream import RunStream
from .terms import RunTerms

if TYPE_CHECKING:
    from ..proofs import Endless

__all__ = [
    "BoundOptions",
    "GraphAnswers",
    "GraphOptions",
    "GraphQuestion",
    "graph_terms",
    "new_run",
    "passed_on",
    "resumed_run",
]

S = TypeVar("S")


class GraphOptions(RunOptions[Any], Generic[S], total=False):
    """The options of a graph's runs: the options of every run, a model and functions.

    `model`: the model for all nodes that name no model; not needed if no node calls a model.
    `callbacks`: functions by name, for nodes that invoke a function by name; `@node` functions
    need no entry.
    """

    model: Model | None
    callbacks: Mapping[str, Callback[S]] | None


class GraphQuestion(GraphOptions[S], ConversationInput[Any], Generic[S], total=False):
    """The options of a new run of a graph, and its conversation.

    `prompt`: the question. Neither `prompt` nor `messages` is needed if no node calls a model,
    or if the graph's topology file has a `prompt`.
    """

    prompt: PromptInput | None


class GraphAnswers(GraphOptions[S], AnswersInput[Any], Generic[S], total=False):
    """The options that a graph's run was started with, and answers to its pending calls."""


class BoundOptions(GraphOptions[S], Generic[S], total=False):
    """The options of a run, and facts about its models that an upper bound needs.

    `context_window`: the largest context window among the models, in tokens.
    `model_price`: the price of the most expensive model.
    """

    context_window: int | None
    model_price: ModelPrice | None


class _EveryOption(GraphQuestion[S], GraphAnswers[S], BoundOptions[S], Generic[S], total=False):
    """All keyword options that the methods of `Graph` accept."""


def new_run(
    graph: NodeGraph[S], terms: RunTerms[S], state: S, question: GraphQuestion[S], prompt: str
) -> RunStream[str, S]:
    """Return the stream of a new run; at its end the stream closes the store and connections.

    Args:
        graph: the graph.
        terms: the terms of the run.
        state: the state that the run begins with.
        question: the options, with the prompt or the conversation.
        prompt: the default prompt, used if `question` has neither `prompt` nor `messages`.

    Raises:
        ConfigError: an option is unknown or has no effect, or the question is invalid.
    """
    refuse_unknown_options(question, GraphQuestion, f"graph {graph.name!r}")
    _refuse_idle(terms, question)
    given = cast("QuestionInput", _options_named({**question}, ConversationInput.__annotations__))
    asked = question.get("prompt")
    if asked is None and question.get("messages") is None:
        asked = prompt or None
    return _close_after(start_run(terms, state, asked, given), terms)


def resumed_run(
    graph: NodeGraph[S], terms: RunTerms[S], run: str | RunResult[Any, S], given: GraphAnswers[S]
) -> RunStream[str, S]:
    """Return the stream of a resumed run; at its end the stream closes store and connections."""
    refuse_unknown_options(given, GraphAnswers, f"graph {graph.name!r}")
    answers = cast("AnswersInput", _options_named({**given}, AnswersInput.__annotations__))
    return _close_after(resume_run(terms, run, answers), terms)


def _refuse_idle(terms: RunTerms[Any], question: Mapping[str, object]) -> None:
    """Refuse options about requests to a model, for a graph that asks none itself.

    The model is also that of graphs among `agents`.

    Raises:
        ConfigError: an option has no effect; the message names it.
    """
    if asks_model(terms.graph):
        return
    names = (*ModelSettings.__annotations__, *(() if terms.options.agents else ("model",)))
    if idle := [name for name in names if question.get(name) is not None]:
        raise ConfigError(
            f"{', '.join(idle)} would have no effect: no node of graph {terms.graph.name!r} asks a "
            "model itself. Fix: leave it out, or give it to the agents that the nodes run."
        )


def _close_after(stream: RunStream[str, S], terms: RunTerms[S]) -> RunStream[str, S]:
    stream.on_over = partial(terms.aclose, shared=False)
    return stream


def graph_terms(
    graph: NodeGraph[S],
    options: GraphOptions[S],
    endless: tuple[Endless, ...],
    own_gates: Policy | None = None,
) -> RunTerms[S]:
    """Build the terms (models, tools, limits, store) of all runs of `graph` from the options.

    Raises:
        ConfigError: an option, the model or a tool is invalid, or the graph has an unbounded cycle.
    """
    if endless:
        raise endless_refusal(graph, endless)
    refuse_unknown_options(options, _EveryOption, f"graph {graph.name!r}")
    run_options = cast("RunOptions", _options_named({**options}, RunOptions.__annotations__))
    read = Options.read(run_options)
    resources, callbacks = looked_up(graph, options.get("model"), options.get("callbacks"), read)
    return RunTerms(
        graph,
        read,
        resources,
        callbacks=lambda _, deps: with_deps(callbacks, deps),
        own_gates=own_gates,
        gates=() if read.gate is None else (read.gate,),
    )


def passed_on(options: Mapping[str, object]) -> GraphOptions[Any]:
    """Select the options of a run that also apply to the graphs that the run starts by name."""
    return cast("GraphOptions[Any]", _options_named(options, PASSED_ON))


def _options_named(options: Mapping[str, object], names: Iterable[str]) -> dict[str, object]:
    """Return the options with these names, as a plain dict."""
    return {name: options[name] for name in names if name in options}
