"""The options of agents and graphs: keywords for callers, one frozen `Options` internally.

`Agent` takes `AgentOptions`. `Graph.run` takes only `RunOptions`: a graph's own nodes set the rest.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from time import time
from typing import TYPE_CHECKING, Any, Final, Generic, Literal, TypeAlias, cast, final

from msgspec import Struct, field

from ..conversation import Compaction
from ..driver import Observer, Pending
from ..errors import ConfigError, nearest, not_among
from ..limits import ModelPrice
from ..policy import Approval, Policy, secret_of
from ..rules import Rules
from ..spending import Budget, is_number, positive_number, whole_number
from ..stores import Store
from ..tools import AnyTool, accepts
from ..turn import StepResult
from ..values import Reply, Settings
from .hooks import AnswerInfo, Compact, Prepare, Review, Screen, StopInput
from .inputs import ChoiceInput, DepsInput, DepsT, Instructions, Model, ModelSettings, strings
from .sub_agents import AgentTool, NamedAgent

if TYPE_CHECKING:
    # Imported for types only: an agent without an HTTP model loads no HTTP code.
    from ..limits import Rates
    from ..providers import ApiKey, Retries, Timeouts

__all__ = [
    "BY_REQUEST",
    "NO_DEPS",
    "PASSED_ON",
    "PLAIN_TEXT",
    "TO_SERVICE",
    "AgentOptions",
    "Decide",
    "Decision",
    "EveryAgentOption",
    "Options",
    "OverrideOptions",
    "RunOptions",
    "ToolInput",
    "Tools",
    "refuse_unknown_options",
]

ToolInput: TypeAlias = AnyTool | AgentTool | Callable[..., object]
Tools: TypeAlias = Sequence[ToolInput] | Mapping[str, ToolInput]
Decision: TypeAlias = bool | Approval | Awaitable[bool | Approval]
Decide: TypeAlias = Callable[[Pending], Decision] | Callable[[Pending, DepsT], Decision]
Listener: TypeAlias = Callable[[StepResult], object] | Callable[[StepResult, DepsT], object]

TO_SERVICE: Final = ("api_key", "base_url", "headers", "query")
"""The options about access to the service of the agent's own model."""

BY_REQUEST: Final = ("timeouts", "retries")
"""The options about each request to a model given by name."""

PASSED_ON: Final = frozenset({"model", "price", "prices", "clock", *TO_SERVICE, *BY_REQUEST})
"""The options about access to models, which also apply to graphs that a run starts by name."""

PLAIN_TEXT: Final = cast("type[str]", None)
"""The default of `output_type`: the output is the text of the answer."""

NO_DEPS: Final = cast("type[None]", None)
"""The default of `deps_type`: runs are given no `deps`."""

SEED: Final = -(2**63)
"""The smallest allowed seed: JSON parsers read no smaller number as an integer."""


class RunOptions(ModelSettings[DepsT], Generic[DepsT], total=False):
    """The options of every run, of an agent or a graph.

    `tools`: functions, `Tool` objects, or a mapping of name to either.
    `gate`: which calls may run: `allow(…) | ask(…) | deny(…)`. The first rule that matches decides;
    a call that no rule matches is denied. The gate also applies to child runs.
    `approve_tool_call`: a function that decides calls which need approval: it returns True, False
    or an `Approval`. Without this function, such a call parks the run. A second argument of the
    function gets the run's `deps`, as in `on_step_finish`.
    `approval_ttl_s`: the seconds within which a call can be approved (default: no limit).
    `approval_secret`: the key that signs approval tokens, so that an approval counts only for the
    recorded question. A party that can write to the store can still approve calls.
    `budget`: what the run and its children may spend (`graphloop.budget`).
    `rules`: temporal rules (`graphloop.rules`). A call that a rule forbids is denied, and the model
    reads the rule. Child runs are denied the tools that the rules name.
    `max_agent_depth`: the maximum depth of nested agents (default 2). Without this option, agents
    nested more deeply are an error.
    `step_timeout_s`: the time limit for a turn with its tools, in seconds. A child run is limited
    only by the option of its own agent.
    `on_bad_history`: `"repair"` (default) or `"refuse"` a conversation with calls that have no
    result, or results that have no call.
    `agents`: agents and graphs by name, for the nodes of a graph that run agents by name. An agent
    keeps its own model; a graph uses the model of the run.
    `on_step_finish`: a function called with each finished turn; its error becomes a warning.
    `watch`: observers: objects with `see(step, graph, path)`, called with each step of the run and
    of its child runs (`graphloop.driver.Observer`). An observer's error becomes a warning.
    `store`: the place of the journal: a `Store`, a database file (`runs.db`), or a directory for
    JSON-lines files. Without a store, the journal is kept in memory.
    `api_key`, `base_url`: access to a model given by name; by default read from the environment. A
    function as `api_key`, also an asynchronous one, is called before each attempt at a model call,
    and again after the server's first refusal of a key (401): for keys that expire.
    `timeouts`, `retries`: the time limits of one model call and its retries, for a model given by
    name.
    `headers`: further HTTP headers of each request, for a model given by name. A journal and an
    error never contain them.
    `query`: further fields of each request's URL, such as `{"api-version": "2024-10-21"}`, for a
    model given by name; no place for a key, since logs keep URLs.
    `limits`: what all runs of the store, in all processes, ask of models, by a pattern of labels:
    `{"anthropic:*": Rate(requests=50)}` (`graphloop.limits`). Without a store, those of this agent.
    `price`: a function that returns the cost of a reply in US dollars; the default uses the table
    of genai-prices, by the service that replied. The function also applies to child runs without a
    price of their own.
    `prices`: prices by model name, which override that table; cannot be combined with `price`.
    `clock`: a function that returns the seconds since the epoch; a run reads no other clock.
    """

    tools: Tools
    gate: Policy | None
    approve_tool_call: Decide[DepsT] | None
    approval_ttl_s: float | None
    approval_secret: str | bytes | None
    budget: Budget | None
    rules: Rules | Sequence[Rules]
    max_agent_depth: int
    step_timeout_s: float | None
    on_bad_history: Literal["repair", "refuse"]
    agents: Mapping[str, NamedAgent]
    on_step_finish: Listener[DepsT] | None
    watch: Sequence[Observer]
    store: Store | str | None
    api_key: ApiKey | None
    base_url: str | None
    timeouts: Timeouts | None
    retries: Retries | None
    headers: Mapping[str, str] | None
    query: Mapping[str, str] | None
    limits: Rates
    price: Callable[[Reply], float | None]
    prices: Mapping[str, ModelPrice]
    clock: Callable[[], float]


class AgentOptions(RunOptions[DepsT], Generic[DepsT], total=False):
    """The options of an agent: those of every run, and of the standard loop.

    The options of every run, such as `tools`, `gate` and `store`, are in `RunOptions`.

    `name`: the agent's name in journals and diagrams (default "agent").
    `max_steps`: the maximum number of turns (default 20, at least 1).
    `stop_when`: stop conditions (`graphloop.stop`) or functions of `StopContext`; if any of them
    is true, the run stops.
    `max_consecutive_tool_errors`: the run stops after this many turns in which one tool only failed
    and never succeeded in between (default 3).
    `max_consecutive_denials`: the run stops after this many turns whose calls were all denied,
    with no call that succeeded in between (default 5).
    `max_tool_concurrency`: the maximum number of tools of a turn that run at once (default 5).
    `run_ungated`: whether calls that need no approval run before a person is asked about the other
    calls of their turn; by default the whole turn waits.
    `fallback_models`: the models to try in this order, for each model call that fails.
    `output_mode`: with `"native"` the server enforces the type; with `"tool"` the model answers by
    calling an added tool; `"auto"` (default) chooses by the models' servers.
    `max_output_retries`: how often an answer that does not fit the type is sent back (default 2).
    `done_when`: a function of `AnswerInfo` that returns whether the work is done; False sends the
    answer back.
    `max_done_retries`: how often `done_when` sends an answer back (default 2); then the answer is
    accepted, and `stopped_by` contains `false_finish`.
    `verify`: a function of `AnswerInfo` that returns a `Review`, or whether the answer is good.
    `max_verify_retries`: how often `verify` sends an answer back (default 2); then the answer is
    accepted, and `stopped_by` contains `unverified`.
    `screen`: functions (`ScreenFunction`) and agents that judge what the user says before a model
    reads it. An agent answers by `output_type=bool`, or by a type with `passed` and perhaps
    `answer`. A blocked run ends by `refusal`, and `stopped_by` names the screen.
    `screen_in_parallel`: whether the model is asked while the screens judge. Its reply waits for
    the verdict: until then no tool runs, and no part of the reply reaches a stream.
    `compaction`: when and how a long conversation is made shorter (`Compaction`).
    `compact`: a function of `StepInfo` that returns the shorter conversation.
    `tool_choice`: auto, required, none, or a `ToolChoice` that names one tool, for every turn. The
    default is auto, or required if the model answers an `output_type` by a tool call.
    `active_tools`: the names of the only tools that are offered to the model and can run.
    `prepare_step`: a function called before every turn; returns `StepChanges` or None.
    """

    name: str
    max_steps: int
    stop_when: StopInput[DepsT]
    max_consecutive_tool_errors: int
    max_consecutive_denials: int
    max_tool_concurrency: int
    run_ungated: bool
    fallback_models: Sequence[Model]
    output_mode: Literal["auto", "native", "tool"]
    max_output_retries: int
    done_when: Callable[[AnswerInfo[DepsT, Any]], bool | Awaitable[bool]] | None
    max_done_retries: int
    verify: Callable[[AnswerInfo[DepsT, Any]], bool | Review | Awaitable[bool | Review]] | None
    max_verify_retries: int
    screen: Screen | Sequence[Screen]
    screen_in_parallel: bool
    compaction: Compaction | None
    compact: Compact[DepsT] | None
    tool_choice: ChoiceInput
    active_tools: Sequence[str] | None
    prepare_step: Prepare[DepsT] | None


class EveryAgentOption(AgentOptions[DepsT], Generic[DepsT], total=False):
    """The options of an agent, with those that also set the types of its results.

    `output_type`: the type of the final answer: a pydantic model, any type, or a JSON Schema.
    `deps_type`: the type of the object that each run is given as `deps`.
    """

    output_type: object
    deps_type: object


class OverrideOptions(AgentOptions[DepsT], DepsInput[DepsT], Generic[DepsT], total=False):
    """The options of an agent that a test replaces, and the `deps` of its runs."""


@final
class Options(Struct, frozen=True, kw_only=True):
    """All options of an agent or a graph in one frozen object, each with its default.

    Attributes:
        given: the caller's keywords, unchanged.

    Raises:
        ConfigError: the value of an option is invalid.
    """

    given: Mapping[str, object]
    tools: Tools = ()
    instructions: Instructions[Any] | None = None
    max_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    stop_sequences: Sequence[str] = ()
    seed: int | None = None
    provider_options: Mapping[str, object] | None = None
    gate: Policy | None = None
    approve_tool_call: Decide[Any] | None = None
    approval_ttl_s: float | None = None
    approval_secret: str | bytes | None = None
    budget: Budget | None = None
    rules: Rules | Sequence[Rules] = ()
    max_agent_depth: int | None = None
    step_timeout_s: float | None = None
    on_bad_history: Literal["repair", "refuse"] = "repair"
    agents: Mapping[str, NamedAgent] = field(default_factory=dict[str, NamedAgent])
    on_step_finish: Listener[Any] | None = None
    watch: Sequence[Observer] = ()
    store: Store | str | None = None
    api_key: ApiKey | None = None
    base_url: str | None = None
    timeouts: Timeouts | None = None
    retries: Retries | None = None
    headers: Mapping[str, str] | None = None
    query: Mapping[str, str] | None = None
    limits: Rates = field(default_factory=dict[str, Any])
    price: Callable[[Reply], float | None] | None = None
    prices: Mapping[str, ModelPrice] = field(default_factory=dict[str, ModelPrice])
    clock: Callable[[], float] | None = None
    name: str = "agent"
    max_steps: int = 20
    stop_when: StopInput[Any] = ()
    max_consecutive_tool_errors: int = 3
    max_consecutive_denials: int = 5
    max_tool_concurrency: int = 5
    run_ungated: bool = False
    fallback_models: Sequence[Model] = ()
    output_type: object = None
    deps_type: object = None
    output_mode: Literal["auto", "native", "tool"] = "auto"
    max_output_retries: int = 2
    done_when: Callable[[AnswerInfo[Any, Any]], bool | Awaitable[bool]] | None = None
    max_done_retries: int = 2
    verify: Callable[[AnswerInfo[Any, Any]], bool | Review | Awaitable[bool | Review]] | None = None
    max_verify_retries: int = 2
    screen: Screen | Sequence[Screen] = ()
    screen_in_parallel: bool = False
    compaction: Compaction | None = None
    compact: Compact[Any] | None = None
    tool_choice: ChoiceInput | None = None
    active_tools: Sequence[str] | None = None
    prepare_step: Prepare[Any] | None = None

    @classmethod
    def read(cls, given: RunOptions) -> Options:
        """Build the options from the caller's keywords."""
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
        said = self.instructions
        if not (said is None or isinstance(said, str) or accepts(said, 1) or accepts(said, 0)):
            raise ConfigError(
                f"`instructions`: expected a text, or a function of `deps`, found {said!r:.80}. "
                "Fix: pass a str, or a function with one parameter or none."
            )
        if self.price is not None and self.prices:
            raise ConfigError(
                "`prices` has no effect beside `price`, which prices every reply. Fix: give one of "
                "them."
            )

    def __repr__(self) -> str:
        return f"Options({', '.join(self.given)})"  # Without the values: some are secrets.

    @property
    def secret(self) -> bytes | None:
        """The key that signs approval tokens, as bytes; None without an `approval_secret`."""
        return secret_of(self.approval_secret)

    @property
    def allowance(self) -> Budget:
        """The `budget` option; by default an empty `Budget`, which limits nothing."""
        return self.budget or Budget()

    def settings(self, *, one_call_at_a_time: bool = False) -> Settings:
        """Check the sampling settings, and return them in the form that a journal keeps.

        Raises:
            ConfigError: a setting has a value that no server accepts.
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
        """The caller's clock or the system clock; a caller's clock must return numbers."""
        given = self.clock
        if given is None:
            return time

        def now() -> float:
            found: object = given()
            if not is_number(found):
                raise ConfigError(f"`clock`: expected seconds since the epoch, found {found!r:.80}")
            return found

        return now


def refuse_unknown_options(given: Iterable[str], options: type[object], place: str) -> None:
    """Raise an error for names that are not options of the TypedDict `options`.

    Raises:
        ConfigError: a name is unknown; the message has the nearest options, or lists all of them.
    """
    known = options.__annotations__
    unknown = [name for name in given if name not in known]
    if "stream" in unknown:
        raise ConfigError(
            f"{place} has no option 'stream': it belongs to the model. Fix: "
            "connect(model, stream=False), from graphloop.providers."
        )
    if unknown:
        found, similar = not_among(unknown, known), all(nearest(name, known) for name in unknown)
        listed = "" if similar else f" It takes {', '.join(sorted(known))}."
        raise ConfigError(f"{place} has no option {found}{listed}")
