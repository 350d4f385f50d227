"""The price of a reply is that of the service that gave it, whichever model a run began with.

The default model's service priced the replies of all models. So a fallback had no price, or that of
another service for a model of its name, and a budget in dollars counted wrongly.
"""

from __future__ import annotations

import pytest

from graphloop import Agent, ModelPrice, StepChanges
from graphloop.errors import Overloaded
from graphloop.providers import price
from graphloop.testing import ScriptedModel
from graphloop.values import AssistantMessage, FinishReason, Reply, TextPart, Usage, evolve

MODEL = "openai/gpt-oss-120b"
REPLY = Reply(
    AssistantMessage((TextPart("done"),)), FinishReason.STOP, Usage(1_000_000, 1_000), model=MODEL
)
GROQ, OPENROUTER = price(REPLY, service="groq"), price(REPLY, service="openrouter")
DEFAULTS = (f"openrouter:{MODEL}", "openai:gpt-5", "ollama:gpt-oss")


def served(label: str, *items: Reply | Exception) -> ScriptedModel:
    return ScriptedModel(items or [REPLY], label=label)


def test_two_services_take_two_prices_for_one_model() -> None:
    """Otherwise the tests below could not fail."""
    assert None not in (GROQ, OPENROUTER)
    assert GROQ != OPENROUTER


@pytest.mark.parametrize("default", DEFAULTS)
def test_a_fallback_has_the_price_of_its_own_service(default: str) -> None:
    first = served(default, Overloaded("busy"))

    result = Agent(first, fallback_models=[served(f"groq:{MODEL}")]).generate_sync("go")

    assert GROQ == result.run.spent.cost_usd


@pytest.mark.parametrize("default", DEFAULTS)
def test_the_model_of_one_step_has_the_price_of_its_own_service(default: str) -> None:
    changes = StepChanges(model=served(f"groq:{MODEL}"))
    agent = Agent(served(default), prepare_step=lambda _: changes)

    assert GROQ == agent.generate_sync("go").cost_usd


@pytest.mark.parametrize("default", DEFAULTS)
def test_a_child_has_the_price_of_its_own_service(default: str) -> None:
    call = {"calls": [{"name": "clerk", "arguments": {"prompt": "Work."}}]}
    clerk = Agent(served(f"groq:{MODEL}"), name="clerk").as_tool(description="Works.")
    boss = Agent(ScriptedModel([call, "done"], label=default, model="none"), tools=[clerk])

    assert GROQ == boss.generate_sync("go").run.spent.cost_usd


def test_a_model_of_this_machine_has_no_price_beside_one_that_has() -> None:
    """Not even the price of a hosted model with its name."""
    local = served("ollama:gpt-5", evolve(REPLY, model="gpt-5"))
    first = served("openai:gpt-5", Overloaded("busy"))

    result = Agent(first, fallback_models=[local]).generate_sync("go")

    assert 0 == result.run.spent.cost_usd
    assert result.cost_usd is None


def test_own_prices_leave_the_others_to_their_services() -> None:
    own = {"house": ModelPrice(1, 1)}

    assert GROQ == Agent(served(f"groq:{MODEL}"), prices=own).generate_sync("go").cost_usd
    local = served("ollama:gpt-5", evolve(REPLY, model="gpt-5"))
    assert Agent(local, prices=own).generate_sync("go").cost_usd is None
