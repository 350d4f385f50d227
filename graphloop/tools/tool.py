"""Tools: functions that a model can call, checked before they run.

A `Tool` has a name, a description, parameters and, if this process runs it, an `execute` function.
`validate` returns the message for a model about wrong arguments. `run` executes a call.
`reconciled` looks up a call whose process stopped. They turn each `Exception` of user code into an
answer; only cancellation and the interpreter's own exits pass through.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import cached_property
from threading import Event
from typing import Final, Generic, Literal, Self, TypeAlias, Unpack, cast, final, overload

import pydantic
from msgspec import Struct
from typing_extensions import ParamSpec, TypeVar

from ..effects import ToolAnswer
from ..errors import ToolDefinitionError
from ..values import Message, ToolKind, ToolSpec, evolve, idempotency_key
from .dependencies import Closable, deps_wanted, kept_open
from .execution import UNREAD, awaited, caller, execute_call, look_up, raised, yes_or_no
from .needs import CallSpending
from .options import (
    NOT_DONE,
    REPEATABLE,
    Approval,
    EffectPolicy,
    Found,
    ToolOptions,
    ToolPolicy,
    check_name,
    definition_text,
    json_of,
    kind_of,
    refuse_unknown,
    tool_policy_of,
)
from .outcome import ToolOutcome, outcome_of_value, rejection
from .progress import ProgressReports, Yielding
from .schema import Parameters, parameters_of
from .signature import function_parameters

__all__ = [
    "UNREAD",
    "AnyTool",
    "Approval",
    "Tool",
    "ToolContext",
    "ToolOptions",
    "ToolOutcome",
    "provider_tool",
    "tool",
]

P = ParamSpec("P", default=...)
DepsT_co = TypeVar("DepsT_co", default=object, covariant=True)
R_co = TypeVar("R_co", default=object, covariant=True)
Q = ParamSpec("Q")
T = TypeVar("T")

NEVER: Final = Event()  # The `aborted` event of calls without a thread: the driver cancels them.


class ToolContext(Struct, Generic[DepsT_co], frozen=True):
    """Facts about the call that a tool runs; a tool parameter of this type receives them.

        @tool
        async def refund(order: int, context: ToolContext[Deps]) -> str:
            return await context.deps.bank.refund(order)

    `key` is graphloop's own key of the call, unique in its run. `call_id` is the provider's id,
    which may repeat. `messages` is the conversation up to this turn's calls. `path` has the keys
    of the calls that started this run and its parent runs, outermost first. `aborted` is set when a
    call with `thread=True` exceeds its time limit or is cancelled: a thread cannot be stopped.
    `deps` is the object that the caller gave this run; a plain `ToolContext` reads no `deps`.
    `report` tells the readers of the run's stream how far the call is. `answer` answers a question
    of an earlier `ToolAsks`, and `meter` counts models that the tool asks. A test of the function
    gives what it reads: `ToolContext(deps=Deps(bank))`.
    """

    run_id: str = ""
    key: str = ""
    call_id: str = ""
    turn: int = 0
    messages: Sequence[Message] = ()
    path: tuple[str, ...] = ()
    deps: DepsT_co = cast("DepsT_co", None)
    reports: ProgressReports | None = None
    answer: ToolAnswer | None = None
    meter: Callable[[], CallSpending] | None = None
    aborted: Event = NEVER

    def __repr__(self) -> str:
        return f"ToolContext(run_id={self.run_id!r}, key={self.key!r}, turn={self.turn})"

    def of_a_thread(self) -> Self:
        """Return a copy for a call in a thread, with an `aborted` event of its own."""
        return evolve(self, aborted=Event())

    def report(self, done: float, total: float | None = None, message: str = "") -> Awaitable[None]:
        """Tell the readers of the run's stream how far the call is, by a `tool-progress` part.

            for page in range(40):
                await context.report(page, 40, "reading")

        A plain function calls `report` without `await`, also in a thread. Readers get at most 20
        parts a second, and always the last one. Without a reader, the call has no effect.

        Args:
            done: the amount done, in the tool's own unit.
            total: the amount to do; None if it is unknown.
            message: a text for people.

        Raises:
            ConfigError: `done` or `total` is not a number.
        """
        if self.reports is not None:
            self.reports.tell(done, total, message)
        return Yielding()

    @property
    def idempotency_key(self) -> str:
        """A key that is equal for all attempts at this call, and differs for every other call."""
        return idempotency_key(self.run_id, self.key)


@final
class Tool(Generic[P, R_co]):
    """An immutable tool; without `execute`, the application answers its calls.

    `parameters` is a pydantic model class (`execute` gets an instance of it) or a JSON Schema
    (`execute` gets a dict). If `execute` takes a second parameter, it gets the `ToolContext`.
    Calling the tool calls `execute` directly: arguments are not checked, exceptions pass through.

    `kind` is for tools that are not functions. The driver runs an "agent" tool as a child run. The
    model's server runs a "provider" tool, by its `definition`, which only the wire format `wire`
    sends (`provider_tool`).

    Raises:
        ToolDefinitionError: the name, the parameters or an option is not valid.
    """

    def __init__(  # noqa: PLR0913 - a provider's tool has two fields more than a function
        self,
        *,
        name: str,
        description: str | None = None,
        parameters: type[pydantic.BaseModel] | Mapping[str, object] | Parameters,
        execute: Callable[P, R_co] | None = None,
        kind: ToolKind | None = None,
        definition: Mapping[str, object] | None = None,
        wire: str = "",
        **options: Unpack[ToolOptions],
    ) -> None:
        """Check the options and the parameters once, so that a call costs little."""
        place = f"tool {name!r}"
        check_name(name)
        own_kind = kind_of(kind, execute, place)
        self.name: Final = name
        self._description = description
        self._options = options
        self.policy: Final[ToolPolicy] = tool_policy_of(options, own_kind, execute, place)
        self._parameters = parameters_of(parameters, place)
        self._execute = execute
        self._call = None if execute is None else caller(execute, self._parameters, place)
        self._kind: ToolKind = own_kind
        self._wire = wire
        self._definition = definition_text(own_kind, definition, name, wire) or json_of(
            self.policy.provider_options, f"{place}: provider_options"
        )

    @cached_property
    def spec(self) -> ToolSpec:
        """The tool as a model's request describes it; made when it is first needed."""
        return ToolSpec(
            self.name,
            self._parameters.summary if self._description is None else self._description,
            self._parameters.schema,
            self._kind,
            ends=self.policy.ends_run,
            definition=self._definition,
            lock=self.policy.lock(self.name),
            wire=self._wire,
            server=self.policy.server,
        )

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R_co:
        """Call `execute` with these arguments, unchecked, as a test of the function does."""
        if self._execute is None:
            raise ToolDefinitionError(
                f"{self._kind} tool {self.name!r} cannot be called: it has no `execute`. "
                "Fix: give it one, or answer its calls from outside."
            )
        return self._execute(*args, **kwargs)

    def __repr__(self) -> str:
        """Return `Tool('name')`."""
        return f"Tool({self.name!r})"

    @property
    def needs_approval(self) -> Approval:
        """Whether a human must approve calls: True, False, or a predicate of the call."""
        return self.policy.needs_approval

    @property
    def effect(self) -> EffectPolicy:
        """Whether a call that had started when its process stopped may run again."""
        return self.policy.effect

    @cached_property
    def deps_type(self) -> object:
        """The type of `deps` that the tool's functions read; `object` if they read none."""
        # The parameters of a `@tool` function name the type already.
        execute = None if self._parameters.keywords else self._execute
        functions = (execute, self.policy.needs_approval)
        wanted = [deps_wanted(each, ToolContext, 1) for each in functions if callable(each)]
        return next((one for one in (self._parameters.deps, *wanted) if one is not object), object)

    @property
    def kept_open(self) -> Closable | None:
        """The object that the function keeps open between calls; `Agent.aclose` closes it."""
        return kept_open(self._execute)

    def renamed(self, name: str) -> Tool[P, R_co]:
        """Return a copy of the tool under another name.

        Raises:
            ToolDefinitionError: the name is not legal, or the provider has fixed the tool's name.
        """
        return Tool(
            name=name,
            description=self._description,
            parameters=self._parameters,
            execute=self._execute,
            kind=self._kind,
            definition=json.loads(self._definition) if self._kind == "provider" else None,
            wire=self._wire,
            **self._options,
        )

    def validate(self, arguments: str) -> str | None:
        """Return the message for the model about wrong arguments; None if they are valid."""
        return self.read(arguments)[1]

    def read(self, arguments: str) -> tuple[object, str | None]:
        """Return the parsed arguments and None, or `UNREAD` and the message for the model."""
        try:
            return self._parameters.parse(arguments), None
        except Exception as error:  # noqa: BLE001 - validators are user code: the boundary.
            return UNREAD, rejection(self.name, arguments, error)

    async def holds(
        self, condition: Callable[..., object], arguments: str, context: ToolContext
    ) -> bool:
        """Whether a user's predicate of (arguments, context) returns True for this call.

        Raises:
            Exception: the error of the predicate, or of the parser of the arguments.
            ConfigError: the predicate returned neither True nor False.
        """
        return yes_or_no(await awaited(condition(self._parameters.parse(arguments), context)))

    async def run(self, arguments: str, context: ToolContext, read: object = UNREAD) -> ToolOutcome:
        """Execute a call and return its outcome; the only `Exception` that it raises is `ToolAsks`.

        `read` has the parsed arguments, if the caller has parsed them already. A plain function
        blocks the event loop unless the tool has `thread=True`. A thread, or a function that
        ignores its cancellation, cannot be stopped: it runs on, and its result is ignored.
        """
        if read is UNREAD:
            read, problem = self.read(arguments)
            if problem is not None:
                return ToolOutcome(problem, "invalid")
        call, policy = self._call, self.policy
        if call is None:
            return ToolOutcome(f"Tool {self.name!r} is not run in this process.", "not_run")
        try:
            if policy.timeout_s is not None or policy.thread:
                return await execute_call(self.name, call, policy, read, context)
            answer = call(read, context)
            result: object = await answer if inspect.isawaitable(answer) else answer
            return outcome_of_value(result, policy.result_chars_max)
        except Exception as error:  # noqa: BLE001 - a tool is user code: the boundary.
            return raised(context.run_id, self.name, error, policy.result_chars_max)

    async def reconciled(
        self, arguments: str, context: ToolContext
    ) -> ToolOutcome | Literal["not_done", "unknown"]:
        """Find out whether a call took effect whose process stopped before its result was kept.

        Returns the outcome if the call took effect, "not_done" if the call may run (again), and
        otherwise "unknown". A lookup that raises, exceeds `timeout_s`, or returns anything but
        `Found` and `NOT_DONE` gives "unknown".
        """
        policy = self.policy
        if policy.effect in REPEATABLE:
            return "not_done"
        if policy.reconcile is None:
            return "unknown"
        try:
            value = self._parameters.parse(arguments)
            answer = await look_up(policy.reconcile, policy, value, context)
        except Exception:  # noqa: BLE001 - a lookup is user code: the boundary.
            return "unknown"
        if isinstance(answer, Found):
            return outcome_of_value(answer.result, policy.result_chars_max)
        # Not `==`: a lookup may return an object whose `__eq__` is always true.
        return "not_done" if answer is NOT_DONE else "unknown"


@overload
def tool(
    function: Callable[Q, T],
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    **options: Unpack[ToolOptions],
) -> Tool[Q, T]: ...
@overload
def tool(
    *,
    name: str | None = None,
    description: str | None = None,
    **options: Unpack[ToolOptions],
) -> Callable[[Callable[Q, T]], Tool[Q, T]]: ...
def tool(
    function: Callable[Q, T] | None = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    **options: Unpack[ToolOptions],
) -> Tool[Q, T] | Callable[[Callable[Q, T]], Tool[Q, T]]:
    """Make a tool of a function, as `@tool` or `@tool(needs_approval=True)`.

    By default the tool has the function's name, and the docstring's first paragraph as its
    description. The parameters come from the annotations, and their descriptions from the
    docstring's `Args:`. A parameter annotated `ToolContext` is hidden from the model; the driver
    passes its value.

    Raises:
        ToolDefinitionError: the function cannot be described to a model; the message says why.
    """
    refuse_unknown(options, "tool(…)")

    def define(function: Callable[Q, T]) -> Tool[Q, T]:
        parameters = function_parameters(function, ToolContext)
        return Tool(
            name=getattr(function, "__name__", "") if name is None else name,
            description=description,
            parameters=parameters,
            execute=function,
            **options,
        )

    return define if function is None else define(function)


AnyTool: TypeAlias = Tool[..., object]


def provider_tool(
    definition: Mapping[str, object], *, name: str | None = None, wire: str = ""
) -> AnyTool:
    """Return a tool that the model's server runs, from the provider's JSON definition.

        search = provider_tool({"type": "web_search"}, wire="openai-responses")
        search = provider_tool({"google_search": {}}, wire="google")

    Calls of the tool never reach this process. A model on a wire format that does not take the
    definition refuses the tool before a request is sent.

    Args:
        definition: the tool as the provider's page describes it; it is sent unchanged.
        name: the tool's name in this program, where the definition has none; by default the
            definition's `name`, its `type`, or its only field.
        wire: the name of the wire format that the definition belongs to; by default every wire
            format that knows its form sends it.

    Raises:
        ToolDefinitionError: the definition is empty or not JSON, or the name is not legal.
    """
    known = definition.get("name", definition.get("type", next(iter(definition), None)))
    called = known if name is None else name
    if not isinstance(called, str):
        raise ToolDefinitionError(
            f"provider_tool: expected a definition with a 'name', a 'type' or one field of the "
            f"tool's name, found {definition!r}. Fix: copy it from the provider's page."
        )
    doc = "The parameters of a provider's tool: only its server knows them."
    parameters = pydantic.create_model("Unknown", __doc__=doc)
    return Tool(
        name=called, parameters=parameters, kind="provider", definition=definition, wire=wire
    )
