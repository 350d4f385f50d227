"""Contract 2 and 3: neither the order in which tools end nor the provider's ids matter."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from graphloop.effects import CallTool
from graphloop.replay import replay_steps
from graphloop.testing.sim import Simulation
from graphloop.tools.outcome import ToolOutcome
from graphloop.values import evolve
from tests.strategies import Adversary, adversaries, call, loop, reply, with_ids


def told(simulation: Simulation[None]) -> object:
    """Return all that a run tells the model and the user, without times."""
    run = simulation.run
    return (
        tuple(run.messages),
        tuple(run.record.added),
        tuple(run.record.steps),
        run.ending,
        evolve(run.spent, seconds=0.0),
        list(run.counters.tool_errors.items()),
    )


@given(
    adversary=adversaries,
    seeds=st.lists(st.integers(0, 999), min_size=2, max_size=3, unique=True),
    concurrency=st.sampled_from([1, 2, 50]),
)
@example(
    adversary=Adversary(
        (reply(*(call("read") for _ in range(50))), reply("done")),
        (ToolOutcome("a", "ok"), ToolOutcome("b", "error"), OSError("c")),
    ),
    seeds=[1, 2],
    concurrency=50,
)
def test_the_order_in_which_tools_end_leaves_no_trace(
    adversary: Adversary, seeds: list[int], concurrency: int
) -> None:
    """A history that depends on who was faster breaks prompt caches and every comparison."""
    runs = [adversary.run(loop(concurrency=concurrency), seed=seed) for seed in seeds]
    one_by_one = adversary.run(loop(concurrency=1), seed=seeds[0])

    for simulation in runs:
        assert told(one_by_one) == told(simulation)


@given(
    adversary=adversaries,
    ids=st.lists(st.sampled_from(["", "a", "b", "c", "toolu_01", "ä"]), min_size=1, max_size=8),
)
@example(adversary=Adversary((reply(call(), call("write")),)), ids=[""])
@example(adversary=Adversary((reply(call(), call("write")),)), ids=["same"])
def test_any_assignment_of_provider_ids_gives_the_same_paired_results(
    adversary: Adversary, ids: list[str]
) -> None:
    """Servers repeat ids within a turn, across turns, or send none at all."""
    numbered = with_ids(adversary, str).run(loop())

    wild = with_ids(adversary, lambda place: ids[place % len(ids)]).run(loop())

    expected = [
        evolve(one, call_id="") for step in numbered.run.record.steps for one in step.tool_results
    ]
    found = [evolve(one, call_id="") for step in wild.run.record.steps for one in step.tool_results]
    assert expected == found
    for step in wild.run.record.steps:
        assert [one.id for one in step.tool_calls] == [one.call_id for one in step.tool_results]
    assert numbered.executions == wild.executions


@given(adversary=adversaries, concurrency=st.integers(1, 5), seed=st.integers(0, 9))
def test_no_more_tools_than_the_cap_are_ever_in_flight(
    adversary: Adversary, concurrency: int, seed: int
) -> None:
    """Fifty parallel calls must not become fifty parallel requests to somebody's database."""
    simulation = adversary.run(loop(concurrency=concurrency), seed=seed)

    assert concurrency >= most_in_flight(simulation, concurrency)


def most_in_flight(simulation: Simulation[None], concurrency: int) -> int:
    """Return how many tool calls were pending at most."""
    most = 0
    for taken in replay_steps(loop(concurrency=concurrency), simulation.events):
        pending = [one for one in taken.run.pending.values() if isinstance(one, CallTool)]
        most = max(most, len(pending))
    return most


FAILING = tuple(f"tool{number}" for number in range(12))


def test_tools_that_fail_together_are_named_in_request_order() -> None:
    """Python's sets have another order in every process; a run must not."""
    adversary = Adversary((reply(*(call(name) for name in FAILING)),))

    simulation = adversary.run(loop(max_consecutive_tool_errors=1))

    assert simulation.run.ending is not None
    expected = tuple(f"tool_errors:{name}" for name in FAILING)
    assert expected == simulation.run.ending.stopped_by
