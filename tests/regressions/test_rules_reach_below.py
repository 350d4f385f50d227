"""What a rule speaks of is kept from every run below, however far, and however it came to run."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from graphloop import END, Agent, Graph, RunResult, StepChanges, tool
from graphloop.errors import ConfigError
from graphloop.nodes import Append, Child, MapOver, Parallel, Retrying
from graphloop.outcomes import Answered, Final
from graphloop.own_nodes.compose import map_over, parallel, retry
from graphloop.own_nodes.sub_graphs import SubGraph, sub_graph
from graphloop.providers.script import Entry
from graphloop.rules import Rules, at_most, never
from graphloop.testing import ScriptedModel
from graphloop.tools import provider_tool
from graphloop.tools.tool import AnyTool

RAN: list[str] = []
SEARCH = provider_tool({"type": "web_search_20250305", "name": "web_search"})
SPOKEN_OF = never("tool:web_search") & never("tool:deploy")
NO_RULES = Rules()


@pytest.fixture(autouse=True)
def nothing_ran() -> None:
    """Forget what other tests ran."""
    RAN.clear()


def made(name: str, *, asks: bool = False) -> AnyTool:
    """Return a tool that notes that it ran."""

    async def run() -> str:
        RAN.append(name)
        return name

    return tool(name=name, needs_approval=asks)(run)


def called(name: str, arguments: dict[str, str] | None = None) -> Entry:
    """Return a reply that calls a tool, or an agent."""
    return {"calls": [{"name": name, "arguments": arguments or {}}]}


def asked(name: str) -> Entry:
    """Return a reply that calls an agent."""
    return called(name, {"prompt": "go"})


def scripted(label: str, *replies: Entry) -> ScriptedModel:
    """Return a model that begins anew in every run."""
    return ScriptedModel([*replies, "done"], label=f"script:{label}", restart=True)


def leaf() -> Agent:
    """Return an agent that may do what the rules are about."""
    return Agent(scripted("leaf", called("deploy")), name="leaf", tools=[made("deploy"), SEARCH])


def middle(store: Path | None = None, *, hands_over: bool = False) -> Agent:
    """Return an agent that asks a person, if it has a store, and then calls the one below it."""
    below = called("leaf") if hands_over else asked("leaf")
    script = [below] if store is None else [called("mail"), below]
    one = Agent(
        scripted("mid", *script),
        name="mid",
        tools=[made("mail", asks=True), leaf().as_tool(description="d", takes_over=hands_over)],
    )
    return one if store is None else one.with_options(store=str(store))


def above(store: Path, rules: Rules = NO_RULES) -> Agent:
    """Return an agent two above the one that acts."""
    return Agent(
        scripted("top", asked("mid")),
        tools=[middle(store).as_tool(description="leads")],
        rules=rules,
        store=str(store),
    )


def assert_kept(result: RunResult, depth: int = 2) -> None:
    """Assert that every run so far below was kept from what the rules speak of."""
    below = [one for one in result.children.values() if one.setup.depth == depth]
    assert below
    for one in below:
        assert ["deploy"] == [offered.name for offered in one.setup.tools]
        assert ["denied"] == [done.status for done in one.record.steps[0].tool_results]
    assert "deploy" not in RAN


def test_rules_reach_every_agent_below(tmp_path: Path) -> None:
    """What the model's server runs no gate stops: it must not be offered, however far below."""
    top = above(tmp_path / "runs.db", SPOKEN_OF).with_options(approve_tool_call=lambda _: True)

    assert_kept(top.generate_sync("go"))
    assert ["mail"] == RAN


def test_rules_reach_every_sub_agent_in_a_process_without_rules(tmp_path: Path) -> None:
    """The run keeps those that it began with, and so does what begins below it later."""
    store = tmp_path / "runs.db"
    (ask,) = above(store, SPOKEN_OF).generate_sync("go", run_id="r").pending

    assert_kept(above(store).resume_sync("r", approvals={ask.key: True}))


def test_rules_reach_the_agents_below_a_copy_of_a_child(tmp_path: Path) -> None:
    """It has nobody above it any more, and still what it began with."""
    store = tmp_path / "runs.db"
    (ask,) = above(store, SPOKEN_OF).generate_sync("go", run_id="r").pending
    below, _, key = ask.key.partition("/")
    copied = middle(store)

    asyncio.run(copied.runs.fork(f"r/{below}", at=3, new_id="copy"))

    assert_kept(copied.resume_sync("copy", approvals={key: True}))


@pytest.mark.parametrize("hands_over", [False, True])
@pytest.mark.parametrize(
    "work",
    [
        Child("mid", name="work"),
        map_over("mid", max_items=2, items="lines", name="work"),
        parallel("mid", "mid", name="work"),
        retry(Child("mid"), 2, name="work"),
        sub_graph(middle(), name="work"),
        sub_graph(middle(hands_over=True), name="work"),
    ],
)
def test_rules_reach_what_a_node_runs_two_graphs_down(
    work: Child | MapOver | Parallel | Retrying[None] | SubGraph[None], hands_over: bool
) -> None:
    """However a run comes to be below another, it is one that the rules do not count."""
    plan, keep, append = Child("plan"), Append("keep"), Append()
    graph: Graph[None] = Graph(
        "g",
        plan,
        {
            plan: {Answered: keep, ...: END},
            keep: {Final: work, ...: END},
            work: {Answered: append, ...: END},
            append: {...: END},
        },
    )
    agents = {
        "plan": Agent(scripted("plan", "one\ntwo"), name="plan").as_tool(description="plans"),
        "mid": middle(hands_over=hands_over).as_tool(description="leads"),
    }

    result = asyncio.run(graph.run(None, prompt="go", rules=SPOKEN_OF, agents=agents))

    assert_kept(result)


def searching(rules: Rules = NO_RULES) -> Agent:
    """Return an agent that is given a tool of the server's when its first turn begins."""
    return Agent(
        scripted("kid"),
        name="kid",
        tools=[made("deploy")],
        prepare_step=lambda info: StepChanges(add_tools=[SEARCH]) if info.step_index == 0 else None,
        rules=rules,
    )


@pytest.mark.parametrize("rules", [SPOKEN_OF, at_most("tool:*", 3)])
def test_a_child_is_not_given_what_the_server_runs_as_it_goes_on(rules: Rules) -> None:
    """What may not be offered from the first turn may not be offered from the second either."""
    top = Agent(
        scripted("top", asked("kid")),
        tools=[searching().as_tool(description="searches"), leaf().as_tool(description="acts")],
        rules=rules,
    )

    (child,) = top.generate_sync("go").children.values()

    assert ["deploy"] == [one.name for one in child.setup.tools]
    assert ["deploy", "web_search"] == [
        one.name for one in searching().generate_sync("go").run.setup.tools
    ]


def test_a_run_is_not_given_what_its_own_rules_could_not_count() -> None:
    """It would have been refused if it had been there from the beginning."""
    with pytest.raises(ConfigError, match="server runs 'web_search' in the middle of a reply"):
        searching(at_most("tool:*", 3)).generate_sync("go")
