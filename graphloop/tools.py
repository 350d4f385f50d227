"""Tools: functions a model can call, checked before they run and answered whatever happens.

A `Tool` is a name, a description, parameters and, unless somebody else runs it, an executor
(CONTRACT §3.1). `validate` tells what the model did wrong; `holds` whether a function of the user's
is true of a call; `run` executes one; `reconciled` tells what became of one whose process stopped.
They answer for every `Exception`; only cancellation and the interpreter's own exits pass through.
A `Toolbox` holds the tools of one run, by name.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from hashlib import sha256
from threading import Event
from typing import Final, Generic, Literal, TypeAlias, Unpack, cast, final, overload

from msgspec import Struct
from pydantic import BaseModel
from typing_extensions import ParamSpec, TypeVar

from .callables import awaited, caller, yes_or_no
from .errors import ToolDefinitionError
from .parameters import Parameters
from .schemas import parameters_of
from .signatures import function_parameters
from .tool_effects import NOT_DONE, REPEATABLE, EffectPolicy, Found
from .tool_execution import UNREAD, execute_call, look_up, raised
from .tool_kinds import definition_text, kind_of
from .tool_name import check_name
from .tool_options import Approval, Policy, ToolOptions, policy_of, reject_unknown
from .tool_outcome import ToolOutcome, rejection, result_content
from .values import Message, ToolKind, ToolSpec, evolve

__all__ = [
    "UNREAD",
    "AnyTool",
    "Approval",
    "Tool",
    "ToolContext",
    "ToolOptions",
    "ToolOutcome",
    "Toolbox",
    "tool",
]

P = ParamSpec("P", default=...)
R_co = TypeVar("R_co", default=object, covariant=True)
Q = ParamSpec("Q")
T = TypeVar("T")

NEVER: Final = Event()
"""The `aborted` of calls that are cancelled when they are given up."""


class ToolContext(Struct, frozen=True):
    """What a tool may know of the call it serves; a parameter of this type receives it.

    `key` is graphloop's own key of the call, unique in its run; `call_id` the provider's id, which
    may repeat; `messages` the conversation up to this turn's calls; `path` the keys of the calls,
    outermost first, that started the agents above this run (CONTRACT §3.4). A tool with
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
        """Return the context for a call in a thread of its own, which may be given up."""
        return evolve(self, aborted=Event())

    @property
    def idempotency_key(self) -> str:
        """The same for each attempt at this call, and for no other: for services that ask."""
        return sha256(f"{self.run_id}\0{self.key}".encode()).digest()[:16].hex()


@final
class Tool(Generic[P, R_co]):
    """One tool; immutable. Without `execute` it is a client tool: others answer its calls.

    `parameters` is a pydantic model class (`execute` gets an instance of it) or a JSON Schema
    (`execute` gets a dict). If `execute` takes a second parameter, it gets the `ToolContext`.
    A tool can be called like its executor, which neither checks nor catches anything.

    A `kind` is for what is neither: an `agent` is run as a child by the driver, a `provider` tool
    by the model's server, by its `definition` and under the name that stands there.

    Raises:
        ToolDefinitionError: the name, the parameters or an option cannot work.
    """

    __slots__ = ("_call", "_execute", "_options", "_parameters", "_policy", "_spec")

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
        """Check and compile everything now, so that a call costs next to nothing."""
        place = f"tool {name!r}"
        check_name(name)
        if not isinstance(description, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ToolDefinitionError(
                f"{place}: description must be a string, found {description!r}. Fix: quote it."
            )
        own_kind = kind_of(kind, execute, place)
        self._options = options
        self._policy = policy_of(options, own_kind, execute, place)
        self._parameters = parameters_of(parameters, place)
        self._execute = execute
        self._call = None if execute is None else caller(execute, self._parameters, place)
        self._spec = ToolSpec(
            name,
            description,
            self._parameters.schema,
            own_kind,
            ends=self._policy.ends_run,
            definition=definition_text(own_kind, definition, name),
            lock=self._policy.lock(name),
        )

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R_co:
        """Call the executor itself, as the user's own tests do."""
        if self._execute is None:
            raise ToolDefinitionError(
                f"{self._spec.kind} tool {self.name!r} cannot be called: it has no `execute`. "
                "Fix: give it one, or answer its calls from outside."
            )
        return self._execute(*args, **kwargs)

    def __repr__(self) -> str:
        """Name the tool."""
        return f"Tool({self.name!r})"

    @property
    def name(self) -> str:
        """The name the model calls it by."""
        return self._spec.name

    @property
    def spec(self) -> ToolSpec:
        """The tool as a model sees it."""
        return self._spec

    @property
    def needs_approval(self) -> Approval:
        """Whether calls need a human's consent: always, never, or as a predicate decides."""
        return self._policy.needs_approval

    @property
    def effect(self) -> EffectPolicy:
        """What may be done about a call that a dead process had begun (DURABLE §6.4)."""
        return self._policy.effect

    @property
    def lock_key(self) -> str:
        """No two calls of tools with the same key run at once; "" for any number of them."""
        return self._spec.lock

    @property
    def policy(self) -> Policy:
        """How it is run: its options, with their defaults."""
        return self._policy

    def renamed(self, name: str) -> Tool[P, R_co]:
        """Return the same tool under another name.

        Raises:
            ToolDefinitionError: the name is not legal, or the provider's own.
        """
        return Tool(
            name=name,
            description=self._spec.description,
            parameters=self._parameters,
            execute=self._execute,
            kind=self._spec.kind,
            definition=json.loads(text) if (text := self._spec.definition) else None,
            **self._options,
        )

    def validate(self, arguments: str) -> str | None:
        """Return None if a call with these arguments may run, else the message for the model."""
        return self.read(arguments)[1]

    def read(self, arguments: str) -> tuple[object, str | None]:
        """Return what these arguments come to, and what `validate` says of them."""
        try:
            return self._parameters.parse(arguments), None
        except Exception as error:  # noqa: BLE001 - validators are user code: the boundary.
            return UNREAD, rejection(self._spec.name, arguments, error)

    async def holds(
        self, condition: Callable[..., object], arguments: str, context: ToolContext
    ) -> bool:
        """Whether a function of (arguments, context) is true of this call.

        Raises:
            Exception: what the function raises, or reading the arguments.
            ConfigError: it answers neither True nor False.
        """
        return yes_or_no(await awaited(condition(self._parameters.parse(arguments), context)))

    async def run(self, arguments: str, context: ToolContext, read: object = UNREAD) -> ToolOutcome:
        """Execute a call, with what `read` made of its arguments; never raises an `Exception`.

        A plain function blocks the event loop unless the tool has `thread=True`. What cannot be
        stopped, a thread or what keeps its cancellation to itself, runs on unheard.
        """
        if read is UNREAD:
            read, problem = self.read(arguments)
            if problem is not None:
                return ToolOutcome(problem, "invalid")
        call, policy = self._call, self._policy
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
            return raised(self.name, error)

    async def reconciled(
        self, arguments: str, context: ToolContext
    ) -> ToolOutcome | Literal["not_done", "unknown"]:
        """Tell what became of a call that had begun when its process stopped (DURABLE §6.4).

        Returns the outcome if the call took effect, "not_done" if it may run (again), else
        "unknown". Fails closed: a lookup that raises, is too slow (`timeout_s`) or answers anything
        but `Found` and `NOT_DONE` leaves the call unknown.
        """
        policy = self._policy
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
        # By identity: whatever else a lookup returns may call itself equal to anything.
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
    """Make a tool of a plain or async function, as `@tool` or `@tool(needs_approval=True)`.

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


@final
class Toolbox:
    """The tools of one run, by name. Functions become tools; a mapping's keys rename its tools.

    Raises:
        ToolDefinitionError: two tools share a name (all such names are told), or something is
            neither a tool nor a function.
    """

    __slots__ = ("_added", "_specs", "_tools")

    # Two signatures, because mypy cannot infer a dictionary of tools against a union with Iterable.
    @overload
    def __init__(self, tools: Mapping[str, Callable[..., object]]) -> None: ...
    @overload
    def __init__(self, tools: Iterable[Callable[..., object]] = ()) -> None: ...
    def __init__(self, tools: object = ()) -> None:
        """Wrap, rename and index the tools."""
        every = _tools_of(tools)
        counts = Counter(one.name for one in every)
        twice = [repr(name) for name, count in counts.items() if count > 1]
        if twice:
            raise ToolDefinitionError(
                f"tools: names must be unique, found more than one tool named {', '.join(twice)}. "
                "Fix: rename them with a mapping, {'name': tool}."
            )
        self._tools = {one.name: one for one in every}
        self._specs = tuple(one.spec for one in every)
        self._added: dict[str, AnyTool] = {}

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        """The tools as a model sees them, in the order they were given."""
        return self._specs

    def get(self, name: str) -> AnyTool | None:
        """Return the tool of this name, or None."""
        return self._tools.get(name)

    @property
    def added(self) -> tuple[AnyTool, ...]:
        """The tools that were taken in later."""
        return tuple(self._added.values())

    def copy(self) -> Toolbox:
        """Return a toolbox with the same tools, which can grow by itself."""
        same = Toolbox()
        same._tools, same._specs = dict(self._tools), self._specs
        return same

    def add(self, tools: Iterable[Callable[..., object]]) -> tuple[AnyTool, ...]:
        """Take in tools and return them; one that has the name of another takes its place.

        Raises:
            ToolDefinitionError: as when a toolbox is made; nothing is taken in.
        """
        new = Toolbox(tools)
        self._tools |= new._tools
        self._added |= new._tools
        self._specs = tuple([one.spec for one in self._tools.values()])
        return tuple(new._tools.values())


def _tools_of(given: object) -> list[AnyTool]:
    if isinstance(given, Mapping):
        named = cast("Mapping[str, object]", given)
        return [_tool_of(one, name) for name, one in named.items()]
    if isinstance(given, Iterable):
        return [_tool_of(one) for one in cast("Iterable[object]", given)]
    raise ToolDefinitionError(
        f"tools: expected an iterable or a mapping of tools, found {given!r}. "
        "Fix: put it in a list."
    )


def _tool_of(given: object, name: str | None = None) -> AnyTool:
    if isinstance(given, Tool):
        known = cast("AnyTool", given)  # isinstance cannot tell the type parameters.
        return known if name is None else known.renamed(name)
    if callable(given):
        return tool(given, name=name)
    fix = ".as_tool(…) makes a tool of it" if hasattr(given, "as_tool") else "use @tool or Tool(…)"
    raise ToolDefinitionError(f"tools: expected tools and functions, found {given!r}. Fix: {fix}.")
