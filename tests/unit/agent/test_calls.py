"""Options of one call: they replace the agent's for one run, and the journal tells the truth."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
from pydantic import BaseModel

from graphloop import Agent, tool
from graphloop.agent import Runs
from graphloop.agent.build_loop import VARIANTS_MAX
from graphloop.errors import ConfigError, ProviderError
from graphloop.events import Started
from graphloop.providers import ModelSession, Timeouts, connect
from graphloop.run import EndReason
from graphloop.stores import MemoryStore, open_store
from graphloop.testing import ScriptedModel, refuse_requests
from graphloop.values import Settings, SystemMessage
from tests.wire_server import Answer, WireServer, sse

HI = sse(
    '{"choices": [{"index": 0, "delta": {"content": "Hi"}}]}',
    '{"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}',
    "[DONE]",
)
NONE: dict[str, object] = {}
CALL = {"calls": [{"name": "look", "arguments": NONE}]}
PAY = {"calls": [{"name": "pay", "arguments": NONE}]}


@tool
def look() -> str:
    """Look."""
    return "fog"


@tool(needs_approval=True)
def pay() -> str:
    """Pay."""
    return "paid"


class Person(BaseModel):
    """A person."""

    name: str


async def test_instructions_and_settings_hold_for_one_run() -> None:
    """The agent is shared: a later run must not see them."""
    model = ScriptedModel(["Hi."] * 2)
    agent = Agent(model, instructions="Be kind.", temperature=0.5, seed=7)

    await agent.generate("Hello", instructions="Be brief.", temperature=0.0, max_tokens=9)
    await agent.generate("Hello")

    first, second = model.requests
    assert first.messages[0] == SystemMessage("Be brief.")
    assert first.settings == Settings(max_tokens=9, temperature=0.0, seed=7)
    assert second.messages[0] == SystemMessage("Be kind.")
    assert second.settings == Settings(temperature=0.5, seed=7)


def test_a_call_with_the_same_limit_of_turns_builds_no_graph() -> None:
    """Instructions that name the customer differ in every call."""
    agent = Agent(ScriptedModel(["Hi."] * 3), tools=[look])
    own = agent._terms  # pyright: ignore[reportPrivateUsage]

    for given in ({"instructions": "For Ada.", "seed": 1}, {"model": ScriptedModel(())}):
        assert own.with_options(given).graph is agent.graph
        assert own.with_options(given).resources.toolbox is own.resources.toolbox
    limited, seeded = (
        own.with_options({"max_steps": 3}),
        own.with_options({"max_steps": 3, "seed": 1}),
    )
    assert limited.graph is seeded.graph


async def test_every_way_to_start_takes_them() -> None:
    """One structure: what `generate` takes, `stream` and `iter` take."""
    model = ScriptedModel(["Hi."] * 3)
    agent = Agent(model)

    await agent.stream("Hello", seed=1).result()
    async for _ in agent.iter("Hello", seed=2):
        pass
    await agent.generate("Hello", seed=3)

    assert [1, 2, 3] == [request.settings.seed for request in model.requests]


def test_the_synchronous_twin_takes_them() -> None:
    model = ScriptedModel(["Hi."])

    Agent(model).generate_sync("Hello", seed=4)

    assert model.requests[0].settings.seed == 4


async def test_another_model_answers_one_run() -> None:
    """A caller chooses the model for a customer, not for the process."""
    own, other = ScriptedModel(["own"]), ScriptedModel(["other"], label="other")
    agent = Agent(own)

    result = await agent.generate("Hello", model=other)

    assert result.text == "other"
    assert result.run.setup.model == "other"
    assert (await agent.generate("Hello")).text == "own"


async def test_another_limit_of_turns_is_in_the_bound_and_in_the_run() -> None:
    """A bound that does not hold for the run would be a lie."""
    agent = Agent(ScriptedModel([CALL] * 9), tools=[look], max_steps=2)

    result = await agent.generate("Hello", max_steps=4)

    assert result.end_reason is EndReason.MAX_STEPS
    assert len(result.steps) == 4
    assert (agent.bound().model_calls, agent.bound(max_steps=4).model_calls) == (4, 8)
    assert agent.bound(max_steps=4) == agent.with_options(max_steps=4).bound()
    assert len((await agent.generate("Hello")).steps) == 2


async def test_limits_of_turns_are_kept_for_a_few_values_only() -> None:
    """A cache without a limit is a leak."""
    agent = Agent(ScriptedModel(["Hi."] * (VARIANTS_MAX + 9)))
    for most in range(1, VARIANTS_MAX + 9):
        assert (await agent.generate("Hello", max_steps=most)).text == "Hi."

    assert agent.bound(max_steps=3) == agent.with_options(max_steps=3).bound()


async def test_a_resume_keeps_the_limit_that_the_run_began_with(tmp_path: Path) -> None:
    """Another process, whose agent has the agent's own limit, goes on by the journal."""
    path = str(tmp_path / "runs.db")
    script = [PAY, CALL, CALL, CALL, CALL]

    async with Agent(ScriptedModel(script), tools=[look, pay], store=path) as agent:
        parked = await agent.generate("Pay", max_steps=3, temperature=0.1)
    rest = ScriptedModel(script[1:])
    async with Agent(rest, tools=[look, pay], store=path, max_steps=9) as later:
        key = parked.pending[0].key
        result = await later.resume(parked.run_id, approvals={key: True})
        replayed = await later.runs.replay(parked.run_id)

    assert result.end_reason is EndReason.MAX_STEPS
    assert len(result.run.record.steps) == 3
    assert replayed.ending == result.run.ending
    assert {0.1} == {request.settings.temperature for request in rest.requests}


async def test_the_journal_holds_the_options_of_the_run(tmp_path: Path) -> None:
    path = str(tmp_path / "runs")
    agent = Agent(ScriptedModel(["Hi."]), store=path)

    result = await agent.generate("Hello", max_steps=3, temperature=0.1, instructions="Be brief.")

    started = (await open_store(path).load(result.run_id))[0]
    assert isinstance(started, Started)
    assert started.setup.max_steps == 3
    assert started.setup.settings.temperature == 0.1
    assert started.messages[0] == SystemMessage("Be brief.")


@pytest.mark.parametrize("option", ["temperature", "max_steps", "instructions", "seed"])
async def test_a_resume_refuses_what_the_run_keeps(option: str) -> None:
    """A setting that silently does nothing is worse than an error."""
    agent = Agent(ScriptedModel([PAY]), tools=[pay])
    parked = await agent.generate("Pay")
    given: dict[str, Any] = {option: 1}

    with pytest.raises(ConfigError, match=rf"a resume: expected .* found {option}, which a run"):
        await agent.resume(parked, **given)


async def test_a_resume_refuses_another_model(tmp_path: Path) -> None:
    """The run began with a model; a resume names that model, and no other."""
    path = str(tmp_path / "runs.db")
    other = ScriptedModel([PAY, "Paid."], label="other")
    async with Agent(ScriptedModel(()), tools=[pay], store=path) as agent:
        parked = await agent.generate("Pay", model=other)
        approvals = {parked.pending[0].key: True}

        message = r"needs model 'other', which this agent lacks.*with model='other' or a pro"
        with pytest.raises(ConfigError, match=message):
            await agent.resume(parked.run_id, approvals=approvals)
        third = ScriptedModel((), label="third")
        with pytest.raises(ConfigError, match=r"began with 'other', found 'third'"):
            await agent.resume(parked.run_id, approvals=approvals, model=third)
        result = await agent.resume(parked.run_id, approvals=approvals, model=other)

    assert result.text == "Paid."


async def test_a_missing_model_of_a_child_run_is_not_asked_for_as_the_model() -> None:
    """`model=` is the model of the run itself, so it can bring no other model back."""
    store = MemoryStore()

    def boss(label: str) -> Agent:
        worker = Agent(ScriptedModel([PAY, "Paid."], label=label), tools=[pay])
        asks = {"calls": [{"name": "worker", "arguments": {"prompt": "Pay"}}]}
        tools = {"worker": worker.as_tool(description="Pays.")}
        return Agent(ScriptedModel([asks, "Done."], label="boss"), tools=tools, store=store)

    parked = await boss("own").generate("Pay", run_id="r")
    approvals = {parked.pending[0].key: True}

    message = (
        r"needs model 'own', which this agent lacks.*Fix: resume it by an agent that has this model"
    )
    with pytest.raises(ConfigError, match=message):
        await boss("other").resume("r", approvals=approvals)


async def test_a_fallback_that_cannot_take_a_setting_is_refused_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It would be found when the first model fails, which is when the fallback is needed."""
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    names = ("openai:gpt-5", "openai-responses:gpt-5")

    with pytest.raises(ConfigError, match=r"model 'openai-responses:gpt-5': Settings\.seed: exp"):
        Agent(names[0], fallback_models=[names[1]], seed=1)
    with pytest.raises(ConfigError, match=r"model 'openai-responses:gpt-5': Settings\.options"):
        Agent(names[1], provider_options={"store": True})
    agent = Agent(names[0], fallback_models=[names[1]])
    with pytest.raises(ConfigError, match=r"model 'openai-responses:gpt-5': Settings\.seed"):
        await agent.generate("Hello", seed=1)
    assert Agent(names[0], fallback_models=[names[0]], seed=1, stop_sequences=["x"])


async def test_a_misspelled_option_is_named() -> None:
    """Before anything is sent."""
    model = ScriptedModel(["Hi."])
    agent = Agent(model)
    given: dict[str, Any] = {"temprature": 1}

    with pytest.raises(ConfigError, match=r"'temprature'\. Did you mean 'temperature'"):
        await agent.generate("Hello", **given)
    with pytest.raises(ConfigError, match="max_steps"):
        await agent.generate("Hello", max_steps=0)
    with pytest.raises(ConfigError, match="temperature"):
        agent.stream("Hello", temperature=float("nan"))

    assert not model.requests


async def test_a_model_for_one_run_still_gives_typed_answers() -> None:
    """The form of the answer depends on the model's server."""
    agent = Agent(ScriptedModel(()), output_type=Person)
    calls = [{"name": "final_answer", "arguments": {"name": "Ada"}}]

    result = await agent.generate(
        "Who?", model=ScriptedModel([{"calls": calls}], label="x"), max_steps=2
    )

    assert result.output == Person(name="Ada")
    assert result.run.setup.max_steps == 2


async def test_headers_and_time_limits_reach_the_server_over_the_same_connection() -> None:
    """Per-customer headers must not cost a new connection for every call."""
    async with WireServer([Answer(HI) for _ in range(3)]) as server:
        url = f"{server.url}/v1"
        async with Agent("openai:m", base_url=url, api_key="k", headers={"X-Team": "a"}) as agent:
            await agent.generate("Hello")
            await agent.generate("Hello", headers={"x-team": "b", "X-Customer": "7"})
            await agent.generate("Hello", timeouts=Timeouts(total_s=9))

        assert ["a", "b", "a"] == [each.headers["x-team"] for each in server.requests]
        assert [None, "7", None] == [each.headers.get("x-customer") for each in server.requests]
        assert server.connections == 1


async def test_a_query_is_part_of_each_url() -> None:
    """Azure names the version of its API there; another call's headers leave it as it is."""
    async with WireServer([Answer(HI) for _ in range(3)]) as server:
        query = {"api-version": "2024-10-21", "région": "à b"}
        model = connect("openai:m", base_url=f"{server.url}/v1", api_key="k", query=query)
        async with Agent(model) as agent, Agent(model) as other:
            await agent.generate("Hello")
            await agent.generate("Hello", headers={"X-Team": "b"})
            await other.generate("Hello")

        asked = [urlsplit(one.path) for one in server.requests]
        assert ["/v1/chat/completions"] * 3 == [one.path for one in asked]
        assert [query] * 3 == [dict(parse_qsl(one.query)) for one in asked]
        assert server.connections == 1


def test_a_query_of_no_text_is_refused() -> None:
    """Before anything is sent."""
    wrong: Any = {"api-version": 3}

    with pytest.raises(ConfigError, match=r"query: expected .* 'api-version' with int"):
        Agent("openai:m", api_key="k", query=wrong)


async def test_no_journal_and_no_error_holds_a_header(tmp_path: Path) -> None:
    """A gateway's token in a header is a key."""
    secret = "token-canary-123456"  # noqa: S105 - a canary
    body = f'{{"error": {{"message": "bad token {secret}"}}}}'.encode()
    path = tmp_path / "runs"
    async with WireServer([Answer([body], 401, {"content-type": "application/json"})]) as server:
        agent = Agent("openai:m", base_url=server.url, api_key="k", store=str(path))
        with pytest.raises(ProviderError) as raised:
            await agent.generate("Hello", headers={"X-Gateway": secret})
        assert server.requests[0].headers["x-gateway"] == secret
        await agent.aclose()

    assert secret not in repr(raised.value)
    assert all(secret.encode() not in file.read_bytes() for file in path.iterdir())
    assert "headers" not in Agent("openai:m", api_key="k", headers={"a": secret}).options


@pytest.mark.parametrize("headers", [{"Content-Type": "x"}, {"a b": "x"}, {"a": "x\r\nb: y"}])
def test_headers_that_would_break_a_request_are_refused(headers: dict[str, str]) -> None:
    """Before anything is sent; the value may be a secret, and is not quoted."""
    with pytest.raises(ConfigError, match="headers: expected") as raised:
        Agent("openai:m", api_key="k", headers=headers)

    assert "b: y" not in str(raised.value)


class PlainModel:
    """A provider of the user's own."""

    label = "plain:m"

    def session(self) -> ModelSession:
        raise AssertionError("nothing is asked")

    async def aclose(self) -> None:
        """Nothing is open."""


async def test_access_without_effect_is_refused() -> None:
    """A model of another library has access of its own."""
    agent = Agent(PlainModel())

    with pytest.raises(ConfigError, match="headers would have no effect"):
        await agent.generate("Hello", headers={"a": "b"})


def test_with_options_takes_a_model() -> None:
    """Access to the agent's own model is not meant for another one."""
    agent = Agent("openai:m", api_key="k", base_url="http://localhost:1", headers={"a": "b"})

    other = agent.with_options(model=ScriptedModel(["Hi."]), max_steps=3)

    assert other.generate_sync("Hello").text == "Hi."
    assert not other.options.keys() & {"base_url", "headers"}
    assert agent.with_options(model="openai:n").options.get("base_url") == "http://localhost:1"


async def test_a_call_with_options_refuses_deps_that_the_agent_does_not_declare() -> None:
    """The call's own options change nothing about what the agent reads."""
    deps: Any = 3

    with pytest.raises(ConfigError, match="`deps` of 'agent'"):
        await Agent(ScriptedModel(["Hi."])).generate("Hello", deps=deps, seed=1)


def test_an_override_gives_deps() -> None:
    """The program under test passes the deps of production."""

    def greet(deps: int) -> str:
        return f"Customer {deps}."

    model = ScriptedModel(["Hi."])
    agent = Agent("openai:gpt-5", api_key="k", deps_type=int, instructions=greet)

    with agent.override(model=model, deps=7):
        agent.generate_sync("Hello", deps=1)
        assert model.requests[0].messages[0] == SystemMessage("Customer 7.")


AGENT = Agent("openai:gpt-5", api_key="k", tools=[look], instructions="Be kind.")


def ask() -> str:
    """Stand for a program under test, which uses its own global agent."""
    return AGENT.generate_sync("Hello").text


def test_an_override_reaches_a_global_agent() -> None:
    """The program under test is not changed for its test."""
    model = ScriptedModel([CALL, "Sunny."])

    with refuse_requests(), AGENT.override(model=model):
        assert ask() == "Sunny."
    with refuse_requests(), pytest.raises(ConfigError, match="nothing was sent"):
        ask()

    assert model.requests[0].messages[0] == SystemMessage("Be kind.")


def test_an_override_replaces_other_models_too() -> None:
    """A fallback that asks a real server would cost money in a test."""
    agent = Agent("openai:gpt-5", api_key="k", fallback_models=["openai:gpt-5-mini"])
    broken = ScriptedModel([{"error": "down"}])

    with agent.override(model=broken), pytest.raises(ProviderError, match="down"):
        agent.generate_sync("Hello")


def test_an_override_takes_tools_and_options() -> None:
    @tool
    def look() -> str:
        """Look."""
        return "rain"

    model = ScriptedModel([CALL, "Rain."])
    with AGENT.override(model=model, tools=[look], temperature=0.0):
        assert ask() == "Rain."

    assert model.requests[1].messages[-1].text == "rain"  # type: ignore[union-attr]
    assert model.requests[0].settings.temperature == 0.0


def test_options_of_a_call_go_on_top_of_an_override() -> None:
    model = ScriptedModel(["Hi."])

    with AGENT.override(model=model, temperature=0.0):
        AGENT.generate_sync("Hello", seed=5)

    assert model.requests[0].settings == Settings(temperature=0.0, seed=5)


def test_an_override_holds_where_the_program_chooses_a_model() -> None:
    """A program that routes each call to a model would spend money in its tests."""
    model = ScriptedModel(["one", "two"])

    with refuse_requests(), AGENT.override(model=model):
        assert "one" == AGENT.generate_sync("Hello", model="openai:gpt-5-mini").text
        assert "two" == AGENT.with_options(model="openai:gpt-5-mini").generate_sync("Hello").text


async def test_concurrent_tasks_do_not_see_each_others_override() -> None:
    """Tests of one suite may run in one event loop."""
    inside, done = asyncio.Event(), asyncio.Event()

    async def overriding(text: str) -> str:
        with AGENT.override(model=ScriptedModel([text])):
            inside.set()
            await done.wait()
            return (await AGENT.generate("Hello")).text

    async def plain() -> None:
        await inside.wait()
        with refuse_requests(), pytest.raises(ConfigError, match="nothing was sent"):
            await AGENT.generate("Hello")
        done.set()

    async with asyncio.TaskGroup() as tasks:
        first, second = tasks.create_task(overriding("a")), tasks.create_task(overriding("b"))
        tasks.create_task(plain())

    assert (first.result(), second.result()) == ("a", "b")


def test_an_override_of_an_agent_that_is_a_tool_holds_in_its_child_runs() -> None:
    """The parent was made when its module was imported."""
    worker = Agent("openai:gpt-5", api_key="k", name="worker")
    calls = [{"name": "worker", "arguments": {"prompt": "Work."}}]
    boss = Agent(ScriptedModel([{"calls": calls}, "Done."]), tools=[worker.as_tool()])
    model = ScriptedModel(["Worked."], label="tested")

    with worker.override(model=model):
        assert boss.generate_sync("Hello").text == "Done."

    assert len(model.requests) == 1


def test_an_override_keeps_the_store(tmp_path: Path) -> None:
    """The runs of a test are where the program looks for them."""
    path = str(tmp_path / "runs.db")
    agent = Agent("openai:gpt-5", api_key="k", store=path)

    with agent.override(model=ScriptedModel(["Hi."])):
        result = agent.generate_sync("Hello")

    records = asyncio.run(Runs(path).list())
    assert [result.run_id] == [record.run_id for record in records]
