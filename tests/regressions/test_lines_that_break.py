"""Lines that break while a model talks: both vendors' SDKs ask again, and so does a run."""

from __future__ import annotations

import asyncio

from graphloop import Agent
from graphloop.providers.http import HttpProvider, Retries
from graphloop.testing import ScriptedModel
from graphloop.views.parts import Part, StepRetry, SubAgent, TextDelta
from tests.echo_wire import HI, Talk
from tests.wire_server import Answer, WireServer

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
