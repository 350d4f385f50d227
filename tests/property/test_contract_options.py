"""Contract 15: every option takes effect, or complains; none is silently ignored.

Each option has a case here, or this file fails: the same scenario with and without it must differ
in something that can be seen, in requests, results, questions, journals or pictures.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from graphloop import Agent, AnswerInfo, Compaction, RunResult, StepChanges, Tool, budget, deny
from graphloop.agent.options import EveryAgentOption
from graphloop.errors import ConfigError, GraphloopError, Overloaded
from graphloop.limits import Rate, stop
from graphloop.limits.model_price import ModelPrice
from graphloop.providers.retries import Retries
from graphloop.providers.script import Entry
from graphloop.providers.timeouts import Timeouts
from graphloop.rules import never as never_in_a_run
from graphloop.stores.memory import MemoryStore
from graphloop.testing import ScriptedModel
from graphloop.tools.schema import parameters_of
from graphloop.values import Usage, UserMessage, evolve
from tests.agents import any_read, write
from tests.strategies import call, reply, wrong

PARAMETERS = parameters_of({"type": "object"}, "every tool")
PROMPT = '{"prompt": "help"}'


class Number(BaseModel):
    """The form of an answer."""

    n: int


async def nap(arguments: dict[str, object]) -> str:
    """Take longer than a thousandth of a second."""
    await asyncio.sleep(0.02)
    return "slept"


def tools() -> list[Tool[..., object]]:
    """Return the usual tools."""
    return [
        Tool(name="read", parameters=PARAMETERS, execute=any_read),
        Tool(name="nap", parameters=PARAMETERS, execute=nap),
        Tool(name="act", parameters=PARAMETERS, execute=any_read, needs_approval=True),
    ]


HELPER = Agent(ScriptedModel(["helped"], restart=True, label="helper's")).as_tool(
    name="helper", description="Helps."
)
READ, ACT, NAP = reply(call()), reply(call("act")), reply(call("nap"))
WRITE, BOTH = reply(call("write")), reply(call("act"), call())
LONG = evolve(READ, usage=Usage(5_000, 5))
SMALL = Compaction(context_window=1_000, keep_recent_turns=1)
METER = "* requests"
"""The meter of the case of `limits`."""

ORPHAN = ({"role": "user", "content": "go"}, {"role": "tool", "tool_call_id": "a", "content": "x"})


@dataclass(frozen=True)
class Case:
    """A scenario in which an option shows.

    `base` are options that are given with and without it; a `value` that is a `Telling` is a
    function of the user's that tells when it was asked.
    """

    value: object
    script: Sequence[Entry] = (READ,)
    base: Mapping[str, object] = field(default_factory=dict[str, object])
    messages: Sequence[Mapping[str, object]] = ({"role": "user", "content": "go"},)


class Telling:
    """A function of the user's."""

    def __init__(self, says: object) -> None:
        self.says = says
        self.asked: list[str] = []

    def __call__(self, given: object = None) -> object:
        """Answer."""
        self.asked.append(type(given).__name__)
        return self.says


class Watching(Telling):
    """An observer of the user's."""

    def see(self, step: object, *_: object) -> None:
        """Note the step."""
        self(step)


def shortened(_: object) -> list[UserMessage]:
    """Return a short conversation."""
    return [UserMessage("in short")]


def never(_: AnswerInfo) -> bool:
    """Never be content."""
    return False


CASES: Mapping[str, Case] = {
    "tools": Case([]),
    "instructions": Case("be kind"),
    "max_tokens": Case(9),
    "temperature": Case(0.5),
    "top_p": Case(0.5),
    "stop_sequences": Case(["x"]),
    "seed": Case(7),
    "provider_options": Case({"top_k": 1}),
    "gate": Case(deny("*")),
    "approve_tool_call": Case(Telling(True), (ACT,)),
    "approval_ttl_s": Case(5.0, (ACT,)),
    "approval_secret": Case("secret", (ACT,)),
    "budget": Case(budget(tool_calls=1), (reply(call(), call()),)),
    "limits": Case({"*": Rate(requests=1e6)}),
    "rules": Case(never_in_a_run("tool:*")),
    "max_agent_depth": Case(0, (reply(call("helper", "", PROMPT)),)),
    "step_timeout_s": Case(0.001, (NAP,)),
    "on_bad_history": Case("refuse", messages=ORPHAN),
    "agents": Case({"kid": HELPER}),
    "on_step_finish": Case(Telling(None)),
    "watch": Case((Watching(None),)),
    "store": Case(MemoryStore()),
    "api_key": Case("key"),
    "base_url": Case("http://127.0.0.1:9"),
    "timeouts": Case(Timeouts()),
    "retries": Case(Retries()),
    "headers": Case({"X-Team": "a"}),
    "query": Case({"api-version": "v1"}),
    "price": Case(Telling(2.0)),
    "prices": Case({"scripted": ModelPrice(input_usd=1.0, output_usd=1.0)}, ("done",)),
    "clock": Case(Telling(77.0)),
    "name": Case("somebody"),
    "max_steps": Case(1),
    "stop_when": Case(stop.has_tool_call("read")),
    "max_consecutive_tool_errors": Case(1, (WRITE, WRITE)),
    "max_consecutive_denials": Case(1, (READ, READ), {"gate": deny("*")}),
    "max_tool_concurrency": Case(1),
    "run_ungated": Case(True, (BOTH,)),
    "fallback_models": Case([ScriptedModel(["fine"], label="other")], (Overloaded("full"),)),
    "deps_type": Case(int),
    "output_type": Case(Number, ('{"n": 1}',)),
    "output_mode": Case("native", ('{"n": 1}',), {"output_type": Number}),
    "max_output_retries": Case(
        0, ("no", '{"n": 1}'), {"output_type": Number, "output_mode": "native"}
    ),
    "done_when": Case(Telling(True)),
    "max_done_retries": Case(0, ("no",), {"done_when": never}),
    "verify": Case(Telling(True)),
    "max_verify_retries": Case(0, ("no",), {"verify": never}),
    "screen": Case(never),
    "screen_in_parallel": Case(True, ("x",), {"screen": never}),
    "compaction": Case(SMALL, (LONG, LONG, LONG, "summary")),
    "compact": Case(shortened, (LONG, LONG, LONG, "summary"), {"compaction": SMALL}),
    "tool_choice": Case("required"),
    "active_tools": Case(["nap"]),
    "prepare_step": Case(Telling(StepChanges(tool_choice="none"))),
}


def observed(case: Case, **options: object) -> object:
    """Return all that can be seen of a scenario; a complaint is something to see, too."""
    model = ScriptedModel([*case.script, *[reply("done")] * 20])
    given: dict[str, object] = {
        "tools": [*tools(), write, HELPER],
        "store": MemoryStore(),
        "max_steps": 6,
        "clock": lambda: 0.0,
    }
    given |= {**case.base, **options}
    watching = given.get("watch", ())
    assert isinstance(watching, Sequence)
    known: list[object] = [*given.values(), *watching]
    functions = [one for one in known if isinstance(one, Telling)]
    for one in functions:
        one.asked.clear()
    try:
        agent = Agent(model, **wrong(given))
        stream = agent.stream(messages=[dict(one) for one in case.messages], run_id="r")
        result: RunResult | Exception = asyncio.run(stream.result())
    except GraphloopError as error:
        return type(error).__name__, str(error), model.requests
    assert isinstance(result, RunResult)
    return (
        model.requests,
        result.run,
        result.pending,
        result.answers,
        result.cost_usd,
        [one.asked for one in functions],
        asyncio.run(journals(given["store"])),
        agent.graph.mermaid(),
    )


async def journals(store: object) -> object:
    """Return what is in the store that the case looks at, and the names of its meters."""
    assert isinstance(store, MemoryStore)
    runs = {one: await store.load(one) for one in await store.runs()}
    return runs, await store.metered([METER], lambda known, _: ({}, [*known]))


@pytest.mark.parametrize("option", sorted(CASES))
def test_an_option_takes_effect_or_complains(option: str) -> None:
    """Somebody wrote it down because it matters; nothing may happen in spite of it."""
    case = CASES[option]
    if option == "store":
        # Its effect is that the run is in it.
        assert isinstance(case.value, MemoryStore)
        observed(case, store=case.value)
        assert ["r"] == asyncio.run(case.value.runs())
        return

    without, given = observed(case), observed(case, **{option: case.value})

    assert without != given


@pytest.mark.parametrize("option", sorted(CASES))
def test_a_scenario_without_a_change_shows_no_difference(option: str) -> None:
    """Otherwise the difference above could be chance."""
    case = CASES[option]

    assert observed(case) == observed(case)


def test_every_option_has_a_case() -> None:
    """A new option comes with the proof that it does something."""
    assert EveryAgentOption.__annotations__.keys() == CASES.keys()


@given(name=st.text("abcdefghijklmnopqrstuvwxyz_", min_size=1, max_size=20))
def test_an_option_that_does_not_exist_is_refused(name: str) -> None:
    """A misspelled limit is no limit."""
    if name in {*CASES, "model", "self"}:
        return
    options: dict[str, Callable[..., object]] = {name: never}

    with pytest.raises(ConfigError, match=name):
        Agent(ScriptedModel([]), **wrong(options))
