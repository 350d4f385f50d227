"""Tools: functions that a model can call, checked before they run.

A `Tool` is a name, a description, parameters and, if this process runs it, an executor. `validate`
returns the message for a model about wrong arguments; `run` executes a call; `reconciled` looks up
a call whose process stopped. They answer for every `Exception`; only cancellation and the
interpreter's own exits pass through.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from hashlib import sha256
from threading import Event
from typing import Final, Generic, Literal, TypeAlias, Unpack, cast, final, overload

import pydantic
from msgspec import Struct
from pydantic import BaseModel
from typing_extensions import ParamSpec, TypeVar

from ..errors import ToolDefinitionError
from ..values import Message, ToolKind, ToolSpec, evolve
from .execution import UNREAD, awaited, caller, execute_call, look_up, raised, yes_or_no
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
    kind_of,
    reject_unknown,
    tool_policy_of,
)
from .outcome import ToolOutcome, rejection, result_content
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
R_co = TypeVar("R_co", default=object, covariant=True)
Q = ParamSpec("Q")
T = TypeVar("T")

NEVER: Final = Event()
"""The `aborted` of calls without a thread: the driver cancels those."""


class ToolContext(Struct, frozen=True):
    """The call that a tool serves, for a parameter of this type.

    `key` is graphloop's own key of the call, unique in its run; `call_id` the provider's id, which
    may repeat; `messages` the conversation up to this turn's calls; `path` the keys of the calls,
    outermost first, that started the parent agents of this run. A tool with
    `thread=True`, which cannot be cancelled, finds `aborted` set once its call is given up.
    """

    run_id: str
    key: str
    call_id: str
    turn: int
    messages: Sequence[Message]
    path: tuple[str, ...] = ()
    aborted: Event = NEVER

    def of_a_thread(self) -> ToolContext:
        """Return the context for a call in its own thread."""
        return evolve(self, aborted=Event())

    @property
    def idempotency_key(self) -> str:
        """A key that only the attempts at this call share."""
        return sha256(f"{self.run_id}\0{self.key}".encode()).digest()[:16].hex()


@final
class Tool(Generic[P, R_co]):
    """A tool, immutable; without `execute` the caller answers its calls.

    `parameters` is a pydantic model class (`execute` gets an instance of it) or a JSON Schema
    (`execute` gets a dict). If `execute` takes a second parameter, it gets the `ToolContext`.
    A tool can be called like its executor, which neither checks nor catches anything.

    A `kind` is for other tools: the driver runs an `agent` as a child; the model's server runs a
    `provider` tool, by its `definition` and under the name in it.

    Raises:
        ToolDefinitionError: the name, the parameters or an option cannot work.
    """

    __slots__ = ("_call", "_execute", "_options", "_parameters", "policy", "spec")

    def __init__(
        self,
        *,
        name: str,
        description: str = "",
        parameters: type[BaseModel] | Mapping[str, object] | Parameters,
        execute: Callable[P, R_co] | None = None,
        kind: ToolKind | None = None,
        definition: Mapping[str, object] | None = None,
        **options: Unpack[ToolOptions],
    ) -> None:
        """Check and compile now, so that a call costs little."""
        place = f"tool {name!r}"
        check_name(name)
        own_kind = kind_of(kind, execute, place)
        self._options = options
        self.policy: Final[ToolPolicy] = tool_policy_of(options, own_kind, execute, place)
        self._parameters = parameters_of(parameters, place)
        self._execute = execute
        self._call = None if execute is None else caller(execute, self._parameters, place)
        self.spec: Final = ToolSpec(
            name,
            description,
            self._parameters.schema,
            own_kind,
            ends=self.policy.ends_run,
            definition=definition_text(own_kind, definition, name),
            lock=self.policy.lock(name),
        )

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R_co:
        """Call the executor itself, as the user's own tests do."""
        if self._execute is None:
            raise ToolDefinitionError(
                f"{self.spec.kind} tool {self.name!r} cannot be called: it has no `execute`. "
                "Fix: give it one, or answer its calls from outside."
            )
        return self._execute(*args, **kwargs)

    def __repr__(self) -> str:
        """Name the tool."""
        return f"Tool({self.name!r})"

    @property
    def name(self) -> str:
        """The name the model calls it by."""
        return self.spec.name

    @property
    def needs_approval(self) -> Approval:
        """Whether a human approves calls: always, never, or as a predicate decides."""
        return self.policy.needs_approval

    @property
    def effect(self) -> EffectPolicy:
        """Whether a call that a dead process started may run again."""
        return self.policy.effect

    def renamed(self, name: str) -> Tool[P, R_co]:
        """Return the same tool under another name.

        Raises:
            ToolDefinitionError: the name is not legal, or the provider's own.
        """
        return Tool(
            name=name,
            description=self.spec.description,
            parameters=self._parameters,
            execute=self._execute,
            kind=self.spec.kind,
            definition=json.loads(text) if (text := self.spec.definition) else None,
            **self._options,
        )

    def validate(self, arguments: str) -> str | None:
        """Return the message about wrong arguments, or None."""
        return self.read(arguments)[1]

    def read(self, arguments: str) -> tuple[object, str | None]:
        """Return the parsed arguments, and the answer of `validate` about them."""
        try:
            return self._parameters.parse(arguments), None
        except Exception as error:  # noqa: BLE001 - validators are user code: the boundary.
            return UNREAD, rejection(self.spec.name, arguments, error)

    async def holds(
        self, condition: Callable[..., object], arguments: str, context: ToolContext
    ) -> bool:
        """Whether a user's function of (arguments, context) is true of this call.

        Raises:
            Exception: the function, or the parser of the arguments, raised it.
            ConfigError: the function answers neither True nor False.
        """
        return yes_or_no(await awaited(condition(self._parameters.parse(arguments), context)))

    async def run(self, arguments: str, context: ToolContext, read: object = UNREAD) -> ToolOutcome:
        """Execute a call with its read arguments; never raises an `Exception`.

        A plain function blocks the event loop unless the tool has `thread=True`. A thread, or a
        function that swallows its cancellation, cannot be stopped: it runs on, and its answer is
        ignored.
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
            result = call(read, context)
            if isinstance(result, Awaitable):
                result = await cast("Awaitable[object]", result)  # isinstance cannot tell of what.
            return ToolOutcome(result_content(result, policy.result_chars_max), "ok")
        except Exception as error:  # noqa: BLE001 - a tool is user code: the boundary.
            return raised(context.run_id, self.name, error)

    async def reconciled(
        self, arguments: str, context: ToolContext
    ) -> ToolOutcome | Literal["not_done", "unknown"]:
        """Return the fate of a call that started before its process stopped.

        That is its outcome if the call took effect, "not_done" if it may run (again), else
        "unknown". Fails closed: a lookup that raises, is too slow (`timeout_s`) or answers anything
        but `Found` and `NOT_DONE` leaves the call unknown.
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
            return ToolOutcome(result_content(answer.result, policy.result_chars_max), "ok")
        # By identity: a lookup may return an object that calls itself equal to everything.
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

    The name is the function's; the description its docstring's first paragraph; the parameters
    come from its annotations, their descriptions from the docstring's `Args:`. A parameter
    annotated `ToolContext` is filled in and not shown to the model.

    Raises:
        ToolDefinitionError: the function cannot be described to a model; says where and why.
    """
    reject_unknown(options, "tool(…)")

    def define(function: Callable[Q, T]) -> Tool[Q, T]:
        parameters = function_parameters(function, ToolContext)
        return Tool(
            name=getattr(function, "__name__", "") if name is None else name,
            description=parameters.summary if description is None else description,
            parameters=parameters,
            execute=function,
            **options,
        )

    return define if function is None else define(function)


AnyTool: TypeAlias = Tool[..., object]


UNKNOWN_HERE: Final = "The parameters of a provider's tool: only its server knows them."


def provider_tool(definition: Mapping[str, object]) -> AnyTool:
    """Return a tool that the model's server runs, by its definition.

    No call of it reaches this process.

    Raises:
        ToolDefinitionError: it is not JSON, or has no `type` or no legal `name`.
    """
    name = definition.get("name")
    if not isinstance(name, str):
        raise ToolDefinitionError(
            f"provider_tool: expected a definition with a 'type' and a 'name', found "
            f"{definition!r}. Fix: copy it from the provider's page."
        )
    # Made here: the import of every agent would wait for pydantic's maker of models.
    parameters = pydantic.create_model("Unknown", __doc__=UNKNOWN_HERE)
    return Tool(name=name, parameters=parameters, kind="provider", definition=definition)
