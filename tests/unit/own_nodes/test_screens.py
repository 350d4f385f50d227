"""Screens in graphs of one's own: in Python and in files, drawn and proven."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from graphloop import END, Agent, EndReason, Graph
from graphloop.errors import ConfigError
from graphloop.nodes import Append, ModelCall, PrepareStep, Screen, Screened
from graphloop.outcomes import Blocked, Calls, Passed, Ready
from graphloop.own_nodes import screen, screened
from graphloop.screens import screen_callback
from graphloop.testing import ScriptedModel
from graphloop.topology import Registry, dump, load
from tests.strategies import call, reply

PREPARE, MODEL, APPEND = PrepareStep(), ModelCall(), Append()
REFUSAL = "Only cooking."


def on_topic(text: str) -> bool | str:
    """Let questions about cooking pass."""
    return "cook" in text or REFUSAL


def guard(answer: str) -> Agent[None, bool]:
    """Return an agent that judges."""
    said = reply(call("final_answer", arguments=f'{{"value": {answer}}}'))
    return Agent(ScriptedModel([said], label="guard"), output_type=bool, name="guard")


def before(*screens: Any) -> Graph[None]:
    """Return a graph with a screen before its turn."""
    first = screen(*screens)
    rows: dict[Any, dict[Any, Any]] = {
        first: {Passed: PREPARE, Blocked: APPEND, ...: END},
        PREPARE: {Ready: MODEL, Calls: APPEND, ...: END},
        MODEL: {...: APPEND},
        APPEND: {...: END},
    }
    return Graph("guarded", first, rows)


def beside(*screens: Any) -> Graph[None]:
    """Return a graph whose model is asked while a screen judges."""
    model = screened(MODEL, *screens)
    rows: dict[Any, dict[Any, Any]] = {
        PREPARE: {Ready: model, Calls: APPEND, ...: END},
        model: {...: APPEND},
        APPEND: {...: END},
    }
    return Graph("guarded", PREPARE, rows)


@pytest.mark.parametrize("make", [before, beside])
@pytest.mark.parametrize(("question", "answer"), [("how to cook?", "Boil it."), ("?", REFUSAL)])
def test_functions_judge_in_a_graph_of_ones_own(make: Any, question: str, answer: str) -> None:
    graph = make(on_topic)

    model = ScriptedModel(["Boil it."])
    result = asyncio.run(graph.run(None, model=model, prompt=question))

    assert answer == result.text
    refused = answer == REFUSAL
    assert (EndReason.REFUSAL if refused else EndReason.COMPLETED) is result.end_reason
    assert (("screen:on_topic",) if refused else ()) == result.stopped_by


@pytest.mark.parametrize("make", [before, beside])
def test_an_agent_judges_with_its_own_model_and_the_whole_is_proven(make: Any) -> None:
    graph = make(on_topic, guard("false"))

    result = asyncio.run(graph.run(None, model=ScriptedModel(["Boil it."]), prompt="cook?"))

    assert ("screen:guard",) == result.stopped_by
    assert {"GL12"} == {one.code for one in graph.check().unknown}
    assert graph.check().ok


def test_one_function_can_stand_in_two_screens() -> None:
    first, second = screen(on_topic, name="first"), screen(on_topic, name="second")
    rows: dict[Any, dict[Any, Any]] = {
        first: {Passed: second, Blocked: APPEND, ...: END},
        second: {Passed: PREPARE, Blocked: APPEND, ...: END},
        PREPARE: {Ready: MODEL, Calls: APPEND, ...: END},
        MODEL: {...: APPEND},
        APPEND: {...: END},
    }
    graph = Graph("twice", first, rows)

    result = asyncio.run(graph.run(None, model=ScriptedModel(["Boil it."]), prompt="cook?"))

    assert "Boil it." == result.text


def test_a_picture_names_the_screens(tmp_path: Path) -> None:
    text = before(on_topic, guard("true")).save(tmp_path / "g.txt").read_text()

    assert "on_topic" in text
    assert "guard" in text


FILE = """
graphloop: 1
name: guarded
start: first
agents: {guard: {given: true}}
nodes:
  first: {use: screen, functions: [on_topic]}
  prepare: {use: prepare_step}
  model: {use: screened, node: {use: model_call}, agents: [guard]}
  append: {use: append}
edges:
  first: {passed: prepare, blocked: append, else: END}
  prepare: {ready: model, else: END}
  model: {else: append}
  append: {else: END}
"""


@pytest.mark.parametrize(
    ("question", "verdict", "stopped"),
    [("cook?", "true", ()), ("cook?", "false", ("screen:guard",)), ("?", "", ("screen:on_topic",))],
)
def test_screens_stand_in_a_file(
    tmp_path: Path, question: str, verdict: str, stopped: tuple[str, ...]
) -> None:
    registry = Registry()
    registry.function(screen_callback(on_topic), name="on_topic")
    (tmp_path / "g.yaml").write_text(FILE)
    graph = load(tmp_path / "g.yaml", registry=registry)
    (tmp_path / "again.yaml").write_text(dump(graph, registry=registry))
    assert graph == load(tmp_path / "again.yaml", registry=registry)

    model = ScriptedModel(["Boil it."])
    agents = {"guard": guard(verdict)}
    result = asyncio.run(graph.run(None, model=model, prompt=question, agents=agents))

    assert stopped == result.stopped_by


@pytest.mark.parametrize(
    ("make", "found"),
    [
        (screen, "expected functions or agents, each once, found []"),
        (lambda: Screen(("a", "a")), "each once"),
        (lambda: Screened(PREPARE, ("a",)), "expected a node that asks a model"),
        (lambda: screen(Agent(ScriptedModel([]), name="plain")), "answers by text"),
    ],
)
def test_a_screen_that_judges_nothing_is_refused(make: Any, found: str) -> None:
    with pytest.raises(ConfigError) as error:
        make()

    assert found in str(error.value)
