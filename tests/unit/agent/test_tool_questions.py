"""A running tool asks a person: its call ends, the run parks, and the answer calls it again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from graphloop import Agent, tool
from graphloop.agent import RunResult
from graphloop.driver import Pending
from graphloop.effects import ToolAnswer
from graphloop.errors import ConfigError
from graphloop.policy import Approval, approve, ask, decline
from graphloop.spending import budget
from graphloop.stores import MemoryStore
from graphloop.testing import ScriptedModel
from graphloop.tools import AnyTool, ToolAsks, ToolContext
from graphloop.values import AssistantMessage, FinishReason, Reply, TextPart, ToolResult, Usage

TAKES = '{"type":"object","properties":{"size":{"type":"integer"}},"required":["size"]}'


def asking(seen: list[object]) -> AnyTool:
    """Return a tool that asks for a size, and notes each of its calls."""

    @tool
    async def order(what: str, context: ToolContext) -> str:
        """Order something."""
        seen.append(what if context.answer is None else context.answer)
        if context.answer is None:
            raise ToolAsks(f"Which size of {what}?", TAKES, "state 1")
        if not context.answer.approved:
            return f"not ordered: {context.answer.reason}"
        return f"ordered {json.loads(context.answer.content)['size']}"

    return order


CALL = {"calls": [{"name": "order", "arguments": {"what": "shoes"}}]}


def agent(seen: list[object], *script: object, **options: Any) -> Agent:
    """Return an agent whose model orders shoes, and then answers."""
    return Agent(ScriptedModel([*script] or [CALL, "Done."]), tools=[asking(seen)], **options)


def refuses(_: Pending) -> Approval:
    return decline("too dear")


def only_yes(_: Pending) -> bool:
    return True


def answers_one(_: Pending) -> Approval:
    return approve(edit={"size": 1})


def results(result: RunResult[str]) -> list[str]:
    """Return the contents of the tool results."""
    return [str(each.content) for each in result.messages if isinstance(each, ToolResult)]


async def test_the_run_parks_with_the_question_and_another_process_answers(tmp_path: Path) -> None:
    """The question and the tool's state are in the store: nobody has to stay."""
    seen: list[object] = []
    store = str(tmp_path / "runs.db")
    async with agent(seen, store=store) as first:
        parked = await first.generate("Order shoes.", run_id="r")
    (question,) = parked.pending

    async with agent(seen, "Done.", store=store) as second:
        answers = {question.key: approve(edit={"size": 42})}
        done = await second.resume("r", approvals=answers)

    assert json.loads(question.arguments) == {"question": "Which size of shoes?"}
    assert (question.name, question.parameters, question.in_words) == ("order", TAKES, True)
    assert results(done) == ["ordered 42"]
    assert done.text == "Done."
    assert [type(each) for each in seen] == [str, ToolAnswer]
    assert isinstance(seen[1], ToolAnswer)
    assert seen[1].question.state == "state 1"


async def test_an_approver_in_the_process_answers_at_once() -> None:
    """A program with a person at hand never parks."""
    asked: list[Pending] = []

    async def decide(pending: Pending) -> Approval:
        asked.append(pending)
        return approve(edit={"size": 7})

    result = await agent([], approve_tool_call=decide).generate("Order shoes.")

    assert results(result) == ["ordered 7"]
    assert [each.in_words for each in asked] == [True]


async def test_a_refusal_reaches_the_tool_with_its_reason() -> None:
    """The tool knows what to do without an answer."""
    result = await agent([], approve_tool_call=refuses).generate("Order.")

    assert results(result) == ["not ordered: too dear"]


async def test_an_approval_without_an_answer_is_refused() -> None:
    """A yes is no size."""
    seen: list[object] = []
    parked = agent(seen, store=MemoryStore())
    (question,) = (await parked.generate("Order shoes.", run_id="r")).pending

    with pytest.raises(ConfigError, match="size"):
        await parked.resume("r", approvals={question.key: True})


async def test_an_approver_that_only_says_yes_declines(caplog: pytest.LogCaptureFixture) -> None:
    """What cannot be an answer is none, and its developer is told the fields."""
    result = await agent([], approve_tool_call=only_yes).generate("Order shoes.")

    assert results(result)[0].startswith("not ordered: edited arguments")
    assert '{"size": …}' in caplog.text


async def test_a_call_with_a_question_counts_once() -> None:
    """A budget of one call is enough for a call that asks."""
    limited = agent([], budget=budget(tool_calls=1), approve_tool_call=answers_one)

    result = await limited.generate("Order shoes.")

    assert result.text == "Done."
    assert result.run.spent.tool_calls == 1


async def test_an_approval_of_the_call_answers_no_question() -> None:
    """The question has a key of its own, so an answer to the first question cannot be meant."""
    seen: list[object] = []
    gated = agent(seen, gate=ask("order"), store=MemoryStore())
    first = await gated.generate("Order shoes.", run_id="r")
    (approval,) = first.pending
    second = await gated.resume("r", approvals={approval.key: True})
    (question,) = second.pending

    assert (approval.key, approval.in_words) == ("c0.0", False)
    assert question.key.startswith("c0.0#")
    assert question.token != approval.token
    with pytest.raises(ConfigError, match="does not wait for"):
        await gated.resume("r", approvals={"c0.0": approve(edit={"size": 1})})


async def test_a_stopped_run_tells_that_the_call_may_have_acted() -> None:
    """The tool has run up to its question; nobody knows what it did."""
    stopped = agent([], store=MemoryStore())
    await stopped.generate("Order shoes.", run_id="r")

    ended = await stopped.runs.cancel("r")

    (result,) = [each for each in ended.messages if isinstance(each, ToolResult)]
    assert result.status == "unknown"


async def test_a_call_that_stops_after_the_answer_is_not_repeated(tmp_path: Path) -> None:
    """The answer may have let the tool act: the model learns that the outcome is not known."""

    class Killed(BaseException):
        """The process ends."""

    @tool
    async def order(what: str, context: ToolContext) -> str:
        """Order something."""
        if context.answer is None:
            raise ToolAsks(f"Which size of {what}?", TAKES, "")
        raise Killed

    store = str(tmp_path / "runs.db")
    first = Agent(ScriptedModel([CALL]), tools=[order], store=store)
    (question,) = (await first.generate("Order shoes.", run_id="r")).pending
    with pytest.raises(Killed):
        await first.resume("r", approvals={question.key: approve(edit={"size": 1})})

    async with Agent(ScriptedModel(["Done."]), tools=[order], store=store) as second:
        done = await second.resume("r")

    (result,) = [each for each in done.messages if isinstance(each, ToolResult)]
    assert (result.status, done.text) == ("unknown", "Done.")


async def test_models_that_a_tool_asks_count_in_the_budget() -> None:
    """A tool must not spend around the run's limits: also not before it asks."""
    reached: list[tuple[str, ...]] = []
    said = Reply(AssistantMessage((TextPart("x"),)), FinishReason.STOP, Usage(60, 40))

    @tool
    async def order(what: str, context: ToolContext) -> str:
        """Order something."""
        assert context.meter is not None
        meter = context.meter()
        reached.append(meter.reached)
        meter.add(said, "m")
        reached.append(meter.reached)
        if context.answer is None:
            raise ToolAsks(what, TAKES, "")
        return "ordered"

    spender = Agent(
        ScriptedModel([CALL, "Done."]),
        tools=[order],
        budget=budget(tokens=150),
        approve_tool_call=answers_one,
    )

    result = await spender.generate("Order shoes.")

    assert reached == [(), (), (), ("budget.tokens",)]
    assert result.run.spent.usage.total_tokens == 200 + result.steps[0].usage.total_tokens
    assert result.run.spent.model_calls == 3
    assert result.end_reason == "budget"
