"""Graph terms: from a graph and its options to the terms, and the streams, of its runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from ..driver import Callback
from ..graph import NodeGraph
from ..limits import ModelPrice
from ..policy import Policy
from .graph_checks import endless_refusal, looked_up
from .inputs import AnswersInput, ConversationInput, Model, QuestionInput
from .options import PASSED_ON, Options, RunOptions, reject_unknown_options
from .result import RunResult
from .starting import resume_run, start_run
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


class GraphOptions(RunOptions, Generic[S], total=False):
    """Options of the runs of a graph, beside those of every run.

    `model`: the model of every node that names none; not needed where no node asks a model.
    `callbacks`: the functions that nodes invoke by name; `@node` functions are found without it.
    """

    model: Model | None
    callbacks: Mapping[str, Callback[S]] | None


class GraphQuestion(GraphOptions[S], ConversationInput, Generic[S], total=False):
    """The options of a new run of a graph, and its conversation.

    `prompt`: the question. Neither `prompt` nor `messages` is needed where no node asks a model, or
    where the graph's file has a `prompt`.
    """

    prompt: str | None


class GraphAnswers(GraphOptions[S], AnswersInput, Generic[S], total=False):
    """The options that a run of a graph was started with, and answers to its questions."""


class BoundOptions(GraphOptions[S], Generic[S], total=False):
    """The options of a run, and the facts of its models that a bound needs.

    `context_window`: how many tokens the largest of the models' windows holds.
    `model_price`: the price of the dearest of the models.
    """

    context_window: int | None
    model_price: ModelPrice | None


class _EveryOption(GraphQuestion[S], GraphAnswers[S], BoundOptions[S], Generic[S], total=False):
    """Everything that the methods of a graph take."""


def new_run(
    graph: NodeGraph[S], terms: RunTerms[S], state: S, question: GraphQuestion[S], prompt: str
) -> RunStream[S]:
    """Return the stream of a new run, which closes what it opens.

    Args:
        graph: the graph.
        terms: the terms of the run.
        state: the state that the run begins with.
        question: the prompt or the conversation, beside the options.
        prompt: the prompt of a question without prompt and messages.
    """
    reject_unknown_options(question, GraphQuestion, f"graph {graph.name!r}")
    given = cast("QuestionInput", _chosen({**question}, ConversationInput.__annotations__))
    asked = question.get("prompt")
    if asked is None and question.get("messages") is None:
        asked = prompt or None
    return _closing(start_run(terms, state, asked, given), terms)


def resumed_run(
    graph: NodeGraph[S], terms: RunTerms[S], run: str | RunResult[S], given: GraphAnswers[S]
) -> RunStream[S]:
    """Return the stream of a run that goes on, which closes what it opens."""
    reject_unknown_options(given, GraphAnswers, f"graph {graph.name!r}")
    answers = cast("AnswersInput", _chosen({**given}, AnswersInput.__annotations__))
    return _closing(resume_run(terms, run, answers), terms)


def _closing(stream: RunStream[S], terms: RunTerms[S]) -> RunStream[S]:
    stream.on_over = partial(terms.aclose, shared=False)
    return stream


def graph_terms(
    graph: NodeGraph[S],
    options: GraphOptions[S],
    endless: tuple[Endless, ...],
    own_gates: Policy | None = None,
) -> RunTerms[S]:
    """Return the terms of the runs of `graph`.

    Raises:
        ConfigError: an option, the model or a tool cannot work.
    """
    if endless:
        raise endless_refusal(graph, endless)
    reject_unknown_options(options, _EveryOption, f"graph {graph.name!r}")
    run_options = cast("RunOptions", _chosen({**options}, RunOptions.__annotations__))
    read = Options.read(run_options)
    world, callbacks = looked_up(graph, options.get("model"), options.get("callbacks"), read)
    return RunTerms(
        graph,
        read,
        world,
        callbacks=lambda _: callbacks,
        own_gates=own_gates,
        gates=() if read.gate is None else (read.gate,),
    )


def passed_on(options: Mapping[str, object]) -> GraphOptions[Any]:
    """Return the options of a run that hold for the graphs that it runs by name."""
    return cast("GraphOptions[Any]", _chosen(options, PASSED_ON))


def _chosen(options: Mapping[str, object], names: Iterable[str]) -> dict[str, object]:
    """Return some of the options; a TypedDict loses its type where keys are computed."""
    return {name: options[name] for name in names if name in options}
