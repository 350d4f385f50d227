"""The library's nodes by the names that files use, and the parameters of each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, cast, final, get_args

from ..attempts import NEVER
from ..compaction import LAYERS, Compaction
from ..errors import ConfigError, nearest
from ..joins import REDUCERS
from ..node_protocol import Node, OwnKind
from ..nodes.approve import Approve
from ..nodes.child import Child
from ..nodes.compact import Compact
from ..nodes.critique import Critique
from ..nodes.execute import Execute
from ..nodes.fallback import Fallback
from ..nodes.function import Function
from ..nodes.gate import Gate
from ..nodes.limit import Limit
from ..nodes.map_over import MapOver
from ..nodes.model_call import ModelCall
from ..nodes.parallel import Branch, Parallel
from ..nodes.prepare_step import PrepareStep
from ..nodes.retrying import Retrying
from ..nodes.router import Router
from ..nodes.stop_check import StopCheck
from ..nodes.verify import AnswerCheck, Verify
from ..outcomes import Failed, Outcome, outcome_name
from ..values import ToolChoice
from .annotations import parameters_of, record_of, summary_of
from .forms import Form, Many, Maybe, Number, Text, Whole, Word
from .names import AgentForm, CalledForm, FunctionForm
from .outcome_forms import CapsForm, LeftByForm, OutcomeForm, RoutesForm
from .part_form import PartForm
from .policy_forms import RULES
from .record import Parameter, Record
from .stop_forms import ConditionForm
from .uses import LIBRARY

__all__ = ["NodeKind", "kind_of_class", "node_kind"]


SAID: Final = Text(filled=True)
WORDS: Final = Many(SAID)
WORD_SET: Final = Maybe(Many(SAID, make=frozenset))
OUTCOMES: Final = Many(OutcomeForm(), least=1, make=frozenset)
AFTER: Final = Many(LeftByForm(), least=1, single=True, make=frozenset)
OWN_KINDS: Final = Word(get_args(OwnKind))
COMPACTION: Final = Maybe(
    record_of(
        "a compaction",
        Compaction,
        {
            "context_window": Whole(1_000),
            "threshold": Number(positive=True),
            "target": Number(positive=True),
            "keep_recent_turns": Whole(1),
            "layers": Many(Word(LAYERS)),
        },
    )
)
TOOL_CHOICE: Final = record_of(
    "a tool choice", ToolChoice, {"name": CalledForm("tool_choice", filled=False)}, short="mode"
)
BRANCH: Final = record_of("a branch", Branch, {"agent": AgentForm()}, short="agent")
CHECK: Final = record_of("a check", AnswerCheck, {"callback": FunctionForm(), "retries": Whole(0)})

FORMS: Final[Mapping[type, Mapping[str, Form]]] = {
    Approve: {"ttl_s": Maybe(Number(positive=True))},
    Child: {"agent": AgentForm()},
    Compact: {"compaction": COMPACTION, "callback": FunctionForm()},
    Critique: {"prompt": SAID},
    Execute: {"concurrency": Whole(1)},
    Fallback: {"first": PartForm(), "second": PartForm(), "after": AFTER},
    Function: {
        "leaves_by": OUTCOMES,
        "callback": FunctionForm(),
        "kind": OWN_KINDS,
        "caps": CapsForm(),
        "capped": Maybe(OutcomeForm()),
        "reads": WORD_SET,
        "writes": WORD_SET,
        "stateless": Many(OutcomeForm(), make=frozenset),
    },
    Gate: {"rules": RULES},
    Limit: {"times": Whole(1)},
    MapOver: {
        "agent": AgentForm(),
        "max_items": Whole(1),
        "concurrency": Whole(1),
        "reducer": Word(REDUCERS),
        "callback": FunctionForm(),
    },
    ModelCall: {"model": SAID, "fallbacks": WORDS},
    Parallel: {
        "branches": Many(BRANCH, least=1),
        "concurrency": Whole(1),
        "reducer": Word(REDUCERS),
        "callback": FunctionForm(),
    },
    PrepareStep: {
        "active_tools": Maybe(Many(CalledForm("active_tools"))),
        "tool_choice": TOOL_CHOICE,
        "callback": FunctionForm(),
        "compaction": COMPACTION,
    },
    Retrying: {"node": PartForm(), "times": Whole(1), "after": AFTER},
    Router: {"routes": RoutesForm(), "prompt": SAID},
    StopCheck: {
        "max_steps": Whole(1),
        "max_tool_errors": Whole(1),
        "max_denials": Whole(1),
        "max_pauses": Whole(0),
        "conditions": Many(ConditionForm()),
        "callback": FunctionForm(),
    },
    Verify: {"checks": Many(CHECK)},
}

# What a file says of a function's kind is held to what `@node` allows. A generator tells by its
# annotations what it asks for: register it.
SKIPPED: Final[Mapping[type, frozenset[str]]] = {Function: frozenset({"asks", "name"})}


@final
@dataclass(frozen=True)
class NodeKind:
    """What one `use` stands for.

    Args:
        use: the name in files.
        made: the class of its nodes.
        record: its parameters; it makes a node of these and a `name`.
        named: whether a node has a name of its own where none is given.
    """

    use: str
    made: type
    record: Record
    named: bool = True


@cache
def node_kind(use: str) -> NodeKind:
    """Return one kind of node of the library."""
    made = LIBRARY[use]
    skipped = SKIPPED.get(made, frozenset({"name", "kind"}))
    parameters = parameters_of(made, FORMS.get(made), skip=skipped)
    return _kind(use, made, _maker(made), parameters)


@cache
def kind_of_class(use: str, made: type) -> NodeKind:
    """Return a kind of node that is registered as a class.

    Raises:
        ConfigError: one of its fields is of a type that no file can hold, or is named `use`.
    """
    parameters = parameters_of(made)
    if "use" in parameters:
        raise ConfigError(
            f"the field 'use' of {made.__name__} has no place in a file, where `use` says which "
            "kind of node it is: give the field another name"
        )
    return _kind(use, made, made, parameters)


def _kind(
    use: str, made: type, make: Callable[..., Any], parameters: Mapping[str, Parameter]
) -> NodeKind:
    record = Record(f"a node with `use: {use}`", make, parameters, doc=summary_of(made))
    return NodeKind(use, made, record)


def _maker(made: type) -> Callable[..., Any]:
    if made is Retrying:
        return _retrying
    if made is Fallback:
        return _fallback
    if made is Function:
        return _function
    return made


def _retrying(
    node: Node[Any, Outcome], times: int, after: Iterable[object] = (Failed,), name: str = ""
) -> Retrying[Any]:
    return Retrying(node, times, _left_by(node, after), name)


def _fallback(
    first: Node[Any, Outcome],
    second: Node[Any, Outcome],
    after: Iterable[object] = (Failed,),
    name: str = "",
) -> Fallback[Any]:
    return Fallback(first, second, _left_by(first, after), name)


def _function(name: str, leaves_by: frozenset[type[Outcome]], **rest: object) -> Function:
    # A file names the functions that it invokes: no node stands for one that happens to match.
    if "callback" not in rest:
        raise ConfigError("`callback` names the registered function: add it")
    # The record has looked at each of the rest.
    return cast("Callable[..., Function]", Function)(name, leaves_by, **rest)


def _left_by(node: Node[Any, Outcome], after: Iterable[object]) -> frozenset[type[Outcome]]:
    """Return outcomes of a node, given as types or by their names."""
    known = {outcome_name(one): one for one in node.outcomes - NEVER}
    types: set[type[Outcome]] = set()
    for one in after:
        if isinstance(one, type):
            types.add(one)
        elif str(one) in known:
            types.add(known[str(one)])
        else:
            raise ConfigError(
                f"`after` names outcomes of {node.name!r} ({', '.join(sorted(known))}); found "
                f"{one!r}.{nearest(str(one), known)}"
            )
    return frozenset(types)
