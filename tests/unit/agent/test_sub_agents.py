"""Agents as tools: what a child inherits, what it answers, and what it may not do."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from typing import Unpack

import pytest

from graphloop import (
    END,
    Agent,
    EndReason,
    Graph,
    Pending,
    Policy,
    RunResult,
    Tool,
    ToolContext,
    agent_tool,
    allow,
    ask,
    budget,
    deny,
    tool,
)
from graphloop.agent.inherited_limits import (
    REASON,
    beyond_watch,
    gates_below,
    offered_below,
    refuse_other_rules,
    setup_below,
)
from graphloop.agent.options import AgentOptions, RunOptions
from graphloop.agent.sub_agents import AgentTool
from graphloop.driver.ports import Ports
from graphloop.effects import StartRun
from graphloop.errors import ConfigError
from graphloop.events import Setup
from graphloop.graph import Edges
from graphloop.loop import Standard, standard_edges
from graphloop.nodes import Append, ModelCall, PrepareStep
from graphloop.outcomes import Answered, Ready
from graphloop.parts.parts import Finish, Part, RunStart, SubAgent, ToolResultPart
from graphloop.providers.base import TextDelta
from graphloop.providers.script import Entry
from graphloop.rules import Never, Rules, never
from graphloop.run import History
from graphloop.spending import Budget
from graphloop.stores.memory import MemoryStore
from graphloop.testing import ScriptedModel
from graphloop.tools.tool import AnyTool
from graphloop.tools.toolbox import Toolbox
from graphloop.values import (
    AssistantMessage,
    FinishReason,
    Message,
    Reply,
    SystemMessage,
    TextPart,
    ToolResult,
    ToolSpec,
    Usage,
    UserMessage,
    evolve,
)
from tests.agent_tree import Ledger, Plans, batch, tree
from tests.nested_graphs import nest
from tests.strategies import call, fresh, replied, reply, said, wrong


def kid(*script: Entry, takes_over: bool = False, **options: Unpack[AgentOptions]) -> AgentTool:
    """Return an agent as a tool."""
    own: AgentOptions = {**options, "name": "kid"}
    agent = Agent(ScriptedModel(script, label="kid's"), **own)
    return agent.as_tool(description="looks things up", takes_over=takes_over)


@pytest.mark.parametrize(
    ("takes_over", "arguments", "issue"),
    [
        (False, "{}", "prompt"),
        (False, '{"prompt": 1}', "prompt"),
        (False, '{"prompt": "a", "more": 1}', "more"),
        (False, "[]", "object"),
        (True, '{"prompt": "a"}', "prompt"),
        (False, '{"prompt": "a"}', None),
        (True, "{}", None),
        (True, "", None),
    ],
)
def test_an_agent_is_told_a_task_and_nothing_else(
    takes_over: bool, arguments: str, issue: str | None
) -> None:
    """The model that calls it reads what was wrong."""
    found = kid(takes_over=takes_over).tool.validate(arguments)

    assert found is None if issue is None else issue in (found or "")


ASK = reply(call("kid", "k", '{"prompt": "look"}'))


def asked(child: AgentTool, *script: Entry, **options: Unpack[AgentOptions]) -> RunResult[None]:
    """Return the result of a run that calls the child once, and then is done."""
    own: AgentOptions = {**options, "tools": [child]}
    agent = Agent(ScriptedModel(script or (ASK, "done")), **own)
    return asyncio.run(agent.generate("go"))


def test_whether_a_task_needs_approval_may_depend_on_it() -> None:
    """A predicate is given the task as a mapping, as those of other tools are."""
    seen: list[object] = []

    def careful(arguments: dict[str, str], context: ToolContext) -> bool:
        seen.append(arguments)
        return arguments["prompt"] == "look"

    agent = Agent(ScriptedModel(["fine"], label="kid's"), name="kid")
    result = asked(agent.as_tool(description="helps", needs_approval=careful))

    assert EndReason.PARKED is result.end_reason
    assert [{"prompt": "look"}] == seen


def test_what_agents_are_told_is_compiled_once() -> None:
    """Some programs make a tool of an agent in every request; no schema checker is loaded."""
    assert kid().tool.spec.parameters is kid("x").tool.spec.parameters
    code = (
        "import sys; from graphloop import Agent; from graphloop.testing import ScriptedModel; "
        "Agent(ScriptedModel([]), name='kid').as_tool(description='helps'); "
        "print('jsonschema' in sys.modules)"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "False" == told.stdout.strip()


def answer(result: RunResult[None]) -> ToolResult:
    """Return the child's answer."""
    return result.steps[0].tool_results[0]


async def test_an_agent_tool_is_an_agent_as_a_tool() -> None:
    """With all the options of an agent, which are checked at once; it may have another name."""
    model = ScriptedModel(["42"], label="kid's")
    child = agent_tool(
        model, name="kid", description="knows", instructions="be brief", needs_approval=True
    )
    spy = {"spy": child}
    script: list[Entry] = [reply(call("spy", "", '{"prompt": "x"}')), "done"]

    result = await Agent(
        ScriptedModel(script), tools=spy, approve_tool_call=lambda _: True
    ).generate("go")

    assert "42" == answer(result).content
    assert [SystemMessage("be brief"), UserMessage("x")] == list(model.requests[0].messages)
    assert ("kid", "knows", "agent") == (child.name, *_told(child))
    assert (True, False) == (child.tool.needs_approval, child.takes_over)
    for options in ({"max_steps": 0}, {"max_stpes": 3}):
        with pytest.raises(ConfigError, match="max_st"):
            agent_tool(ScriptedModel([]), description="d", **wrong(options))


def _told(child: AgentTool) -> tuple[str, str]:
    return child.tool.spec.description, child.tool.spec.kind


def test_a_child_is_a_run_of_its_own() -> None:
    """D10: with a journal under its parent's id and its call's key, seen in the result."""
    store = MemoryStore()

    result = asked(kid("42"), store=store)

    child_id = f"{result.run_id}/c0.0"
    assert [result.run_id, child_id] == sorted(asyncio.run(store.runs()))
    assert "42" == result.children[child_id].record.steps[0].text
    assert 1 == result.children[child_id].setup.depth


def half(answered: Reply) -> float:
    """Price any reply alike."""
    return 0.5


def test_a_child_s_tokens_cost_and_calls_are_its_parent_s() -> None:
    """D06, §9 #24: those of a child that failed, too."""
    tools = [Ledger().tool("note")]

    good = asked(kid(reply(call("note")), "42", tools=tools, price=half), price=half)
    bad = asked(kid(reply(call("note")), OSError("line"), tools=tools, price=half), price=half)

    assert (4, 1) == (good.run.spent.model_calls, good.run.spent.tool_calls)
    assert 2.0 == good.cost_usd
    assert 4 * 10 == good.run.spent.usage.input_tokens
    assert (3, 1) == (bad.run.spent.model_calls, bad.run.spent.tool_calls)
    assert 1.5 == bad.cost_usd
    assert ("error", "The agent failed: OSError: line") == (answer(bad).status, answer(bad).content)
    assert "done" == bad.text


def test_a_child_that_refuses_is_an_error_its_parent_can_read() -> None:
    """And no answer."""
    result = asked(kid(reply("I will not", finish=FinishReason.REFUSAL)))

    assert "error" == answer(result).status
    assert "refusal" in str(answer(result).content)


PATH: Plans = {"go": [batch("kid")], "kid": [batch("leaf")], "leaf": [batch("note"), "deep"]}


def test_everything_below_is_seen_in_the_one_stream_with_its_way() -> None:
    """D02: one wrapper at any depth, deltas included, each run from its start to its finish."""

    async def parts() -> list[Part]:
        stream = tree(Ledger(), PATH).stream("go")
        return [part async for part in stream.full_stream]

    seen = [one for one in asyncio.run(parts()) if isinstance(one, SubAgent)]

    deep = [one.part for one in seen if one.path == ("c0.0", "c0.0")]
    assert {("kid",), ("kid", "leaf")} == {one.agents for one in seen}
    assert isinstance(deep[0], RunStart)
    assert isinstance(deep[-1], Finish)
    assert "deep" in "".join(one.text for one in deep if isinstance(one, TextDelta))
    assert ["note is done"] == [
        one.result.content for one in deep if isinstance(one, ToolResultPart)
    ]
    assert not any(isinstance(one.part, SubAgent) for one in seen)


@pytest.mark.parametrize(("depth", "ran"), [(0, 0), (1, 0), (2, 1), (3, 1)])
def test_agents_call_agents_no_deeper_than_the_root_lets_them(depth: int, ran: int) -> None:
    """D03: the call is answered with the reason, and the model goes on."""
    ledger = Ledger()

    result = asyncio.run(tree(ledger, PATH, root={"max_agent_depth": depth}).generate("go"))

    assert ran == ledger.names["note"]
    assert min(depth, 2) == len(result.children)
    assert EndReason.COMPLETED is result.end_reason


def test_a_child_cannot_raise_the_depth_that_its_parent_set() -> None:
    """Nor can a parent make a child's own limit wider."""
    ledger = Ledger()
    wide = tree(ledger, PATH, kid={"max_agent_depth": 9}, root={"max_agent_depth": 1})
    narrow = tree(ledger, PATH, kid={"max_agent_depth": 0}, root={"max_agent_depth": 9})

    asyncio.run(wide.generate("go"))
    asyncio.run(narrow.generate("go"))

    assert 0 == ledger.names["note"]


async def _noted(arguments: dict[str, object]) -> str:
    return "noted"


def gated(amount: int, above: Policy | None, own: Policy | None, *, as_graph: bool) -> list[str]:
    """Return how a note of this amount ended in a child, an agent or a graph, under these gates."""
    note = Tool(name="note", parameters={"type": "object"}, execute=_noted)
    script: list[Entry] = [reply(call("note", "", f'{{"amount": {amount}}}')), "42"]
    child_tool = kid(*script, tools=[note], gate=own)
    if as_graph:
        options: RunOptions = {"tools": [note]}
        if own is not None:
            options["gate"] = own
        nodes = Standard()
        child_tool = Graph("kid", nodes.prepare, standard_edges(nodes)).as_tool(
            None,
            model=ScriptedModel(script, label="kid's"),
            description="looks things up",
            **options,
        )
    result = asked(child_tool, gate=above)
    (child,) = result.children.values()
    return [one.status for one in child.record.steps[0].tool_results]


def lower(amount: int) -> Policy:
    """Return a gate that lets notes through up to an amount; its condition has always one name."""

    def small(arguments: dict[str, int], context: ToolContext) -> bool:
        return arguments.get("amount", 0) <= amount

    return allow("note*", when=small) | allow("kid*")


@pytest.mark.parametrize("as_graph", [False, True], ids=["agent", "graph"])
@pytest.mark.parametrize(
    ("amount", "above", "own", "status"),
    [
        (5, None, None, "ok"),
        (5, None, deny("note"), "denied"),
        (5, lower(10), None, "ok"),
        (50, lower(10), None, "denied"),
        (50, lower(10), lower(100), "denied"),
        (50, lower(100), lower(10), "denied"),
        (5, lower(100), lower(10), "ok"),
        (5, allow("kid"), allow("note"), "denied"),
        (5, allow("kid") | deny("note"), allow("*"), "denied"),
    ],
)
def test_every_gate_above_a_child_must_let_its_calls_through(
    amount: int, above: Policy | None, own: Policy | None, status: str, *, as_graph: bool
) -> None:
    """GL9: the strictest word counts, and conditions of the same name are kept apart."""
    assert [status] == gated(amount, above, own, as_graph=as_graph)


def test_a_gate_above_that_asks_is_asked_inside_the_child() -> None:
    """D04: by the approver of the root, who is told which agents the call is in."""
    told: list[tuple[str, tuple[str, ...]]] = []

    def approver(one: Pending) -> bool:
        told.append((one.key, one.agents))
        return False

    note = Tool(name="note", parameters={"type": "object"}, execute=_noted)
    result = asked(
        kid(reply(call("note")), "42", tools=[note]),
        gate=allow("kid") | ask("note"),
        approve_tool_call=approver,
    )

    (child,) = result.children.values()
    assert [("c0.0/c0.0", ("kid",))] == told
    assert ["denied"] == [one.status for one in child.record.steps[0].tool_results]


def test_arguments_are_checked_before_a_child_is_started() -> None:
    """Like any tool's."""
    result = asked(kid(), reply(call("kid", "k", '{"task": "look"}')), "done")

    assert "invalid" == answer(result).status
    assert {} == result.children


def test_a_child_gets_no_more_than_its_parent_has_left() -> None:
    """And keeps its own budget where that is tighter."""
    script: list[Entry] = [Reply(said("hm", call("note")), FinishReason.TOOL_CALLS, Usage(30))] * 9
    tools = [Ledger().tool("note")]

    by_parent = asked(kid(*script, tools=tools), budget=budget(tokens=100))
    by_itself = asked(
        kid(*script, tools=tools, budget=budget(tokens=50)), budget=budget(tokens=1_000)
    )

    def turns(result: RunResult[None]) -> int:
        return len(next(iter(result.children.values())).record.steps)

    # The first turn of the parent has cost 15 tokens: 85 are left, three turns of the child.
    assert (3, 2) == (turns(by_parent), turns(by_itself))
    assert "error" == answer(by_itself).status
    assert answer(by_itself).text.endswith("by budget. Its last words, which are no answer: hm")
    assert EndReason.BUDGET is by_parent.end_reason
    assert "done" == by_itself.text


def test_a_handoff_reads_the_conversation_and_gives_the_answer() -> None:
    """The child's words are the run's, and part of the history; nobody comments on them."""
    model = ScriptedModel(["your refund is on its way"], label="m")
    child = Agent(model, name="kid", instructions="refunds").as_tool(
        description="d", takes_over=True
    )
    history: list[Message] = [
        UserMessage("I want"),
        AssistantMessage((TextPart("yes?"),)),
        UserMessage("money"),
    ]
    agent = Agent(
        ScriptedModel([reply("wait", call("kid", "k"))]), tools=[child], instructions="front desk"
    )

    result = asyncio.run(agent.generate(messages=history))

    assert [SystemMessage("refunds"), *history] == list(model.requests[0].messages)
    assert "your refund is on its way" == result.text
    assert EndReason.COMPLETED is result.end_reason
    assert ["assistant", "tool", "assistant"] == [one.role for one in result.messages]
    assert AssistantMessage((TextPart(result.text),)) == result.messages[-1]


def test_a_handoff_beside_other_calls_ends_the_run_after_them() -> None:
    """They run, and it reads what they came to; its answer is the run's. A second never runs."""
    ledger, order = Ledger(), ("note", "kid", "other", "note")
    model, idle = ScriptedModel(["yours truly"], label="m"), ScriptedModel([], label="i")
    tools: list[AnyTool | AgentTool] = [
        ledger.tool("note"),
        Agent(model, name="kid").as_tool(description="d", takes_over=True),
        Agent(idle, name="other").as_tool(description="d", takes_over=True),
    ]
    agent = Agent(ScriptedModel([reply("wait", *(call(name) for name in order))]), tools=tools)

    result = asyncio.run(agent.generate("go"))

    assert ("yours truly", EndReason.COMPLETED) == (result.text, result.end_reason)
    assert ["ok", "ok", "error", "ok"] == [one.status for one in result.steps[0].tool_results]
    assert list(order) == [one.name for one in result.steps[0].tool_results]
    roles = [one.role for one in result.messages]
    assert ["assistant", "tool", "tool", "tool", "tool", "assistant"] == roles
    (request,) = model.requests
    assert ["user", "assistant", "tool", "tool"] == [one.role for one in request.messages]
    assert (2, []) == (ledger.done.total(), list(idle.requests))


def test_a_child_that_hands_off_answers_with_what_was_said_last() -> None:
    """Not with the results of the tools beside it, nor with an answer that came before it."""
    expert = Agent(ScriptedModel(["41"], label="e"), name="expert")
    tools: list[AnyTool | AgentTool] = [
        Ledger().tool("note"),
        expert.as_tool(description="d", takes_over=True),
    ]
    child = kid(reply(call("note"), call("expert")), tools=tools)

    assert "41" == answer(asked(child)).content


def test_a_handoff_that_fails_is_handed_back() -> None:
    """The calling model is told, and answers itself."""
    result = asked(kid(OSError("line"), takes_over=True), reply(call("kid", "k")), "sorry")

    assert "sorry" == result.text
    assert "error" == answer(result).status


async def test_a_child_s_client_tool_parks_the_root() -> None:
    """D09: the result names the way there, and the answer takes it."""
    client = Tool(name="client", parameters={"type": "object"})

    agent = Agent(
        ScriptedModel([ASK, "done"]), tools=[kid(reply(call("client")), "42", tools=[client])]
    )
    parked = await agent.generate("go")
    (one,) = parked.pending
    assert ("c0.0/c0.0", "client_tool", ("kid",)) == (one.key, one.kind, one.agents)
    result = await agent.resume(parked, tool_results={one.key: "theirs"})

    assert "42" == answer(result).content
    assert "done" == result.text


def test_a_tool_in_a_child_knows_where_it_is() -> None:
    """And has an idempotency key that no other call has."""
    seen: list[ToolContext] = []

    async def look(arguments: dict[str, object], context: ToolContext) -> str:
        seen.append(context)
        return "seen"

    plans: Plans = {"go": [batch("kid", "kid")], "kid": [batch("look")]}
    tools = [Tool(name="look", parameters={"type": "object"}, execute=look)]

    asyncio.run(tree(Ledger(), plans, kid={"tools": tools}).generate("go", run_id="r"))

    assert [("c0.0",), ("c0.1",)] == sorted(one.path for one in seen)
    assert {"r/c0.0", "r/c0.1"} == {one.run_id for one in seen}
    assert 2 == len({one.idempotency_key for one in seen})


def _start(arguments: str) -> StartRun:
    return StartRun(1, "c0.0", "kid", arguments, ())


def test_arguments_that_are_no_task_are_refused() -> None:
    """Whatever let them through: a run of a store, an edited approval."""
    child = kid("42")
    ports: Ports[None] = Ports(store=MemoryStore(), models={}, toolbox=Toolbox(()))

    opened = child.open(_start('{"prompt": "look"}'), fresh(), ports)
    with pytest.raises(ConfigError, match="is told a `prompt`; found 3"):
        child.open(_start('{"prompt": 3}'), fresh(), ports)

    assert (UserMessage("look"),) == opened.begin().messages
    assert ("r/c0.0", ("c0.0",)) == (opened.run_id, opened.ports.path)


def pay() -> str:
    """Pay."""
    return "paid"


def test_a_signed_child_is_not_called_by_an_unsigned_parent() -> None:
    """A child run takes the approvals of the run above it: it must not become easier to fool."""
    payer = agent_tool(
        ScriptedModel(["paid"], label="kid"),
        name="payer",
        description="Pays.",
        tools=[tool(pay, needs_approval=True)],
        approval_secret=b"kid",
    )

    with pytest.raises(ConfigError, match="'payer' takes signed approvals only"):
        Agent(ScriptedModel(["done"]), tools=[payer])
    parent = Agent(ScriptedModel(["done"]), tools=[payer], approval_secret=b"mine")
    assert "approval_secret" not in parent.options


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


@pytest.mark.parametrize("limit", [budget(agent_calls=2), budget(tool_calls=2)])
def test_a_run_that_needs_all_its_calls_answers(limit: Budget) -> None:
    """Those of its agents among them, each with its share."""
    leaf = Agent(ScriptedModel(["deep"], label="l"), name="leaf").as_tool(description="helps")
    note = Ledger().tool("note")
    agents = limit.agent_calls is not None
    below = call("leaf", "x", '{"prompt": "?"}') if agents else call("note")
    helper = Agent(
        ScriptedModel([reply(below), "one"], label="h"),
        name="kid",
        tools=[leaf if agents else note],
    )
    calls = reply(call("kid", "k", '{"prompt": "?"}'), *([] if agents else [call("note")]))
    agent = Agent(
        ScriptedModel([calls, "The answer"]),
        tools=[note, helper.as_tool(description="helps")],
        budget=limit,
    )

    result = agent.generate_sync("go")

    assert ("The answer", EndReason.COMPLETED) == (result.text, result.end_reason)
    assert "one" == answer(result).text


def test_a_child_has_the_stricter_of_what_it_and_its_parent_may() -> None:
    """Rules are added, outermost first; numbers are the smaller ones."""
    outer, own = deny("drop"), allow("read")
    parent = fresh()
    above = Setup("m", depth=1, depth_max=3, signed=True, approval_ttl_s=9.0)
    parent = evolve(parent, setup=above)
    effect = StartRun(1, "kid.1", "kid", "", History(), budget(tokens=5))
    alone = Setup("own", budget=budget(tokens=7, usd=1.0), rules=(own.rules,), depth_max=0)

    setup = setup_below(alone, effect, parent, (outer,))

    assert ("own", budget(tokens=5, usd=1.0)) == (setup.model, setup.budget)
    assert (outer.rules, own.rules) == setup.rules
    assert (2, 2, True, 9.0) == (setup.depth, setup.depth_max, setup.signed, setup.approval_ttl_s)


def test_an_agents_call_is_held_to_its_own_gate_below() -> None:
    """With its functions; but for the rule that lets its answer pass, which is no tool below."""

    def much(arguments: object, context: object) -> bool:
        return True

    gate = deny("pay", when=much) | allow("*")
    outer, new = allow("read", "kid"), allow("kid")
    turn = replied(reply(call("kid"))).turn
    turn = evolve(turn, gated=((*allow("answer").rules, *gate.rules),))
    parent = evolve(fresh(turn), setup=Setup("m", rules=(outer.rules,), own=("answer",)))
    ports: Ports[None] = Ports(
        store=MemoryStore(), models={}, toolbox=Toolbox(()), gates=(new, outer), own=gate
    )
    called, by_node = (StartRun(1, key, "kid", "", History()) for key in ("c0.0", "kid.1"))

    assert (outer, new, gate) == gates_below(called, parent, ports)
    assert (outer, new) == gates_below(by_node, parent, ports)


@pytest.mark.parametrize(
    ("rules", "gates"),
    [
        (Rules(), ()),
        (never("node:x"), ()),
        (never("tool:x"), (deny("x", reason=REASON) | allow("*"),)),
        (never("tool:*"), (deny("*", reason=REASON),)),
    ],
)
def test_only_tools_that_rules_bound_are_denied_to_children(
    rules: Rules, gates: tuple[Policy, ...]
) -> None:
    """All others are the child's own gate's business."""
    assert [one.rules for one in gates] == [
        one.rules for one in beyond_watch(Setup(watch=rules.rules), ())
    ]


def test_the_same_rules_or_fewer_are_no_other_rules() -> None:
    """A run keeps those that it began with, whoever takes it up."""
    kept = (Never("tool:x"), Never("tool:y"))
    run = evolve(fresh(), setup=Setup(watch=kept))

    refuse_other_rules(run, kept[:1])
    refuse_other_rules(run, ())
    with pytest.raises(ConfigError, match=r"it keeps never tool:x; never tool:y; found never node"):
        refuse_other_rules(run, (*kept, Never("node:z")))


def test_a_child_is_not_offered_tools_that_no_gate_could_stop() -> None:
    """The server runs them; all others its gate denies, and says why."""
    search, fetch = (ToolSpec(name, "", "{}", "provider") for name in ("search", "fetch"))
    own = ToolSpec("own", "", "{}")

    offered = (search, fetch, own)
    assert (fetch, own) == offered_below(
        offered, Setup(watch=(Never("tool:search"), Never("tool:own")))
    )
    assert (own,) == offered_below(offered, Setup(watch=(Never("tool:*"),)))
    assert offered == offered_below(offered, Setup())


def test_rules_far_above_are_known_by_the_gates_they_have_put() -> None:
    """A run knows its own rules, and its journal what it was begun under."""
    (first,) = beyond_watch(Setup(watch=(Never("tool:search"),)), ())
    middle = Setup(rules=(deny("other").rules, first.rules), watch=(Never("tool:own"),))
    search, own = ToolSpec("search", "", "{}", "provider"), ToolSpec("own", "", "{}")

    (both,) = beyond_watch(middle, (first,))

    assert (deny("search", "own", reason=REASON) | allow("*")).rules == both.rules
    assert (own,) == offered_below((search, own), middle)


DEEP = "graph 'g2': 'k0' would be more than 2 agents deep. Fix: max_agent_depth=3"


def asking_once() -> Graph[None]:
    """Return a graph that asks asking_once."""
    prepare, model, append = PrepareStep(), ModelCall(), Append()
    edges: Edges[None] = {
        prepare: {Ready: model, ...: END},
        model: {Answered: append, ...: END},
        append: {...: END},
    }
    return Graph("asking_once", prepare, edges)


def came_to(graph: Graph[None], **options: int) -> str:
    """Return what a run came to, of agents that all say nothing."""
    try:
        result = asyncio.run(graph.run(None, prompt="go", **options))  # type: ignore[arg-type]
    except Exception as error:  # noqa: BLE001 - what it raises is what is looked at
        return str(error)
    return result.end_reason.value


def test_a_run_that_would_go_too_deep_does_not_begin() -> None:
    """What came_to before would have been paid for in vain; the fix says how deep it is."""
    assert "ScriptExhausted" in came_to(nest(asking_once(), 2))
    assert DEEP == came_to(nest(asking_once(), 3))
    assert "ScriptExhausted" in came_to(nest(asking_once(), 3), max_agent_depth=3)
    assert "'k0' would be more than 1 agents deep. Fix: max_agent_depth=2" in came_to(
        nest(asking_once(), 2), max_agent_depth=1
    )


def test_the_limit_of_a_graph_within_is_named_too() -> None:
    """Its own options say how deep it may go."""
    assert "Fix: max_agent_depth=4" in came_to(nest(asking_once(), 4))
    assert DEEP == came_to(nest(asking_once(), 4), max_agent_depth=4)


def test_an_agent_that_calls_such_a_graph_is_told() -> None:
    """Nothing of the graph's run begins."""
    tool = nest(asking_once(), 3).as_tool(None, description="Dig.", name="dig")
    model = ScriptedModel([reply(call("dig", "d", '{"prompt": "x"}')), "done"])

    result = asyncio.run(Agent(model, tools=[tool], max_agent_depth=9).generate("go"))

    (answer,) = result.steps[0].tool_results
    assert ("error", True) == (answer.status, DEEP in answer.text)
    assert [] == [one for one in asyncio.run(result.store.runs()) if "/" in one]


def test_agents_too_deep_for_the_default_are_told_when_made() -> None:
    """The model alone read the refusal; the program read that all was well."""

    def above(agent: Agent, name: str) -> Agent:
        tool = agent.as_tool(description="Ask.", name=agent.name)
        return Agent(ScriptedModel(["done"]), name=name, tools=[tool])

    def limited(agent: Agent, depth: int) -> Agent:
        tool = agent.as_tool(description="Ask.", name=agent.name)
        return Agent(ScriptedModel(["done"]), tools=[tool], max_agent_depth=depth)

    leaf = Agent(ScriptedModel(["done"]), name="leaf")
    top = above(above(leaf, "mid"), "top")

    with pytest.raises(ConfigError) as told:
        above(top, "boss")
    assert "agents 'top' > 'mid' > 'leaf' are 3 deep" in str(told.value)
    assert "Fix: max_agent_depth=3, or max_agent_depth=2 if" in str(told.value)
    limited(top, 2)
    above(limited(top, 1), "boss")
