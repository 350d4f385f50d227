"""Tools run what they should, refuse what they must, and answer whatever happens."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from functools import partial
from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from graphloop.errors import ToolDefinitionError, ToolError
from graphloop.tools.gates import answer_of
from graphloop.tools.options import NOT_DONE, UNKNOWN, Found, NotFound, Reconciliation
from graphloop.tools.tool import (
    AnyTool,
    Approval,
    Tool,
    ToolContext,
    ToolOutcome,
    provider_tool,
    tool,
)
from graphloop.values import ToolCall
from tests.strategies import wrong
from tests.unit.tools.doubles import CONTEXT, Query, Unspeakable, run, search

JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)


# Mostly of the right shape, so that many of them are valid.
LIKELY = st.fixed_dictionaries(
    {"text": st.text() | JSON_VALUES}, optional={"limit": st.integers() | JSON_VALUES}
)


RAW_SCHEMA: Mapping[str, object] = {
    "type": "object",
    "properties": {"text": {"type": "string"}, "limit": {"type": "integer"}},
    "required": ["text"],
}


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


def raising(error: BaseException) -> ToolOutcome:
    async def fail() -> str:
        raise error

    return run(tool(fail))


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

    assert one.spec.kind == "client"
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


def test_the_traceback_of_an_exception_is_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    """The model reads "KeyError: 'Paris'"; a developer wants to know where."""

    @tool
    def weather(city: str) -> str:
        """Look."""
        return {"London": "rain"}[city]

    with caplog.at_level("WARNING", logger="graphloop"):
        run(weather, '{"city": "Paris"}')

    assert "tool 'weather' raised" in caplog.text
    assert 'return {"London": "rain"}[city]' in caplog.text


def test_an_exception_becomes_an_error_with_its_type() -> None:
    """The model can work around an error it can read."""
    assert raising(ValueError("bad city")) == ToolOutcome("ValueError: bad city", "error")
    assert raising(ValueError()) == ToolOutcome("ValueError", "error")
    assert raising(Unspeakable()) == ToolOutcome("Unspeakable", "error")


def test_a_tool_error_is_told_bare() -> None:
    """`ToolError` is how an author chooses the words."""
    assert raising(ToolError("Try Paris.")) == ToolOutcome("Try Paris.", "error")
    assert raising(ToolError()) == ToolOutcome("ToolError", "error")
    assert raising(ToolError("No.", content={"code": 3})) == ToolOutcome('No.\n{"code":3}', "error")


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
async def test_cancellation_and_exits_pass_through(error: type[BaseException]) -> None:
    """A run that is stopped must stop, whatever its tools do."""

    def stop() -> str:
        raise error

    with pytest.raises(error):
        await tool(stop).run("{}", CONTEXT)


async def test_cancelling_a_run_cancels_its_tool() -> None:
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

    for one in (tool(hang), tool(hang, timeout_s=1e6)):
        task = asyncio.ensure_future(one.run("{}", CONTEXT))
        await started.wait()
        started.clear()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    assert seen == ["started", "cancelled"] * 2


def test_a_result_is_cut_where_its_tool_says() -> None:
    """One result must not fill the window (CONTRACT §9 #57)."""

    def give() -> str:
        return "x" * 10

    assert run(tool(give, result_chars_max=9)).content == (
        "x" * 9 + "\n[cut: 1 of 10 characters left out]"
    )


def approval(policy: Approval, arguments: str = '{"text": "a"}') -> bool:
    one = tool(search, needs_approval=policy)
    assert one.needs_approval is policy
    return asks(one, arguments)


def asks(one: AnyTool, arguments: str) -> bool:
    """Whether a person is asked about a call, as drivers decide it."""
    call = ToolCall("", one.name, arguments)
    answer = answer_of("needs_approval", one.needs_approval, one, call, CONTEXT, {})
    return asyncio.run(answer) is not False


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
    answers = [asks(one, f'{{"text": "a", "limit": {limit}}}') for limit in (5, 6)]

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


def reconciled(one: AnyTool, arguments: str = '{"text": "a"}') -> object:
    return asyncio.run(one.reconciled(arguments, CONTEXT))


def looking_up(answer: object) -> AnyTool:
    def look(_: object, __: object) -> Reconciliation:
        given: Reconciliation = wrong(answer)
        return given

    return tool(search, effect="reconcile", reconcile=look)


class Agreeable:
    """Equal to everything, as the arrays of some libraries nearly are."""

    def __eq__(self, _: object) -> bool:
        return True

    def __hash__(self) -> int:
        return 0


def test_a_lookup_gets_the_call_and_tells_what_became_of_it() -> None:
    """Payments, deploys and e-mails can be looked up by the key they were made with."""
    seen: list[object] = []

    async def look(arguments: Mapping[str, object], context: ToolContext) -> Reconciliation:
        seen.append((arguments, context.idempotency_key))
        return Found({"paid": arguments["text"]})

    one = tool(search, effect="reconcile", reconcile=look, result_chars_max=8)

    assert reconciled(one) == ToolOutcome('{"paid":\n[cut: 4 of 12 characters left out]', "ok")
    assert seen == [({"text": "a"}, CONTEXT.idempotency_key)]
    assert reconciled(looking_up(NOT_DONE)) == "not_done"
    assert reconciled(looking_up(UNKNOWN)) == "unknown"
    assert reconciled(tool(search)) == "unknown"
    assert reconciled(tool(search, effect="pure")) == "not_done"


@given(JSON_VALUES | st.sampled_from([Agreeable(), "not_done", NotFound, Found]))
def test_only_a_plain_answer_of_a_lookup_counts(answer: object) -> None:
    """A lookup that forgets to answer has not said that the call may run."""
    assert reconciled(looking_up(answer)) == "unknown"


def test_a_lookup_that_fails_leaves_the_call_unknown() -> None:
    """It fails closed: running again is what it must prevent."""

    def broken(_: object, __: object) -> Reconciliation:
        raise RuntimeError("ledger is down")

    async def hang(_: object, __: object) -> Reconciliation:
        await asyncio.Event().wait()
        return NOT_DONE

    assert reconciled(tool(search, effect="reconcile", reconcile=broken)) == "unknown"
    assert (
        reconciled(tool(search, effect="reconcile", reconcile=hang, timeout_s=0.001)) == "unknown"
    )
    assert reconciled(looking_up(NOT_DONE), "not JSON") == "unknown"


async def test_cancelling_a_lookup_cancels_it() -> None:
    """A process that stops again must stop."""

    def stop(_: object, __: object) -> Reconciliation:
        raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        await tool(search, effect="reconcile", reconcile=stop).reconciled('{"text": "a"}', CONTEXT)


def test_a_lock_belongs_to_a_tool_or_is_shared_by_name() -> None:
    """Only calls that hold the same one wait for each other (CONTRACT §9 #35)."""
    alone = tool(search, sequential=True)
    shared = tool(search, sequential="db")

    assert [one.spec.lock for one in (tool(search), alone, shared)] == ["", "search", "db"]
    assert [one.renamed("find").spec.lock for one in (alone, shared)] == ["find", "db"]


SEARCH = provider_tool({"type": "web_search_1", "name": "web_search"})


def yielding(query: Query) -> Iterator[str]:
    yield query.text


async def yielding_later(query: Query) -> AsyncIterator[str]:
    yield query.text


class Yielding:
    async def __call__(self, query: Query) -> AsyncIterator[str]:
        yield query.text


@pytest.mark.parametrize(
    ("tool", "name"),
    [
        (SEARCH, "web_search"),
        (provider_tool({"type": "web_search"}, wire="openai-responses"), "web_search"),
        (provider_tool({"google_search": {}}, wire="google"), "google_search"),
        (provider_tool({"type": "mcp", "server_label": "crm"}, name="crm"), "crm"),
    ],
)
def test_a_providers_tool_is_named_by_its_definition(tool: AnyTool, name: str) -> None:
    """Some providers give a name, some a type, some neither; two tools of a type need two names."""
    assert name == tool.name
    assert tool.spec.kind == "provider"


def test_a_function_carries_fields_of_a_provider() -> None:
    """A copy under another name carries them, too."""
    cached = tool(search, provider_options={"cache_control": {"type": "ephemeral"}})

    for one in (cached, cached.renamed("find")):
        assert one.spec.definition == '{"cache_control":{"type":"ephemeral"}}'
        assert one.spec.kind == "function"
    assert tool(search).spec.definition == ""


def test_a_providers_tool_without_a_name_of_its_own_can_be_renamed() -> None:
    """The name is then no word of the provider."""
    tool = provider_tool({"type": "web_search"}, wire="openai-responses")

    renamed = tool.renamed("look_up").spec

    assert ("look_up", "openai-responses") == (renamed.name, renamed.wire)
    assert renamed.definition == tool.spec.definition


@pytest.mark.parametrize(
    ("define", "expected"),
    [
        (lambda: Tool(name="a b!", parameters=Query), "name it 'a_b'"),
        (lambda: tool(search, timeout_s=0), "timeout_s: expected more than 0"),
        (lambda: tool(search, parameters=Query), "no option 'parameters'"),  # type: ignore[call-overload]
        (lambda: tool(timeout=5), "no option 'timeout'. Did you mean 'timeout_s'?"),  # type: ignore[call-overload]
        (lambda: Tool(name="x", parameters=Query, bogus=1), "tool 'x' has no option 'bogus'"),  # type: ignore[call-arg]
        (lambda: Tool(name="x", parameters=Query, execute=yielding), "found a generator"),
        (lambda: Tool(name="x", parameters=Query, execute=yielding_later), "found a generator"),
        (lambda: Tool(name="x", parameters=Query, execute=Yielding()), "found a generator"),
        (lambda: tool(search, thread=True), "plain functions"),
        (lambda: tool(lambda: 1, name="x", timeout_s=1), "thread=True"),
        (lambda: Tool(name="x", parameters=Query, timeout_s=1), "need `execute`"),
        (lambda: Tool(name="x", parameters=Query, execute=3), "found 3"),  # type: ignore[arg-type]
        (lambda: Tool(name="x", parameters=Query, execute=lambda: 1), "as one parameter"),
        (lambda: tool(partial(search, "a")), "found partial"),
        (lambda: Tool(name="x", parameters=Query, execute=print, kind="agent"), "leave `kind` out"),
        (lambda: Tool(name="x", parameters=Query, kind="provider"), "found None"),
        (lambda: Tool(name="x", parameters=Query, definition={}), "with kind 'provider' only"),
        (lambda: Tool(name="x", parameters=Query, wire="anthropic"), "with kind 'provider' only"),
        (lambda: tool(search, provider_options={"strict": {1}}), "provider_options is not JSON"),
        (lambda: provider_tool({}), "'name'"),
        (lambda: provider_tool({}, name="web_search"), "found {}"),
        (lambda: provider_tool({"type": 3}), "'name'"),
        (lambda: provider_tool({"type": "x", "name": "a b"}), "name it 'a_b'"),
        (lambda: SEARCH.renamed("find"), "do not rename it"),
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
