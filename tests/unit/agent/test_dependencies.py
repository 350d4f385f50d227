"""`deps`: each function of a run reads them, and no journal, repr or error shows them."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

import pytest

from graphloop import (
    END,
    Agent,
    AnswerInfo,
    Compaction,
    Graph,
    NodeContext,
    Pending,
    RunResult,
    StepInfo,
    StepResult,
    Tool,
    ToolContext,
    agent_tool,
    allow,
    ask,
    generate_text_sync,
    node,
    tool,
)
from graphloop.agent import StopContext
from graphloop.errors import ConfigError
from graphloop.limits import stop
from graphloop.loop import Standard, standard_edges
from graphloop.nodes import Append
from graphloop.outcomes import Answered, Outcome
from graphloop.own_nodes import ChildResult, sub_graph
from graphloop.stores import MemoryStore
from graphloop.testing import ScriptedModel
from graphloop.values import ModelRequest, SystemMessage, ToolResult
from tests.sizes import sized
from tests.strategies import call, reply
from tests.warm_python import warm_python

CANARY = "canary-of-the-deps"


@dataclass
class Desk:
    """The dependencies of a support desk."""

    user: str = CANARY
    limit: int = 10
    seen: list[str] = field(default_factory=list[str])


@tool
async def refund(amount: int, context: ToolContext[Desk]) -> str:
    """Pay back."""
    context.deps.seen.append(f"tool {amount}")
    return "paid"


@tool
def plain(amount: int, context: ToolContext) -> str:
    """Read nothing."""
    return context.key


def paying(amount: int = 5) -> Any:
    """Return a turn that calls `refund`."""
    return reply(call("refund", "a", f'{{"amount": {amount}}}'))


def test_each_function_of_an_agent_reads_the_deps_of_its_run() -> None:
    def prepare(info: StepInfo[Desk]) -> None:
        info.deps.seen.append("prepare_step")

    def enough(info: StopContext[Desk]) -> bool:
        info.deps.seen.append("stop_when")
        return info.spent.cost_usd > info.deps.limit

    def verify(info: AnswerInfo[Desk]) -> bool:
        info.deps.seen.append("verify")
        return True

    def done(info: AnswerInfo[Desk]) -> bool:
        info.deps.seen.append("done_when")
        return True

    def over(arguments: Mapping[str, int], context: ToolContext[Desk]) -> bool:
        context.deps.seen.append("gate")
        return arguments["amount"] > context.deps.limit

    model = ScriptedModel([paying(), "done"])
    agent = Agent(
        model,
        deps_type=Desk,
        tools=[refund],
        prepare_step=prepare,
        stop_when=enough,
        verify=verify,
        done_when=done,
        gate=ask("refund", when=over) | allow("*"),
        instructions=lambda deps: f"You serve user {len(deps.user)}.",
    )
    desk = Desk()

    result = agent.generate_sync("go", deps=desk)

    assert "done" == result.output
    every = ["prepare_step", "gate", "tool 5", "stop_when", "prepare_step", "done_when", "verify"]
    assert every == desk.seen
    assert SystemMessage(f"You serve user {len(CANARY)}.") == model.requests[0].messages[0]


@pytest.mark.parametrize("resumed", [False, True])
def test_an_approver_and_a_listener_read_the_deps_as_their_second_argument(resumed: bool) -> None:
    def decide(pending: Pending, deps: Desk) -> bool:
        deps.seen.append(f"approve {pending.name}")
        return pending.name == "cashier"

    async def listen(step: StepResult, deps: Desk) -> None:
        deps.seen.append(f"step {step.index}")

    cashier = child(gate=ask("refund")).as_tool(description="pays", needs_approval=True)
    top = boss(cashier, deps_type=Desk, approve_tool_call=decide, on_step_finish=listen)
    first, desk = boss(cashier, deps_type=Desk), Desk()
    if resumed:
        top = boss(
            cashier,
            model=first.model,
            deps_type=Desk,
            approve_tool_call=decide,
            on_step_finish=listen,
        )
        parked = first.generate_sync("go", deps=Desk())
        result = top.resume_sync(parked, deps=desk)
    else:
        result = top.generate_sync("go", deps=desk)

    assert "all done" == result.text
    assert ["approve cashier", "approve refund", "step 0", "step 1"] == desk.seen


def test_two_runs_at_once_have_their_own_deps() -> None:
    def answer(request: ModelRequest) -> Any:
        return "done" if isinstance(request.messages[-1], ToolResult) else paying(1)

    agent = Agent(ScriptedModel([answer] * 10), deps_type=Desk, tools=[refund])
    desks = [Desk() for _ in range(5)]

    async def main() -> None:
        await asyncio.gather(*[agent.generate("go", deps=desk) for desk in desks])

    asyncio.run(main())

    assert [["tool 1"]] * 5 == [desk.seen for desk in desks]


@pytest.mark.parametrize("kind", ["text", "nothing", "later"])
def test_instructions_are_computed_once_from_deps_and_stay_in_the_journal(kind: str) -> None:
    """A resume in another process, with other deps, sends the model the same prefix."""
    called: list[str] = []

    def text(deps: Desk) -> str:
        called.append(deps.user)
        return f"for {deps.user}"

    async def later(deps: Desk) -> str:
        return text(deps)

    def nothing() -> str:
        called.append("nobody")
        return "for nobody"

    said: Any = {"text": text, "later": later, "nothing": nothing}[kind]
    store = MemoryStore()
    model = ScriptedModel([paying(), "done"])
    asking = tool(refund_unread, name="refund", needs_approval=True)
    agent = Agent(model, deps_type=Desk, tools=[asking], instructions=said, store=store)

    parked = agent.generate_sync("go", deps=Desk("ada"))
    approvals = {one.key: True for one in parked.pending}
    result = agent.resume_sync(parked.run_id, approvals=approvals, deps=Desk("bob"))

    assert "done" == result.text
    assert 1 == len(called)
    first, second = (one.messages[0] for one in model.requests)
    assert SystemMessage("for nobody" if kind == "nothing" else "for ada") == first == second


def refund_unread(amount: int) -> str:
    """Pay back, and read no deps."""
    return "paid"


def refund_parameters() -> Mapping[str, object]:
    """Return a schema of one amount."""
    return {"type": "object", "properties": {"amount": {"type": "integer"}}}


def test_instructions_that_are_no_text_are_refused() -> None:
    def itself(deps: Desk) -> Any:
        return deps

    agent = Agent(ScriptedModel(["hi"]), deps_type=Desk, instructions=itself)

    with pytest.raises(ConfigError, match="returns Desk") as refused:
        agent.generate_sync("go", deps=Desk())

    assert CANARY not in str(refused.value)


def of_two(deps: object, more: object) -> str:
    """Take more than a run has."""
    return f"Be brief with {deps} and {more}."


@pytest.mark.parametrize("wrong", [["Be brief."], of_two])
def test_instructions_are_a_text_or_a_function(wrong: Any) -> None:
    """A function that no run could call is refused when the agent is made."""
    with pytest.raises(ConfigError, match="`instructions`: expected a text, or a function"):
        Agent(ScriptedModel(["hi"]), instructions=wrong)


def test_a_start_and_a_resume_without_deps_are_refused_before_anything_runs() -> None:
    store, model = MemoryStore(), ScriptedModel([paying(), "done"])

    @tool(needs_approval=True)
    def refund(amount: int, context: ToolContext[Desk]) -> str:
        """Pay back."""
        context.deps.seen.append(f"paid {amount}")
        return "paid"

    agent = Agent(model, name="desk", deps_type=Desk, tools=[refund], store=store)
    missing = r"`deps` of 'desk': expected Desk, which agent 'desk' reads, found none"

    with pytest.raises(ConfigError, match=missing):
        agent.generate_sync("go")
    assert not model.requests
    parked = agent.generate_sync("go", deps=Desk())
    before = asyncio.run(store.load(parked.run_id))
    for run in (parked, parked.run_id):
        with pytest.raises(ConfigError, match=missing):
            agent.resume_sync(run, approvals={one.key: True for one in parked.pending})
    assert before == asyncio.run(store.load(parked.run_id))
    assert "aborted" == asyncio.run(agent.runs.cancel(parked.run_id)).end_reason


def test_deps_of_another_type_are_refused_and_not_shown() -> None:
    agent = Agent(ScriptedModel(["hi"]), deps_type=Desk)
    wrong: Any = CANARY

    with pytest.raises(
        ConfigError, match=r"expected Desk.* found an object of type str"
    ) as refused:
        agent.generate_sync("go", deps=wrong)

    assert CANARY not in str(refused.value)
    with pytest.raises(ConfigError, match="have no effect"):
        Agent(ScriptedModel(["hi"])).generate_sync("go", deps=wrong)


class Named(Protocol):
    """A type that no `isinstance` decides about."""

    user: str


def test_a_protocol_takes_every_object() -> None:
    agent = Agent(ScriptedModel(["hi"]), deps_type=Named, instructions=lambda deps: deps.user)

    assert "hi" == agent.generate_sync("go", deps=Desk()).text


def test_an_agent_names_the_part_that_reads_deps_of_another_type() -> None:
    with pytest.raises(
        ConfigError, match=r"expected a `deps_type`, since tool 'refund' reads.*Desk"
    ):
        Agent(ScriptedModel([]), tools=[refund])
    with pytest.raises(ConfigError, match=r"`deps` of type Desk, which tool 'refund' reads.*=int"):
        Agent(ScriptedModel([]), tools=[refund], deps_type=int)
    Agent(ScriptedModel([]), tools=[plain])

    def over(arguments: object, context: ToolContext[Desk]) -> bool:
        return True

    asked = Tool(name="pay", parameters=refund_parameters(), execute=print, needs_approval=over)
    with pytest.raises(ConfigError, match="tool 'pay' reads"):
        Agent(ScriptedModel([]), tools=[asked])


def reads_step(info: StepInfo[Desk]) -> None:
    """Read the deps of a turn."""


def reads_answer(info: AnswerInfo[Desk]) -> bool:
    return True


def reads_stop(info: StopContext[Desk]) -> bool:
    return True


def reads_call(arguments: object, context: ToolContext[Desk]) -> bool:
    return True


def missing(arguments: object, context: ToolContext) -> bool:
    return True


missing.__annotations__["context"] = "ToolContext[Missing]"


def reads_plainly(deps: Desk) -> str:
    return deps.user


def decides(pending: Pending, deps: Desk) -> bool:
    return True


def listens(step: StepResult, deps: Desk) -> None:
    """Read the deps of a finished turn."""


def reads_missing(deps: object) -> str:
    return f"{deps}"


reads_missing.__annotations__["deps"] = "Missing"


def reads_perhaps(deps: Desk | None) -> str:
    return "Be kind."


def reads_perhaps_missing(deps: object) -> str:
    return "Be kind."


reads_perhaps_missing.__annotations__["deps"] = "Missing | None"


def reads_untold(deps: object) -> str:
    return "Be kind."


del reads_untold.__annotations__["deps"]


def of_all(*parts: Desk) -> str:
    return "Be kind."


def hears(step: StepResult, times: int = 1) -> None:
    """Take no second argument of a caller."""


@pytest.mark.parametrize(
    ("options", "found"),
    [
        ({"prepare_step": reads_step}, "`prepare_step` function 'reads_step' reads `deps` of type"),
        (
            {"compact": reads_step, "compaction": Compaction(1000)},
            "`compact` function 'reads_step'",
        ),
        ({"verify": reads_answer}, "`verify` function 'reads_answer'"),
        ({"done_when": reads_answer}, "`done_when` function 'reads_answer'"),
        ({"stop_when": [stop.step_count_is(3), reads_stop]}, "function 'reads_stop'"),
        ({"gate": allow("plain", when=reads_call)}, "`gate` function 'reads_call'"),
        ({"gate": allow("plain", when=missing)}, "'missing' reads `deps` of type Missing"),
        ({"instructions": reads_plainly}, "`instructions` function 'reads_plainly'"),
        ({"instructions": reads_missing}, "'reads_missing' reads `deps` of type Missing"),
        ({"approve_tool_call": decides}, "`approve_tool_call` function 'decides'"),
        ({"on_step_finish": listens}, "`on_step_finish` function 'listens'"),
    ],
)
def test_a_function_that_reads_deps_needs_an_agent_or_a_run_with_them(
    options: Any, found: str
) -> None:
    """Without them it would fail in the run, after the first model call is paid for."""
    with pytest.raises(ConfigError, match="Fix: Agent") as error:
        Agent(ScriptedModel([]), tools=[plain], **options)

    assert found in str(error.value)
    Agent(ScriptedModel([]), tools=[plain], deps_type=Desk, **options)


def test_a_graph_whose_gate_reads_deps_does_not_start_without_them() -> None:
    nodes = Standard()
    graph: Graph[None] = Graph("loop", nodes.prepare, standard_edges(nodes))
    model, gate = ScriptedModel(["done"]), allow("plain", when=missing)

    with pytest.raises(ConfigError, match=r"expected Missing, .*'missing' reads, found none"):
        graph.run_sync(None, model=model, prompt="go", tools=[plain], gate=gate)

    assert [] == model.requests


@pytest.mark.parametrize(
    "options",
    [
        {"instructions": reads_perhaps},
        {"instructions": reads_perhaps_missing},
        {"instructions": reads_untold},
        {"instructions": of_all},
        {"on_step_finish": hears},
    ],
)
def test_functions_whose_types_ask_for_no_deps_need_none(options: Any) -> None:
    assert "Hi." == Agent(ScriptedModel(["Hi."]), **options).generate_sync("Hello").text


def test_functions_that_take_none_as_deps_need_none() -> None:
    @tool
    def look(context: ToolContext[None]) -> str:
        """Look."""
        return f"{context.deps}"

    def prepare(info: StepInfo[None]) -> None:
        assert info.deps is None

    model = ScriptedModel([reply(call("look", "a")), "done"])

    result = Agent(model, tools=[look], prepare_step=prepare).generate_sync("go")

    assert "None" == result.steps[0].tool_results[0].content


def child(**options: Any) -> Agent[Desk, str]:
    """Return an agent that calls `refund` once."""
    return Agent(
        ScriptedModel([paying(7), "paid it"]),
        name="cashier",
        deps_type=Desk,
        tools=[refund],
        **options,
    )


def boss(*tools: Any, model: Any = None, **options: Any) -> Agent[Any, Any]:
    """Return an agent that calls the agent `cashier`."""
    script: list[Any] = [reply(call("cashier", "x", '{"prompt": "pay"}')), "all done"]
    return Agent(ScriptedModel(script) if model is None else model, tools=tools, **options)


def test_a_child_gets_the_deps_of_its_parent() -> None:
    told: list[str] = []

    def instructions(deps: Desk) -> str:
        told.append(deps.user)
        return "Pay."

    desk = Desk("ada")
    top = boss(child(instructions=instructions).as_tool(description="pays"), deps_type=Desk)

    assert "all done" == top.generate_sync("go", deps=desk).text
    assert ["tool 7"] == desk.seen
    assert ["ada"] == told


def test_a_child_can_be_given_deps_of_its_own() -> None:
    @dataclass
    class Office:
        desk: Desk

    office = Office(Desk())
    cashier = child().as_tool(description="pays", deps=lambda parent: parent.desk)

    assert "all done" == boss(cashier, deps_type=Office).generate_sync("go", deps=office).text
    assert ["tool 7"] == office.desk.seen
    with pytest.raises(ConfigError, match=r"type Desk, which agent 'cashier' reads.*Office"):
        boss(child().as_tool(description="pays"), deps_type=Office)
    with pytest.raises(ConfigError, match="agent 'cashier' reads"):
        boss(agent_tool(ScriptedModel([]), name="cashier", description="pays", deps_type=Desk))
    wrong: Any = Desk()
    with pytest.raises(ConfigError, match="expected a function of") as refused:
        child().as_tool(deps=wrong)
    assert CANARY not in str(refused.value)


@dataclass(frozen=True)
class Ticket:
    """A state of the user's."""

    text: str = ""


class Sent(Outcome):
    """The ticket was sent."""


@node
async def send(ticket: Ticket, context: NodeContext[Desk]) -> tuple[Sent, Ticket]:
    context.deps.seen.append(f"node {context.key}")
    return Sent(), replace(ticket, text=f"{ticket.text}!")


def keep(ticket: Ticket, result: ChildResult) -> Ticket:
    return replace(ticket, text=result.output)


def desk_graph() -> Graph[Ticket]:
    """Return a graph whose node and whose agent read the deps."""
    cashier, append = sub_graph(child(), prompt=lambda _: "pay", output=keep), Append()
    return Graph(
        "desk",
        cashier,
        {cashier: {Answered: append, ...: END}, append: {...: send}, send: {...: END}},
        state_type=Ticket,
    )


def test_nodes_and_agents_of_a_graph_read_the_deps_of_its_run() -> None:
    desk = Desk()

    result = asyncio.run(desk_graph().run(Ticket(), deps=desk))

    assert Ticket("paid it!") == result.state
    assert ["tool 7", "node send.2"] == desk.seen


def test_a_graph_without_its_deps_is_refused_with_the_part_that_reads_them() -> None:
    with pytest.raises(ConfigError, match=r"graph 'desk'|'desk'.*expected Desk, which node 'send'"):
        asyncio.run(desk_graph().run(Ticket()))


def test_the_gate_and_the_instructions_of_a_graph_read_the_deps_of_its_run() -> None:
    """No annotation of a node or a tool names their type, so a run takes any."""
    desk, model = Desk(), ScriptedModel([reply(call("plain", "a", '{"amount": 5}')), "done"])

    def when(arguments: object, context: ToolContext[Desk]) -> bool:
        context.deps.seen.append("gate")
        return True

    nodes = Standard()
    graph: Graph[None] = Graph("loop", nodes.prepare, standard_edges(nodes))
    result = asyncio.run(
        graph.run(
            None,
            model=model,
            prompt="go",
            tools=[plain],
            gate=allow("plain", when=when),
            instructions=lambda deps: f"limit {deps.limit}",
            deps=desk,
        )
    )

    assert ("done", ["gate"]) == (result.output, desk.seen)
    assert SystemMessage("limit 10") == model.requests[0].messages[0]


def test_one_answer_takes_deps_without_a_type() -> None:
    desk = Desk()

    model = ScriptedModel([paying(3), "done"])
    result = generate_text_sync(model, "go", tools=[refund], deps=desk)

    assert ("done", ["tool 3"]) == (result.output, desk.seen)


def test_contexts_and_results_do_not_show_the_deps() -> None:
    shown: list[str] = []

    @tool
    def look(context: ToolContext[Desk]) -> str:
        """Look."""
        shown.append(repr(context))
        return "seen"

    def prepare(info: StepInfo[Desk]) -> None:
        shown.append(repr(info))

    def verify(info: AnswerInfo[Desk]) -> bool:
        shown.append(repr(info))
        return True

    def enough(info: StopContext[Desk]) -> bool:
        shown.append(repr(info))
        return False

    agent = Agent(
        ScriptedModel([reply(call("look", "a")), "done"]),
        deps_type=Desk,
        tools=[look],
        prepare_step=prepare,
        verify=verify,
        stop_when=enough,
    )
    result: RunResult = agent.generate_sync("go", deps=Desk())

    assert 5 == len(shown)
    assert CANARY not in "".join([*shown, repr(result), repr(agent), repr(agent.stream("x"))])


PROGRAM = """
import asyncio, sys
from dataclasses import dataclass
from graphloop import Agent, ToolContext, tool
from graphloop.testing import ScriptedModel

@dataclass
class Desk:
    user: str

@tool(needs_approval=True)
def refund(amount: int, context: ToolContext[Desk]) -> str:
    "Pay back."
    return f"length {len(context.deps.user)}"

model = ScriptedModel([{"calls": [{"name": "refund", "arguments": {"amount": 1}}]}, "done"])
agent = Agent(model, deps_type=Desk, tools=[refund], store=sys.argv[1])
"""


def test_another_process_resumes_with_deps_of_its_own(tmp_path: Path) -> None:
    """The journal has nothing of the first object, so the second alone decides."""
    store, file = tmp_path / "runs.db", tmp_path / "program.py"
    start = PROGRAM + f"agent.generate_sync('go', run_id='r', deps=Desk({CANARY!r}))\n"
    resume = PROGRAM + (
        "found = agent.resume_sync('r', approvals={'c0.0': True}, deps=Desk('bob'))\n"
        "print(found.steps[0].tool_results[0].content)\n"
    )

    def run(program: str) -> str:
        file.write_text(program, encoding="utf-8")
        argv = [*warm_python(), str(file), str(store)]
        return subprocess.run(argv, check=True, capture_output=True, text=True).stdout

    run(start)

    assert "length 3" == run(resume).strip()
    files = [path.read_bytes() for path in tmp_path.glob("runs.db*")]
    assert files
    assert not any(CANARY.encode() in each for each in files)


RUNS = sized(30, 250)
"""How many runs of each agent a store keeps."""


def test_journals_hold_no_byte_of_the_deps(tmp_path: Path) -> None:
    """Runs that finish, park, fail and start children, with instructions made of deps."""

    @tool
    def broken(context: ToolContext[Desk]) -> str:
        """Fail."""
        raise RuntimeError(f"no luck for {len(context.deps.user)}")

    @tool(needs_approval=True)
    def asked(context: ToolContext[Desk]) -> str:
        """Wait."""
        return "never"

    scripts: list[Any] = [
        [paying(), "done"],
        [reply(call("broken", "b")), "done"],
        [reply(call("asked", "c"))],
        [reply(call("cashier", "x", '{"prompt": "pay"}')), "done"],
    ]
    tools: list[Any] = [refund, broken, asked, child().as_tool(description="pays")]

    async def main() -> None:
        agents = [
            Agent(
                ScriptedModel(script),
                deps_type=Desk,
                tools=tools,
                instructions=lambda deps: f"limit {deps.limit}",
                store=str(tmp_path / "runs.db"),
            )
            for script in scripts
        ]
        for agent in agents:
            async with agent:
                for _ in range(RUNS):
                    await agent.stream("go", deps=Desk()).consume()

    asyncio.run(main())

    kept = b"".join([path.read_bytes() for path in tmp_path.iterdir()])
    assert kept.count(b"limit 10") >= 4 * RUNS
    assert CANARY.encode() not in kept
