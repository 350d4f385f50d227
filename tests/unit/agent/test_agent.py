"""Agent: options that reach the graph, functions of the user's, and runs that go on later."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from graphloop import (
    Agent,
    Approval,
    Budget,
    Compaction,
    EndReason,
    ModelPrice,
    Pending,
    Retries,
    RunResult,
    StepChanges,
    StepInfo,
    StepResult,
    Timeouts,
    Tool,
    ToolContext,
    allow,
    ask,
    budget,
    deny,
)
from graphloop.agent.inputs import MessageInput
from graphloop.agent.options import AgentOptions
from graphloop.errors import AuthenticationFailed, ConfigError, Overloaded
from graphloop.limits import stop
from graphloop.limits.stop import StopInfo
from graphloop.nodes import Execute, PrepareStep, StopCheck
from graphloop.policy.policy import Policy
from graphloop.providers.script import Entry
from graphloop.rules import at_most
from graphloop.stores.memory import MemoryStore
from graphloop.testing import ScriptedModel
from graphloop.values import (
    AssistantMessage,
    FinishReason,
    Message,
    Reply,
    Settings,
    SystemMessage,
    TextPart,
    ToolChoice,
    Usage,
    UserMessage,
    evolve,
)
from tests.agents import ticking
from tests.strategies import call, reply, wrong
from tests.wire_server import WireServer, json_answer


def read() -> str:
    """Read."""
    return "text"


def same(arguments: dict[str, object]) -> object:
    """Return the arguments."""
    return arguments or "text"


GATED: Tool = Tool(name="read", parameters={"type": "object"}, execute=same, needs_approval=True)
CLIENT = Tool(name="client", parameters={"type": "object"})


def model(*replies: Reply) -> ScriptedModel:
    """Return a model that says this, then "done"."""
    return ScriptedModel([*replies, "done", "done"])


def test_every_option_of_the_loop_arrives_in_the_graph() -> None:
    """What is drawn and checked is what runs."""
    agent = Agent(
        model(),
        tools=[read],
        name="mine",
        max_steps=3,
        max_consecutive_tool_errors=2,
        max_tool_concurrency=1,
        tool_choice="required",
        active_tools=["read"],
        stop_when=stop.has_tool_call("read"),
    )

    nodes = agent.graph.nodes
    assert "mine" == agent.graph.name
    assert (
        PrepareStep(active_tools=("read",), tool_choice=ToolChoice("required"))
        == (nodes["prepare_step"])
    )
    assert Execute(concurrency=1) == nodes["execute"]
    assert (
        StopCheck(max_steps=3, max_tool_errors=2, conditions=(stop.has_tool_call("read"),))
        == nodes["stop_check"]
    )


def test_one_tool_at_a_time_is_told_to_the_model() -> None:
    """Otherwise it would ask for several, and wait."""
    said = model()

    Agent(said, tools=[read], max_tool_concurrency=1).generate_sync("go")

    assert said.requests[0].settings.parallel_tool_calls is False


@pytest.mark.parametrize(
    ("options", "found"),
    [
        ({"max_step": 3}, "no option 'max_step'"),
        ({"max_steps": 0}, "max_steps"),
        ({"max_tool_concurrency": 0}, "max_tool_concurrency"),
        ({"max_consecutive_tool_errors": 0}, "max_consecutive_tool_errors"),
        ({"active_tools": ["gone"]}, "active_tools"),
        ({"tool_choice": "required"}, "there are no tools"),
        ({"stop_when": 5}, "`stop_when` takes conditions"),
        ({"stop_when": [None]}, "`stop_when` takes conditions"),
        ({"stop_when": stop.StepCountIs}, "`stop_when` takes conditions"),
        ({"stop_when": stop.has_tool_call("raed"), "tools": [read]}, "has_tool_call` names 'raed'"),
        ({"stop_when": stop.has_tool_call("raed"), "tools": [read]}, "Did you mean 'read'"),
        ({"temperature": float("nan")}, "`temperature`: expected a finite"),
        ({"name": 5}, "name"),
        ({"name": ""}, "has no name"),
        ({"tools": [5]}, "tools"),
        ({"gate": allow("raed"), "tools": [read]}, "'raed'. Did you mean 'read'"),
        ({"approval_ttl_s": 5, "tools": [read]}, "`approval_ttl_s` has no effect"),
        ({"approval_secret": "s", "tools": [read]}, "`approval_secret` has no effect"),
        ({"approval_secret": "s", "gate": deny("*")}, "`approval_secret` has no effect"),
        ({"max_agent_depth": 1.5}, "max_agent_depth"),
        ({"step_timeout_s": 0}, "step_timeout_s"),
        ({"price": float, "prices": {"x": ModelPrice(1, 1)}}, "`prices` has no effect"),
        ({"max_consecutive_denials": 0}, "max_consecutive_denials"),
        ({"fallback_models": ["nobody:x"]}, "expected a provider"),
        ({"output_type": 5}, "no JSON Schema"),
        ({"output_mode": "tool"}, "`output_mode` has no effect without `output_type`"),
        ({"max_output_retries": 1}, "has no effect without `output_type`"),
        ({"output_type": int, "max_output_retries": -1}, "retries of output"),
        ({"max_done_retries": 1}, "has no effect without `done_when`"),
        ({"done_when": bool, "max_done_retries": 0.5}, "retries of done_when"),
        ({"max_verify_retries": 1}, "has no effect without `verify`"),
        ({"verify": bool, "max_verify_retries": "x"}, "retries of verify"),
        ({"compact": print}, "give `compaction=Compaction"),
        ({"compaction": Compaction(9_000, summary_model="nobody:x")}, "expected a provider"),
    ],
)
def test_an_option_that_cannot_work_is_refused_at_once(
    options: dict[str, object], found: str
) -> None:
    """Before anything is sent."""
    said = model()

    with pytest.raises(ConfigError, match=found):
        Agent(said, **wrong(options))

    assert [] == said.requests


def test_agents_are_no_option_of_an_agent() -> None:
    """They are for Child nodes; an agent that silently had none would never call them."""
    other = Agent(model(), name="other").as_tool(description="another")

    with pytest.raises(ConfigError, match=r"give an agent the agents .* among its `tools`"):
        Agent(model(), agents={"other": other})


def test_an_agent_with_other_options_leaves_the_first_as_it_was() -> None:
    """Agents are never changed."""
    first = Agent(model(), tools=[read], max_steps=3)

    second = first.with_options(max_steps=5)

    assert StopCheck(max_steps=3) == first.graph.nodes["stop_check"]
    assert StopCheck(max_steps=5) == second.graph.nodes["stop_check"]


def test_prepare_step_changes_what_the_model_sees() -> None:
    """Messages for good, tools and choice for the turn, whether it is awaited or not."""
    said = model(reply(call()))
    told: list[int] = []

    async def prepare(info: StepInfo) -> StepChanges | None:
        told.append(info.step_index)
        if info.step_index == 0:
            return None
        return StepChanges(
            messages=[{"role": "user", "content": "short"}], active_tools=[], tool_choice="none"
        )

    result = Agent(said, tools=[read], prepare_step=prepare).generate_sync("go")

    assert [0, 1] == told
    assert (UserMessage("short"),) == tuple(said.requests[1].messages)
    assert ((), ToolChoice("none")) == (said.requests[1].tools, said.requests[1].tool_choice)
    assert 3 == len(result.messages)


def test_a_turn_may_be_given_to_another_model() -> None:
    """By a provider with a label of its own."""
    other = ScriptedModel(["from the other"], label="other")

    agent = Agent(model(), prepare_step=lambda _: StepChanges(model=other))

    assert "from the other" == agent.generate_sync("go").text


def test_two_models_under_one_label_are_refused() -> None:
    """The first would answer for the second, and nobody would know."""
    agent = Agent(model(), prepare_step=lambda _: StepChanges(model=ScriptedModel(["x"])))

    with pytest.raises(ConfigError, match="two different models"):
        agent.generate_sync("go")


@pytest.mark.parametrize("answer", [5, "x", StepChanges(active_tools=["gone"])])
def test_a_prepare_step_that_returns_nonsense_ends_the_run(answer: object) -> None:
    """With its own error, not with a turn that ignored it."""
    agent = Agent(model(), prepare_step=lambda _: wrong(answer))

    with pytest.raises(ConfigError):
        agent.generate_sync("go")


def test_stop_conditions_and_functions_stop_the_run_by_name() -> None:
    """In any mixture, awaited or not."""

    def enough(info: StopInfo) -> bool:
        return info.step_count >= 1

    async def never(info: StopInfo) -> bool:
        return False

    agent = Agent(
        model(reply(call())), tools=[read], stop_when=[stop.has_tool_call("read"), enough, never]
    )

    result = agent.generate_sync("go")

    assert EndReason.STOP_CONDITION is result.end_reason
    assert ("has_tool_call", "enough") == result.stopped_by
    assert FinishReason.TOOL_CALLS is result.finish_reason


def test_a_stop_function_that_raises_ends_the_run_with_its_error() -> None:
    """A bound that fails must not be taken for "go on"."""

    def broken(info: StopInfo) -> bool:
        raise LookupError("bug")

    with pytest.raises(LookupError, match="bug"):
        Agent(model(reply(call())), tools=[read], stop_when=broken).generate_sync("go")


@pytest.mark.parametrize(
    ("answer", "status"),
    [
        (True, "ok"),
        (Approval(True), "ok"),
        (False, "denied"),
        (Approval(False, "no"), "denied"),
    ],
)
def test_only_a_clear_yes_lets_a_gated_tool_run(answer: object, status: str) -> None:
    """Live and on resume."""
    live = Agent(
        model(reply(call())),
        tools=[GATED],
        approve_tool_call=lambda _: wrong(answer),
    )
    parked = Agent(model(reply(call())), tools=[GATED])

    async def later() -> str:
        leg = await parked.generate("go")
        assert EndReason.PARKED is leg.end_reason
        result = await parked.resume(leg, approvals={"c0.0": wrong(answer)})
        return result.steps[0].tool_results[0].status

    assert status == live.generate_sync("go").steps[0].tool_results[0].status
    assert status == asyncio.run(later())


def test_a_stop_predicate_that_forgets_to_return_stops_and_is_told_so() -> None:
    """It would never stop anything, and nobody would know why; no turn is lost."""

    def forgetful(info: StopInfo) -> None:
        assert info.step_count

    agent = Agent(model(reply(call())), tools=[read], stop_when=wrong(forgetful))
    result = agent.generate_sync("go")

    assert (EndReason.STOP_CONDITION, 1) == (result.end_reason, len(result.steps))
    assert "forgetful: expected True or False, found None." in result.stopped_by[0]


def test_a_list_of_no_active_tools_is_refused_where_there_are_tools() -> None:
    """The model would starve, and nothing would say so."""
    with pytest.raises(ConfigError, match="`active_tools`: expected a tool, found none"):
        Agent(model(), tools=[read], active_tools=[])
    Agent(model(), active_tools=[])


def test_a_stop_may_wait_for_a_tool_that_a_later_turn_adds() -> None:
    """Where nothing can add it, the name is misspelt."""
    late, waits = Tool(name="late", parameters={"type": "object"}, execute=print), "late"

    def prepare(info: StepInfo) -> StepChanges:
        return StepChanges(add_tools=[late] if info.step_index == 0 else [])

    one = Agent(
        model(reply(call("late")), reply("never")),
        tools=[read],
        stop_when=stop.has_tool_call(waits),
        prepare_step=prepare,
    )

    assert EndReason.STOP_CONDITION is one.generate_sync("go").end_reason
    with pytest.raises(ConfigError, match=r"`stop\.has_tool_call` names 'late'"):
        Agent(model(), tools=[read], stop_when=stop.has_tool_call(waits))


def test_an_agent_among_the_tools_is_told_how_to_be_one() -> None:
    """The likeliest mistake of somebody who wants a sub-agent."""
    with pytest.raises(ConfigError, match=r"\.as_tool\(…\) makes a tool of it"):
        Agent(model(), tools=wrong([Agent(model())]))


@pytest.mark.parametrize("answer", [None, "yes", 1, Approval(wrong("no"))])
def test_what_is_neither_a_yes_nor_a_no_lets_nothing_run(answer: object) -> None:
    """An approver in this process denies by it; who resumes, or hands in, is told."""
    asked = Agent(model(reply(call())), tools=[GATED], approve_tool_call=lambda _: wrong(answer))
    parked = Agent(model(reply(call())), tools=[GATED])
    leg = parked.generate_sync("go")
    history = [UserMessage("go"), *leg.messages]

    assert "denied" == asked.generate_sync("go").steps[0].tool_results[0].status
    with pytest.raises(ConfigError, match=r"approvals\['c0.0'\] is True, False or an Approval"):
        parked.resume_sync(leg, approvals={"c0.0": wrong(answer)})
    with pytest.raises(ConfigError, match=r"approvals\['c-1.0'\] is True, False or an Approval"):
        parked.generate_sync(messages=history, approvals={"c-1.0": wrong(answer)})
    for given in ([Approval(True)], "c0.0", True):
        with pytest.raises(ConfigError, match="`approvals` is a mapping"):
            parked.resume_sync(leg, approvals=wrong(given))
    assert "ok" == parked.resume_sync(leg, approvals={"c0.0": True}).steps[0].tool_results[0].status


async def test_a_run_is_taken_up_by_its_id_in_another_agent() -> None:
    """An approval may come days later, in another process."""
    store = MemoryStore()
    first = Agent(model(reply(call(), call("client"))), tools=[GATED, CLIENT], store=store)
    second = Agent(model(), tools=[GATED, CLIENT], store=store)

    await first.generate("go", run_id="r")
    leg = await second.resume("r", approvals={"c0.0": True})
    assert ["client_tool"] == [one.kind for one in leg.pending]
    result = await second.resume("r", tool_results={"c0.1": {"found": 3}})
    assert ("done", ["text", '{"found":3}']) == (
        result.text,
        [one.text for one in result.steps[0].tool_results],
    )


@pytest.mark.parametrize(
    "answers", [{"approvals": {"c9.9": True}}, {"tool_results": {"c0.0": "x"}}]
)
def test_an_answer_that_nobody_waits_for_is_refused(answers: dict[str, dict[str, bool]]) -> None:
    """A misspelled key must not look like a run that still waits."""

    async def resumed() -> None:
        agent = Agent(model(reply(call())), tools=[GATED])
        leg = await agent.generate("go")
        await agent.resume(leg, **wrong(answers))

    with pytest.raises(ConfigError, match="which the run does not wait for"):
        asyncio.run(resumed())


def test_edited_arguments_run_instead_of_the_model_s_and_are_checked() -> None:
    """On resume as well as live."""
    echo: Tool = Tool(
        name="read",
        parameters={"type": "object", "properties": {"x": {"type": "integer"}}},
        execute=same,
        needs_approval=True,
    )

    async def resumed(arguments: str) -> str:
        agent = Agent(model(reply(call(arguments='{"x": 1}'))), tools=[echo])
        leg = await agent.generate("go")
        result = await agent.resume(leg, approvals={"c0.0": Approval(True, "", arguments)})
        return result.steps[0].tool_results[0].text

    assert '{"x":2}' == asyncio.run(resumed('{"x": 2}'))
    with pytest.raises(ConfigError, match="the edited arguments fail"):
        asyncio.run(resumed('{"x": "two"}'))


def write() -> str:
    """Write."""
    raise OSError("disk full")


def asked_of(
    agent: Agent, prompt: str = "go"
) -> list[tuple[tuple[str, ...], ToolChoice, Settings]]:
    """Run, and return what each request offered, in whatever way it ended."""
    model = agent.model
    assert isinstance(model, ScriptedModel)
    asyncio.run(agent.stream(prompt).consume())
    return [
        (tuple(tool.name for tool in one.tools), one.tool_choice, one.settings)
        for one in model.requests
    ]


def test_the_options_of_a_request_take_effect() -> None:
    """Each on its own way: tools, choice, instructions, sampling."""
    said = ScriptedModel(["done"])
    agent = Agent(
        said,
        tools=[read, write],
        active_tools=["read"],
        tool_choice=ToolChoice("tool", "read"),
        instructions="be brief",
        max_tokens=9,
        temperature=0.5,
        top_p=0.9,
        stop_sequences=["END"],
        seed=7,
        provider_options={"top_k": 3},
    )

    assert [
        (
            ("read",),
            ToolChoice("tool", "read"),
            Settings(9, 0.5, 0.9, ("END",), 7, None, '{"top_k": 3}'),
        )
    ] == asked_of(agent)
    assert (SystemMessage("be brief"), UserMessage("go")) == tuple(said.requests[0].messages)


def test_the_options_around_a_run_take_effect() -> None:
    """Approver, listener, store, price and clock: each is asked, and nothing else is."""
    store, told, priced = MemoryStore(), list[object](), list[Reply]()
    clock = ticking()

    def price(answer: Reply) -> float:
        priced.append(answer)
        return 0.5

    def approve(pending: Pending) -> bool:
        told.append(pending.key)
        return True

    def listen(step: StepResult) -> None:
        told.append(step.index)

    agent = Agent(
        ScriptedModel([reply(call()), "done"]),
        tools=[GATED],
        approve_tool_call=approve,
        on_step_finish=listen,
        store=store,
        price=price,
        clock=clock,
    )

    result = asyncio.run(agent.generate("go", run_id="r"))

    assert ["c0.0", 0, 1] == told
    assert (2, 1.0) == (len(priced), result.cost_usd)
    assert result.run.at == clock.now == len(asyncio.run(store.load("r")))


def test_the_options_of_a_server_take_effect() -> None:
    """The key and the address are those that were given."""

    async def scenario() -> str:
        async with WireServer([json_answer(401, '{"error": {"message": "no"}}')]) as server:
            agent = Agent("openai:some-model", base_url=f"{server.url}/v1", api_key="k-1")
            with pytest.raises(AuthenticationFailed):
                await agent.generate("go")
            await agent.aclose()
            assert "/v1/chat/completions" == server.requests[0].path
            return server.requests[0].headers["authorization"]

    assert "Bearer k-1" == asyncio.run(scenario())


def test_a_key_for_a_ready_provider_would_have_no_effect_and_is_refused() -> None:
    """An option takes effect or complains."""
    with pytest.raises(ConfigError, match="api_key and base_url would have no effect"):
        Agent(ScriptedModel(["done"]), api_key="k", base_url="http://localhost")


@pytest.mark.parametrize("steps", [1, 2])
def test_the_step_limit_is_the_number_of_turns(steps: int) -> None:
    """The tools of the last turn run; the model is not asked again."""
    result = Agent(ScriptedModel([reply(call())] * 3), tools=[read], max_steps=steps).generate_sync(
        "go"
    )

    assert (EndReason.MAX_STEPS, ("max_steps",)) == (result.end_reason, result.stopped_by)
    assert [("text",)] * steps == [
        tuple(one.text for one in step.tool_results) for step in result.steps
    ]


@pytest.mark.parametrize("errors", [1, 2])
def test_a_tool_that_only_fails_stops_the_run(errors: int) -> None:
    """And says which tool it was."""
    result = Agent(
        ScriptedModel([reply(call("write"))] * 3), tools=[write], max_consecutive_tool_errors=errors
    ).generate_sync("go")

    assert (EndReason.TOOL_ERRORS, errors) == (result.end_reason, len(result.steps))
    assert ("tool_errors:write",) == result.stopped_by


@pytest.mark.parametrize(("limit", "most"), [(1, 1), (2, 2), (5, 3)])
def test_no_more_tools_run_at_once_than_are_allowed(limit: int, most: int) -> None:
    """Three calls in one turn."""
    running: list[int] = [0]
    seen: list[int] = []

    async def count(arguments: dict[str, object]) -> str:
        running[0] += 1
        seen.append(running[0])
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        running[0] -= 1
        return "text"

    tool = Tool(name="read", parameters={"type": "object"}, execute=count)
    script = ScriptedModel([reply(call(), call(), call()), "done"])

    Agent(script, tools=[tool], max_tool_concurrency=limit).generate_sync("go")

    assert (3, most) == (len(seen), max(seen))


def test_a_tool_that_is_not_active_is_neither_offered_nor_run() -> None:
    """A model may remember a tool that it was offered in another conversation."""
    said = ScriptedModel([reply(call("write")), "done"])

    result = Agent(said, tools=[read, write], active_tools=["read"]).generate_sync("go")

    assert [("read",), ("read",)] == [
        tuple(tool.name for tool in one.tools) for one in said.requests
    ]
    assert ["unknown_tool"] == [one.status for one in result.steps[0].tool_results]


@pytest.mark.parametrize(
    ("choice", "active", "found"),
    [
        (ToolChoice("tool", "write"), ["read"], "names 'write'"),
        ("required", [], "`active_tools`: expected a tool, found none"),
    ],
)
def test_a_choice_among_tools_that_are_not_active_is_refused(
    choice: ToolChoice, active: Sequence[str], found: str
) -> None:
    """The server would refuse every request, or worse, choose something else."""
    with pytest.raises(ConfigError, match=found):
        Agent(ScriptedModel([]), tools=[read, write], active_tools=active, tool_choice=choice)


def everything() -> AgentOptions:
    """Return options that are all set."""
    return {
        "tools": {"fetch": read, "write": write},
        "instructions": "be brief",
        "max_tokens": 9,
        "temperature": 1,
        "top_p": 1,
        "stop_sequences": ["END"],
        "seed": 7,
        "provider_options": {"top_k": 3},
        "gate": ask("fetch") | allow("write"),
        "approve_tool_call": None,
        "approval_ttl_s": 60,
        "approval_secret": b"secret",
        "budget": budget(tokens=10**6, usd=9, seconds=10**6, tool_calls=9, agent_calls=9),
        "rules": at_most("tool:*", 9),
        "max_agent_depth": 1,
        "step_timeout_s": 60,
        "on_bad_history": "refuse",
        "agents": {},
        "on_step_finish": None,
        "store": None,
        "api_key": None,
        "base_url": None,
        "timeouts": None,
        "retries": None,
        "price": lambda _: 0.0,
        "prices": {},
        "clock": ticking(),
        "name": "all",
        "max_steps": 2,
        "stop_when": [stop.step_count_is(9)],
        "max_consecutive_tool_errors": 2,
        "max_consecutive_denials": 2,
        "max_tool_concurrency": 2,
        "run_ungated": True,
        "fallback_models": [ScriptedModel([], label="spare")],
        "output_type": str,
        "output_mode": "native",
        "max_output_retries": 1,
        "done_when": lambda info: bool(info.text),
        "max_done_retries": 1,
        "verify": lambda info: info.output in {"one", "two"},
        "max_verify_retries": 1,
        "compaction": Compaction(10**6),
        "compact": lambda info: info.messages,
        "tool_choice": "auto",
        "active_tools": None,
        "prepare_step": None,
    }


def test_every_option_can_be_given_at_once_and_is_kept() -> None:
    """A new option that is forgotten here is found: the list is the type's own."""
    assert set(AgentOptions.__annotations__) == set(everything())

    said = ScriptedModel(['{"value": "one"}', '{"value": "two"}'])
    agent = Agent(said, **everything())
    again = agent.with_options(instructions="be long")

    assert ("one", "two") == (agent.generate_sync("a").output, again.generate_sync("b").output)
    assert ["fetch", "write"] == [tool.name for tool in said.requests[0].tools]
    systems = (SystemMessage("be brief"), SystemMessage("be long"))
    assert systems == tuple(one.messages[0] for one in said.requests)


def test_an_option_that_cannot_work_is_refused_in_a_copy_too() -> None:
    """`with_options` makes an agent like any other."""
    agent = Agent(ScriptedModel(["done"]))

    with pytest.raises(ConfigError, match="max_steps"):
        agent.with_options(max_steps=0)
    with pytest.raises(ConfigError, match="no option 'max_step'"):
        agent.with_options(**wrong({"max_step": 1}))
    assert "done" == agent.generate_sync("go").text


def prepared(
    prepare: Callable[[StepInfo], StepChanges | None], *replies: Entry, tools: bool = True
) -> ScriptedModel:
    """Run an agent of several turns with this function; return its model."""
    said = ScriptedModel(replies)
    Agent(said, tools=[read, write] if tools else [], prepare_step=prepare).generate_sync("go")
    return said


def first_only(changes: StepChanges) -> Callable[[StepInfo], StepChanges | None]:
    """Return a function that changes the first turn and no other."""
    return lambda info: changes if info.step_index == 0 else None


def test_what_is_changed_for_a_turn_holds_for_that_turn_only() -> None:
    """Tools, choice and model go back; messages stay."""
    other = ScriptedModel([reply(call())], label="other")
    changes = StepChanges(
        messages=[UserMessage("short")],
        active_tools=["read"],
        tool_choice=ToolChoice("tool", "read"),
        model=other,
    )

    said = prepared(first_only(changes), "done")

    first, second = other.requests[0], said.requests[0]
    assert (["read"], ToolChoice("tool", "read")) == (
        [tool.name for tool in first.tools],
        first.tool_choice,
    )
    assert (["read", "write"], ToolChoice()) == (
        [tool.name for tool in second.tools],
        second.tool_choice,
    )
    assert (UserMessage("short"),) == tuple(first.messages)
    assert tuple(first.messages) == tuple(second.messages)[:1]
    assert 3 == len(second.messages)


def always(changes: StepChanges | None, info: StepInfo) -> StepChanges | None:
    """Change every turn the same way."""
    return changes


def test_a_function_that_changes_nothing_changes_nothing() -> None:
    """None and empty changes are the same."""
    without = asked_of(Agent(ScriptedModel([reply(call()), "done"]), tools=[read, write]))

    for answer in (None, StepChanges()):
        said = ScriptedModel([reply(call()), "done"])
        agent = Agent(said, tools=[read, write], prepare_step=partial(always, answer))
        assert without == asked_of(agent)


def test_a_prepare_step_is_told_the_turn_the_messages_and_the_usage() -> None:
    """What it needs to decide: how far, with what, at what price."""
    told: list[StepInfo] = []

    def prepare(info: StepInfo) -> None:
        told.append(info)

    prepared(prepare, reply(call()), reply("done"))

    assert [0, 1] == [info.step_index for info in told]
    assert [1, 3] == [len(info.messages) for info in told]
    assert [Usage(), Usage(10, 5)] == [info.usage for info in told]


@pytest.mark.parametrize("later", [False, True], ids=["sync", "async"])
def test_a_prepare_step_that_raises_fails_the_run_with_its_own_exception(later: bool) -> None:
    """The very object: the caller's `except` clause must match."""
    mine = LookupError("no such plan")
    said = ScriptedModel(["done"])

    def fail(info: StepInfo) -> None:
        raise mine

    async def fail_later(info: StepInfo) -> None:
        fail(info)

    with pytest.raises(LookupError) as raised:
        Agent(said, prepare_step=fail_later if later else fail).generate_sync("go")

    assert raised.value is mine
    assert [] == said.requests


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        ({"messages": []}, "StepChanges or None; found dict"),
        (StepChanges(messages=wrong("short")), "`messages` is a list"),
        (StepChanges(messages=[]), "`messages` is empty"),
        (StepChanges(active_tools=["gone"]), "names 'gone'"),
        (StepChanges(tool_choice=ToolChoice("tool", "gone")), "names 'gone'"),
        (
            StepChanges(tool_choice=ToolChoice("required", scope="first_step")),
            "has no effect in the middle of a run",
        ),
        (StepChanges(tool_choice=wrong("bogus")), "`tool_choice`: expected"),
        (StepChanges(active_tools=[], tool_choice="required"), "there are no tools"),
        (StepChanges(active_tools=[], tool_choice=ToolChoice("tool", "read")), "names 'read'"),
        (StepChanges(model="nobody:x"), "expected a provider"),
    ],
)
def test_a_change_that_cannot_work_is_named_and_nothing_is_sent(
    changes: object, found: str
) -> None:
    """A turn that ignored it would look like one that obeyed."""
    said = ScriptedModel(["done"])

    with pytest.raises(ConfigError, match=found):
        Agent(said, tools=[read], prepare_step=lambda _: wrong(changes)).generate_sync("go")

    assert [] == said.requests


def test_a_turn_without_the_tool_that_must_be_called_is_refused() -> None:
    """The agent's own choice, which the turn did not change, would be dropped in silence."""
    said = ScriptedModel(["done"])
    agent = Agent(
        said,
        tools=[read],
        tool_choice="required",
        prepare_step=lambda _: StepChanges(active_tools=[]),
    )

    with pytest.raises(ConfigError, match="there are no tools"):
        agent.generate_sync("go")

    assert [] == said.requests


def test_a_choice_of_a_turn_is_made_among_the_tools_of_the_agent() -> None:
    """A tool that is not active cannot be demanded, and one that is can."""
    said = ScriptedModel([reply(call()), "done"])
    agent = Agent(
        said,
        tools=[read, write],
        active_tools=["read"],
        prepare_step=first_only(StepChanges(tool_choice=ToolChoice("tool", "read"))),
    )
    other = agent.with_options(
        prepare_step=first_only(StepChanges(tool_choice=ToolChoice("tool", "write")))
    )

    with pytest.raises(ConfigError, match="names 'write'"):
        other.generate_sync("go")
    agent.generate_sync("go")

    assert ToolChoice("tool", "read") == said.requests[0].tool_choice


def enough(info: StopInfo) -> bool:
    """Stop at once."""
    return info.step_count > 0


UNNAMED: Callable[[StopInfo], bool] = lambda info: info.step_count > 0  # noqa: E731 - no name


async def enough_later(info: StopInfo) -> bool:
    """Stop at once, in an async function."""
    await asyncio.sleep(0)
    return info.step_count > 0


@pytest.mark.parametrize(
    ("condition", "name"),
    [
        (stop.step_count_is(1), "step_count_is"),
        (stop.total_tokens_exceed(15), "total_tokens_exceed"),
        (stop.cost_exceeds(0.25), "cost_exceeds"),
        (stop.duration_exceeds(1), "duration_exceeds"),
        (enough, "enough"),
        (enough_later, "enough_later"),
        (partial(enough), "custom"),
        (UNNAMED, "custom"),
    ],
)
def test_one_condition_stops_the_run_and_is_named(
    condition: Callable[[StopInfo], bool], name: str
) -> None:
    """What has no name of its own is `custom`."""
    agent = Agent(
        ScriptedModel([reply(call()), "done"]),
        tools=[read],
        stop_when=condition,
        price=lambda _: 0.25,
        clock=ticking(),
    )

    result = agent.generate_sync("go")

    assert (EndReason.STOP_CONDITION, (name,)) == (result.end_reason, result.stopped_by)
    assert 1 == len(result.steps[0].tool_results)


def test_everything_that_tripped_is_told() -> None:
    """Who raises one bound wants to know which is next."""
    agent = Agent(
        ScriptedModel([reply(call("write"))]),
        tools=[write],
        max_steps=1,
        max_consecutive_tool_errors=1,
        stop_when=[enough, stop.has_tool_call("write"), enough_later, stop.step_count_is(9)],
    )

    result = agent.generate_sync("go")

    assert EndReason.TOOL_ERRORS is result.end_reason
    assert (
        "tool_errors:write",
        "max_steps",
        "has_tool_call",
        "enough",
        "enough_later",
    ) == result.stopped_by


def test_a_condition_that_does_not_hold_changes_nothing() -> None:
    """The loop ends by itself."""
    agent = Agent(
        ScriptedModel([reply(call()), "done"]),
        tools=[read, write],
        stop_when=[stop.has_tool_call("write"), lambda _: False],
    )

    result = agent.generate_sync("go")

    assert (EndReason.COMPLETED, ()) == (result.end_reason, result.stopped_by)


@pytest.mark.parametrize("later", [False, True], ids=["sync", "async"])
def test_a_stop_predicate_that_raises_fails_the_run_with_its_own_exception(later: bool) -> None:
    """The very object, and no further request."""
    mine = LookupError("bug")
    said = ScriptedModel([reply(call()), "done"])

    def fail(info: StopInfo) -> bool:
        raise mine

    async def fail_later(info: StopInfo) -> bool:
        return fail(info)

    with pytest.raises(LookupError) as raised:
        Agent(said, tools=[read], stop_when=fail_later if later else fail).generate_sync("go")

    assert (raised.value is mine, 1) == (True, len(said.requests))


async def test_a_synchronous_call_in_an_event_loop_says_what_to_await() -> None:
    """A notebook has a loop already; and nothing is left behind that was never awaited."""
    said = ScriptedModel(["done"])

    with pytest.raises(ConfigError, match=r"await Agent\.generate"):
        Agent(said).generate_sync("go")
    # A coroutine that was never awaited warns when it is collected: an error in this suite.
    gc.collect()
    assert [] == said.requests


class Counting:
    """A provider of the user's that counts how often it is closed."""

    def __init__(self, *replies: Entry, label: str = "script") -> None:
        self.script = ScriptedModel(replies, label=label)
        self.label = label
        self.session = self.script.session
        self.closed = 0

    async def aclose(self) -> None:
        """Count."""
        self.closed += 1


@pytest.mark.parametrize("entry", ["done", ValueError("broken")])
def test_a_synchronous_call_closes_connections_before_its_loop_does(entry: Entry) -> None:
    """They belong to the loop that ends; the provider can be used again."""
    one = Counting(entry, "done")
    agent = Agent(one)

    if isinstance(entry, Exception):
        with pytest.raises(ValueError, match="broken"):
            agent.generate_sync("go")
    else:
        agent.generate_sync("go")

    assert 1 == one.closed
    assert "done" == agent.generate_sync("go").text


async def test_closing_an_agent_closes_all_its_models() -> None:
    """Those of single turns, too."""
    own, other = Counting("done"), Counting(reply(call()), label="other")
    agent = Agent(own, tools=[read], prepare_step=first_only(StepChanges(model=other)))

    await agent.generate("go")
    assert (0, 0) == (own.closed, other.closed)
    await agent.aclose()
    assert (1, 1) == (own.closed, other.closed)


async def test_an_agent_is_not_changed_by_its_runs() -> None:
    """Ask it from as many tasks as you like; the caller's lists stay the caller's."""
    tools, sequences = [read], ["END"]
    said = ScriptedModel([reply(call()), "done"], restart=True)
    agent = Agent(said, tools=tools, stop_sequences=sequences)
    tools.clear()
    sequences.clear()

    async with asyncio.TaskGroup() as group:
        one, two = (group.create_task(agent.generate("go")) for _ in range(2))
    assert ("done", "done") == (one.result().text, two.result().text)
    assert [1] * 4 == [len(one.tools) for one in said.requests]


def test_a_conversation_goes_on_with_what_the_run_added() -> None:
    """`messages` are the new ones only, in a form that is taken back as it is."""
    said = ScriptedModel([reply(call()), "done", "more"])
    agent = Agent(said, tools=[read])
    first = agent.generate_sync("go")

    agent.generate_sync(
        messages=[UserMessage("go"), *first.messages, {"role": "user", "content": "on"}]
    )

    assert tuple(said.requests[1].messages) == tuple(said.requests[2].messages)[:3]
    assert UserMessage("on") == said.requests[2].messages[-1]


async def test_a_resumed_stream_can_be_looked_at() -> None:
    """The same run, the same id, and turns that count on."""
    agent = Agent(ScriptedModel([reply(call()), "done"]), tools=[GATED])

    first = await agent.generate("go", run_id="r")
    one = agent.resume_stream(first, approvals={"c0.0": Approval(approved=True)})
    parts = [part async for part in one.full_stream]
    assert "r" == (await one.result()).run_id
    kinds = [part.type for part in parts]
    assert ("run-start", "finish") == (kinds[0], kinds[-1])
    assert kinds.index("tool-result") < kinds.index("step-start")


def test_timeouts_and_retries_go_to_a_model_given_by_name_only() -> None:
    """A ready provider has its own; an option without effect must say so."""
    Agent("openai:x", api_key="k", timeouts=Timeouts(total_s=5.0), retries=Retries(attempts_max=1))

    with pytest.raises(ConfigError, match="timeouts"):
        Agent(ScriptedModel(["x"]), timeouts=Timeouts())


def test_an_agent_s_options_do_not_show_its_key() -> None:
    """Options are printed when something goes wrong, and then sent to somebody."""
    agent = Agent("openai:x", api_key="supersecret-key-0123456789")

    assert "supersecret" not in repr(agent.options)
    assert "supersecret" not in repr(agent.with_options(max_steps=3).options)
    assert "supersecret" not in repr(agent) + repr(vars(agent.with_options(name="n").graph))


def gated(gate: Policy, *names: str, **options: Any) -> tuple[RunResult[None], list[str]]:
    """Run these calls in one turn behind a gate; return the statuses of their results."""
    said = ScriptedModel([reply(*(call(name, name) for name in names)), "done"])
    result = Agent(said, tools=[read, again], gate=gate, **options).generate_sync("go")
    return result, [one.status for one in result.steps[0].tool_results] if result.steps else []


def again() -> str:
    """Read again."""
    return "again"


def yes(_: Pending) -> bool:
    """Approve."""
    return True


def is_first(arguments: object, context: ToolContext) -> bool:
    """Whether it is the first turn."""
    return context.turn == 0


def is_broken(arguments: object, context: ToolContext) -> bool:
    """Fail to say."""
    raise LookupError("bug")


@pytest.mark.parametrize(
    ("gate", "statuses"),
    [
        (allow("read", "again"), ["ok", "ok"]),
        (allow("read"), ["ok", "denied"]),
        (deny("read", reason="no") | allow("*"), ["denied", "ok"]),
        (allow("r*") | deny("*"), ["ok", "denied"]),
        (allow("read", when=is_first), ["ok", "denied"]),
        (allow("read", when=is_broken), ["denied", "denied"]),
    ],
)
def test_a_gate_decides_about_every_call(gate: Policy, statuses: list[str]) -> None:
    """The first rule that matches; what none matches is denied."""
    assert statuses == gated(gate, "read", "again")[1]


def test_a_gate_that_asks_parks_the_run_or_asks_the_approver() -> None:
    """As a tool's own wish for approval does."""
    parked, _ = gated(ask("read") | allow("*"), "read")
    live, statuses = gated(ask("read"), "read", approve_tool_call=yes)

    assert ["c0.0"] == [one.key for one in parked.pending]
    assert (["ok"], EndReason.COMPLETED) == (statuses, live.end_reason)


def test_an_approval_comes_too_late_after_its_time() -> None:
    """And denies: a yes of yesterday is no yes to today's world."""
    now = [100.0]
    agent = Agent(
        ScriptedModel([reply(call()), "done"], restart=True),
        tools=[GATED],
        approval_ttl_s=5,
        clock=lambda: now[0],
    )

    async def answered_after(seconds: float) -> str:
        now[0] = 100.0
        parked = await agent.generate("go")
        assert (105.0,) == tuple(one.expires_at for one in parked.pending)
        now[0] += seconds
        result = await agent.resume(parked, approvals={"c0.0": True})
        return result.steps[0].tool_results[0].status

    assert "ok" == asyncio.run(answered_after(4))
    assert "denied" == asyncio.run(answered_after(5))


def test_with_a_secret_only_a_signed_approval_of_this_call_counts() -> None:
    """Whoever can write into the store, or guess a key, cannot approve."""
    agent = Agent(
        ScriptedModel([reply(call()), "done"], restart=True),
        tools=[GATED],
        approval_secret=b"secret",
    )
    other = agent.with_options(approval_secret=b"another")

    async def answered(answer: Callable[[Pending], object], asking: Agent = agent) -> str:
        (pending,) = (await asking.generate("go", run_id="r")).pending
        parked = await agent.generate("go", run_id="r")
        result = await agent.resume(parked, approvals={"c0.0": wrong(answer(pending))})
        return result.steps[0].tool_results[0].status

    assert "ok" == asyncio.run(answered(lambda pending: pending.approve()))
    assert "denied" == asyncio.run(
        answered(lambda pending: replace(pending.approve(), token=f"{pending.token}x"))
    )
    assert "denied" == asyncio.run(answered(lambda pending: pending.approve(), other))


@pytest.mark.parametrize(
    ("limit", "tripped"),
    [
        (budget(tokens=15), "budget.tokens"),
        (budget(usd=0.25), "budget.usd"),
        (budget(seconds=1), "budget.seconds"),
        (budget(tool_calls=1), "budget.tool_calls"),
    ],
)
def test_a_budget_ends_the_run_by_name(limit: Budget, tripped: str) -> None:
    """Whatever it is that is used up."""
    agent = Agent(
        ScriptedModel([reply(call())] * 9),
        tools=[read],
        budget=limit,
        price=lambda _: 0.25,
        clock=ticking(),
    )

    result = agent.generate_sync("go")

    # A run that has made all its calls may still answer; the call after them finds no room.
    steps = 2 if tripped == "budget.tool_calls" else 1
    assert (EndReason.BUDGET, (tripped,), steps) == (
        result.end_reason,
        result.stopped_by,
        len(result.steps),
    )


def test_a_reply_starts_no_more_agents_than_the_budget_allows() -> None:
    """However many it asks for: the others are told why not, and the run ends by its budget."""
    helper = Agent(ScriptedModel(["help"] * 9, label="h"), name="helper")
    asked = [call("helper", str(at), '{"prompt": "?"}') for at in range(40)]
    agent = Agent(
        ScriptedModel([reply(*asked), "never asked"]),
        tools=[helper.as_tool(description="helps")],
        budget=budget(agent_calls=3),
    )

    result = agent.generate_sync("go")

    assert (EndReason.BUDGET, ("budget.agent_calls",)) == (result.end_reason, result.stopped_by)
    assert 3 == result.run.spent.agent_calls
    assert ["ok"] * 3 + ["not_run"] * 37 == [one.status for one in result.steps[0].tool_results]


def test_a_run_that_needs_all_its_agent_calls_answers() -> None:
    """Those of its agents among them: one calls another, which is as many calls as there are."""
    leaf = Agent(ScriptedModel(["deep"], label="l"), name="leaf")
    middle = Agent(
        ScriptedModel([reply(call("leaf", "x", '{"prompt": "?"}')), "one"], label="m"),
        name="middle",
        tools=[leaf.as_tool(description="helps")],
    )
    agent = Agent(
        ScriptedModel([reply(call("middle", "x", '{"prompt": "?"}')), "The answer"]),
        tools=[middle.as_tool(description="helps")],
        budget=budget(agent_calls=2),
    )

    result = agent.generate_sync("go")

    assert ("The answer", EndReason.COMPLETED) == (result.text, result.end_reason)
    assert 2 == result.run.spent.agent_calls


def test_a_run_that_needs_all_its_tool_calls_answers() -> None:
    """So does each of its children with its share."""
    helper = Agent(ScriptedModel([reply(call()), "one"], label="h"), name="helper", tools=[read])
    calls = [call("helper", "x", '{"prompt": "?"}'), call()]
    agent = Agent(
        ScriptedModel([reply(*calls), "The answer"]),
        tools=[read, helper.as_tool(description="helps")],
        budget=budget(tool_calls=2),
    )

    result = agent.generate_sync("go")

    assert ("The answer", EndReason.COMPLETED) == (result.text, result.end_reason)
    assert ["one"] == [one.text for one in result.steps[0].tool_results if one.name == "helper"]


@pytest.mark.parametrize(("depth", "statuses"), [(0, ["error"]), (1, ["ok"])])
def test_agents_stand_no_deeper_than_is_allowed(depth: int, statuses: list[str]) -> None:
    """A recursion that nobody meant ends, and is told."""
    helper = Agent(ScriptedModel(["help"], label="h"), name="helper").as_tool(description="helps")
    agent = Agent(
        ScriptedModel([reply(call("helper", "x", '{"prompt": "?"}')), "done"]),
        tools=[helper],
        max_agent_depth=depth,
    )

    result = agent.generate_sync("go")

    assert statuses == [one.status for one in result.steps[0].tool_results]


def test_a_turn_that_takes_too_long_is_given_up() -> None:
    """Its calls are answered, and the run says why it ended."""

    async def hang() -> str:
        """Hang."""
        await asyncio.Event().wait()
        return "never"

    agent = Agent(
        ScriptedModel([reply(call("hang"))]),
        tools=[hang],
        step_timeout_s=0.01,
    )

    result = agent.generate_sync("go")

    assert EndReason.TIMEOUT is result.end_reason
    assert 1 == len(result.steps[0].tool_results)
    assert ["assistant", "tool"] == [one.role for one in result.messages]


DANGLING: list[MessageInput] = [
    {"role": "user", "content": "go"},
    {"role": "tool", "tool_call_id": "x", "content": "?"},
]


def test_a_bad_history_is_mended_with_a_warning_or_refused() -> None:
    """It is never sent."""
    said = ScriptedModel(["done"])
    agent = Agent(said)

    result = agent.generate_sync(messages=DANGLING)

    assert [UserMessage("go")] == list(said.requests[0].messages)
    assert 1 == len(result.warnings)
    with pytest.raises(ConfigError, match="on_bad_history='refuse'"):
        agent.with_options(on_bad_history="refuse").generate_sync(messages=DANGLING)
    assert 1 == len(said.requests)


def test_the_caller_s_prices_price_models_that_no_table_knows() -> None:
    """By the name that the reply gives."""
    said = ScriptedModel([evolve(reply("done"), model="mine", usage=Usage(1_000_000, 0))])

    assert 3.0 == Agent(said, prices={"mine": ModelPrice(3, 1)}).generate_sync("go").cost_usd


@pytest.mark.parametrize("limit", [1, 2])
def test_a_model_that_is_only_denied_is_stopped(limit: int) -> None:
    """It would ask for ever."""
    agent = Agent(
        ScriptedModel([reply(call())] * 9),
        tools=[read],
        gate=deny("*"),
        max_consecutive_denials=limit,
    )

    result = agent.generate_sync("go")

    assert (EndReason.DENIALS, ("denials",), limit) == (
        result.end_reason,
        result.stopped_by,
        len(result.steps),
    )


@pytest.mark.parametrize(("ungated", "ran"), [(False, []), (True, ["again"])])
async def test_calls_that_wait_for_nobody_run_first_if_that_is_wanted(
    ungated: bool, ran: list[str]
) -> None:
    """By default the whole turn waits for the human (CONTRACT §9 #21)."""
    seen: list[str] = []

    def note(_: object) -> str:
        seen.append("again")
        return "again"

    other: Tool[..., object] = Tool(name="again", parameters={"type": "object"}, execute=note)
    agent = Agent(
        ScriptedModel([reply(call(), call("again")), "done"]),
        tools=[GATED, other],
        run_ungated=ungated,
    )

    parked = await agent.generate("go")
    assert (ran, EndReason.PARKED) == (seen, parked.end_reason)
    result = await agent.resume(parked, approvals={"c0.0": True})

    assert ["text", "again"] == [one.text for one in result.steps[0].tool_results]
    assert ["again"] == seen


def test_the_next_model_is_asked_when_one_cannot_be() -> None:
    """Call by call, in order; what has run is not run again."""
    ran: list[int] = []

    def note(_: object) -> str:
        ran.append(1)
        return "text"

    first = ScriptedModel([reply(call()), Overloaded("busy"), "never"])
    second = ScriptedModel([Overloaded("busy")], label="second")
    third = ScriptedModel(["from the third"], label="third")
    tool: Tool[..., object] = Tool(name="read", parameters={"type": "object"}, execute=note)

    result = Agent(first, tools=[tool], fallback_models=[second, third]).generate_sync("go")

    assert ("from the third", [1]) == (result.text, ran)
    assert [2, 1, 1] == [len(one.requests) for one in (first, second, third)]


def test_a_request_that_no_model_would_take_is_not_sent_to_the_next() -> None:
    """It is the caller's to mend."""
    other = ScriptedModel(["never"], label="other")

    with pytest.raises(AuthenticationFailed):
        Agent(ScriptedModel([AuthenticationFailed("no")]), fallback_models=[other]).generate_sync(
            "go"
        )

    assert [] == other.requests


def test_a_choice_may_hold_for_the_first_turn_only() -> None:
    """`required` in every turn lets no run end of itself."""
    said = ScriptedModel([reply(call()), "done"])

    Agent(said, tools=[read], tool_choice=ToolChoice("required", scope="first_step")).generate_sync(
        "go"
    )

    assert ["required", "auto"] == [one.tool_choice.mode for one in said.requests]


TALK: list[Message] = [
    UserMessage("word " * 400),
    AssistantMessage((TextPart("word " * 400),)),
    UserMessage("go"),
    AssistantMessage((TextPart("yes"),)),
    UserMessage("on"),
]


def test_a_long_conversation_is_made_shorter_before_it_is_sent() -> None:
    """By its layers; what the run has added stays whole."""
    said = ScriptedModel(["in short", "done"])

    result = Agent(said, compaction=Compaction(1_000, keep_recent_turns=1)).generate_sync(
        messages=TALK
    )

    assert ("done", 1, 1) == (result.text, len(result.messages), len(result.steps))
    told = [one for one in said.requests[1].messages if isinstance(one, UserMessage)]
    (summary,) = [one.content for one in told if one.origin == "compact"]
    assert "in short" in str(summary)


def test_a_model_may_be_named_that_summarises() -> None:
    """A cheaper one, that is known as a fallback or by its name."""
    said, cheap = ScriptedModel(["done"]), ScriptedModel(["in short"], label="cheap")
    agent = Agent(
        said,
        compaction=Compaction(1_000, keep_recent_turns=1, summary_model="cheap"),
        fallback_models=[cheap],
    )

    result = agent.generate_sync(messages=TALK)

    assert ("done", 1, 1) == (result.text, len(cheap.requests), len(said.requests))
