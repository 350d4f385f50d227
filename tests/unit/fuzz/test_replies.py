"""Replies of an adversarial model."""

from __future__ import annotations

from graphloop.effects import CallModel
from graphloop.fuzz.choices import Choices
from graphloop.fuzz.replies import Asked, answered_by_a_model
from graphloop.values import FinishReason, ModelRequest, Reply, ToolChoice, UserMessage
from tests.strategies import spec

QUESTION = (UserMessage("Go."),)
TOOLS = (spec("read"), spec("write"), spec("search", "provider"))


def replies(request: ModelRequest, seeds: int = 600) -> list[Reply | Exception]:
    """Return what models of many seeds answer."""
    every: list[Reply | Exception] = []
    for seed in range(seeds):
        try:
            every.append(answered_by_a_model(CallModel(1, "m", request), Choices.seeded(seed)))
        except Exception as error:  # noqa: BLE001 - any of them
            every.append(error)
    return every


def test_all_finish_reasons_failures_and_shapes_come() -> None:
    """What never comes is never tried."""
    every = replies(ModelRequest(QUESTION, TOOLS))
    said = [one for one in every if isinstance(one, Reply)]

    assert set(FinishReason) == {one.finish_reason for one in said}
    assert {"ContextOverflow", "Overloaded", "ValueError"} <= {
        type(one).__name__ for one in every if isinstance(one, Exception)
    }
    names = {call.name for one in said for call in one.message.calls}
    assert {"read", "write", "nowhere", ""} == names
    sizes = {len(one.message.calls) for one in said}
    assert {0, 1, 2, 3} < sizes
    assert max(sizes) > 20
    assert any(not one.message.parts for one in said)
    ids = [call.id for one in said for call in one.message.calls]
    assert len(set(ids)) < len(ids)


def test_a_forced_model_mostly_calls_its_tool() -> None:
    """And still does whatever it likes, now and then."""
    forced = ModelRequest(QUESTION, TOOLS[:1], ToolChoice("tool", "read"))

    said = [one for one in replies(forced) if isinstance(one, Reply)]

    called = [one for one in said if any(call.name == "read" for call in one.message.calls)]
    assert len(said) / 2 < len(called) < len(said)


def test_a_model_without_tools_calls_what_is_not_there() -> None:
    """Models do."""
    asked = Asked(CallModel(1, "m", ModelRequest(QUESTION)), Choices.given(()))

    assert () == asked.offered
    assert "nowhere" == asked.call().name


def test_the_simplest_reply_is_an_answer() -> None:
    """So that whatever a shrinker leaves out ends the run."""
    reply = answered_by_a_model(CallModel(7, "m", ModelRequest(QUESTION)), Choices.given(()))

    assert ("Reply 7.", FinishReason.STOP) == (reply.message.text, reply.finish_reason)
