"""The options of agents and graphs: flat keywords outside, one frozen `Options` inside.

`Agent` takes `AgentOptions`. `Graph.run` takes `RunOptions`: the nodes of a graph hold the others.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from time import time
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, TypedDict, cast, final

from ..conversation import Compaction
from ..driver import Pending, Price
from ..errors import ConfigError, not_among
from ..limits import ModelPrice, StopCondition, StopInfo
from ..policy import Approval, Policy, secret_of
from ..rules import Rules
from ..spending import Budget, is_number, positive_number, whole_number
from ..stores import Store
from ..tools import AnyTool
from ..turn import StepResult
from ..values import Settings, evolve
from .inputs import AnswerInfo, ChoiceInput, MessageInput, Model, Review, StepChanges, StepInfo
from .sub_agents import AgentTool, NamedAgent

if TYPE_CHECKING:
    # An agent whose model is not asked over HTTP loads no part of that way.
    from ..providers import Retries, Timeouts

__all__ = [
    "PASSED_ON",
    "AgentOptions",
    "Decide",
    "Options",
    "Predicate",
    "RunOptions",
    "StopInput",
    "ToolInput",
    "Tools",
    "reject_unknown_options",
    "settings_with",
    "stop_input",
    "strings",
]

ToolInput: TypeAlias = AnyTool | AgentTool | Callable[..., object]
Tools: TypeAlias = Sequence[ToolInput] | Mapping[str, ToolInput]
Predicate: TypeAlias = Callable[[StopInfo], bool | Awaitable[bool]]
StopInput: TypeAlias = StopCondition | Predicate | Sequence[StopCondition | Predicate]
Decide: TypeAlias = Callable[[Pending], bool | Approval | Awaitable[bool | Approval]]
Compact: TypeAlias = Callable[
    [StepInfo], Sequence[MessageInput] | Awaitable[Sequence[MessageInput]]
]
Prepare: TypeAlias = Callable[[StepInfo], StepChanges | Awaitable[StepChanges | None] | None]

PASSED_ON: Final = frozenset(
    {"model", "api_key", "base_url", "timeouts", "retries", "price", "prices", "clock"}
)
"""The options of a run that hold for the graphs that it runs by name: how the model is asked."""

SETTINGS: Final = frozenset(
    {"max_tokens", "temperature", "top_p", "stop_sequences", "seed", "provider_options"}
)
"""The sampling settings; a run can change them in the middle."""

SEED: Final = -(2**63)
"""The least seed that JSON readers take for a whole number."""


class RunOptions(TypedDict, total=False):
    """Options of every run.

    `tools`: functions, `Tool` objects, or a mapping of name to either.
    `instructions`: the system message, put before the conversation.
    `max_tokens`, `temperature`, `top_p`, `stop_sequences`, `seed`: sampling; unset is the
    server's default.
    `provider_options`: JSON fields merged into each request body as they are.
    `gate`: which calls may run: `allow(…) | ask(…) | deny(…)`. The first rule that matches decides;
    a call that no rule matches is denied. The gate holds for child runs, too.
    `approve_tool_call`: decides about calls of tools that need approval: True, False, or an
    `Approval`; without it such a call parks the run.
    `approval_ttl_s`: for how many seconds an approval may be given (default: without limit).
    `approval_secret`: signs the tokens of approvals, so that only the recorded question can be
    approved. A party that can write the store can still approve.
    `budget`: what the run and its children may spend (`graphloop.budget`).
    `rules`: temporal rules (`graphloop.rules`). A call that a rule forbids is denied, and the model
    reads the rule. Child runs are denied the tools that the rules name.
    `max_agent_depth`: how many agents deep the run may go (default 2). Without this option, agents
    that are deeper are refused.
    `step_timeout_s`: the seconds after which a turn with its tools is given up. The time of a child
    run counts by the limit of its own agent.
    `on_bad_history`: `"repair"` (default) or `"refuse"` a conversation with calls that have no
    result, or results that have no call.
    `agents`: agents and graphs by name, for the nodes of a graph that run agents by name. An agent
    keeps its own model; a graph asks the model of the run.
    `on_step_finish`: called with each finished turn; its error becomes a warning.
    `store`: where the journal goes: a `Store`, a database file (`runs.db`), or a directory for
    JSON-lines files; without one it is kept in memory.
    `api_key`, `base_url`: for a model given by name; unset comes from the environment.
    `timeouts`, `retries`: for a model given by name; the limits of one model call, and how often
    it may be sent.
    `price`: the cost of a reply in US dollars; the default is the table of genai-prices. It holds
    in child runs that have no price of their own.
    `prices`: prices of models by name, which go before that table; not beside `price`.
    `clock`: returns the seconds since the epoch; a run reads no other clock.
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
    approve_tool_call: Decide | None
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
    `run_ungated`: whether calls that need no approval run before a person is asked about the other
    calls of their turn; by default the whole turn waits.
    `fallback_models`: asked in order, call by call, when a model cannot be asked.
    `output_type`: the type of the final answer: a pydantic model, any type, or a JSON Schema.
    `output_mode`: with `"native"` the server keeps to the type, with `"tool"` an added tool takes
    the answer, `"auto"` (default) chooses by the model's wire and server.
    `max_output_retries`: how often an answer that is not of the type is sent back (default 2).
    `done_when`: a function of `AnswerInfo`: is the work done? False sends the answer back.
    `max_done_retries`: how often `done_when` sends an answer back (default 2); then the answer is
    taken, and `stopped_by` says `false_finish`.
    `verify`: a function of `AnswerInfo` that returns a `Review`, or whether the answer is good.
    `max_verify_retries`: how often `verify` sends an answer back (default 2); then the answer is
    taken, and `stopped_by` says `unverified`.
    `compaction`: when and how a long conversation is made shorter (`Compaction`).
    `compact`: a function of `StepInfo` that returns the shorter conversation.
    `tool_choice`: auto, required, none, or a `ToolChoice` that names one tool, for every turn. The
    default is auto, or required where a tool takes the answer of an `output_type`.
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
    compact: Compact | None
    tool_choice: ChoiceInput
    active_tools: Sequence[str] | None
    prepare_step: Prepare | None


@final
@dataclass(frozen=True, kw_only=True)
class Options:
    """The options of an agent or a graph, each with its default.

    One object holds them all, from the keywords of the caller to the runs.

    Attributes:
        given: the keywords of the caller, as they came.

    Raises:
        ConfigError: no run can keep one of the values.
    """

    given: Mapping[str, object] = field(repr=False)
    tools: Tools = ()
    instructions: str | None = None
    max_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    stop_sequences: Sequence[str] = ()
    seed: int | None = None
    provider_options: Mapping[str, object] | None = None
    gate: Policy | None = None
    approve_tool_call: Decide | None = None
    approval_ttl_s: float | None = None
    approval_secret: str | bytes | None = field(default=None, repr=False)
    budget: Budget | None = None
    rules: Rules | Sequence[Rules] = ()
    max_agent_depth: int | None = None
    step_timeout_s: float | None = None
    on_bad_history: Literal["repair", "refuse"] = "repair"
    agents: Mapping[str, NamedAgent] = field(default_factory=dict[str, NamedAgent])
    on_step_finish: Callable[[StepResult], object] | None = None
    store: Store | str | None = None
    api_key: str | None = field(default=None, repr=False)
    base_url: str | None = None
    timeouts: Timeouts | None = None
    retries: Retries | None = None
    price: Price | None = None
    prices: Mapping[str, ModelPrice] = field(default_factory=dict[str, ModelPrice])
    clock: Callable[[], float] | None = None
    name: str = "agent"
    max_steps: int = 20
    stop_when: StopInput = ()
    max_consecutive_tool_errors: int = 3
    max_consecutive_denials: int = 5
    max_tool_concurrency: int = 5
    run_ungated: bool = False
    fallback_models: Sequence[Model] = ()
    output_type: object = None
    output_mode: Literal["auto", "native", "tool"] = "auto"
    max_output_retries: int = 2
    done_when: Callable[[AnswerInfo], bool | Awaitable[bool]] | None = None
    max_done_retries: int = 2
    verify: Callable[[AnswerInfo], bool | Review | Awaitable[bool | Review]] | None = None
    max_verify_retries: int = 2
    compaction: Compaction | None = None
    compact: Compact | None = None
    tool_choice: ChoiceInput | None = None
    active_tools: Sequence[str] | None = None
    prepare_step: Prepare | None = None

    @classmethod
    def read(cls, given: RunOptions) -> Options:
        """Return the options that these keywords set."""
        every: dict[str, Any] = {**given}
        return cls(given=every, **every)

    def __post_init__(self) -> None:
        if self.max_agent_depth is not None:
            whole_number("max_agent_depth", self.max_agent_depth, least=0)
        for name in ("step_timeout_s", "approval_ttl_s"):
            seconds = getattr(self, name)
            if seconds is not None:
                positive_number(name, seconds)
        secret_of(self.approval_secret)
        if self.price is not None and self.prices:
            raise ConfigError(
                "`prices` has no effect beside `price`, which prices every reply. Fix: give one of "
                "them."
            )

    @property
    def secret(self) -> bytes | None:
        """The secret that signs the tokens of approvals."""
        return secret_of(self.approval_secret)

    @property
    def allowance(self) -> Budget:
        """The budget; without one, a run may spend anything."""
        return self.budget or Budget()

    def settings(self, *, one_call_at_a_time: bool = False) -> Settings:
        """Return the sampling settings, as a journal keeps them.

        Raises:
            ConfigError: no server takes one of them.
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
            parallel_tool_calls=False if one_call_at_a_time else None,
            options=text,
        )

    @property
    def checked_clock(self) -> Callable[[], float]:
        """The clock of the caller, or the system's; it raises instead of telling no number."""
        given = self.clock
        if given is None:
            return time

        def now() -> float:
            found: object = given()
            if not is_number(found):
                raise ConfigError(f"`clock`: expected seconds since the epoch, found {found!r:.80}")
            return found

        return now


def settings_with(settings: Settings, given: RunOptions) -> Settings:
    """Return settings in which the given options replace the earlier values.

    Raises:
        ConfigError: an option is no sampling setting, or no server takes its value.
    """
    unknown = sorted(given.keys() - SETTINGS)
    if unknown:
        raise ConfigError(
            f"expected settings among {', '.join(sorted(SETTINGS))}, found {', '.join(unknown)}"
        )
    changed = Options.read(given).settings()
    names = ["options" if name == "provider_options" else name for name in given]
    return evolve(settings, **{name: getattr(changed, name) for name in names})


def reject_unknown_options(given: Iterable[str], options: type[object], place: str) -> None:
    """Refuse option names that do not exist.

    Raises:
        ConfigError: naming each unknown option, with the nearest that exists.
    """
    known = options.__annotations__
    unknown = [name for name in given if name not in known]
    if unknown:
        found = not_among(unknown, known)
        raise ConfigError(f"{place} has no option {found} It takes {', '.join(sorted(known))}")


def stop_input(given: StopInput) -> tuple[tuple[StopCondition, ...], tuple[Predicate, ...]]:
    """Separate the stop conditions, which the graph evaluates, from the caller's functions.

    Raises:
        ConfigError: an item is neither.
    """
    # isinstance cannot tell the item type.
    items = cast("Sequence[object]", given) if isinstance(given, Sequence) else (given,)
    conditions: list[StopCondition] = []
    predicates: list[Predicate] = []
    for item in items:
        if isinstance(item, StopCondition) and not isinstance(item, type):
            conditions.append(item)
        elif callable(item) and not isinstance(item, type):
            # The run checks what the function returns.
            predicates.append(cast("Predicate", item))
        else:
            raise ConfigError(
                "`stop_when`: expected conditions (graphloop.limits.stop) and functions of "
                f"StopInfo, found {item!r}"
            )
    return tuple(conditions), tuple(predicates)


def strings(option: str, given: Iterable[str]) -> tuple[str, ...]:
    """Return a list of strings as a tuple.

    Raises:
        ConfigError: it is one string, which would be read as a list of letters.
    """
    if isinstance(given, str):
        raise ConfigError(f"`{option}`: expected a list of strings, found {given!r:.80}")
    return tuple(given)
