"""Temporal rules in runs of graphs of every kind of node, each judged by the reference alone.

What is proven holds in every run, also in one that a conversation is handed in to; what a violated
rule is shown with can be gone; and a call is denied if and only if it would break a rule.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from graphloop.errors import ConfigError
from graphloop.graph import NodeGraph
from graphloop.outcomes import outcome_name
from graphloop.proofs.proof_graph import ProofGraph
from graphloop.proofs.temporal import decided
from graphloop.replay import journal_happenings
from graphloop.rules import Rules, TemporalRule, describe_rule
from graphloop.rules.automata import Happening, approved_call, entered, ran, taken
from graphloop.rules.monitor import refusal
from graphloop.run import Run, evolve
from graphloop.testing.choices import Choices
from graphloop.testing.fuzzing import Fuzzer
from graphloop.testing.subject import Subject
from graphloop.testing.trial import Trial
from graphloop.values import Message, ResultStatus, ToolResult, UserMessage, call_key
from tests.sizes import sized
from tests.strategies import call, said
from tests.temporal_reference import all_rules, breaches, owes
from tests.varied_graphs import seeded, varied

WORLDS = 3
"""In how many worlds each graph runs."""

TOOL_WORDS = ("tool:read", "tool:write", "tool:helper", "tool:*", "approval:read", "approval:*")
STATUSES: tuple[ResultStatus, ...] = ("ok", "ok", "error", "denied")

seeds = st.integers(0, 2**32)


def handed_in(rng: random.Random) -> tuple[Message, ...]:
    """Return a conversation that may end in a question, or in what tools have returned."""
    messages: list[Message] = []
    for number in range(rng.randint(1, 3)):
        messages.append(UserMessage(f"Question {number}."))
        for _ in range(rng.randrange(3)):
            name, status = rng.choice(("read", "write")), rng.choice(STATUSES)
            messages += [said(call(name, "a")), ToolResult("", "a", name, "so", status=status)]
    if rng.random() < 0.5:
        messages.append(UserMessage("On."))
    return tuple(messages)


def rules_for(graph: NodeGraph[None], rng: random.Random, tools: int) -> Rules:
    """Return a few rules over so many words about tools, and as many about places as to be four."""
    places = [f"node:{name}" for name in (*graph.nodes, "END")]
    places += [
        f"outcome:{node}.{outcome_name(one)}" for node, row in graph.table.items() for one in row
    ]
    words = [*rng.sample(TOOL_WORDS, tools), *rng.sample(places, 4 - tools)]
    return Rules(tuple(rng.sample(all_rules(words, most=2), 8)))


def subject(seed: int, tools: int = 2) -> tuple[Subject[None], Rules] | None:
    """Return a graph with rules about it, and what its runs begin with."""
    rng = seeded(seed)
    try:
        made = varied(rng, wild=rng.random() < 0.3)
    except ConfigError:
        return None  # It could not be built, so nobody can run it.
    begun = handed_in(rng) if rng.random() < 0.5 else made.subject.messages
    return replace(made.subject, messages=begun), rules_for(made.graph, rng, tools)


def trials(one: Subject[None], seed: int) -> Iterator[Trial[None]]:
    """Yield runs in several worlds."""
    fuzzer = Fuzzer(one)
    for world in range(seed, seed + WORLDS):
        trial, _ = fuzzer.tried(Choices.seeded(world))
        yield trial


def told(one: Subject[None], trial: Trial[None]) -> list[tuple[Happening, ...]]:
    """Return what happens at each event of a run."""
    events = trial.events[: len(trial.trace.steps)]
    return list(journal_happenings(one.graph, events))


@settings(max_examples=sized(25), deadline=None)
@given(seeds)
def test_what_is_proven_holds_in_every_run(seed: int) -> None:
    """Whatever is handed in, called, approved, aborted and never answered."""
    made = subject(seed)
    if made is None:
        return
    one, rules = made
    decisions = decided(ProofGraph(one.graph), rules)

    proven = [said.rule for said in decisions if said.status == "proven"]
    for trial in trials(one, seed):
        trace = [happened for event in told(one, trial) for happened in event]
        run = trial.trace.run
        assert [] == [rule for rule in proven if breaches(rule, trace)]
        if run is not None and run.ended:
            assert [] == [rule for rule in proven if owes(rule, trace)]
    for said_of in decisions:
        if said_of.status == "violated":
            way = [entered(one.graph.start)]
            for line in said_of.path:
                assert one.graph.table[line.source][line.outcome] == line.target
                way += [taken(line.source, line.word), entered(line.target)]
            ended = way[-1].words == ("node:END",)
            assert breaches(said_of.rule, way) or (ended and owes(said_of.rule, way))


def denials(before: Run[None] | None, after: Run[None]) -> Iterator[tuple[int, str]]:
    """Yield the calls that rules have newly denied at an event, by their places."""
    known = (
        () if before is None or before.turn.number != after.turn.number else before.turn.verdicts
    )
    # Where a wild graph asks again in the same breath, the calls are gone.
    for place, (verdict, _) in enumerate(zip(after.turn.verdicts, after.turn.calls, strict=False)):
        old = known[place] if place < len(known) else None
        if verdict is not None and verdict.kind == "deny" and verdict != old:
            yield place, verdict.reason


@settings(max_examples=sized(25), deadline=None)
@given(seeds)
def test_calls_are_denied_that_would_break_a_rule_and_no_others(seed: int) -> None:
    """Nothing that a rule forbids runs; what is denied in a rule's name, that rule forbids."""
    made = subject(seed, tools=3)
    if made is None:
        return
    one, rules = made
    one = replace(one, setup=evolve(one.setup, watch=rules.rules))
    reasons = {refusal(rule): rule for rule in rules}

    for trial in trials(one, seed):
        trace: list[Happening] = []
        before: Run[None] | None = None
        for happened, chapter in zip(told(one, trial), trial.trace.steps, strict=True):
            after = chapter.run
            for place, reason in denials(before, after):
                rule = reasons.get(reason)
                if rule is not None:
                    moments = judged_at(trace, happened, let_before(before, after, place))
                    assert_forbidden(rule, moments, asked(before, after, place), after, place)
            trace += happened
            before = after
        assert [] == [
            describe_rule(rule)
            for rule in rules
            if rule.what.startswith(("tool:", "approval:")) and breaches(rule, trace)
        ]
        last = trial.trace.run
        if last is not None:
            assert [rule for rule in rules if breaches(rule, trace)] == list(
                last.watch.monitor.broken
            )
            assert [rule for rule in rules if owes(rule, trace)] == list(last.watch.monitor.owed)


def let_before(before: Run[None] | None, after: Run[None], place: int) -> int:
    """Return how many calls of the same reply were let through right before a call was denied."""
    old = frozenset[str]() if before is None else before.watch.counted
    keys = [call_key(after.turn.number, at) for at in range(place)]
    return sum(key in after.watch.counted and key not in old for key in keys)


def asked(before: Run[None] | None, after: Run[None], place: int) -> tuple[bool, ...]:
    """Return whether a person had approved a call before, or was to: both where another gate may.

    That one would have asked at the very event at which the call is denied.
    """
    if before is not None and before.turn.number == after.turn.number:
        old = before.turn.verdicts[place] if before.turn.verdicts else None
        if old is not None and (old.kind == "held" or old.asked):
            return (True,)
    return (False, True)


def judged_at(
    trace: Sequence[Happening], happened: Sequence[Happening], let: int
) -> list[list[Happening]]:
    """Return what has happened when a call is judged that comes after so many of its reply.

    That is between two that are let through; what else happened there, only the gate knows.
    """
    started = [at for at, one in enumerate(happened) if one.words[0].startswith("tool:")]
    first = started[let - 1] + 1 if let else 0
    until = [at for at in started if at >= first]
    last = until[0] if until else len(happened)
    return [[*trace, *happened[:cut]] for cut in range(first, last + 1)]


def assert_forbidden(
    rule: TemporalRule,
    moments: Iterable[list[Happening]],
    approved: Iterable[bool],
    run: Run[None],
    place: int,
) -> None:
    """Assert that a call would have broken a rule at one of some moments."""
    name = run.turn.calls[place].name
    assert any(
        breaches(rule, [*trace, *([approved_call(name)] if yes else []), ran(name)])
        for trace in moments
        for yes in approved
    ), describe_rule(rule)
