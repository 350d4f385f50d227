"""Ways around temporal rules that were found once, each tried again against a whole run."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from graphloop import Agent, AgentTool, RunResult, Tool, tool
from graphloop.errors import ConfigError
from graphloop.providers.script import Entry
from graphloop.rules import Rules, always_followed_by, at_most, at_most_once, never, only_after
from graphloop.run import EndReason
from graphloop.testing import ScriptedModel
from graphloop.tools import provider_tool
from graphloop.tools.tool import AnyTool
from graphloop.values import ToolResult, UserMessage

Statuses: TypeAlias = list[list[str]]
RAN: list[str] = []
AFTER_INSPECTION = never("deploy", before="inspect")


@pytest.fixture(autouse=True)
def nothing_ran() -> None:
    """Forget what other tests ran."""
    RAN.clear()


def made(name: str, *, asks: bool = False, problem: str = "") -> AnyTool:
    """Return a tool that notes that it ran, and may fail."""

    async def run() -> str:
        RAN.append(name)
        if problem:
            raise RuntimeError(problem)
        return name

    return tool(name=name, needs_approval=asks)(run)


def calls(*names: str) -> Entry:
    """Return a reply that calls tools."""
    arguments: dict[str, str] = {}
    return {"calls": [{"name": one, "arguments": arguments} for one in names]}


def agent(script: list[Entry], *tools: AnyTool | AgentTool, rules: Rules) -> Agent:
    """Return an agent that keeps rules."""
    return Agent(ScriptedModel([*script, *["done"] * 3]), tools=list(tools), rules=rules)


def ran(one: Agent[None, Any]) -> tuple[RunResult[Any], Statuses]:
    """Return what a run of an agent came to, and how its calls ended, turn by turn."""
    result = asyncio.run(one.generate("go"))
    statuses = [[str(done.status) for done in step.tool_results] for step in result.steps]
    return result, [one for one in statuses if one]


def test_a_failed_verification_allows_no_deployment() -> None:
    """Neither beside it nor a turn later; one that went well does."""
    script = [calls("inspect", "deploy"), calls("deploy")]
    failing = agent(script, made("inspect", problem="no"), made("deploy"), rules=AFTER_INSPECTION)
    fine = agent(script, made("inspect"), made("deploy"), rules=AFTER_INSPECTION)

    assert [["error", "denied"], ["denied"]] == ran(failing)[1]
    assert [["ok", "denied"], ["ok"]] == ran(fine)[1]


def test_an_agent_that_was_never_started_allows_nothing() -> None:
    """Its call is answered without having run: let through is not done."""
    inspect = Agent(ScriptedModel(["fine"]), name="inspect").as_tool(description="looks")
    call: Entry = {"calls": [{"name": "inspect", "arguments": {"prompt": "look"}}]}
    script = ScriptedModel([call, calls("deploy"), "done", "done"])

    one = Agent(script, tools=[inspect, made("deploy")], rules=AFTER_INSPECTION, max_agent_depth=0)

    assert [["error"], ["denied"]] == ran(one)[1]
    assert [] == RAN


def test_a_client_tool_is_not_allowed_by_what_runs_after_it() -> None:
    """Client tools of a reply come first, whatever stands before them."""
    deploy = Tool(name="deploy", parameters={"type": "object", "properties": {}})
    result, statuses = ran(
        agent([calls("inspect", "deploy")], made("inspect"), deploy, rules=AFTER_INSPECTION)
    )

    assert (EndReason.COMPLETED, [["ok", "denied"]]) == (result.end_reason, statuses)


def test_what_was_tested_beside_an_edit_is_not_merged() -> None:
    """The test may have seen the file as it was."""
    rules = only_after("merge", "test", since="edit")
    script = [calls("edit", "test"), calls("merge"), calls("test"), calls("merge")]

    _, statuses = ran(agent(script, made("edit"), made("test"), made("merge"), rules=rules))

    assert [["ok", "ok"], ["denied"], ["ok"], ["ok"]] == statuses


def test_an_approval_of_another_tool_lets_no_refund_through() -> None:
    """`approval` alone is one of the tool that the rule is about."""
    script = [calls("mail"), calls("refund")]
    one = agent(
        script,
        made("mail", asks=True),
        made("refund"),
        rules=at_most_once("refund", per="approval"),
    ).with_options(approve_tool_call=lambda _: True)

    assert [["ok"], ["denied"]] == ran(one)[1]


def test_the_loop_s_own_tool_is_none_that_rules_speak_of() -> None:
    """Else no answer could be given after the last tool that is allowed."""
    script: list[Entry] = [
        calls("refund"),
        {"calls": [{"name": "final_answer", "arguments": {"value": 1}}]},
    ]
    one = agent(script, made("refund"), rules=at_most("tool:*", 1)).with_options(
        output_type=int, output_mode="tool"
    )

    assert 1 == ran(one)[0].output


def test_a_child_has_no_tool_that_its_parent_s_rules_name() -> None:
    """Not what undoes a test, and not what a person approves: nobody would count it."""
    kid = Agent(
        ScriptedModel([calls("edit", "refund"), "done"]), tools=[made("edit"), made("refund")]
    )
    script: list[Entry] = [
        calls("test"),
        {"calls": [{"name": "kid", "arguments": {"prompt": "go"}}]},
        calls("merge"),
    ]
    tools = [made(name) for name in ("test", "merge", "edit")]
    rules = only_after("merge", "test", since="edit") & at_most("approval:refund", 1)

    result, _ = ran(
        agent(script, *tools, kid.as_tool(name="kid", description="edits"), rules=rules)
    )

    (child,) = result.children.values()
    assert ["denied", "denied"] == [one.status for one in child.record.steps[0].tool_results]
    assert ["test", "merge"] == RAN


def test_a_word_that_only_a_child_can_make_happen_is_refused() -> None:
    """The rule would be weaker, or forbid for ever, and nobody would say why."""
    kid = Agent(ScriptedModel(["x"]), tools=[made("edit")]).as_tool(name="kid", description="edits")

    with pytest.raises(ConfigError, match="only child runs have the tool 'edit'"):
        agent([], made("test"), made("merge"), kid, rules=only_after("merge", "test", since="edit"))
    assert agent([], kid, rules=never("edit"))


SEARCH = provider_tool({"type": "web_search_20250305", "name": "web_search"})


@pytest.mark.parametrize(
    "rules",
    [
        never("web_search"),
        never("web_search", before="deploy"),
        at_most("tool:*", 3),
        only_after("deploy", "inspect", since="web_search"),
    ],
)
def test_a_rule_about_what_the_server_runs_is_refused(rules: Rules) -> None:
    """No call of it reaches this process: nothing could stop or count it."""
    with pytest.raises(ConfigError, match="server runs 'web_search' in the middle of a reply"):
        agent([], SEARCH, made("deploy"), made("inspect"), rules=rules)
    assert agent([], SEARCH, made("deploy"), made("inspect"), rules=AFTER_INSPECTION)


def test_no_child_is_offered_a_server_tool_against_a_rule() -> None:
    """No gate stands between: what is not offered is not run."""
    kid = Agent(ScriptedModel(["x"]), tools=[SEARCH]).as_tool(name="kid", description="searches")
    call: Entry = {"calls": [{"name": "kid", "arguments": {"prompt": "go"}}]}

    result, _ = ran(agent([call], kid, rules=never("web_search")))

    (child,) = result.children.values()
    assert () == child.setup.tools


def parked(rules: Rules, store: Path) -> Agent:
    """Return an agent whose mail waits for a person, after a refund."""
    return agent(
        [calls("refund"), calls("mail")], made("refund"), made("mail", asks=True), rules=rules
    ).with_options(store=str(store))


def test_a_run_is_taken_up_again_under_its_own_rules_only(tmp_path: Path) -> None:
    """A stricter rule that is not kept must not look as if it were."""
    begun = parked(at_most_once("refund"), tmp_path / "runs.db")
    result = begun.generate_sync("go", run_id="r")
    others = parked(at_most_once("refund") & never("mail"), tmp_path / "runs.db")

    with pytest.raises(
        ConfigError, match=r"expected tool:refund at most once, found never tool:mail"
    ):
        others.resume_sync("r", approvals={result.pending[0].key: True})
    assert ["refund"] == RAN
    assert begun.resume_sync("r", approvals={result.pending[0].key: True}).end_reason == "completed"


def test_a_conversation_that_goes_on_has_used_up_what_it_did(tmp_path: Path) -> None:
    """A parked run that is taken up by what it said is the same run to whoever pays."""
    rules = at_most_once("refund")
    first = parked(rules, tmp_path / "runs.db").generate_sync("go")
    again = agent([calls("refund")], made("refund"), made("mail", asks=True), rules=rules)
    history = [UserMessage("go"), *first.messages]

    result = again.generate_sync(messages=history, approvals={"c-1.0": True})

    refunds = [
        one for one in result.messages if isinstance(one, ToolResult) and one.name == "refund"
    ]
    assert ["denied"] == [one.status for one in refunds]
    assert ["refund", "mail"] == RAN


def test_a_new_question_begins_a_new_run() -> None:
    """Rules are about one run; what was said before is what it reads."""
    rules = at_most_once("refund")
    first = agent([calls("refund")], made("refund"), rules=rules).generate_sync("go")
    history = [UserMessage("go"), *first.messages, UserMessage("again")]

    agent([calls("refund")], made("refund"), rules=rules).generate_sync(messages=history)

    assert ["refund", "refund"] == RAN


def test_a_rule_that_was_broken_or_is_owed_is_told() -> None:
    """No gate can stop a node, or the end of a run: then at least somebody must know."""
    rules = always_followed_by("tool:deploy", "tool:inspect")

    owed, _ = ran(agent([calls("deploy")], made("deploy"), made("inspect"), rules=rules))
    broken, _ = ran(agent([], made("inspect"), rules=never("node:append", before="tool:inspect")))

    assert (1, 0) == (len(owed.owed_rules), len(owed.broken_rules))
    assert (
        "the rule 'tool:deploy always followed by tool:inspect' is still owed, and the run is over",
    ) == owed.warnings
    assert (0, 1) == (len(broken.owed_rules), len(broken.broken_rules))
    assert ("the rule 'never node:append before tool:inspect' was broken",) == broken.warnings


def test_a_rule_that_a_child_breaks_is_told_above_it() -> None:
    """Its own rules are kept by it alone; who called it looks at nothing else."""
    kid = Agent(
        ScriptedModel([calls("deploy"), "done"]),
        tools=[made("deploy"), made("inspect")],
        rules=always_followed_by("deploy", "inspect"),
    ).as_tool(name="kid", description="deploys")
    call: Entry = {"calls": [{"name": "kid", "arguments": {"prompt": "go"}}]}

    result, _ = ran(agent([call], kid, rules=Rules()))

    (warning,) = result.warnings
    assert warning.endswith("is still owed, and the run is over")
    assert "/c0.0: the rule" in warning
