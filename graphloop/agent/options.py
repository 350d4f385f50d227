"""The options of runs and agents: flat keywords outside, five frozen groups inside.

`generate_text`, `stream_chat` and `Agent` take all of them; `Graph.run` takes `RunOptions`, since
the nodes of a graph say the rest. A group holds the defaults of its options, and refuses values
that no run can keep; an unknown keyword is refused by its name.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from time import time
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, TypedDict, TypeVar, cast, final

from ..conversation import Compaction
from ..driver import Pending, Price
from ..errors import ConfigError, not_among
from ..limits import Condition, ModelPrice, StopInfo
from ..policy import Approval, Policy, secret_of
from ..rules import Rules
from ..spending import Budget, is_number, positive_number, whole_number
from ..stores import Store
from ..tools import AnyTool
from ..turn import StepResult
from ..values import Settings
from .inputs import AnswerInfo, ChoiceInput, MessageInput, Model, Review, StepChanges, StepInfo
from .sub_agents import AgentTool, NamedAgent

if TYPE_CHECKING:
    # An agent whose model is not asked over HTTP loads no part of that way.
    from ..providers import Retries, Timeouts

__all__ = [
    "PASSED_ON",
    "Access",
    "AgentOptions",
    "Checks",
    "Limits",
    "Permissions",
    "Predicate",
    "RunOptions",
    "Sampling",
    "StopInput",
    "ToolInput",
    "Tools",
    "clock_of",
    "group",
    "reject_unknown_options",
    "stop_input",
    "strings",
]

ToolInput: TypeAlias = AnyTool | AgentTool | Callable[..., object]
Tools: TypeAlias = Sequence[ToolInput] | Mapping[str, ToolInput]
Predicate: TypeAlias = Callable[[StopInfo], bool | Awaitable[bool]]
StopInput: TypeAlias = Condition | Predicate | Sequence[Condition | Predicate]

G = TypeVar("G")

PASSED_ON: Final = frozenset(
    {"model", "api_key", "base_url", "timeouts", "retries", "price", "prices", "clock"}
)
"""The options of a run that hold for the graphs that it runs by name: how the model is asked."""

SEED: Final = -(2**63)
"""The least seed that JSON readers take for a whole number."""


class RunOptions(TypedDict, total=False):
    """Options of every run.

    `tools`: functions, `Tool` objects, or a mapping of name to either.
    `instructions`: the system message, put before the conversation.
    `max_tokens`, `temperature`, `top_p`, `stop_sequences`, `seed`: sampling; unset is the
    server's default.
    `provider_options`: JSON fields merged into each request body as they are.
    `gate`: which calls may run: `allow(…) | ask(…) | deny(…)`; the first rule that matches decides,
    and a call that no rule matches is denied. Holds for the agents that the run calls, too.
    `approve_tool_call`: decides about calls of tools that need approval: True, False, or an
    `Approval`; without it such a call parks the run.
    `approval_ttl_s`: for how many seconds an approval may be given (default: for ever).
    `approval_secret`: signs the tokens of approvals, so that only what was asked can be approved.
    It does not keep out a party that can write the store: that party can approve.
    `budget`: what the run and its children may spend (`graphloop.budget`).

    `rules`: temporal rules (`graphloop.rules`), kept while the run goes on: a call that one
    forbids is denied, with the rule named to the model. Child runs are denied the tools they name.
    `max_agent_depth`: how many agents may stand below the run (default 2); agents that are deeper
        are refused, unless it is given.
    `step_timeout_s`: after how many seconds a turn, its tools included, is given up; the time of
    an agent that it waits for counts by that agent's own limit.
    `on_bad_history`: `"repair"` (default) or `"refuse"` a conversation with calls that have no
    result, or results that have no call.
    `agents`: agents and graphs by name, for the nodes of a graph that run agents by name. An agent
    keeps its own model; a graph asks the model of the run.
    `on_step_finish`: told of each finished turn; what it raises becomes a warning.
    `store`: where the journal goes: a `Store`, a database file (`runs.db`), or a directory for
    JSON-lines files; without one it is kept in memory.
    `api_key`, `base_url`: for a model given by name; unset comes from the environment.
    `timeouts`, `retries`: for a model given by name; the limits of one model call, and how often
    it may be sent.
    `price`: the cost of a reply in US dollars; default is the table of genai-prices. It holds in
    child runs as well, but for those that are given their own.
    `prices`: prices of models by name, which go before that table; not beside `price`.
    `clock`: seconds since the epoch; the only time that a run sees.
    """

    tools: Tools
    instructions: str | None
    max_tokens: int | None
    temperature: float | None
    top_p: float | None
    stop_sequences: Sequence[str]
    seed: int | None
    provider_options: Mapping[str, object]
    gate: Policy | None
    approve_tool_call: Callable[[Pending], bool | Approval | Awaitable[bool | Approval]] | None
    approval_ttl_s: float | None
    approval_secret: str | bytes | None
    budget: Budget | None
    rules: Rules | Sequence[Rules]
    max_agent_depth: int
    step_timeout_s: float | None
    on_bad_history: Literal["repair", "refuse"]
    agents: Mapping[str, NamedAgent]
    on_step_finish: Callable[[StepResult], object] | None
    store: Store | str | None
    api_key: str | None
    base_url: str | None
    timeouts: Timeouts | None
    retries: Retries | None
    price: Price
    prices: Mapping[str, ModelPrice]
    clock: Callable[[], float]


class AgentOptions(RunOptions, total=False):
    """Options of the standard loop, beside those of every run.

    `name`: the agent's name in journals and diagrams (default "agent").
    `max_steps`: how many turns at most (default 20, at least 1).
    `stop_when`: stop conditions (`graphloop.stop`) or predicates over `StopInfo`; any one stops.
    `max_consecutive_tool_errors`: in how many steps in a row one tool may only fail (default 3).
    `max_consecutive_denials`: in how many steps in a row calls may only be denied (default 5).
    `max_tool_concurrency`: how many tools of a turn may run at once (default 5).
    `run_ungated`: whether calls without a question run before a person is asked about the others of
    their turn; by default the whole turn waits.
    `fallback_models`: asked in order, call by call, when a model cannot be asked.
    `output_type`: the type of the final answer: a pydantic model, any type, or a JSON Schema.
    `output_mode`: `"native"` has the server keep to the type, `"tool"` adds a tool that takes the
    answer, `"auto"` (default) chooses by the model's wire and by what its server takes.
    `max_output_retries`: how often an answer that is not of the type is sent back (default 2).
    `done_when`: says of `AnswerInfo` whether the work is done; False sends the model back.
    `max_done_retries`: how often that may be (default 2); then the answer is taken, and
    `stopped_by` says `false_finish`.
    `verify`: judges an answer: a `Review`, or whether it is good.
    `max_verify_retries`: how often it may be sent back (default 2); then `stopped_by` says
    `unverified`.
    `compaction`: when and how a long conversation is made shorter (`Compaction`).
    `compact`: your own way to do it: a function of `StepInfo` that returns messages.
    `tool_choice`: auto, required, none, or a `ToolChoice` naming one tool; holds for every turn.
    Default is auto, or required where a tool takes the answer of an `output_type`.
    `active_tools`: the only tools that are offered and can run.
    `prepare_step`: called before every turn; returns `StepChanges` or None.
    """

    name: str
    max_steps: int
    stop_when: StopInput
    max_consecutive_tool_errors: int
    max_consecutive_denials: int
    max_tool_concurrency: int
    run_ungated: bool
    fallback_models: Sequence[Model]
    output_type: object
    output_mode: Literal["auto", "native", "tool"]
    max_output_retries: int
    done_when: Callable[[AnswerInfo], bool | Awaitable[bool]] | None
    max_done_retries: int
    verify: Callable[[AnswerInfo], bool | Review | Awaitable[bool | Review]] | None
    max_verify_retries: int
    compaction: Compaction | None
    compact: Callable[[StepInfo], Sequence[MessageInput] | Awaitable[Sequence[MessageInput]]] | None
    tool_choice: ChoiceInput
    active_tools: Sequence[str] | None
    prepare_step: Callable[[StepInfo], StepChanges | Awaitable[StepChanges | None] | None] | None


@final
@dataclass(frozen=True)
class Sampling:
    """How a reply is drawn; None is the server's default."""

    max_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    stop_sequences: Sequence[str] = ()
    seed: int | None = None
    provider_options: Mapping[str, object] | None = None

    def settings(self, *, one_at_a_time: bool = False) -> Settings:
        """Return the settings that a journal keeps.

        Raises:
            ConfigError: a server could not be told one of them.
        """
        for name, value in (("temperature", self.temperature), ("top_p", self.top_p)):
            if value is not None and not is_number(value):
                raise ConfigError(f"`{name}`: expected a finite number, found {value!r}")
        for name, number, least in (("max_tokens", self.max_tokens, 1), ("seed", self.seed, SEED)):
            if number is not None:
                whole_number(name, number, least=least)
        extra = self.provider_options
        try:
            text = json.dumps(extra, allow_nan=False) if extra else ""
        except (TypeError, ValueError) as error:
            raise ConfigError(f"`provider_options`: expected JSON, found {error}") from error
        return Settings(
            max_tokens=self.max_tokens,
            temperature=self.temperature,
            top_p=self.top_p,
            stop_sequences=strings("stop_sequences", self.stop_sequences),
            seed=self.seed,
            parallel_tool_calls=False if one_at_a_time else None,
            options=text,
        )


@final
@dataclass(frozen=True)
class Limits:
    """How far a run may go."""

    budget: Budget | None = None
    max_agent_depth: int | None = None
    step_timeout_s: float | None = None
    max_steps: int = 20
    stop_when: StopInput = ()
    max_consecutive_tool_errors: int = 3
    max_consecutive_denials: int = 5
    max_tool_concurrency: int = 5

    def __post_init__(self) -> None:
        if self.max_agent_depth is not None:
            whole_number("max_agent_depth", self.max_agent_depth, least=0)
        if self.step_timeout_s is not None:
            positive_number("step_timeout_s", self.step_timeout_s)

    @property
    def allowance(self) -> Budget:
        """The budget; without one, a run may spend anything."""
        return self.budget or Budget()


@final
@dataclass(frozen=True)
class Permissions:
    """Which calls may run, and who approves them."""

    gate: Policy | None = None
    rules: Rules | Sequence[Rules] = ()
    approve_tool_call: Callable[[Pending], bool | Approval | Awaitable[bool | Approval]] | None = (
        None
    )
    approval_ttl_s: float | None = None
    approval_secret: str | bytes | None = None
    run_ungated: bool = False

    def __post_init__(self) -> None:
        if self.approval_ttl_s is not None:
            positive_number("approval_ttl_s", self.approval_ttl_s)
        secret_of(self.approval_secret)

    @property
    def secret(self) -> bytes | None:
        """The secret that signs tokens."""
        return secret_of(self.approval_secret)


@final
@dataclass(frozen=True)
class Checks:
    """The checks of a final answer, and how often each sends it back."""

    output_type: object = None
    output_mode: Literal["auto", "native", "tool"] = "auto"
    max_output_retries: int = 2
    done_when: Callable[[AnswerInfo], bool | Awaitable[bool]] | None = None
    max_done_retries: int = 2
    verify: Callable[[AnswerInfo], bool | Review | Awaitable[bool | Review]] | None = None
    max_verify_retries: int = 2


@final
@dataclass(frozen=True)
class Access:
    """How models given by name are asked, and what their replies cost."""

    api_key: str | None = None
    base_url: str | None = None
    timeouts: Timeouts | None = None
    retries: Retries | None = None
    price: Price | None = None
    prices: Mapping[str, ModelPrice] = field(default_factory=dict[str, ModelPrice])

    def __post_init__(self) -> None:
        if self.price is not None and self.prices:
            raise ConfigError(
                "`prices` has no effect beside `price`, which prices every reply: give one of them"
            )


def group(options: RunOptions, kind: type[G]) -> G:
    """Return one group of the options, with its defaults.

    Raises:
        ConfigError: a value is one that no run can keep.
    """
    given: Mapping[str, Any] = {**options}  # A TypedDict tells the type of no key that is computed.
    names = kind.__annotations__
    return kind(**{name: value for name, value in given.items() if name in names})


def reject_unknown_options(given: Iterable[str], options: type[object], place: str) -> None:
    """Raise for every option name that is none.

    Raises:
        ConfigError: naming each, with the nearest that exists.
    """
    known = options.__annotations__
    unknown = [name for name in given if name not in known]
    if unknown:
        found = not_among(unknown, known)
        raise ConfigError(f"{place} has no option {found} It takes {', '.join(sorted(known))}")


def stop_input(given: StopInput) -> tuple[tuple[Condition, ...], tuple[Predicate, ...]]:
    """Part pure conditions, which the graph evaluates, from functions, which it invokes."""
    # isinstance cannot tell the item type.
    every = cast("Sequence[object]", given) if isinstance(given, Sequence) else (given,)
    conditions: list[Condition] = []
    predicates: list[Predicate] = []
    for one in every:
        if isinstance(one, Condition) and not isinstance(one, type):
            conditions.append(one)
        elif callable(one) and not isinstance(one, type):
            # Types cannot tell what a function takes and returns: the run checks its answer.
            predicates.append(cast("Predicate", one))
        else:
            raise ConfigError(
                "`stop_when` takes conditions (graphloop.limits.stop) and functions of StopInfo; "
                f"found {one!r}"
            )
    return tuple(conditions), tuple(predicates)


def clock_of(options: RunOptions) -> Callable[[], float]:
    """Return the clock among the options, or the system's; it raises rather than tell no time."""
    given = options.get("clock")
    if given is None:
        return time

    def clock() -> float:
        now: object = given()
        if not is_number(now):
            raise ConfigError(f"`clock`: expected seconds since the epoch, found {now!r:.80}")
        return now

    return clock


def strings(option: str, given: Iterable[str]) -> tuple[str, ...]:
    """Return a list of strings; one string is a list of letters, and is refused.

    Raises:
        ConfigError: it is one string.
    """
    if isinstance(given, str):
        raise ConfigError(f"`{option}`: expected a list of strings, found {given!r:.80}")
    return tuple(given)
