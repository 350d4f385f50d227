"""Agents of Open Agent Spec as topologies of their own."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pyagentspec.flows.nodes import AgentNode
from pyagentspec.llms import (
    GeminiConfig,
    OciGenAiConfig,
    OllamaConfig,
    OpenAiCompatibleConfig,
    OpenAiConfig,
    VllmConfig,
)
from pyagentspec.llms.geminiauthconfig import GeminiAIStudioAuthConfig
from pyagentspec.llms.llmconfig import LlmConfig
from pyagentspec.llms.llmgenerationconfig import LlmGenerationConfig
from pyagentspec.llms.ociclientconfig import OciClientConfigWithInstancePrincipal
from pyagentspec.llms.openaicompatibleconfig import OpenAIAPIType
from pyagentspec.managerworkers import ManagerWorkers
from pyagentspec.mcp import MCPToolBox, SSETransport
from pyagentspec.property import IntegerProperty, StringProperty
from pyagentspec.swarm import Swarm
from pyagentspec.tools import BuiltinTool, ClientTool, RemoteTool, ServerTool

from graphloop.nodes import Gate, ModelCall
from graphloop.policy import Rule
from graphloop.topology import TopologyError
from graphloop.topology.agent_spec import read_agent_spec
from graphloop.topology.agent_spec.read_agents import PARTS_MAX, plain_name
from tests.agent_spec_documents import (
    NAMES,
    agent,
    agent_node,
    chain,
    read,
    refund,
    search,
    told,
    written,
)


def test_a_confirmation_that_is_demanded_is_asked_for() -> None:
    """A topology is never less safe than its document."""
    found = read(agent(tools=[refund(), search()]))

    gate = found.document.graph.nodes["gate"]
    assert isinstance(gate, Gate)
    assert (Rule("ask", ("refund",)), Rule("allow", ("search",))) == gate.rules
    assert ("refund", "search") == found.document.tools
    assert "exact" == told(found)["refund"] == told(found)["search"]
    assert "exact" == told(found)["llm"]
    assert "approximated" == told(found)["desk"]


def test_a_registered_tool_that_asks_is_not_allowed_by_the_rules_of_others() -> None:
    """Rules stand above what a tool itself says, so they must not say less."""
    delete = ServerTool(id="delete", name="delete")

    gate = read(agent(tools=[refund(), delete])).document.graph.nodes["gate"]

    assert isinstance(gate, Gate)
    assert (Rule("ask", ("refund", "delete")),) == gate.rules


def test_without_a_confirmation_each_tool_decides_for_itself() -> None:
    """A gate without rules asks where the registered tool says so."""
    gate = read(agent(tools=[search()])).document.graph.nodes["gate"]

    assert isinstance(gate, Gate)
    assert not gate.rules


def test_an_agent_without_tools_answers_once() -> None:
    """There is nothing to loop for; the report is exact where nobody may be asked."""
    found = read(agent(human_in_the_loop=False))

    assert {"prepare_step", "model_call", "append"} == {*found.document.graph.nodes}
    assert {"desk": "exact", "llm": "exact"} == told(found)
    assert "Help." == found.document.instructions


def test_placeholders_point_to_the_conversation() -> None:
    """Data does not flow into texts here."""
    found = read(agent(system_prompt="Be {{ tone }}, {{tone}}."))

    said = "Be [tone: see the conversation], [tone: see the conversation]."
    assert said == found.document.instructions
    assert "approximated" == told(found)["desk"]


OCI = OciClientConfigWithInstancePrincipal(id="oci", name="oci", service_endpoint="https://o")
MODELS: tuple[tuple[LlmConfig, str, str], ...] = (
    (OpenAiConfig(id="llm", name="a", model_id="gpt-5"), "openai:gpt-5", "exact"),
    (
        OpenAiConfig(id="llm", name="a", model_id="gpt-5", api_type=OpenAIAPIType.RESPONSES),
        "openai:gpt-5",
        "approximated",
    ),
    (
        OpenAiConfig(
            id="llm",
            name="a",
            model_id="gpt-5",
            default_generation_parameters=LlmGenerationConfig(max_tokens=5),
        ),
        "openai:gpt-5",
        "approximated",
    ),
    (
        LlmConfig(id="llm", name="a", model_id="c", provider="anthropic", api_provider="anthropic"),
        "anthropic:c",
        "exact",
    ),
    (LlmConfig(id="llm", name="a", model_id="c", api_provider="oci"), "", "approximated"),
    (
        LlmConfig(id="llm", name="a", model_id="c", api_provider="openai", url="http://evil"),
        "",
        "approximated",
    ),
    (VllmConfig(id="llm", name="a", model_id="m", url="http://evil"), "", "approximated"),
    (OllamaConfig(id="llm", name="a", model_id="m", url="http://evil"), "", "approximated"),
    (
        OpenAiCompatibleConfig(id="llm", name="a", model_id="m", url="http://evil"),
        "",
        "approximated",
    ),
    (
        OciGenAiConfig(id="llm", name="a", model_id="m", compartment_id="c", client_config=OCI),
        "",
        "approximated",
    ),
    (
        GeminiConfig(
            id="llm",
            name="a",
            model_id="m",
            auth=GeminiAIStudioAuthConfig(id="auth", name="auth"),
        ),
        "",
        "approximated",
    ),
)


@pytest.mark.parametrize(("config", "label", "verdict"), MODELS)
def test_models_are_asked_by_their_labels(config: LlmConfig, label: str, verdict: str) -> None:
    """A document names no server that a key could be sent to."""
    found = read(agent(llm_config=config))

    node = found.document.graph.nodes["model_call"]
    assert isinstance(node, ModelCall)
    assert label == node.model
    assert verdict == told(found)["llm"]
    assert "evil" not in str(found.document)


TRANSPORT = SSETransport(id="sse", name="sse", url="https://t")
REFUSED: tuple[dict[str, Any], ...] = (
    {"tools": [RemoteTool(id="x", name="search", url="https://t", http_method="GET")]},
    {"tools": [BuiltinTool(id="x", name="search", tool_type="web")]},
    {"tools": [ServerTool(id="x", name="sea*")]},
    {"toolboxes": [MCPToolBox(id="x", name="box", client_transport=TRANSPORT)]},
)


@pytest.mark.parametrize("said", REFUSED)
def test_what_could_not_be_called_by_name_is_refused(said: dict[str, Any]) -> None:
    """Otherwise a document could have any address called; allowed, a model is not offered it."""
    with pytest.raises(TopologyError, match="'x' is refused"):
        read(agent(**said))

    found = read(agent(**said), allow_refused=True)
    assert "refused" == told(found)["x"]
    assert not found.document.tools


def test_a_client_tool_is_a_registered_one() -> None:
    """Who runs it is said where it is registered."""
    found = read(agent(tools=[ClientTool(id="c", name="search")]))

    assert ("search",) == found.document.tools


def test_a_tool_has_to_be_registered() -> None:
    """A run would fail at its first call; the place is the tool's in the document."""
    with pytest.raises(TopologyError, match=r"agent-spec:1:\d+: no tool is registered as 'pay'"):
        read(agent(tools=[ServerTool(id="pay", name="pay")]))


def test_a_manager_calls_its_workers() -> None:
    """They are agents of the file that its model is offered as tools."""
    worker = agent("maths", description="Does sums.")
    group = ManagerWorkers(
        id="group", name="group", group_manager=agent(tools=[refund()]), workers=[worker]
    )

    found = read(group)

    assert ("refund", "maths") == found.document.tools
    entry = found.document.agents["maths"]
    assert "Does sums." == entry.description
    assert entry.document is not None
    assert "Help." == entry.document.instructions
    gate = found.document.graph.nodes["gate"]
    assert isinstance(gate, Gate)
    assert (Rule("ask", ("refund",)), Rule("allow", ("maths",))) == gate.rules
    assert "approximated" == told(found)["group"]


def test_a_swarm_is_refused_whole() -> None:
    """Nothing could be run of it."""
    one, other = agent("one"), agent("other")
    swarm = Swarm(id="swarm", name="swarm", first_agent=one, relationships=[(one, other)])

    with pytest.raises(TopologyError, match="Swarm 'swarm' is refused"):
        read(swarm, allow_refused=True)


def test_a_group_of_a_flow_is_refused() -> None:
    """A manager calls tools, and a flow does not."""
    group = ManagerWorkers(
        id="group", name="group", group_manager=chain(agent_node()), workers=[agent()]
    )

    with pytest.raises(TopologyError, match="its manager is a Flow"):
        read(group)


def test_a_key_in_the_document_is_neither_used_nor_told() -> None:
    """Keys come from the environment, and reports are shown to people."""
    data = json.loads(written(agent()))
    data["llm_config"]["api_key"] = "sk-secret"

    found = read(data)

    assert "sk-secret" not in f"{found.report}{found.document}"
    assert "approximated" == told(found)["llm"]


def test_two_tools_of_one_name_are_a_mistake() -> None:
    """The demand of the one would be taken for that of the other."""
    tools = [ServerTool(id="a", name="search"), ServerTool(id="b", name="search")]

    with pytest.raises(TopologyError, match="two tools are named 'search'"):
        read(agent(tools=tools))


def test_a_part_of_itself_and_too_many_parts_are_refused() -> None:
    """A small file of references could stand for more than any machine holds."""
    body: dict[str, Any] = {
        "component_type": "ManagerWorkers",
        "id": "g",
        "name": "g",
        "group_manager": {"$component_ref": "m"},
        "workers": [{"$component_ref": "g"}],
        "agentspec_version": "26.1.2",
    }
    model = {"component_type": "OpenAiConfig", "id": "llm", "name": "m", "model_id": "m"}
    single = {"component_type": "Agent", "id": "m", "name": "m", "system_prompt": "x"}
    held: dict[str, Any] = {"m": {**single, "llm_config": {"$component_ref": "llm"}}, "llm": model}
    inner = {key: one for key, one in body.items() if key != "agentspec_version"}

    with pytest.raises(TopologyError, match="'g' is a part of itself"):
        read({**body, "$referenced_components": {**held, "g": inner}})
    with pytest.raises(TopologyError, match=f"at most {PARTS_MAX} agents"):
        read(
            {
                **body,
                "workers": [{"$component_ref": "m2"}] * PARTS_MAX,
                "$referenced_components": {**held, "m2": {**held["m"], "id": "m2"}},
            }
        )


def test_the_texts_of_parts_that_are_used_again_are_counted_again() -> None:
    """One long text in a hundred places is a hundred long texts."""
    group = ManagerWorkers(
        id="group",
        name="group",
        group_manager=agent("manager"),
        workers=[agent("long", system_prompt="x" * 400_000)],
    )
    data = json.loads(written(group))
    data["$referenced_components"]["long"] = data["workers"][0]
    data["workers"] = [{"$component_ref": "long"}] * 3

    with pytest.raises(TopologyError, match="texts have at most 1,000,000 characters"):
        read(data)


def test_names_are_plain_and_their_own() -> None:
    """They are tools' names, and nodes', which rules and reports speak of."""
    assert "Search_agent" == plain_name("Search agent!", ())
    assert "a_3" == plain_name("a", ("a", "a_2"))
    assert "END_" == plain_name("END", ())
    assert "agent" == plain_name("…", ())


def test_the_model_of_an_agent_has_to_be_one() -> None:
    """Nothing could be asked."""
    text = written(agent()).replace('"OpenAiConfig"', '"StartNode"')

    with pytest.raises(TopologyError, match=r"has no key 'model_id'"):
        read_agent_spec(text, NAMES)


def test_a_tool_that_takes_something_else_is_told() -> None:
    """The registered one is called, with what that takes."""
    other = search().model_copy(update={"inputs": [IntegerProperty(title="query")]})
    missing = search().model_copy(update={"inputs": [StringProperty(title="city")]})

    for tool in (other, missing):
        (said,) = [one for one in read(agent(tools=[tool])).report if "search" == one.name]
        assert "approximated" == said.verdict
        assert "takes query" in said.said


@pytest.mark.parametrize("kind", ["Foo", "ServerTool"])
def test_a_document_of_something_else_is_refused_by_its_type(kind: str) -> None:
    """A topology is made of agents and flows."""
    data = {"component_type": kind, "id": "x", "name": "x", "agentspec_version": "26.1.2"}

    with pytest.raises(TopologyError, match=f"no agent is made of a {kind}"):
        read(data)


def test_that_there_are_too_many_agents_is_told_once() -> None:
    """A hundred times the same says nothing more."""
    one = agent("one")
    nodes = [AgentNode(id=f"n{at}", name=f"n{at}", agent=one) for at in range(PARTS_MAX + 50)]

    with pytest.raises(TopologyError) as caught:
        read(chain(*nodes))

    assert 1 == len(caught.value.problems)


def test_all_that_is_wrong_with_an_agent_is_told() -> None:
    """Whoever mends a document mends it once."""
    data = json.loads(written(agent()))
    data |= {"llm_config": [], "system_prompt": 3, "tools": {}}

    with pytest.raises(TopologyError) as caught:
        read(data)

    assert 3 == len(caught.value.problems)
