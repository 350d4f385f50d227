"""Standard: what each option makes of the nodes of the loop."""

from __future__ import annotations

from typing import Any

import pytest

from graphloop import Agent, Compaction, StepInfo, Tool, allow, ask, deny
from graphloop.agent.callbacks import COMPACT, DONE_WHEN, PREPARE_STEP, STOP_WHEN, VERIFY
from graphloop.agent.final_answer import OUTPUT
from graphloop.agent.options import AgentOptions, stop_input
from graphloop.agent.standard import standard_nodes
from graphloop.agent.world import AgentResources
from graphloop.errors import ConfigError
from graphloop.limits import stop
from graphloop.limits.stop import StopInfo
from graphloop.loop import Standard
from graphloop.nodes.compact import Compact
from graphloop.nodes.execute import Execute
from graphloop.nodes.gate import Gate
from graphloop.nodes.model_call import ModelCall
from graphloop.nodes.prepare_step import PrepareStep
from graphloop.nodes.stop_check import StopCheck
from graphloop.nodes.verify import AnswerCheck, Verify
from graphloop.testing import ScriptedModel
from graphloop.values import ToolChoice, evolve
from tests.strategies import wrong

READ: Tool[..., object] = Tool(name="read", parameters={"type": "object"}, execute=len)
PAY: Tool[..., object] = Tool(
    name="pay", parameters={"type": "object"}, execute=len, needs_approval=True
)
SMALL = Compaction(9_000)


def never(info: StopInfo) -> bool:
    """Never stop."""
    return False


def unchanged(info: StepInfo) -> None:
    """Change nothing."""


def nodes(tools: tuple[Tool[..., object], ...] = (READ,), /, **options: Any) -> Standard:
    """Return the nodes that these options make."""
    given: AgentOptions = wrong(options)
    world = AgentResources(ScriptedModel([]), given, tools)
    return standard_nodes(given, world, (), predicates=False)


def test_without_options_the_loop_is_the_one_that_is_drawn() -> None:
    """The defaults are written down once, in the nodes."""
    assert Standard() == nodes()


@pytest.mark.parametrize(
    ("options", "node"),
    [
        ({"active_tools": ["read"]}, PrepareStep(active_tools=("read",))),
        ({"tool_choice": "required"}, PrepareStep(tool_choice=ToolChoice("required"))),
        (
            {"tool_choice": ToolChoice("required", scope="first_step")},
            PrepareStep(tool_choice=ToolChoice("required", scope="first_step")),
        ),
        ({"prepare_step": len}, PrepareStep(callback=PREPARE_STEP)),
        ({"compaction": SMALL}, PrepareStep(compaction=SMALL)),
        ({"compaction": SMALL}, Compact(compaction=SMALL)),
        ({"compaction": SMALL, "compact": len}, Compact(compaction=SMALL, callback=COMPACT)),
        ({"gate": allow("read")}, Gate(rules=allow("read").rules)),
        ({"run_ungated": True}, Gate(hold=False)),
        ({"run_ungated": True}, Execute(hold=False)),
        ({"run_ungated": False}, Gate()),
        ({"max_tool_concurrency": 2}, Execute(concurrency=2)),
        ({"max_steps": 3}, StopCheck(max_steps=3)),
        ({"max_consecutive_tool_errors": 4}, StopCheck(max_tool_errors=4)),
        ({"max_consecutive_denials": 2}, StopCheck(max_denials=2)),
        ({"output_type": int}, Verify((AnswerCheck(OUTPUT, 2, failure="OutputInvalid"),))),
        (
            {"output_type": int, "max_output_retries": 0},
            Verify((AnswerCheck(OUTPUT, 0, failure="OutputInvalid"),)),
        ),
        ({"done_when": bool}, Verify((AnswerCheck(DONE_WHEN, 2, given_up="false_finish"),))),
        (
            {"done_when": bool, "max_done_retries": 5},
            Verify((AnswerCheck(DONE_WHEN, 5, given_up="false_finish"),)),
        ),
        ({"verify": bool}, Verify((AnswerCheck(VERIFY, 2, given_up="unverified"),))),
        (
            {"verify": bool, "max_verify_retries": 1},
            Verify((AnswerCheck(VERIFY, 1, given_up="unverified"),)),
        ),
    ],
)
def test_an_option_changes_its_node_and_no_other(options: dict[str, object], node: object) -> None:
    """Each takes effect, and none beside its own."""
    made = nodes(**options)

    assert node in made
    changed = {type(one) for one, default in zip(made, Standard(), strict=True) if one != default}
    related = {PrepareStep, Compact} if "compaction" in options else {type(node)}
    assert changed <= related | ({Gate, Execute} if "run_ungated" in options else set())


def test_the_form_is_checked_before_the_work_and_the_work_before_the_quality() -> None:
    """A judge need not read what is no answer."""
    checks = nodes(output_type=int, done_when=bool, verify=bool).verify.checks

    assert [OUTPUT, DONE_WHEN, VERIFY] == [one.callback for one in checks]


def test_fallback_models_are_known_to_the_world_and_asked_by_label() -> None:
    """In the order that they were given."""
    options: AgentOptions = {
        "fallback_models": [ScriptedModel([], label="b"), ScriptedModel([], label="a")]
    }
    world = AgentResources(ScriptedModel([]), options, ())

    made = standard_nodes(options, world, (), predicates=False)

    assert ModelCall(fallbacks=("b", "a")) == made.model
    assert ["script", "b", "a"] == list(world.models)


def test_a_model_that_summarises_is_one_that_is_known_or_becomes_known() -> None:
    """It was a name nobody could ask before."""
    compaction = evolve(SMALL, summary_model="cheap")
    cheap = ScriptedModel([], label="cheap")

    assert compaction == nodes(compaction=compaction, fallback_models=[cheap]).compact.compaction
    with pytest.raises(ConfigError, match="expected a provider"):
        nodes(compaction=compaction)


def test_conditions_and_functions_are_told_apart() -> None:
    """A pure condition is part of the picture; a function is invoked by its node."""
    one, two = stop.step_count_is(3), stop.cost_exceeds(1)

    assert ((one,), ()) == stop_input(one)
    assert ((one, two), (never,)) == stop_input([one, never, two])
    assert ((), ()) == stop_input(())
    made = standard_nodes({}, AgentResources(ScriptedModel([]), {}, ()), (one,), predicates=True)
    assert StopCheck(conditions=(one,), callback=STOP_WHEN) == made.stop


@pytest.mark.parametrize("given", [None, 5, "x", stop.StepCountIs, [None], [stop.HasToolCall]])
def test_what_is_no_condition_is_refused(given: object) -> None:
    """Never ignored: a bound that bounds nothing is the worst."""
    with pytest.raises(ConfigError, match="`stop_when` takes conditions"):
        stop_input(wrong(given))


def test_a_condition_about_a_tool_names_one_that_exists() -> None:
    """Inside a combination, too."""
    world = AgentResources(ScriptedModel([]), {}, [READ])

    for condition in (
        stop.has_tool_call("raed"),
        stop.all_of(stop.has_tool_call("raed"), stop.step_count_is(1)),
    ):
        with pytest.raises(ConfigError, match=r"has_tool_call` names 'raed'.*Did you mean 'read'"):
            standard_nodes({}, world, (condition,), predicates=False)


@pytest.mark.parametrize("option", ["approval_ttl_s", "approval_secret"])
def test_options_about_approvals_want_something_that_asks(option: str) -> None:
    """Who says how long an approval is good believes that one is asked for."""
    given: dict[str, object] = {option: 5 if option == "approval_ttl_s" else "secret"}

    for tools, options in (((READ,), {}), ((), {}), ((READ,), {"gate": deny("x_*") | allow("*")})):
        with pytest.raises(ConfigError, match=f"`{option}` has no effect: no tool needs approval"):
            nodes(tools, **given, **options)
    nodes((PAY,), **given)
    nodes((READ,), **given, gate=ask("read"))
    nodes((READ,), **given, prepare_step=unchanged)
    helper = Agent(ScriptedModel([], label="h"), name="helper").as_tool(description="helps")
    given_too: AgentOptions = wrong(given)
    world = AgentResources(ScriptedModel([]), given_too, [helper])
    standard_nodes(given_too, world, (), predicates=False)


@pytest.mark.parametrize(
    ("option", "value", "needed"),
    [
        ("output_mode", "tool", "output_type"),
        ("max_output_retries", 1, "output_type"),
        ("max_done_retries", 1, "done_when"),
        ("max_verify_retries", 1, "verify"),
    ],
)
def test_an_option_about_another_wants_the_other(option: str, value: object, needed: str) -> None:
    """Alone it says nothing."""
    with pytest.raises(ConfigError, match=f"`{option}` has no effect without `{needed}`"):
        nodes(**{option: value})
    with pytest.raises(ConfigError, match=f"`{option}` has no effect without `{needed}`"):
        nodes(**{option: value, needed: None})


def test_a_function_that_shortens_wants_to_know_when() -> None:
    """Without a window it would never be called."""
    with pytest.raises(ConfigError, match="give `compaction=Compaction"):
        nodes(compact=len)
