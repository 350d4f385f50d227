"""The tools of one run, by name, in the order given.

Two given tools of one name are refused; a tool that is added later replaces a tool of its name.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Container, Iterable, Mapping
from typing import Any, Final, Protocol, cast, final, overload, runtime_checkable

from ..effects import AskHuman, CallTool, ToolAnswer
from ..errors import ToolDefinitionError
from ..run import Run
from ..values import ToolSpec
from .tool import AnyTool, Tool, ToolContext
from .tool import tool as make_tool

__all__ = ["Toolbox", "Withdraws"]

LOG: Final = logging.getLogger("graphloop")
WITHDRAW_S: Final = 5.0
"""The seconds that the end of a run waits for tools to end what goes on elsewhere."""


@runtime_checkable
class Withdraws(Protocol):
    """The `kept_open` of a function whose calls go on elsewhere while their runs park.

    An agent on another machine is such an object.
    """

    async def withdraw(self, context: ToolContext) -> None:
        """End a call whose run ends before the call has a result.

        Args:
            context: the call, with its last question and state in `answer`; None if it had none.
        """
        ...


@final
class Toolbox:
    """The tools of one run, by name.

    Functions become tools. The keys of a mapping become the names of its tools. `get` returns the
    tool with a name, or None. `specs` has the tools as a model sees them, in the order given.
    `added` has the tools that `add` has added.

    Raises:
        ToolDefinitionError: two tools share a name, or an item is neither a tool nor a function.
    """

    __slots__ = ("_tools", "added", "get", "specs")

    # Two signatures, because mypy cannot infer a dictionary of tools against a union with Iterable.
    @overload
    def __init__(self, tools: Mapping[str, Callable[..., object]]) -> None: ...
    @overload
    def __init__(self, tools: Iterable[Callable[..., object]] = ()) -> None: ...
    def __init__(self, tools: object = ()) -> None:
        """Wrap functions as tools, rename the tools of a mapping, and index all tools by name."""
        own = _tools_of(tools)
        counts = Counter(tool.name for tool in own)
        twice = [repr(name) for name, count in counts.items() if count > 1]
        if twice:
            raise ToolDefinitionError(
                f"tools: names must be unique, found more than one tool named {', '.join(twice)}. "
                "Fix: rename them with a mapping, {'name': tool}, or give an MCP server a `prefix`."
            )
        self._tools = {tool.name: tool for tool in own}
        self.get = self._tools.get  # A turn asks for its tools several times.
        self.specs: tuple[ToolSpec, ...] = tuple([tool.spec for tool in own])
        self.added: tuple[AnyTool, ...] = ()

    @property
    def tools(self) -> tuple[AnyTool, ...]:
        """All tools, in order."""
        return tuple(self._tools.values())

    def copy(self) -> Toolbox:
        """Return a copy with the same tools; tools added to the copy stay out of the original."""
        same = object.__new__(Toolbox)
        same._tools, same.specs, same.added = self._tools, self.specs, ()
        same.get = self.get
        return same

    async def withdraw(self, run: Run[Any], unstarted: Container[int]) -> None:
        """End what the pending calls of a run have begun elsewhere; a failure is only logged.

        Args:
            run: the run, which ends before these calls have results.
            unstarted: the ids of calls that have not started.
        """
        calls = [
            effect
            for effect in run.pending.values()
            if isinstance(effect, CallTool | AskHuman) and effect.id not in unstarted
        ]
        for call in calls:
            tool = self._tools.get(call.call.name)
            held = None if tool is None else tool.kept_open
            if not isinstance(held, Withdraws):
                continue
            if isinstance(call, CallTool):
                answer = call.answer
            elif call.question is None and not call.unknown:
                continue  # A gate asks about it: the call has not started.
            else:
                asked = call.question
                answer = None if asked is None else ToolAnswer(asked, approved=False)
            context = ToolContext(run.id, call.key, call.call.id, run.turn.number, answer=answer)
            try:
                async with asyncio.timeout(WITHDRAW_S):
                    await held.withdraw(context)
            except Exception:  # the boundary: the run ends in any case
                LOG.exception("run %s: a call of tool %r may go on", run.id, call.call.name)

    def add(self, tools: Iterable[Callable[..., object]]) -> tuple[AnyTool, ...]:
        """Add tools and return them; an added tool replaces a tool of the same name.

        Raises:
            ToolDefinitionError: two added tools share a name, or an item is neither a tool nor a
                function. No tool is added then.
        """
        new = Toolbox(tools)
        self._tools = self._tools | new._tools  # Not in place: copies share the mapping.
        self.get = self._tools.get
        added = {tool.name: tool for tool in self.added} | new._tools
        self.added = tuple(added.values())
        self.specs = tuple([tool.spec for tool in self._tools.values()])
        return tuple(new._tools.values())


def _tools_of(tools: object) -> list[AnyTool]:
    if isinstance(tools, Mapping):
        by_name = cast("Mapping[str, object]", tools)
        return [_tool_of(item, name) for name, item in by_name.items()]
    if isinstance(tools, Iterable):
        return [_tool_of(item) for item in cast("Iterable[object]", tools)]
    raise ToolDefinitionError(
        f"tools: expected an iterable or a mapping of tools, found {tools!r}. "
        "Fix: put it in a list."
    )


def _tool_of(given: object, name: str | None = None) -> AnyTool:
    if isinstance(given, Tool):
        known = cast("AnyTool", given)  # isinstance does not know the type parameters.
        return known if name is None else known.renamed(name)
    if callable(given):
        return make_tool(given, name=name)
    fix = ".as_tool(…) makes a tool of it" if hasattr(given, "as_tool") else "use @tool or Tool(…)"
    found = f"{type(given).__name__} {getattr(given, 'name', given)!r:.60}"
    raise ToolDefinitionError(f"tools: expected tools and functions, found {found}. Fix: {fix}.")
