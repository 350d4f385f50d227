"""Contract 9: everything that is not exactly an approval of exactly this call is a no.

Predicates, conditions and approvers that raise, lie or answer nonsense; tokens that are forged,
foreign, expired or missing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from graphloop import Agent, EndReason, RunResult, Tool, allow, ask, deny
from graphloop.errors import ConfigError
from graphloop.policy.approvals import Approval, Capability, claimed, digest, issue
from graphloop.policy.policy import Policy
from graphloop.stores.memory import MemoryStore
from graphloop.testing import ScriptedModel
from graphloop.tools.schema import parameters_of
from graphloop.values import evolve
from tests.sizes import sized
from tests.strategies import call, reply, wrong

PARAMETERS = parameters_of({"type": "object"}, "every tool")
NO_ANSWER = "raises"
LATER = "later: "

Says: TypeAlias = object
"""What a function of the user's returns; `NO_ANSWER` is raised, text after `LATER` is awaited."""


def function(says: Says) -> Callable[..., object]:
    """Return a function of the user's that says this, whatever it is asked."""

    async def later() -> object:
        return says is not LATER

    def said(*_: object) -> object:
        if says == NO_ANSWER:
            raise RuntimeError("no answer")
        return later() if says is LATER else says

    return said


answers = st.sampled_from([True, False, None, 0, 1, "", "no", NO_ANSWER, LATER, (), float("nan")])
approvers = st.one_of(
    answers, st.builds(Approval, st.booleans()), st.builds(Approval, st.sampled_from([1, "yes"]))
)


@dataclass(frozen=True)
class RuleOf:
    """One rule of a gate about the only tool, with a condition or without."""

    verdict: str
    conditional: bool
    says: Says

    def policy(self) -> Policy:
        """Return it as the user writes it."""
        make = {"allow": allow, "ask": ask, "deny": deny}[self.verdict]
        return make("act", when=wrong(function(self.says)) if self.conditional else None)

    def holds(self) -> bool:
        """Whether it is about the call: what is neither a yes nor a no counts against it."""
        if not self.conditional:
            return True
        said = later(self.says)
        return said is True if self.verdict == "allow" else said is not False


def verdict(rules: list[RuleOf], wish: Says, *, wished: bool) -> str:
    """Return what must become of the call, by CONTRACT §3.5 alone."""
    asks = wished and wish is not False
    if not rules:
        return "ask" if asks else "allow"
    first = next((one.verdict for one in rules if one.holds()), "deny")
    return "ask" if first == "allow" and asks else first


rules_of = st.lists(
    st.builds(RuleOf, st.sampled_from(["allow", "ask", "deny"]), st.booleans(), answers), max_size=3
)


@settings(max_examples=sized(30))
@given(rules=rules_of, wished=st.booleans(), wish=answers, approver=approvers)
@example(rules=[], wished=True, wish=NO_ANSWER, approver=NO_ANSWER)
@example(rules=[RuleOf("allow", True, NO_ANSWER)], wished=False, wish=None, approver=True)
@example(rules=[RuleOf("ask", True, NO_ANSWER)], wished=False, wish=None, approver=1)
@example(rules=[RuleOf("allow", False, None)], wished=True, wish=LATER, approver=LATER)
def test_a_tool_runs_only_if_all_who_have_a_say_said_exactly_yes(
    rules: list[RuleOf], wished: bool, wish: Says, approver: Says
) -> None:
    """Whatever the user's functions do: an error, a silence or a doubt is a no."""
    ran: list[object] = []
    tool = Tool(
        name="act",
        parameters=PARAMETERS,
        execute=ran.append,
        needs_approval=wrong(function(wish)) if wished else False,
    )
    gate: Policy | None = None
    for at, one in enumerate(rules):
        if any(not before.conditional for before in rules[:at]):
            break  # What follows could never decide, and is refused.
        gate = one.policy() if gate is None else gate | one.policy()
    agent = Agent(
        ScriptedModel([reply(call("act")), "done"]),
        tools=[tool],
        gate=gate,
        approve_tool_call=wrong(function(approver)),
    )

    result = asyncio.run(agent.generate("go"))

    said = verdict(rules, later(wish), wished=wished)
    agreed = approver is True or (isinstance(approver, Approval) and approver.approved is True)
    may_run = said == "allow" or (said == "ask" and agreed)
    assert may_run == bool(ran), said
    assert ["ok" if may_run else "denied"] == [one.status for one in result.steps[0].tool_results]


def later(says: Says) -> Says:
    """Return what an answer becomes once it was waited for."""
    return False if says is LATER else says


SECRET = "the run's own"  # noqa: S105 - the secret of a test


@dataclass
class Clock:
    """A clock that somebody sets."""

    now: float = 0.0

    def __call__(self) -> float:
        """Return what it was set to."""
        return self.now


def parked(clock: Clock, ran: list[object]) -> tuple[Agent, RunResult]:
    """Return a run that waits for two approvals, which must be signed, for ten seconds."""
    tool = Tool(name="act", parameters=PARAMETERS, execute=ran.append, needs_approval=True)
    first = reply(call("act", arguments='{"n": 1}'), call("act", arguments='{"n": 2}'))
    agent = Agent(
        ScriptedModel([first, "done"], restart=False),
        tools=[tool],
        store=MemoryStore(),
        approval_secret=SECRET,
        approval_ttl_s=10.0,
        clock=clock,
    )
    result = asyncio.run(agent.generate("go", run_id="r"))
    assert EndReason.PARKED is result.end_reason
    return agent, result


def token(run_id: str = "r", key: str = "c0.0", n: int = 1, secret: str | None = SECRET) -> str:
    """Return a token as somebody might make it up."""
    return issue(Capability(run_id, key, "act", digest(f'{{"n": {n}}}'), 10.0), secret)


FORGERIES: Mapping[str, Callable[[], str]] = {
    "nonsense": lambda: "yes",
    "another version": lambda: "v2" + token()[2:],
    "not signed": lambda: token(secret=None),
    "another secret": lambda: token(secret="somebody's"),  # noqa: S106
    "another run": lambda: token(run_id="other"),
    "another call": lambda: token(key="c0.1"),
    "other arguments": lambda: token(n=2),
    "half of it": lambda: token()[:-1],
    "twice": lambda: token() * 2,
}


@pytest.mark.parametrize("kind", FORGERIES)
def test_a_forged_or_foreign_token_approves_nothing(kind: str) -> None:
    """It is a denial, and the model reads why."""
    ran: list[object] = []
    agent, _ = parked(Clock(), ran)
    given = {"c0.0": Approval(True, token=FORGERIES[kind]()), "c0.1": Approval(False)}

    result = asyncio.run(agent.resume("r", approvals=given))

    assert [] == ran
    assert ["denied"] * 2 == [one.status for one in result.steps[0].tool_results]


@given(
    text=st.text(max_size=40),
    at=st.integers(0, 200),
    cut=st.integers(0, 3),
)
def test_no_change_to_a_token_leaves_it_good(text: str, at: int, cut: int) -> None:
    """Every character of it counts."""
    right = token()
    at %= len(right)
    changed = right[:at] + text + right[at + cut :]
    ran: list[object] = []
    agent, _ = parked(Clock(), ran)

    asyncio.run(agent.resume("r", approvals={"c0.0": Approval(True, token=changed), "c0.1": False}))

    assert ([{"n": 1}] if changed == right else []) == ran


@given(verdicts=st.lists(st.sampled_from([1, "true", b"1", [True], object(), None]), min_size=1))
def test_a_verdict_that_is_no_verdict_approves_nothing(verdicts: list[object]) -> None:
    """Only True and an approved `Approval` are a yes; what else is true in Python is refused."""
    ran: list[object] = []
    tool = Tool(name="act", parameters=PARAMETERS, execute=ran.append, needs_approval=True)
    asks = [call("act") for _ in verdicts]
    agent = Agent(ScriptedModel([reply(*asks), "done"]), tools=[tool])
    result = asyncio.run(agent.generate("go"))
    given = {one.key: wrong(said) for one, said in zip(result.pending, verdicts, strict=True)}

    with pytest.raises(ConfigError, match="expected True, False or an Approval"):
        asyncio.run(agent.resume(result, approvals=given))

    assert [] == ran


def test_the_token_of_these_tests_is_the_right_one() -> None:
    """Otherwise the forgeries below would be refused for another reason."""
    ran: list[object] = []
    agent, result = parked(Clock(), ran)
    claim = claimed(result.pending[0].token)
    assert claim is not None
    assert claimed(token()) == evolve(claim, conversation="")

    asyncio.run(agent.resume("r", approvals={"c0.0": Approval(True, token=token()), "c0.1": False}))

    assert [{"n": 1}] == ran


@pytest.mark.parametrize(("now", "runs"), [(0.0, True), (9.9, True), (10.0, False), (1e9, False)])
def test_an_approval_that_comes_too_late_is_a_denial(now: float, runs: bool) -> None:
    """What was right an hour ago may be wrong by now."""
    ran: list[object] = []
    clock = Clock()
    agent, result = parked(clock, ran)
    clock.now = now
    given = {one.key: one.approve() for one in result.pending}

    asyncio.run(agent.resume("r", approvals=given))

    assert (2 if runs else 0) == len(ran)
