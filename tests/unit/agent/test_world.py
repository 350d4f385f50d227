"""World: models, tools and agents, each known by one name only."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from graphloop import Agent, ModelPrice, Retries, Timeouts, Tool, allow, deny
from graphloop.agent.options import RunOptions, ToolInput
from graphloop.agent.sub_agents import AgentTool
from graphloop.agent.world import AgentResources, price_of, split_tools
from graphloop.errors import ConfigError
from graphloop.providers.http import HttpProvider
from graphloop.testing import ScriptedModel
from graphloop.values import Usage, evolve
from tests.strategies import reply, wrong


def read() -> str:
    """Read."""
    return "text"


FINAL: Tool[..., object] = Tool(name="final", parameters={"type": "object"}, execute=len)


def helper(name: str = "helper", *tools: Tool[..., object] | AgentTool) -> AgentTool:
    """Return an agent that can be called."""
    agent = Agent(ScriptedModel(["help"], label=name), name=name, tools=tools)
    return agent.as_tool(description="helps")


def world(*tools: object) -> AgentResources:
    """Return a world with these tools and a scripted model."""
    return AgentResources(ScriptedModel(["mine"]), {}, wrong(tools))


def test_two_models_of_one_label_are_refused() -> None:
    """The journal names models by label: the first would answer for the second."""
    one = world()

    assert "other" == one.add_model(ScriptedModel(["other"], label="other"))
    with pytest.raises(ConfigError, match="two different models are labelled 'script'"):
        one.add_model(ScriptedModel(["theirs"]))


def test_one_model_may_be_added_twice() -> None:
    """As itself, or by its name."""
    model = ScriptedModel(["mine"])
    one = AgentResources(model, {}, ())

    assert ("script", {"script": model}) == (one.add_model(model), one.models)


def test_key_and_address_are_for_the_default_model_s_provider_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A key must never be sent to another company; and a ready provider for a turn needs none."""
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    options: RunOptions = {"api_key": "secret", "base_url": "https://api.openai.com/v1"}
    one = AgentResources("openai:one", options, ())

    assert "openai:two" == one.add_model("openai:two")
    assert "script" == one.add_model(ScriptedModel(["done"]))
    with pytest.raises(ConfigError, match="ANTHROPIC_API_KEY"):
        one.add_model("anthropic:three")


def test_timeouts_and_retries_are_for_every_model_that_is_given_by_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A fallback at another company that could hang for ever would be a poor one."""
    monkeypatch.setenv("ANTHROPIC_API_KEY", "k")
    made: list[tuple[object, object]] = []
    init = HttpProvider.__init__

    def noting(self: HttpProvider, *args: object, **given: object) -> None:
        made.append((given["timeouts"], given["retries"]))
        init(self, *wrong(args), **wrong(given))

    monkeypatch.setattr(HttpProvider, "__init__", noting)
    limits = (Timeouts(total_s=5.0), Retries(attempts_max=1))
    options: RunOptions = {"api_key": "k", "timeouts": limits[0], "retries": limits[1]}

    AgentResources("openai:one", options, ()).add_model("anthropic:two")

    assert [limits, limits] == made


def test_agents_in_a_mapping_are_called_by_its_names() -> None:
    """As tools are; the child runs and the gate know them by the same name."""
    given: dict[str, ToolInput] = {"expert": helper(), "fetch": read}

    own, agents = split_tools(given)
    one = AgentResources(ScriptedModel([]), {}, given)

    assert (["expert"], "expert") == (list(agents), agents["expert"].name)
    assert {"expert", "fetch"} == set(own)
    assert ["expert", "fetch"] == [spec.name for spec in one.toolbox.specs]
    assert ["expert"] == list(one.children)


def test_agents_in_a_list_keep_their_names_and_their_places() -> None:
    """The order of the tools is part of what a server caches."""
    one = world(read, helper(), FINAL)

    assert ["read", "helper", "final"] == [spec.name for spec in one.toolbox.specs]
    assert ["helper"] == list(one.children)


def test_two_agents_of_one_name_are_refused() -> None:
    """Among the tools, and between the tools and the agents of Child nodes."""
    with pytest.raises(ConfigError, match="more than one tool named 'helper'"):
        world(helper(), helper())
    with pytest.raises(ConfigError, match="two agents are named 'helper'"):
        AgentResources(ScriptedModel([]), {"agents": {"helper": helper()}}, [helper()])


def test_what_is_no_list_of_tools_is_refused() -> None:
    """By the toolbox, in its words."""
    with pytest.raises(ConfigError, match="tools"):
        AgentResources(ScriptedModel([]), {}, wrong(5))


def test_the_tool_that_takes_the_answer_is_the_loop_s_own() -> None:
    """It is on offer, is not among what the caller has brought, and no gate stands before it."""
    one = world(read)

    one.answer_by(FINAL)

    assert ["read", "final"] == [spec.name for spec in one.toolbox.specs]
    assert (["read"], ("final",)) == ([spec.name for spec in one.given], one.own)
    assert allow("final").rules == one.allowed
    assert ((), ()) == (world().own, world().allowed)


def test_the_tool_that_takes_the_answer_replaces_no_other() -> None:
    """The caller's would silently never run."""
    with pytest.raises(ConfigError, match=r"a tool is named 'final', .* output_mode='native'"):
        world(FINAL).answer_by(FINAL)


def test_a_gate_may_name_the_tools_of_agents_at_any_depth() -> None:
    """Its rules hold for them, so they must be able to let them through."""
    one = world(read, helper("outer", helper("inner", FINAL)))

    assert {"read", "outer", "inner", "final"} == set(one.callable_names)
    one.check_gate(allow("read", "final", "anything_*"))
    one.check_gate(None)
    with pytest.raises(ConfigError, match=r"'fnal'\. Did you mean 'final'"):
        one.check_gate(deny("fnal") | allow("*"))


def test_a_condition_that_cannot_be_called_is_refused() -> None:
    """It would fail at every call, and so deny for ever without a word."""
    one = world(read)

    def always(arguments: object, context: object) -> bool:
        return True

    def one_only(arguments: object) -> bool:
        return True

    whens: list[Callable[..., bool]] = [lambda: True, one_only]
    one.check_gate(allow("read", when=always))
    for when in whens:
        with pytest.raises(
            ConfigError, match=r"`gate`: the condition '(predicate|one_only)' must take \(arg"
        ):
            one.check_gate(allow("read", when=when))


def test_a_gate_does_not_name_the_loop_s_own_tool() -> None:
    """A rule about it would have no effect."""
    one = world(read)
    one.answer_by(FINAL)

    with pytest.raises(ConfigError, match="'final'"):
        one.check_gate(deny("final"))


def test_the_caller_s_prices_go_before_the_known_ones() -> None:
    """And are looked into for any model, with a known price or without."""
    answer = evolve(reply("hi"), model="mine", usage=Usage(1_000_000, 0))
    script = ScriptedModel([])

    assert price_of({}, script)(answer) is None
    assert 3.0 == price_of({"prices": {"mine": ModelPrice(3, 1)}}, script)(answer)
    assert 0.25 == price_of({"price": lambda _: 0.25}, script)(answer)
