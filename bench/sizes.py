"""How much is measured: the default takes some minutes, `TINY` proves that it runs at all."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["TINY", "Sizes"]


@dataclass(frozen=True, slots=True)
class Sizes:
    """The sizes of all benchmarks.

    Attributes:
        rounds: how often engine and floor alternate.
        turns: the lengths of a run that are compared: short, middle and long.
        result_chars: the length of a tool result where requests are encoded.
        single_runs: how many runs of one reply begin and end.
        deltas: the text deltas of one streamed answer.
        live_deltas: the text deltas of an answer that a model of this process streams.
        calls: the parallel calls of one turn.
        nap_s: how long each of these calls sleeps.
        agents: how many agents run at once.
        agent_turns: the turns of each of them.
        tools: how many tools a model is offered: few, many.
        nodes: how many nodes a graph has of which one runs: few, many.
        items: how many items a history has to which others are appended: few, many.
        questions: how many questions a chat has before others are asked: few, many.
        definitions: how many tools are defined, runs of one node are made, and items appended.
        proof_nodes: how many nodes the graphs have that are proven: a large one, a larger one.
        proof_rounds: how often each is proven.
    """

    rounds: int = 9
    turns: tuple[int, int, int] = (50, 200, 800)
    result_chars: int = 1_000
    single_runs: int = 100
    deltas: int = 4_000
    live_deltas: int = 20_000
    calls: int = 100
    nap_s: float = 0.01
    agents: int = 1_000
    agent_turns: int = 5
    tools: tuple[int, int] = (1, 1_000)
    nodes: tuple[int, int] = (10, 10_000)
    items: tuple[int, int] = (1_000, 400_000)
    questions: tuple[int, int] = (25, 400)
    definitions: int = 100
    proof_nodes: tuple[int, int] = (1_000, 10_000)
    proof_rounds: int = 3


TINY = Sizes(
    rounds=1,
    turns=(2, 3, 4),
    result_chars=10,
    single_runs=2,
    deltas=3,
    live_deltas=3,
    calls=7,
    nap_s=0.0,
    agents=3,
    agent_turns=2,
    tools=(1, 3),
    nodes=(2, 5),
    items=(1, 70),
    questions=(2, 4),
    definitions=3,
    proof_nodes=(18, 36),
    proof_rounds=1,
)
