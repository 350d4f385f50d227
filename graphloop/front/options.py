"""The options of runs and agents: each defined once, checked by name, and taking effect.

`generate_text`, `stream_chat` and `Agent` take all of them; `Graph.run` takes `RunOptions`, since
a topology of one's own says the rest in its nodes.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Literal, TypeAlias, TypedDict

from ..approvals import Approval
from ..compaction import Compaction
from ..drivers.pending import Pending
from ..drivers.ports import Price
from ..model_price import ModelPrice
from ..policy import Policy
from ..spending import Budget
from ..stop import Condition, StopInfo
from ..stores.base import Store
from ..temporal import Rules
from ..tools import AnyTool
from ..turn import StepResult
from .child import AgentTool
from .inputs import MessageInput
from .told import AnswerInfo, ChoiceInput, Model, StepChanges, StepInfo, Verdict

if TYPE_CHECKING:
    # An agent whose model is not asked over HTTP loads no part of that way.
    from ..providers.retries import Retries
    from ..providers.timeouts import Timeouts

__all__ = [
    "AgentOptions",
    "Predicate",
    "RunOptions",
    "StopInput",
    "ToolInput",
    "Tools",
]

ToolInput: TypeAlias = AnyTool | AgentTool | Callable[..., object]
Tools: TypeAlias = Sequence[ToolInput] | Mapping[str, ToolInput]
Predicate: TypeAlias = Callable[[StopInfo], bool | Awaitable[bool]]
StopInput: TypeAlias = Condition | Predicate | Sequence[Condition | Predicate]


class RunOptions(TypedDict, total=False):
    """Options of every run.

    `tools`: functions, `Tool` objects, or a mapping of name to either.
    `instructions`: the system message, put before the conversation.
    `max_tokens`, `temperature`, `top_p`, `stop_sequences`, `seed`: sampling; unset is the
    server's default.
    `provider_options`: JSON fields merged into each request body as they are.
    `gate`: who may call what: `allow(…) | ask(…) | deny(…)`; the first rule that matches decides,
    and what none matches is denied. Holds for the agents that the run calls, too.
    `approve_tool_call`: decides about calls of tools that need approval: True, False, or an
    `Approval`; without it such a call parks the run.
    `approval_ttl_s`: for how many seconds an approval may be given (default: for ever).
    `approval_secret`: signs the tokens of approvals, so that only what was asked can be approved.
    It does not keep out a party that can write the store: that party can approve.
    `budget`: what the run and its children may spend (`graphloop.budget`).

    `rules`: temporal rules (`graphloop.temporal`), kept while the run goes on: a call that one
    forbids is denied, with the rule named to the model. Child runs are denied the tools they name.
    `max_agent_depth`: how many agents may stand below the run (default 2); agents that are deeper
        are refused, unless it is given.
    `step_timeout_s`: after how many seconds a turn, its tools included, is given up; the time of
    an agent that it waits for counts by that agent's own limit.
    `on_bad_history`: `"repair"` (default) or `"refuse"` a conversation with calls that have no
    result, or results that have no call.
    `agents`: agents by name, for the `Child` nodes of a graph of your own.
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
    agents: Mapping[str, AgentTool]
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
    `run_ungated`: whether calls that wait for nobody run before a human is asked about the others
    of their turn; by default the whole turn waits.
    `fallback_models`: asked in order, call by call, when a model cannot be asked.
    `output_type`: the type of the final answer: a pydantic model, any type, or a JSON Schema.
    `output_mode`: `"native"` has the server keep to the type, `"tool"` adds a tool that takes the
    answer, `"auto"` (default) chooses by the model's wire and by what its server takes.
    `max_output_retries`: how often an answer that is not of the type is sent back (default 2).
    `done_when`: says of `AnswerInfo` whether the work is done; False sends the model back.
    `max_done_retries`: how often that may be (default 2); then the answer is taken, and
    `stopped_by` says `false_finish`.
    `verify`: judges an answer: a `Verdict`, or whether it is good.
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
    verify: Callable[[AnswerInfo], bool | Verdict | Awaitable[bool | Verdict]] | None
    max_verify_retries: int
    compaction: Compaction | None
    compact: Callable[[StepInfo], Sequence[MessageInput] | Awaitable[Sequence[MessageInput]]] | None
    tool_choice: ChoiceInput
    active_tools: Sequence[str] | None
    prepare_step: Callable[[StepInfo], StepChanges | Awaitable[StepChanges | None] | None] | None
