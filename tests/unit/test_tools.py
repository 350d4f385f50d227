"""Tools run what they should, refuse what they must, and answer whatever happens."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from enum import StrEnum
from functools import partial
from hashlib import sha256
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from graphloop.errors import ToolDefinitionError, ToolError
from graphloop.tools import AnyTool, Approval, Tool, Toolbox, ToolContext, ToolOutcome, tool
from graphloop.values import FilePart, ImagePart, TextPart, UserMessage

CONTEXT = ToolContext("run-1", "c0.0", "call_1", 0, (UserMessage("hi"),))

JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)

# Mostly of the right shape, so that many of them are valid.
LIKELY = st.fixed_dictionaries(
    {"text": st.text() | JSON_VALUES}, optional={"limit": st.integers() | JSON_VALUES}
)


class Query(BaseModel):
    text: str
    limit: int = 10


class Colour(StrEnum):
    RED = "red"


@dataclass
class Booking:
    day: date
    seats: list[int]


class Opaque:
    def __repr__(self) -> str:
        return "<opaque>"


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")

    __repr__ = __str__


RAW_SCHEMA: Mapping[str, object] = {
    "type": "object",
    "properties": {"text": {"type": "string"}, "limit": {"type": "integer"}},
    "required": ["text"],
}


async def search(text: str, limit: int = 10) -> str:
    """Search."""
    return f"{text}:{limit}"


def three_forms() -> tuple[AnyTool, ...]:
    def of_model(query: Query) -> str:
        return f"{query.text}:{query.limit}"

    def of_mapping(query: Mapping[str, object]) -> str:
        return f"{query['text']}:{query.get('limit', 10)}"

    return (
        tool(search),
        Tool(name="search", parameters=Query, execute=of_model),
        Tool(name="search", parameters=RAW_SCHEMA, execute=of_mapping),
    )


def run(one: AnyTool, arguments: str = "{}", context: ToolContext = CONTEXT) -> ToolOutcome:
    return asyncio.run(one.run(arguments, context))


def returning(value: object, **options: int) -> ToolOutcome:
    def give() -> object:
        return value

    return run(tool(give, result_chars_max=options.get("limit", 100_000)))


def raising(error: BaseException) -> ToolOutcome:
    async def fail() -> str:
        raise error

    return run(tool(fail))


# --- running


@pytest.mark.parametrize("one", three_forms(), ids=["function", "model", "schema"])
def test_every_form_of_a_tool_behaves_the_same(one: AnyTool) -> None:
    """A tool's author chooses how to describe it, not how it behaves."""
    outcome = run(one, '{"text": "a"}')
    missing = run(one, "{}")

    assert outcome == ToolOutcome("a:10", "ok")
    assert missing.status == "invalid"
    assert str(missing.content).startswith("Invalid arguments for tool 'search': ")
    assert str(missing.content).endswith("Correct the arguments and call the tool again.")
    assert "text" in str(missing.content)


@pytest.mark.parametrize("one", three_forms(), ids=["function", "model", "schema"])
@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ("", "Invalid arguments"),
        ("[1]", "expected one JSON object"),
        ("null", "expected one JSON object"),
        ('{"text": ', "line 1 column 9"),
        ('{"text": "a", "limit": NaN}', "not valid JSON"),
        ('{"text": "a", "limit": -Infinity}', "not valid JSON"),
        ('{"text": "a", "limit": "many"}', "limit: "),
        ('"\ud800"', "surrogate"),
        ('{"text": "\\ud800"}', "not valid JSON"),
        ('{"text": ' + "[" * 500 + "]" * 500 + "}", "recursion"),
    ],
)
def test_bad_arguments_are_told_and_never_run(one: AnyTool, arguments: str, expected: str) -> None:
    """The model can only mend what it is told; a tool must not see what was not checked."""
    problem = one.validate(arguments)

    assert problem is not None
    assert expected in problem
    assert run(one, arguments) == ToolOutcome(problem, "invalid")


@pytest.mark.parametrize("one", three_forms(), ids=["function", "model", "schema"])
def test_words_that_look_like_numbers_may_stand_in_strings(one: AnyTool) -> None:
    """The check for NaN must not refuse text about it."""
    assert run(one, '{"text": "NaN or Infinity"}').content == "NaN or Infinity:10"


def test_empty_arguments_mean_none() -> None:
    """Some servers send an empty string for a call without arguments."""

    async def ping() -> str:
        return "pong"

    assert [run(tool(ping), text).content for text in ("", "  \n", "{}")] == ["pong"] * 3


def test_extra_keys_are_dropped() -> None:
    """A model that invents a key should not cost a turn."""
    assert run(tool(search), '{"text": "a", "invented": 1}').content == "a:10"


@given(JSON_VALUES | LIKELY)
def test_validate_and_run_agree_on_every_json_value(value: object) -> None:
    """The gate validates, the executor runs: they must never disagree, nor raise."""
    arguments = json.dumps(value)
    for one in three_forms():
        problem = one.validate(arguments)
        outcome = run(one, arguments)

        assert (outcome.status == "invalid") == (problem is not None)
        assert outcome.status in ("ok", "invalid")


@given(st.text())
def test_validate_and_run_agree_on_every_text(arguments: str) -> None:
    """Arguments are what a model wrote: any text at all."""
    for one in three_forms():
        problem = one.validate(arguments)

        assert (run(one, arguments).status == "invalid") == (problem is not None)


def test_a_validator_that_breaks_is_told_to_the_model() -> None:
    """A validator is user code: its bug must not end the run."""

    class Fussy(BaseModel):
        text: str

        def model_post_init(self, _: object) -> None:
            raise KeyError("fussy")

    one = Tool(name="fussy", parameters=Fussy, execute=print)

    assert "KeyError: 'fussy'" in (one.validate('{"text": "a"}') or "")
    assert run(one, '{"text": "a"}').status == "invalid"


def test_a_client_tool_is_offered_and_never_run() -> None:
    """Without an executor the call is answered elsewhere."""
    one = Tool(name="ask", parameters=Query)

    assert one.spec.client
    assert run(one, '{"text": "a"}').status == "not_run"
    assert run(one, "{}").status == "invalid"
    with pytest.raises(ToolDefinitionError, match="no `execute`"):
        one()


def test_a_tool_is_callable_like_its_function() -> None:
    """Users test their own functions without a model."""
    decorated = tool(search)

    assert asyncio.run(decorated("a", limit=2)) == "a:2"
    assert repr(decorated) == "Tool('search')"


def test_the_context_is_injected() -> None:
    """A tool that needs to know its call asks by annotation."""

    def of_model(query: Query, context: ToolContext) -> str:
        return f"{query.text} {context.key}"

    @tool
    def mine(text: str, *, here: ToolContext | None = None) -> str:
        return f"{text} {here.key if here else 'nowhere'}"

    other = Tool(name="other", parameters=Query, execute=of_model)

    assert mine("a") == "a nowhere"
    assert run(mine, '{"text": "a", "here": 1}').content == "a c0.0"
    assert run(other, '{"text": "a"}').content == "a c0.0"


def test_the_idempotency_key_belongs_to_one_call_of_one_run() -> None:
    """A payment service must see the same key at each attempt, and never for another call."""
    other = ToolContext("run-1", "c0.1", "call_1", 0, ())

    assert CONTEXT.idempotency_key == sha256(b"run-1\0c0.0").hexdigest()[:32]
    assert CONTEXT.idempotency_key != other.idempotency_key


# --- failing


def test_an_exception_becomes_an_error_with_its_type() -> None:
    """The model can work around an error it can read."""
    assert raising(ValueError("bad city")) == ToolOutcome("ValueError: bad city", "error")
    assert raising(ValueError()) == ToolOutcome("ValueError", "error")
    assert raising(Unspeakable()) == ToolOutcome("Unspeakable", "error")


def test_a_tool_error_is_told_bare() -> None:
    """`ToolError` is how an author chooses the words."""
    assert raising(ToolError("Try Paris.")) == ToolOutcome("Try Paris.", "error")
    assert raising(ToolError()) == ToolOutcome("ToolError", "error")


def test_an_error_tells_its_message_and_nothing_else() -> None:
    """Causes and notes may hold secrets."""
    error = ValueError("x" * 10_000)
    error.__cause__ = KeyError("secret")
    error.add_note("secret")

    outcome = raising(error)

    assert "secret" not in str(outcome.content)
    assert len(outcome.content) <= 4_000
    assert "characters left out]" in str(outcome.content)


@pytest.mark.parametrize("error", [asyncio.CancelledError, KeyboardInterrupt, SystemExit])
def test_cancellation_and_exits_pass_through(error: type[BaseException]) -> None:
    """A run that is stopped must stop, whatever its tools do."""

    def stop() -> str:
        raise error

    async def main() -> None:
        with pytest.raises(error):
            await tool(stop).run("{}", CONTEXT)

    asyncio.run(main())


def test_cancelling_a_run_cancels_its_tool() -> None:
    """A cancelled run must not leave its tools behind, nor turn the stop into an answer."""
    seen: list[str] = []
    started = asyncio.Event()

    async def hang() -> str:
        seen.append("started")
        started.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            seen.append("cancelled")
            raise
        return "never"

    async def main() -> None:
        for one in (tool(hang), tool(hang, timeout_s=1e6)):
            task = asyncio.ensure_future(one.run("{}", CONTEXT))
            await started.wait()
            started.clear()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    asyncio.run(main())

    assert seen == ["started", "cancelled"] * 2


# --- time and threads


def test_a_timeout_is_told_with_its_seconds() -> None:
    """A model that knows a tool was too slow can ask for less."""

    async def hang() -> str:
        await asyncio.Event().wait()
        return "never"

    outcome = run(tool(hang, timeout_s=0.001))

    assert outcome.status == "timeout"
    assert "0.001 seconds" in str(outcome.content)


@pytest.mark.parametrize("error", [None, ValueError("late")], ids=["returns", "raises"])
def test_a_tool_that_swallows_its_cancellation_is_too_late_all_the_same(
    error: Exception | None,
) -> None:
    """What comes after the limit is no result: the limit would bound nothing."""

    async def stubborn() -> str:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            if error is not None:
                raise error from None
        return "too late"

    outcome = run(tool(stubborn, timeout_s=0.001))

    assert outcome.status == "timeout"
    assert "gave no result within 0.001 seconds" in str(outcome.content)


def test_a_tool_in_time_is_not_touched_by_its_timeout() -> None:
    """The limit must not change the answer."""
    assert run(tool(search, timeout_s=1e6), '{"text": "a"}').content == "a:10"


def test_a_tools_own_timeout_error_is_an_ordinary_error() -> None:
    """Only our own limit is reported as a timeout."""

    async def slow_service() -> str:
        raise TimeoutError("service")

    assert run(tool(slow_service, timeout_s=1e6)) == ToolOutcome("TimeoutError: service", "error")
    assert raising(TimeoutError("service")).status == "error"


def test_a_plain_function_runs_inline_unless_it_asks_for_a_thread() -> None:
    """Threads are for functions that block; the others should not pay."""

    def where() -> int:
        return threading.get_ident()

    here = str(threading.get_ident())

    assert run(tool(where)).content == here
    assert run(tool(where, thread=True)).content != here
    assert run(tool(where, thread=True, timeout_s=1e6)).status == "ok"


@pytest.mark.parametrize("thread", [False, True])
def test_stop_iteration_cannot_hang_a_run(*, thread: bool) -> None:
    """asyncio's futures refuse StopIteration: a thread that raised it would never be heard."""

    def exhausted() -> object:
        return next(iter(()))

    outcome = run(tool(exhausted, thread=thread))

    assert outcome.status == "error"
    assert "StopIteration" in str(outcome.content)


def test_a_plain_function_may_return_an_awaitable() -> None:
    """A lambda or a wrapper around an async function is a tool like the others."""

    def start(query: Query) -> Awaitable[str]:
        return search(query.text, query.limit)

    one = Tool(name="s", parameters=Query, execute=start)

    assert run(one, '{"text": "a"}').content == "a:10"


def test_a_builtin_without_signature_takes_the_arguments() -> None:
    """Some C functions tell no signature; they get the arguments."""
    builtin = cast("Callable[[object], object]", dict)  # Its own type is generic.
    one = Tool(name="d", parameters={"type": "object"}, execute=builtin)

    assert run(one, '{"a": 1}').content == '{"a":1}'


# --- results


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("as it is", "as it is"),
        ("", ""),
        (None, "null"),
        (True, "true"),
        ({"a": [1, 2.5, None]}, '{"a":[1,2.5,null]}'),
        (Query(text="x"), '{"text":"x","limit":10}'),
        (Booking(date(2026, 1, 2), [1]), '{"day":"2026-01-02","seats":[1]}'),
        ({"x": Opaque()}, '{"x":"<opaque>"}'),
        (b"\xff", "b'\\xff'"),
        (Colour.RED, "red"),
        ("half \ud800", "half ?"),
        ([], "[]"),
        (["a", TextPart("b")], '["a",{"type":"text","text":"b","extra":""}]'),
    ],
)
def test_a_result_is_text_or_compact_json(value: object, expected: str) -> None:
    """The model reads text; what is no text must become some, and stay encodable."""
    outcome = returning(value)

    assert outcome == ToolOutcome(expected, "ok")
    assert type(outcome.content) is str


def test_a_result_that_cannot_be_serialised_is_shown_all_the_same() -> None:
    """The tool has run: its call must be answered, and not as an error."""
    circle: list[object] = []
    circle.append(circle)

    assert returning(circle) == ToolOutcome("[[...]]", "ok")
    assert returning([Unspeakable(), "\ud800"]) == ToolOutcome("<list>", "ok")


def test_parts_stay_parts() -> None:
    """A tool may show the model an image."""
    image, file = ImagePart("aGk=", "image/png"), FilePart("aGk=", "text/plain")

    assert returning(image).content == (image,)
    assert returning([TextPart("see"), image]).content == (TextPart("see"), image)
    assert returning((file,)).content == (file,)


def test_a_long_result_is_cut_with_a_marker() -> None:
    """One result must not fill the window; the model must know that it saw a part."""
    image = ImagePart("aGk=", "image/png")

    assert returning("x" * 9, limit=9).content == "x" * 9
    assert returning("x" * 10, limit=9).content == (
        "x" * 9 + "\n[cut: 1 of 10 characters left out]"
    )
    assert returning([TextPart("abc"), image, TextPart("defg")], limit=5).content == (
        TextPart("abc"),
        image,
        TextPart("de\n[cut: 2 of 4 characters left out]"),
    )
    assert returning([TextPart("abcd"), TextPart("ef")], limit=3).content == (
        TextPart("abc\n[cut: 1 of 4 characters left out]"),
        TextPart("\n[cut: 2 of 2 characters left out]"),
    )


# --- approval


def approval(policy: Approval, arguments: str = '{"text": "a"}') -> bool:
    one = tool(search, needs_approval=policy)
    assert one.needs_approval is policy
    return asyncio.run(one.approval_needed(arguments, CONTEXT))


def test_approval_is_asked_as_the_policy_says() -> None:
    """The predicate decides from the parsed arguments and the call."""
    seen: list[object] = []

    def cautious(arguments: Mapping[str, object], context: ToolContext) -> bool:
        seen.append((arguments, context))
        return arguments["text"] == "prod"

    assert [approval(policy) for policy in (True, False, cautious)] == [True, False, False]
    assert approval(cautious, '{"text": "prod"}')
    assert seen == [({"text": "a"}, CONTEXT), ({"text": "prod"}, CONTEXT)]


def test_an_async_predicate_is_awaited() -> None:
    """A policy may live in another service."""

    async def ask(query: Query, _: ToolContext) -> bool:
        return query.limit > 5

    one = Tool(name="s", parameters=Query, execute=print, needs_approval=ask)
    answers = [
        asyncio.run(one.approval_needed(f'{{"text": "a", "limit": {limit}}}', CONTEXT))
        for limit in (5, 6)
    ]

    assert answers == [False, True]


def test_approval_fails_closed() -> None:
    """A predicate that fails, or forgets to answer, has not allowed anything."""

    def broken(_: object, __: ToolContext) -> bool:
        raise RuntimeError("policy service down")

    def forgetful(_: object, __: ToolContext) -> bool:
        return None  # type: ignore[return-value]  # pyright: ignore[reportReturnType] - the bug.

    def allowing(_: object, __: ToolContext) -> bool:
        return False

    assert approval(broken)
    assert approval(forgetful)
    assert approval(allowing, "not JSON")


# --- definition


def three(one: object, two: object, more: object) -> None: ...


def yielding(query: Query) -> Iterator[str]:
    yield query.text


async def yielding_later(query: Query) -> AsyncIterator[str]:
    yield query.text


class Yielding:
    async def __call__(self, query: Query) -> AsyncIterator[str]:
        yield query.text


@pytest.mark.parametrize(
    ("define", "expected"),
    [
        (lambda: Tool(name="a b!", parameters=Query), "name it 'a_b'"),
        (lambda: Tool(name="wetter_für", parameters=Query), "name it 'wetter_fur'"),
        (lambda: Tool(name="", parameters=Query), "name it 'tool'"),
        (lambda: Tool(name="x" * 65, parameters=Query), f"name it '{'x' * 64}'"),
        (lambda: tool(search, needs_approval=callable), "arguments, context"),
        (lambda: tool(search, needs_approval="yes"), "found 'yes'"),  # type: ignore[call-overload]
        (lambda: tool(search, timeout_s=0), "timeout_s must be more than 0"),
        (lambda: tool(search, timeout_s=float("nan")), "timeout_s must be more than 0"),
        (lambda: tool(search, result_chars_max=0), "result_chars_max must be at least 1"),
        (lambda: tool(search, name=5), "a name must be"),  # type: ignore[call-overload]
        (lambda: tool(search, description=5), "description must be a string, found 5"),  # type: ignore[call-overload]
        (lambda: tool(search, parameters=Query), "no option 'parameters'"),  # type: ignore[call-overload]
        (lambda: tool(timeout=5), "no option 'timeout'. Did you mean 'timeout_s'?"),  # type: ignore[call-overload]
        (lambda: Tool(name="x", parameters=Query, bogus=1), "tool 'x' has no option 'bogus'"),  # type: ignore[call-arg]
        (lambda: Tool(name="x", parameters=Query, execute=yielding), "found a generator"),
        (lambda: Tool(name="x", parameters=Query, execute=yielding_later), "found a generator"),
        (lambda: Tool(name="x", parameters=Query, execute=Yielding()), "found a generator"),
        (lambda: tool(search, thread=True), "plain functions"),
        (lambda: tool(lambda: 1, name="x", timeout_s=1), "thread=True"),
        (lambda: Tool(name="x", parameters=Query, timeout_s=1), "need `execute`"),
        (lambda: Tool(name="x", parameters=Query, thread=True), "need `execute`"),
        (lambda: Tool(name="x", parameters=Query, execute=3), "execute must be"),  # type: ignore[arg-type]
        (lambda: Tool(name="x", parameters=Query, execute=lambda: 1), "one parameter"),
        (lambda: Tool(name="x", parameters=Query, execute=three), "one parameter"),
        (lambda: Tool(name="x", parameters=int), "found <class 'int'>"),  # type: ignore[arg-type]
        (lambda: Tool(name="x", parameters=[]), "JSON Schema mapping"),  # type: ignore[arg-type]
        (lambda: tool(partial(search, "a")), "found partial"),
    ],
)
def test_a_definition_that_cannot_work_is_refused(
    define: Callable[[], object], expected: str
) -> None:
    """Each option takes effect or complains; the message holds what to do."""
    with pytest.raises(ToolDefinitionError) as caught:
        define()

    assert expected in str(caught.value)
    assert "Fix: " in str(caught.value)


def test_the_decorator_takes_options() -> None:
    """`@tool(...)` and `@tool` make the same kind of thing."""

    @tool(name="find", description="Find it.", needs_approval=True)
    def search_it(text: str) -> str:
        return text

    assert (search_it.name, search_it.spec.description) == ("find", "Find it.")
    assert search_it.needs_approval is True
    assert search_it("a") == "a"


def test_a_callable_object_may_be_async() -> None:
    """A timeout is allowed wherever it can work."""

    class Service:
        async def __call__(self, query: Query) -> str:
            return query.text

    one = Tool(name="service", parameters=Query, execute=Service(), timeout_s=1e6)

    assert run(one, '{"text": "a"}').content == "a"


# --- toolbox


def test_a_toolbox_holds_tools_and_functions_in_order() -> None:
    """Everything users write as `tools=` is accepted."""
    client = Tool(name="ask", parameters=Query)
    box = Toolbox([search, client])

    assert [spec.name for spec in box.specs] == ["search", "ask"]
    assert box.get("ask") is client
    assert box.get("__class__") is None
    assert Toolbox().specs == ()


def test_a_mapping_renames_its_tools() -> None:
    """The key is the name the model calls."""
    original = tool(search, needs_approval=True)
    box = Toolbox({"find": original, "seek": search})
    found = box.get("find")

    assert [spec.name for spec in box.specs] == ["find", "seek"]
    assert found is not None
    assert found.needs_approval is True
    assert found.spec.parameters == original.spec.parameters
    assert original.name == "search"
    assert run(found, '{"text": "a"}').content == "a:10"


def test_all_names_that_occur_twice_are_told() -> None:
    """Of two tools with one name, one would never be called."""
    ask = Tool(name="ask", parameters=Query)

    with pytest.raises(ToolDefinitionError, match="named 'search', 'ask'"):
        Toolbox([search, ask, search, ask, Tool(name="other", parameters=Query)])


@pytest.mark.parametrize("wrong", [3, ["search"], {"a": None}])
def test_what_is_no_tool_is_refused(wrong: object) -> None:
    """A string is not a tool, and a single tool is not a list of them."""
    with pytest.raises(ToolDefinitionError, match="Fix: "):
        Toolbox(wrong)  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType, reportCallIssue]


def test_a_generator_of_tools_is_read_once() -> None:
    """Any iterable will do."""

    def some() -> Iterator[AnyTool]:
        yield tool(search)

    assert Toolbox(some()).get("search") is not None


def test_importing_tools_does_not_import_jsonschema() -> None:
    """It takes longer to import than everything else here together."""
    code = "import sys, graphloop.tools; sys.exit('jsonschema' in sys.modules)"

    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
