"""Options: each takes effect, or is refused before anything is sent."""

from __future__ import annotations

import asyncio
import inspect
import re
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from graphloop import (
    Agent,
    Compaction,
    EndReason,
    ModelPrice,
    Pending,
    Retries,
    StepInfo,
    StepResult,
    Timeouts,
    Tool,
    allow,
    ask,
    budget,
    deny,
)
from graphloop.agent.callbacks import COMPACT, DONE_WHEN, PREPARE_STEP, STOP_WHEN, VERIFY
from graphloop.agent.final_answer import OUTPUT
from graphloop.agent.inputs import ModelSettings
from graphloop.agent.options import (
    AgentOptions,
    EveryAgentOption,
    Options,
    RunOptions,
)
from graphloop.agent.resources import AgentResources
from graphloop.errors import ConfigError, Overloaded
from graphloop.graph import NodeGraph
from graphloop.limits import Rate, stop
from graphloop.limits.stop import StopInfo
from graphloop.loop import Standard, standard_edges
from graphloop.node_protocol import Node
from graphloop.nodes.compact import Compact
from graphloop.nodes.execute import Execute
from graphloop.nodes.gate import Gate
from graphloop.nodes.model_call import ModelCall
from graphloop.nodes.prepare_step import PrepareStep
from graphloop.nodes.stop_check import StopCheck
from graphloop.nodes.verify import AnswerCheck, Verify
from graphloop.outcomes import Outcome
from graphloop.providers.http import HttpProvider
from graphloop.rules import Never, at_most, never
from graphloop.stores.memory import MemoryStore
from graphloop.testing import ScriptedModel
from graphloop.values import FinishReason, Reply, SystemMessage, ToolChoice
from tests.agents import ticking
from tests.strategies import call, reply, wrong
from tests.unit.agent.doubles import (
    free,
    gated,
    named,
    ran,
    read,
    statuses,
    texts,
    write,
)


def explained(options: type[object]) -> set[str]:
    """Return the names that a class of options explains: what stands before a colon."""
    # From 3.13 on, Python takes the margin off a docstring itself.
    manual = inspect.cleandoc(options.__doc__ or "")
    heads = re.findall(r"^((?:`\w+`(?:, )?)+):", manual, re.MULTILINE)
    return {name for head in heads for name in re.findall(r"`(\w+)`", head)}


@pytest.mark.parametrize(
    ("options", "base"),
    [(ModelSettings, object), (RunOptions, ModelSettings), (AgentOptions, RunOptions)],
)
def test_every_option_is_explained_where_it_is_defined(
    options: type[object], base: type[object]
) -> None:
    inherited = getattr(base, "__annotations__", {})

    assert options.__annotations__.keys() - inherited.keys() == explained(options)


def again() -> str:
    """Read again."""
    return "again"


def everything() -> EveryAgentOption:
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
        "watch": (),
        "store": None,
        "api_key": None,
        "base_url": None,
        "timeouts": None,
        "retries": None,
        "query": None,
        "headers": None,
        "limits": {"script*": Rate(requests=10**6)},
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
        "deps_type": dict,
        "output_mode": "native",
        "max_output_retries": 1,
        "done_when": lambda info: bool(info.text),
        "max_done_retries": 1,
        "verify": lambda info: info.output in {"one", "two"},
        "max_verify_retries": 1,
        "screen": bool,
        "screen_in_parallel": True,
        "compaction": Compaction(10**6),
        "compact": lambda info: info.messages,
        "tool_choice": "auto",
        "active_tools": None,
        "prepare_step": None,
    }


def test_every_option_can_be_given_at_once_and_is_kept() -> None:
    assert set(EveryAgentOption.__annotations__) == set(everything())

    said = ScriptedModel(['{"value": "one"}', '{"value": "two"}'])
    options: dict[str, Any] = {**everything()}
    agent = Agent(said, **options)
    again = agent.with_options(instructions="be long")

    assert ("one", "two") == (
        agent.generate_sync("a", deps={}).output,
        again.generate_sync("b", deps={}).output,
    )
    assert ["fetch", "write"] == [tool.name for tool in said.requests[0].tools]
    systems = (SystemMessage("be brief"), SystemMessage("be long"))
    assert systems == tuple(one.messages[0] for one in said.requests)


SMALL = Compaction(9_000)
FORM: EveryAgentOption = {"output_type": int, "output_mode": "native"}


def nodes(**options: Any) -> list[Node[None, Outcome]]:
    """Return the nodes of an agent with these options."""
    given: AgentOptions = wrong({"tools": [read], **options})
    return list(Agent(ScriptedModel([]), **given).graph.nodes.values())


def test_without_options_the_loop_is_the_one_that_is_drawn() -> None:
    standard = Standard()
    drawn = NodeGraph("agent", standard.prepare, standard_edges(standard))

    assert list(drawn.nodes.values()) == nodes()


def once_more(callback: str, retries: int, **given: str) -> Verify:
    """Return the node that sends an answer back so often."""
    return Verify((AnswerCheck(callback, retries, **given),))


@pytest.mark.parametrize(
    ("options", "node"),
    [
        ({"active_tools": ["read"]}, PrepareStep(active_tools=("read",))),
        ({"tool_choice": "required"}, PrepareStep(tool_choice=ToolChoice("required"))),
        (
            {"tool_choice": ToolChoice("required", scope="first_step")},
            PrepareStep(tool_choice=ToolChoice("required", scope="first_step")),
        ),
        ({"prepare_step": len}, PrepareStep(callback=PREPARE_STEP)),
        ({"compaction": SMALL}, PrepareStep(compaction=SMALL)),
        ({"compaction": SMALL}, Compact(compaction=SMALL)),
        ({"compaction": SMALL, "compact": len}, Compact(compaction=SMALL, callback=COMPACT)),
        ({"gate": allow("read")}, Gate(rules=allow("read").rules)),
        ({"run_ungated": True}, Gate(hold=False)),
        ({"run_ungated": True}, Execute(hold=False)),
        ({"max_tool_concurrency": 2}, Execute(max_tool_concurrency=2)),
        ({"max_steps": 3}, StopCheck(max_steps=3)),
        ({"max_consecutive_tool_errors": 4}, StopCheck(max_consecutive_tool_errors=4)),
        ({"max_consecutive_denials": 2}, StopCheck(max_consecutive_denials=2)),
        ({"stop_when": stop.step_count_is(3)}, StopCheck(conditions=(stop.step_count_is(3),))),
        (
            {"stop_when": [stop.step_count_is(3), print]},
            StopCheck(conditions=(stop.step_count_is(3),), callback=STOP_WHEN),
        ),
        (
            {"fallback_models": [ScriptedModel([], label=one) for one in "ba"]},
            ModelCall(fallbacks=("b", "a")),
        ),
        ({**FORM}, once_more(OUTPUT, 2, failure="OutputInvalid")),
        ({**FORM, "max_output_retries": 0}, once_more(OUTPUT, 0, failure="OutputInvalid")),
        ({"done_when": bool}, once_more(DONE_WHEN, 2, given_up="false_finish")),
        (
            {"done_when": bool, "max_done_retries": 5},
            once_more(DONE_WHEN, 5, given_up="false_finish"),
        ),
        ({"verify": bool}, once_more(VERIFY, 2, given_up="unverified")),
        ({"verify": bool, "max_verify_retries": 1}, once_more(VERIFY, 1, given_up="unverified")),
    ],
    ids=named,
)
def test_an_option_changes_its_node_and_no_other(options: dict[str, object], node: object) -> None:
    made = nodes(**options)

    changed = {type(one) for one, plain in zip(made, nodes(), strict=True) if one != plain}
    related = {PrepareStep, Compact} if "compaction" in options else {type(node)}
    assert node in made
    assert changed <= related | ({Gate, Execute} if "run_ungated" in options else set())


SOMEBODY = Agent(ScriptedModel([], label="h"), name="helper").as_tool(description="helps")
FINAL = free("final_answer")
FIRST = ToolChoice("required", scope="first_step")
NO_WINDOW = Compaction(9_000, summary_model="nobody:x")


def unprepared(_: StepInfo) -> None:
    """Change nothing."""


def unsaid(arguments: object) -> bool:
    """Take too little."""
    return True


@pytest.mark.parametrize(
    ("options", "found"),
    [
        ({"max_step": 3}, "no option 'max_step'. Did you mean 'max_steps'"),
        ({"max_steps": 0}, "max_steps"),
        ({"max_tool_concurrency": 0}, "max_tool_concurrency"),
        ({"max_consecutive_tool_errors": 0}, "max_consecutive_tool_errors"),
        ({"max_consecutive_denials": 0}, "max_consecutive_denials"),
        ({"max_agent_depth": 1.5}, "max_agent_depth"),
        ({"max_agent_depth": -1}, "max_agent_depth"),
        ({"step_timeout_s": 0}, "step_timeout_s"),
        ({"step_timeout_s": -1}, "step_timeout_s"),
        ({"name": 5}, "name"),
        ({"name": ""}, "name"),
        # tools
        ({"tools": [5]}, "tools"),
        ({"tools": 5}, "tools"),
        ({"tools": [Agent(ScriptedModel([]))]}, r"found Agent 'agent'\. Fix: \.as_tool\(…\)"),
        ({"tools": [SOMEBODY, SOMEBODY]}, "more than one tool named 'helper'"),
        ({"agents": {"helper": SOMEBODY}}, "give an agent the agents .* among its `tools`"),
        ({"active_tools": ["raed"]}, "'raed'.*Did you mean 'read'"),
        ({"active_tools": ["read"], "tools": []}, r"\(none\)"),
        ({"active_tools": "read"}, "`active_tools`"),
        ({"active_tools": []}, "`active_tools`"),
        ({"active_tools": [], "tool_choice": "required"}, "`active_tools`"),
        ({"active_tools": ["read"], "tool_choice": ToolChoice("tool", "write")}, "names 'write'"),
        ({"tool_choice": "required", "tools": []}, "there are no tools"),
        ({"tool_choice": "nonne"}, "found 'nonne'. Did you mean 'none'?"),
        ({"tool_choice": "read"}, r"Fix: ToolChoice\('tool', 'read'\)"),
        ({"tool_choice": ToolChoice("tool", "gone")}, "names 'gone'"),
        ({"tool_choice": ToolChoice("auto", "read")}, "has no effect in mode 'auto'"),
        # the answer
        ({"output_type": 5}, "no JSON Schema"),
        ({"output_type": int, "max_output_retries": -1}, "output"),
        ({"output_type": int, "tool_choice": "none"}, "`tool_choice='none'` leaves no way"),
        ({"output_type": int, "tools": [FINAL]}, "named 'final_answer', .* output_mode='native'"),
        ({"output_mode": "tool"}, "`output_mode` has no effect without `output_type`"),
        ({"max_output_retries": 1}, "has no effect without `output_type`"),
        ({"max_done_retries": 1}, "has no effect without `done_when`"),
        ({"max_done_retries": 1, "done_when": None}, "has no effect without `done_when`"),
        ({"done_when": bool, "max_done_retries": 0.5}, "done_when"),
        ({"max_verify_retries": 1}, "has no effect without `verify`"),
        ({"verify": bool, "max_verify_retries": "x"}, "verify"),
        ({"compact": print}, "give `compaction=Compaction"),
        ({"compaction": NO_WINDOW}, "expected a provider"),
        # stopping
        ({"stop_when": 5}, "`stop_when`"),
        ({"stop_when": None}, "`stop_when`"),
        ({"stop_when": [None]}, "`stop_when`"),
        ({"stop_when": stop.StepCountIs}, "`stop_when`"),
        ({"stop_when": stop.has_tool_call("raed")}, "has_tool_call` names 'raed'.*Did you mean"),
        (
            {"stop_when": stop.all_of(stop.has_tool_call("raed"), stop.step_count_is(1))},
            "has_tool_call` names 'raed'.*Did you mean 'read'",
        ),
        # gates and rules
        ({"gate": allow("raed")}, "'raed'. Did you mean 'read'"),
        ({"gate": deny("final_answer"), "output_type": int}, "'final_answer'"),
        ({"gate": allow("read", when=wrong(unsaid))}, r"`gate`: the condition 'unsaid' must take"),
        ({"gate": allow("read", when=wrong(lambda: True))}, "`gate`: the condition 'predicate'"),
        ({"rules": never("raed")}, r"'raed'\. Did you mean 'read'"),
        ({"rules": "never read"}, "`rules`"),
        ({"rules": [Never("x")]}, "`rules`"),
        ({"rules": [never("read"), 3]}, "`rules`"),
        ({"approval_ttl_s": 0, "gate": ask("*")}, "`approval_ttl_s`"),
        ({"approval_ttl_s": float("inf"), "gate": ask("*")}, "`approval_ttl_s`"),
        ({"approval_secret": "", "gate": ask("*")}, "secret"),
        ({"approval_ttl_s": 5}, "`approval_ttl_s` has no effect"),
        ({"approval_secret": "s"}, "`approval_secret` has no effect"),
        ({"approval_secret": "s", "tools": []}, "`approval_secret` has no effect"),
        ({"approval_secret": "s", "gate": deny("x_*") | allow("*")}, "has no effect"),
        # models
        ({"temperature": float("nan")}, "`temperature`.* nan"),
        ({"top_p": float("inf")}, "`top_p`.* inf"),
        ({"max_tokens": 0}, "`max_tokens`"),
        ({"provider_options": {"f": float("nan")}}, "`provider_options`"),
        ({"provider_options": {"f": object()}}, "`provider_options`"),
        ({"stop_sequences": "END"}, "`stop_sequences`"),
        ({"fallback_models": ["nobody:x"]}, "expected a provider"),
        ({"fallback_models": [ScriptedModel([])]}, "'script'"),
        ({"price": float, "prices": {"x": ModelPrice(1, 1)}}, "`prices` has no effect"),
        ({"api_key": "k", "base_url": "http://x"}, "api_key"),
        ({"timeouts": Timeouts()}, "timeouts"),
        ({"retries": Retries()}, "retries"),
    ],
    ids=named,
)
def test_an_option_that_cannot_work_is_refused_at_once(
    options: dict[str, object], found: str
) -> None:
    said = ScriptedModel(["done"])
    agent = Agent(said, tools=[read])

    with pytest.raises(ConfigError, match=found):
        Agent(said, **wrong({"tools": [read], **options}))
    with pytest.raises(ConfigError, match=found):
        agent.with_options(**wrong(options))

    assert [] == said.requests
    assert "done" == agent.generate_sync("go").text


@pytest.mark.parametrize(
    "options",
    [
        {"active_tools": [], "tools": []},
        {"output_type": int, "tool_choice": FIRST},
        {"output_type": int, "tool_choice": "none", "output_mode": "native"},
        {"output_type": int, "tools": [FINAL], "output_mode": "native"},
        {"tools": [FINAL]},
        {"approval_secret": "s", "tools": [gated()]},
        {"approval_ttl_s": 5, "gate": ask("read")},
        {"approval_ttl_s": 5, "prepare_step": unprepared},
        {"approval_ttl_s": 5, "tools": [SOMEBODY]},
        {"gate": allow("read", "anything_*")},
        {"stop_when": stop.has_tool_call("late"), "prepare_step": unprepared},
        {"compaction": Compaction(9_000, summary_model="script")},
    ],
    ids=named,
)
def test_an_option_that_may_take_effect_is_not_refused(options: dict[str, object]) -> None:
    Agent(ScriptedModel([]), **wrong({"tools": [read], **options}))


def test_an_agent_with_other_options_leaves_the_first_as_it_was() -> None:
    first = Agent("openai:x", api_key="supersecret-key-0123456789", max_steps=3)

    second = first.with_options(max_steps=5)

    assert StopCheck(max_steps=3) == first.graph.nodes["stop_check"]
    assert StopCheck(max_steps=5) == second.graph.nodes["stop_check"]
    for agent in (first, second):
        shown = repr(agent.options) + repr(agent) + repr(vars(agent.graph))
        shown += repr(Options.read({"api_key": "supersecret-key-0123456789"}))
        assert "supersecret" not in shown


def test_the_options_around_a_run_take_effect() -> None:
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
        tools=[gated()],
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


@pytest.mark.parametrize("limit", [1, 2])
def test_a_request_says_that_calls_run_one_at_a_time(limit: int) -> None:
    _, model = ran(max_tool_concurrency=limit)

    assert (False if limit == 1 else None) is model.requests[0].settings.parallel_tool_calls


@pytest.mark.parametrize("bound", [1, 2])
def test_the_step_limit_is_the_number_of_turns(bound: int) -> None:
    result, _ = ran(*[reply(call())] * 3, tools=[read], max_steps=bound)

    assert (EndReason.MAX_STEPS, ("max_steps",)) == (result.end_reason, result.stopped_by)
    assert [["text"]] * bound == [texts(result, at) for at in range(len(result.steps))]


@pytest.mark.parametrize("errors", [1, 2])
def test_a_tool_that_only_fails_stops_the_run(errors: int) -> None:
    script = [reply(call("write"))] * 3
    result, _ = ran(*script, tools=[write], max_consecutive_tool_errors=errors)

    assert (EndReason.TOOL_ERRORS, errors) == (result.end_reason, len(result.steps))
    assert ("tool_errors:write",) == result.stopped_by


@pytest.mark.parametrize(("limit", "most"), [(1, 1), (2, 2), (5, 3)])
def test_no_more_tools_run_at_once_than_are_allowed(limit: int, most: int) -> None:
    running, seen = [0], list[int]()

    async def count(arguments: dict[str, object]) -> str:
        running[0] += 1
        seen.append(running[0])
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        running[0] -= 1
        return "text"

    calls = reply(call(), call(), call())
    ran(calls, tools=[free("read", count)], max_tool_concurrency=limit)

    assert (3, most) == (len(seen), max(seen))


def test_a_tool_that_is_not_active_is_neither_offered_nor_run() -> None:
    result, said = ran(reply(call("write")), tools=[read, write], active_tools=["read"])

    assert [["read"], ["read"]] == [[tool.name for tool in one.tools] for one in said.requests]
    assert ["unknown_tool"] == statuses(result)


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
    result, _ = ran(
        reply(call()), tools=[read], stop_when=condition, price=lambda _: 0.25, clock=ticking()
    )

    assert (EndReason.STOP_CONDITION, (name,)) == (result.end_reason, result.stopped_by)
    assert FinishReason.TOOL_CALLS is result.finish_reason
    assert ["ok"] == statuses(result)


def test_stopped_by_names_every_bound_that_tripped() -> None:
    result, _ = ran(
        reply(call("write")),
        tools=[write],
        max_steps=1,
        max_consecutive_tool_errors=1,
        stop_when=[enough, stop.has_tool_call("write"), enough_later, stop.step_count_is(9)],
    )

    assert EndReason.TOOL_ERRORS is result.end_reason
    names = ("tool_errors:write", "max_steps", "has_tool_call", "enough", "enough_later")
    assert names == result.stopped_by


@pytest.mark.parametrize("later", [False, True], ids=["sync", "async"])
@pytest.mark.parametrize("option", ["stop_when", "prepare_step", "verify", "done_when"])
def test_a_function_that_raises_ends_the_run_with_its_exception(option: str, later: bool) -> None:
    mine = LookupError("bug")

    def fail(_: object) -> bool:
        raise mine

    async def fail_later(_: object) -> bool:
        return fail(None)

    said = ScriptedModel([reply(call()) if option == "stop_when" else "one", "never"])
    given = {"tools": [read], option: fail_later if later else fail}
    with pytest.raises(LookupError) as raised:
        Agent(said, **wrong(given)).generate_sync("go")

    assert raised.value is mine
    assert (0 if option == "prepare_step" else 1) == len(said.requests)


async def hang() -> str:
    """Hang."""
    await asyncio.Event().wait()
    return "never"


def test_a_turn_that_takes_too_long_is_given_up() -> None:
    result, _ = ran(reply(call("hang")), tools=[hang], step_timeout_s=0.01)

    assert EndReason.TIMEOUT is result.end_reason
    assert ["assistant", "tool"] == [one.role for one in result.messages]


def test_the_next_model_is_asked_when_one_cannot_be() -> None:
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


def test_key_and_address_are_for_the_default_model_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    options: RunOptions = {"api_key": "secret", "base_url": "https://api.openai.com/v1"}
    one = AgentResources("openai:one", Options.read(options))

    assert "openai:two" == one.add_model("openai:two")
    assert "script" == one.add_model(ScriptedModel(["done"]))
    with pytest.raises(ConfigError, match="ANTHROPIC_API_KEY"):
        one.add_model("anthropic:three")


def test_time_limits_are_for_every_model_given_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "k")
    made: list[tuple[object, object]] = []
    init = HttpProvider.__init__

    def noting(self: HttpProvider, *args: object, **given: object) -> None:
        made.append((given["timeouts"], given["retries"]))
        init(self, *wrong(args), **wrong(given))

    monkeypatch.setattr(HttpProvider, "__init__", noting)
    limits = (Timeouts(total_s=5.0), Retries(attempts_max=1))
    options: RunOptions = {"api_key": "k", "timeouts": limits[0], "retries": limits[1]}

    AgentResources("openai:one", Options.read(options)).add_model("anthropic:two")

    assert [limits, limits] == made
