"""Lines that break while a model talks: both vendors' SDKs ask again, and so does a run."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from graphloop import END, Agent, EndReason, Graph, RunResult, budget
from graphloop.errors import ConnectionFailed, RequestRejected
from graphloop.nodes import Append, ModelCall, PrepareStep
from graphloop.outcomes import Answered, Ready
from graphloop.own_nodes import retry
from graphloop.parts.kinds import Part, StepRetry, SubAgent
from graphloop.providers import TextDelta
from graphloop.providers.base import StreamItem, UsageSoFar
from graphloop.providers.http import HttpProvider, Retries
from graphloop.testing import ScriptedModel
from graphloop.values import ModelRequest, Usage
from tests.echo_wire import HI, Talk
from tests.regressions.worlds import call, calls, counting
from tests.unit.cli.command_line import called
from tests.wire_server import Answer, WireServer, sse

BROKEN = Answer(HI, cut_after=1)


def answered(*answers: Answer, attempts: int = 3, fallback: bool = False) -> str:
    """Return the text of a buffered call to a server that answers so."""

    async def main() -> str:
        async with WireServer(answers) as server:
            provider = Talk(server, retries=Retries(attempts_max=attempts)).provider()
            others = [ScriptedModel(["second"])] if fallback else []
            result = await Agent(provider, fallback_models=others).generate("Hello")
            await provider.aclose()
            assert len(server.requests) == len(answers)
            return result.text

    return asyncio.run(main())


def test_a_buffered_answer_that_breaks_off_is_asked_again() -> None:
    """Nobody has seen the half of it that came."""
    assert answered(BROKEN, Answer(HI)) == "Hi there"


def test_an_attempt_of_unknown_usage_ends_a_run_that_refuses_it() -> None:
    """A run that cannot count what it spends must not seem to have spent nothing."""

    async def main() -> RunResult:
        whole = sse('{"text": "b", "spent": 5}', "[DONE]")
        async with WireServer([BROKEN, Answer(whole)]) as server:
            provider = Talk(server, retries=Retries(attempts_max=3)).provider()
            result = await Agent(provider, budget=budget(tokens=100)).generate("Hello")
            await provider.aclose()
            return result

    result = asyncio.run(main())

    assert result.total_usage == Usage(5, untold_attempts=1)
    assert any("told no usage" in one for one in result.warnings)
    assert result.cost_usd is None
    refusing = budget(tokens=100, refuse_uncounted=True)
    assert refusing.tripped(result.run.spent) == ("budget.uncounted",)


def test_a_line_that_always_breaks_leads_to_the_next_model() -> None:
    """A fallback is for models that cannot be asked, whenever they turn out to be."""
    assert answered(BROKEN, BROKEN, attempts=2, fallback=True) == "second"


def test_a_listener_is_told_that_a_broken_answer_is_void() -> None:
    """Else half an answer would stand before the whole one."""

    async def main() -> list[Part]:
        async with WireServer([BROKEN, Answer(HI)]) as server:
            provider = Talk(server).provider()
            parts = [part async for part in Agent(provider).stream("Hello").full_stream]
            await provider.aclose()
            return parts

    told = [part for part in asyncio.run(main()) if isinstance(part, TextDelta | StepRetry)]

    assert [type(part).__name__ for part in told] == [
        "TextDelta",
        "StepRetry",
        "TextDelta",
        "TextDelta",
    ]
    assert [part.step_index for part in told if isinstance(part, StepRetry)] == [0]


def test_a_child_run_s_broken_answer_is_told_to_be_void_as_well() -> None:
    """What a child shows is shown in one wrapper, whatever it is."""

    async def main(provider: HttpProvider) -> list[Part]:
        child = Agent(provider, name="echo").as_tool(description="Echoes.")
        call = {"name": "echo", "arguments": {"prompt": "Hello"}}
        parent = Agent(ScriptedModel([{"calls": [call]}, "done"]), tools=[child])
        return [part async for part in parent.stream("Go").full_stream]

    async def served() -> list[Part]:
        async with WireServer([BROKEN, Answer(HI)]) as server:
            provider = Talk(server).provider()
            parts = await main(provider)
            await provider.aclose()
            return parts

    inner = [one.part for one in asyncio.run(served()) if isinstance(one, SubAgent)]

    assert 1 == sum(isinstance(one, StepRetry) for one in inner)


def down() -> ConnectionFailed:
    """Return how a server fails that is not there for two seconds."""
    return ConnectionFailed("connection refused")


def test_a_stored_run_whose_model_is_unreachable_tries_again(
    tmp_path: Path,
) -> None:
    """The server was down for two seconds; the work before that is paid for."""
    ran: list[str] = []
    model = ScriptedModel([calls(call("pay")), down(), "done"])
    agent = Agent(model, tools=[counting(ran)], store=str(tmp_path / "runs.db"))

    with pytest.raises(ConnectionFailed, match="refused") as caught:
        agent.generate_sync("Pay.", run_id="r")
    assert not asyncio.run(agent.runs.replay("r")).ended
    result = agent.resume_sync("r")

    assert (result.text, result.end_reason) == ("done", EndReason.COMPLETED)
    assert ran == ["pay 1"]
    assert "'r' is interrupted" in caught.value.__notes__[0]


def test_the_usage_of_interrupted_attempts_counts(
    tmp_path: Path,
) -> None:
    """The server reads the whole prompt again at each resume."""
    agents = [
        Agent(limited, store=str(tmp_path / "runs.db"), budget=budget(tokens=12))
        for limited in (Costly(5), Costly(5), Costly(5))
    ]
    with pytest.raises(ConnectionFailed):
        agents[0].generate_sync("Hi", run_id="r")
    first = asyncio.run(agents[0].runs.replay("r"))
    with pytest.raises(ConnectionFailed):
        agents[1].resume_sync("r")
    second = asyncio.run(agents[1].runs.replay("r"))
    with pytest.raises(ConnectionFailed) as caught:
        agents[2].resume_sync("r")
    third = asyncio.run(agents[2].runs.replay("r"))

    assert [5, 10, 15] == [one.spent.usage.total_tokens for one in (first, second, third)]
    assert [1, 2, 3] == [one.spent.model_calls for one in (first, second, third)]
    assert [False, False, True] == [one.ended for one in (first, second, third)]
    assert not hasattr(caught.value, "__notes__")


class Costly:
    """A model whose server reads the prompt, tells so, and goes down."""

    label = "costly"

    def __init__(self, tokens: int) -> None:
        self._tokens = tokens

    def session(self) -> Costly:
        """Return itself: it remembers nothing."""
        return self

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamItem, None]:
        """Tell what is spent, and fail."""
        yield UsageSoFar(Usage(self._tokens))
        raise down()

    async def aclose(self) -> None:
        """Release nothing."""


def test_an_interrupted_run_is_listed_and_can_be_cancelled(tmp_path: Path) -> None:
    """It is nobody's, and not over."""
    path = str(tmp_path / "runs.db")
    agent = Agent(ScriptedModel([down(), down(), "done"]), store=path)

    with pytest.raises(ConnectionFailed):
        agent.generate_sync("Hi", run_id="r")
    with pytest.raises(ConnectionFailed):
        agent.resume_sync("r")

    assert "interrupted" in called("runs", "--store", path).stdout
    stream = agent.resume_stream("r")
    stream.abort("enough")
    assert asyncio.run(stream.result()).end_reason is EndReason.ABORTED


def test_the_command_line_says_how_to_resume_interrupted_runs(tmp_path: Path) -> None:
    """Its status is a failure's; what to do is a command to copy."""
    (tmp_path / "busy.py").write_text(
        "from graphloop import Agent\n"
        "from graphloop.errors import ConnectionFailed\n"
        "from graphloop.testing import ScriptedModel\n"
        "agent = Agent(ScriptedModel([ConnectionFailed('refused'), 'done']))\n"
    )
    run = ("run", "busy.py", "Hi", "--store", "runs.db")

    told = called(*run, cwd=tmp_path)

    assert told.returncode == 1
    assert "error: refused\ninterrupted: run" in told.stderr
    assert "Go on with: graphloop resume" in told.stderr


def test_a_run_whose_request_is_refused_for_good_has_failed(tmp_path: Path) -> None:
    """To ask again would be refused again."""
    agent = Agent(ScriptedModel([RequestRejected("no")]), store=str(tmp_path / "runs.db"))

    with pytest.raises(RequestRejected):
        agent.generate_sync("Hi", run_id="r")

    assert asyncio.run(agent.runs.replay("r")).ended


def test_fallbacks_are_asked_before_a_stored_run_is_interrupted(tmp_path: Path) -> None:
    """The table sees every failure that it can do something about."""
    others = [ScriptedModel(["second"], label="other")]
    agent = Agent(ScriptedModel([down()]), fallback_models=others, store=str(tmp_path / "runs.db"))

    assert agent.generate_sync("Hi").text == "second"


def test_a_table_that_takes_failures_further_sees_them(tmp_path: Path) -> None:
    """Only what would end the run in an error interrupts it instead."""
    prepare, append = PrepareStep(), Append()
    ask = retry(ModelCall(), 1)
    graph: Graph[None] = Graph(
        "own",
        prepare,
        {prepare: {Ready: ask, ...: END}, ask: {Answered: append, ...: END}, append: {...: END}},
    )
    model, store = ScriptedModel([down(), "second"]), str(tmp_path / "runs.db")

    result = asyncio.run(graph.run(None, model=model, prompt="Hi", store=store))

    assert result.text == "second"


def test_a_run_that_nobody_keeps_fails_at_once() -> None:
    """There would be nothing to resume."""
    with pytest.raises(ConnectionFailed) as caught:
        Agent(ScriptedModel([down()])).generate_sync("Hi")

    assert not hasattr(caught.value, "__notes__")
