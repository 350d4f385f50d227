"""generate_object: one answer of a type, everything that it cost, and no option of the loop."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from pathlib import Path

import pytest
from pydantic import BaseModel

from graphloop import (
    OutputInvalid,
    StepResult,
    Usage,
    Verdict,
    generate_object,
    generate_object_sync,
)
from graphloop.agent.generate import ABOUT_ONE_ANSWER
from graphloop.agent.options import AgentOptions
from graphloop.errors import ConfigError, RateLimited
from graphloop.providers.script import Entry
from graphloop.testing import ScriptedModel
from graphloop.values import FinishReason, SystemMessage, UserMessage
from tests.strategies import call, reply, wrong


class City(BaseModel):
    """A place."""

    name: str


@dataclass
class Point:
    """Two numbers."""

    x: int
    y: int


def model(*answers: object) -> ScriptedModel:
    """Return a model that gives these answers."""
    return ScriptedModel([reply(call("final_answer", "f", json.dumps(one))) for one in answers])


def test_an_answer_comes_as_its_type() -> None:
    """Checked, not just parsed."""
    result = generate_object_sync(model({"name": "Oslo"}), City, "where?")

    assert City(name="Oslo") == result.object


@pytest.mark.parametrize(
    ("kind", "given", "value"),
    [
        (Point, {"x": 1, "y": 2}, Point(1, 2)),
        (list[int], {"value": [1]}, [1]),
        (int | str, {"value": "a"}, "a"),
        ({"type": "object"}, {"any": 1}, {"any": 1}),
    ],
)
def test_any_type_will_do(kind: object, given: object, value: object) -> None:
    """What pydantic knows, and JSON Schema."""
    assert value == generate_object_sync(model(given), kind, "?").object


def test_an_answer_of_none_is_an_answer() -> None:
    """`None` may be exactly what was asked for."""
    assert generate_object_sync(model({"value": None}), int | None, "?").object is None


def test_usage_and_cost_are_those_of_all_attempts() -> None:
    """What was thrown away was paid for (CONTRACT §9 #48)."""
    said = model({"nme": "Oslo"}, {"name": "Oslo"})

    result = generate_object_sync(said, City, "where?", price=lambda _: 0.25)

    assert (2, Usage(20, 10), 0.5) == (len(said.requests), result.usage, result.cost_usd)
    assert result.usage == result.run.total_usage


def test_warnings_are_those_of_the_run() -> None:
    """A listener that fails is told here, too."""

    def listen(_: StepResult) -> None:
        raise LookupError("bug")

    result = generate_object_sync(model({"name": "Oslo"}), City, "?", on_step_finish=listen)

    assert ("on_step_finish raised LookupError: bug",) == result.warnings


@pytest.mark.parametrize("retries", [0, 1, 4])
def test_a_model_that_never_fits_is_asked_so_often(retries: int) -> None:
    """And the error has its last words."""
    said = model(*[{"nme": "Oslo"}] * 9)

    with pytest.raises(OutputInvalid, match="name") as raised:
        generate_object_sync(said, City, "where?", max_output_retries=retries)

    assert (retries + 1, '{"nme": "Oslo"}') == (len(said.requests), raised.value.text)


def test_a_server_that_pauses_has_not_used_up_an_attempt() -> None:
    """It is asked to go on, and the retries are those of answers."""
    said = ScriptedModel(
        [
            reply("One moment", finish=FinishReason.PAUSE),
            reply(call("final_answer", "f", '{"name": "Oslo"}')),
        ]
    )

    assert City(name="Oslo") == generate_object_sync(said, City, "?", max_output_retries=0).object


@pytest.mark.parametrize(
    ("entry", "found"),
    [
        (reply("I will not", finish=FinishReason.REFUSAL), "ended by refusal"),
        (reply("Half a", finish=FinishReason.LENGTH), "ended by length"),
    ],
)
def test_a_run_that_ends_without_an_answer_is_an_error(entry: Entry, found: str) -> None:
    """Never an object that is none."""
    with pytest.raises(OutputInvalid, match=found) as raised:
        generate_object_sync(ScriptedModel([entry] * 9), City, "where?")

    assert raised.value.text in {"I will not", "Half a"}


def test_a_model_that_cannot_be_asked_is_its_own_error() -> None:
    """Whoever retries later must see why."""
    with pytest.raises(RateLimited):
        generate_object_sync(ScriptedModel([RateLimited("later")]), City, "where?")


LOOP_OPTIONS = sorted(AgentOptions.__annotations__.keys() - ABOUT_ONE_ANSWER)


@pytest.mark.parametrize("option", LOOP_OPTIONS)
def test_every_option_of_the_loop_is_refused_by_name(option: str) -> None:
    """With where it belongs; nothing is sent."""
    said = model({"name": "Oslo"})

    with pytest.raises(ConfigError, match=rf"{option} would have no effect: use Agent\("):
        generate_object_sync(said, City, "where?", **wrong({option: None}))

    assert [] == said.requests


def test_what_is_an_option_of_one_answer_is_an_option() -> None:
    """A name that does not exist could not be given."""
    assert set() == ABOUT_ONE_ANSWER - AgentOptions.__annotations__.keys()
    assert {"tools", "max_steps", "stop_when", "tool_choice", "output_type"} <= set(LOOP_OPTIONS)


def test_an_unknown_option_is_refused() -> None:
    """As everywhere."""
    with pytest.raises(ConfigError, match="tol would have no effect"):
        generate_object_sync(model(), City, "?", **wrong({"tol": 1}))


def test_the_options_of_one_answer_take_effect() -> None:
    """Instructions, sampling, checks."""
    said = model({"name": "Oslo"}, {"name": "Rome"})

    result = generate_object_sync(
        said,
        City,
        messages=[UserMessage("where?")],
        instructions="be brief",
        max_tokens=9,
        verify=lambda info: Verdict(ok=info.output == City(name="Rome"), feedback="Warmer."),
    )

    assert City(name="Rome") == result.object
    assert (SystemMessage("be brief"), UserMessage("where?")) == tuple(said.requests[0].messages)
    assert 9 == said.requests[0].settings.max_tokens
    assert UserMessage("Warmer.", origin="verify") == said.requests[1].messages[-1]


async def test_a_synchronous_call_in_an_event_loop_says_what_to_await() -> None:
    """And leaves nothing behind that was never awaited."""

    with pytest.raises(ConfigError, match="await generate_object"):
        generate_object_sync(model(), City, "?")


def test_a_model_given_by_name_is_closed_and_one_that_is_ready_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who opened it closes it."""
    closed: list[str] = []

    async def note(model: ScriptedModel) -> None:
        closed.append(model.label)

    monkeypatch.setattr(ScriptedModel, "aclose", note)
    script = tmp_path / "script.yaml"
    script.write_text("- calls: [{name: final_answer, arguments: {name: Oslo}}]\n", "utf-8")

    asyncio.run(generate_object(model({"name": "Oslo"}), City, "?"))
    assert [] == closed
    asyncio.run(generate_object(f"script:{script}", City, "?"))
    assert [f"script:{script}"] == closed
