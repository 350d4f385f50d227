"""Policy: who may call what, decided by the first rule that matches."""

from __future__ import annotations

import functools
import pickle
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from graphloop.errors import ConfigError
from graphloop.policy.policy import (
    Condition,
    Policy,
    Rule,
    allow,
    ask,
    decide,
    deny,
    describe,
    may_ask,
    shadowed,
)


@dataclass(frozen=True)
class Named:
    """Something that is called by a name, as tools are."""

    name: str


def over_limit(arguments: object, context: object) -> bool:
    return bool(arguments) and context is None


def another() -> Condition:
    """Return another function of the same name."""

    def over_limit(arguments: object, context: object) -> bool:
        return arguments is context

    return over_limit


async def at_night(arguments: object, context: object) -> bool:
    return arguments is context


FUNCTIONS: tuple[Condition, ...] = (
    over_limit,
    another(),
    another(),
    at_night,
    functools.partial(over_limit),
)
NAMES = ("read", "write", "db_read", "db_write")


@st.composite
def policies(draw: st.DrawFn) -> Policy:
    """Return a policy of up to five rules."""

    def one() -> Policy:
        verb = draw(st.sampled_from([allow, ask, deny]))
        patterns = st.sampled_from([*NAMES, "*", "db_*", "?ead", "[rw]*"])
        when = draw(st.none() | st.sampled_from(FUNCTIONS))
        return verb(*draw(st.lists(patterns, min_size=1, max_size=2)), when=when)

    policy = one()
    for _ in range(draw(st.integers(0, 4))):
        policy = joined(policy, one()) or policy
    return policy


def _or(parts: Sequence[Policy]) -> Policy:
    """Return the parts, joined as users join them."""
    policy = parts[0]
    for part in parts[1:]:
        policy = policy | part
    return policy


def joined(*parts: Policy) -> Policy | None:
    """Return the parts as one policy; None where a rule of it would have no effect."""
    try:
        return _or(parts)
    except ConfigError:
        return None


tools = st.sampled_from([*NAMES, "nowhere", ""])


@given(policy=policies(), tool=tools, data=st.data())
def test_a_decision_depends_only_on_the_conditions_that_were_asked(
    policy: Policy, tool: str, data: st.DataObject
) -> None:
    """So a driver calls no user function in vain, and forgets none that matters."""
    met = data.draw(st.sets(st.sampled_from(sorted(policy.conditions) or ["x"])))
    needed = policy.asked(tool)

    decided = policy.decide(tool, met)

    assert decided == policy.decide(tool, met.intersection(needed))
    assert len(needed) == len(set(needed))


@given(policy=policies(), tool=tools, data=st.data())
def test_a_call_is_allowed_only_if_no_failed_condition_could_matter(
    policy: Policy, tool: str, data: st.DataObject
) -> None:
    """CONTRACT property 9: everything fails closed."""
    conditions = st.sets(st.sampled_from(sorted(policy.conditions) or ["x"]))
    failed = data.draw(conditions)
    met = data.draw(conditions) - failed

    decided = policy.decide(tool, met, failed)

    truths = data.draw(conditions) & failed
    allowed = policy.decide(tool, met | truths).verdict == "allow"
    assert allowed or decided.verdict != "allow"


@given(policy=policies(), tool=tools)
def test_a_call_runs_only_if_a_rule_allows_it(policy: Policy, tool: str) -> None:
    """Default deny, once there is any gate (CONTRACT §9 #14)."""
    decided = policy.decide(tool, policy.conditions)

    covering = [rule for rule in policy.rules if rule.covers(tool)]
    assert decided == (covering[0] if covering else policy.decide(tool, ()))
    assert covering or decided.verdict == "deny"


@given(one=policies(), two=policies(), three=policies())
def test_policies_combine_in_any_grouping(one: Policy, two: Policy, three: Policy) -> None:
    """A policy may be put together from parts that were put together before."""
    rest = joined(two, three)

    assert joined(one, two, three) == (None if rest is None else joined(one, rest))


@given(one=policies(), two=policies())
def test_combining_keeps_every_rule_and_its_function(one: Policy, two: Policy) -> None:
    """A condition that another one's name hides would let through what it should stop."""
    both = joined(one, two)
    assume(both is not None)
    assert both is not None

    functions = [both.conditions.get(rule.condition) for rule in both.rules]
    assert one.rules == both.rules[: len(one.rules)]
    assert functions == [
        policy.conditions.get(rule.condition) for policy in (one, two) for rule in policy.rules
    ]


@given(policy=policies())
def test_the_default_has_a_line_where_a_call_can_reach_it(policy: Policy) -> None:
    """The diagram shows what happens to every call."""
    rules, lines = policy.rules, policy.describe()

    defaulted = policy.decide("nowhere", ()) not in rules
    assert [*(rule.verdict for rule in rules), *["deny"] * defaulted] == [
        line.partition(" ")[0] for line in lines
    ]


def test_the_first_rule_that_matches_decides() -> None:
    """Later rules are for what earlier ones left."""
    policy = allow("read_*") | ask("refund", when=over_limit) | allow("refund") | deny("*")

    assert "allow" == policy.decide("read_mail", ()).verdict
    assert "ask" == policy.decide("refund", {"over_limit"}).verdict
    assert "allow" == policy.decide("refund", ()).verdict
    assert "deny" == policy.decide("delete", {"over_limit"}).verdict
    assert ("over_limit",) == policy.asked("refund")
    assert () == policy.asked("read_mail")


def test_what_no_rule_matches_is_denied_with_a_reason() -> None:
    """The model reads why, and a person finds the rule to write."""
    expected = Rule("deny", (), reason="no rule of the gate allows 'write'")

    assert expected == allow("read").decide("write", ())
    assert expected == decide((), "write", ())


@pytest.mark.parametrize(
    ("pattern", "tool", "matches"),
    [
        ("db_*", "db_read", True),
        ("db_*", "DB_read", False),
        ("*", "anything\nat all", True),
        ("db_", "db_read", False),
        ("[!d]*", "db_read", False),
        ("read", "read ", False),
    ],
)
def test_patterns_are_those_of_a_shell_and_case_matters(
    pattern: str, tool: str, matches: bool
) -> None:
    """On every system: `fnmatch` alone would ignore case on some."""
    assert matches == Rule("allow", (pattern,)).covers(tool)


def test_a_raising_condition_asks_and_denies_but_does_not_allow() -> None:
    """A throwing predicate requires approval (CONTRACT A03)."""
    failed = {"over_limit"}

    assert "ask" == (ask("a", when=over_limit) | allow("*")).decide("a", (), failed).verdict
    assert "deny" == (deny("a", when=over_limit) | allow("*")).decide("a", (), failed).verdict
    assert "ask" == (allow(when=over_limit) | ask("*")).decide("a", failed, failed).verdict


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ([allow("*"), deny("search")], r"rule `deny search` has no effect: `allow \*` before it"),
        ([allow("s*"), ask("search", when=at_night)], "`ask search when at_night` has no effect"),
        ([allow("db_*"), deny("db_*")], r"`deny db_\*` has no effect"),
        ([allow("a"), ask("b"), deny("a", "b")], "`deny a, b` has no effect: `allow a` before"),
        ([allow("*"), deny("d_*", reason="never")], r"`deny d_\*` has no effect"),
        ([allow("**"), ask("refund*")], r"`ask refund\*` has no effect"),
        ([allow("?*"), ask("*")], r"`ask \*` has no effect"),
        ([allow("re*"), ask("refund*")], r"`ask refund\*` has no effect"),
        ([allow("*_db_*"), deny("x_db_?")], r"`deny x_db_\?` has no effect"),
    ],
)
def test_a_rule_that_no_call_can_reach_is_refused(rules: list[Policy], message: str) -> None:
    """It would look like a protection, and be none."""
    with pytest.raises(ConfigError, match=message):
        _or(rules)


@pytest.mark.parametrize(
    "rules",
    [
        [allow("*", when=over_limit), deny("search")],
        [allow("search"), deny("*")],
        [allow("a"), deny("a", "b")],
        [allow("db_a*"), deny("db_*")],
        [allow("Search"), deny("search")],
    ],
)
def test_a_rule_that_some_call_can_reach_is_kept(rules: list[Policy]) -> None:
    """A condition may not hold, and a narrower rule leaves the rest."""
    assert len(rules) == len(_or(rules).rules)


def test_conditions_are_named_by_their_functions_each_once() -> None:
    """Two functions of one name stay two; one function in two rules stays one."""
    other, nameless = another(), functools.partial(over_limit, 1)
    policy = ask("a", when=over_limit) | deny("b", when=other) | allow("c", when=over_limit)
    policy |= allow("d", when=nameless)

    assert ["over_limit", "over_limit_2", "over_limit", "over_limit_3"] == [
        rule.condition for rule in policy.rules
    ]
    assert (over_limit, other, nameless) == tuple(policy.conditions.values())


class AtNight:
    """A condition that is an object."""

    def __call__(self, arguments: object, context: object) -> bool:
        """Hold."""
        return True

    def holds(self, arguments: object, context: object) -> bool:
        """Hold as well."""
        return True


def test_a_condition_without_a_name_is_named_after_what_it_does() -> None:
    """A reviewer reads the drawing, not the code; journals know a rule by the same name."""
    conditions: list[tuple[Condition, str]] = [
        (functools.partial(functools.partial(over_limit, 1), 2), "over_limit"),
        (functools.partial(AtNight()), "AtNight"),
        (AtNight(), "AtNight"),
        (AtNight().holds, "holds"),
        (lambda *_: True, "predicate"),
    ]

    for condition, name in conditions:
        assert (f"ask * when {name}", "deny *") == describe(ask(when=condition).rules)
    two = ask("a", when=lambda *_: True) | ask("b", when=lambda *_: False)
    assert ["predicate", "predicate_2"] == [rule.condition for rule in two.rules]


def test_a_renamed_condition_leaves_the_rest_of_its_rule() -> None:
    """The time to answer, and what the model is told."""
    policy = allow(when=over_limit) | ask("a", when=another(), ttl_s=5) | deny("b", reason="no")

    assert (
        Rule("ask", ("a",), "over_limit_2", 5.0),
        Rule("deny", ("b",), reason="no"),
    ) == policy.rules[1:]


def test_a_policy_survives_pickling() -> None:
    """As the rest of a graph does, if its functions do."""
    policy = allow("read") | ask("refund", when=over_limit, ttl_s=5)

    assert policy == pickle.loads(pickle.dumps(policy))  # noqa: S301 - our own bytes


def test_a_policy_is_described_line_by_line() -> None:
    """These lines stand in the diagram."""
    policy = allow("read_*", "list") | ask("refund", when=over_limit, ttl_s=90)

    expected = ("allow read_*, list", "ask refund when over_limit within 90 s", "deny *")
    assert expected == policy.describe()
    assert expected == (policy | deny("*")).describe()


def test_names_of_no_tool_are_found_and_patterns_are_not() -> None:
    """A typo in a `deny` would let the tool through by a later rule."""
    policy = deny("delte", "write_*") | ask("read", "delte", "sned") | allow("*", "[x]", "a?")

    assert ("delte", "sned") == policy.unmatched(["read", "delete", "send"])
    assert () == policy.unmatched(["read", "delte", "sned"])


def _wrong(verb: Any, *arguments: object, **options: object) -> Policy:
    """Call as a user without a type checker may."""
    policy: Policy = verb(*arguments, **options)
    return policy


@pytest.mark.parametrize("verb", [allow, ask, deny])
@pytest.mark.parametrize(
    ("arguments", "options", "told"),
    [
        ((), {}, "expected tools or a condition, found neither"),
        (("",), {}, "expected the name of a tool, a pattern or a tool, found ''"),
        ((["a", "b"],), {}, r"found \['a', 'b'\]\. Fix: give them one by one"),
        ((Named(""),), {}, "expected the name of a tool"),
        ((None,), {}, "found None"),
        ((over_limit,), {}, "expected the name of a tool"),
        (("a",), {"when": True}, "`when` must be a function of .* found True"),
    ],
)
def test_a_rule_about_nothing_is_refused(
    verb: object, arguments: tuple[object, ...], options: dict[str, object], told: str
) -> None:
    """It would look like a gate, and be none."""
    with pytest.raises(ConfigError, match=told):
        _wrong(verb, *arguments, **options)


@pytest.mark.parametrize("ttl_s", [0, -1, True, float("nan"), "60"])
def test_a_time_to_answer_is_above_zero(ttl_s: object) -> None:
    """Zero seconds would deny everything, quietly."""
    with pytest.raises(ConfigError, match="`ttl_s` to be a finite number above 0"):
        _wrong(ask, "a", ttl_s=ttl_s)


def test_a_reason_is_text() -> None:
    """It is sent to a model and written into a journal."""
    with pytest.raises(ConfigError, match="`reason`: expected text"):
        _wrong(deny, "a", reason=404)


def test_a_policy_without_rules_is_refused() -> None:
    """Is it no gate, or one that allows nothing? Whoever means the latter can say so."""
    with pytest.raises(ConfigError, match="a policy needs a rule"):
        Policy(())


def test_a_rule_whose_function_is_missing_is_refused() -> None:
    """A condition that nobody can evaluate never holds: a `deny` would never deny."""
    with pytest.raises(ConfigError, match="over_limit, and the policy has"):
        Policy((Rule("deny", ("*",), "over_limit"), Rule("allow", ("*",))))


@pytest.mark.parametrize(
    ("policy", "asks"),
    [
        (ask("pay"), True),
        (deny("pay") | ask("*"), False),
        (deny("pay", when=at_night) | ask("*"), True),
        (allow("pay") | ask("p*", when=at_night) | deny("*"), False),
        (ask("read"), False),
        (ask("*", when=at_night) | deny("pay"), True),
    ],
)
def test_whether_anybody_may_be_asked_is_known_without_asking(policy: Policy, asks: bool) -> None:
    """A condition may hold or not; what comes behind one that decides does not count."""
    assert asks is may_ask(policy.rules, "pay")


def test_a_pattern_not_surely_within_another_is_not_shadowed() -> None:
    """What cannot be told without the tools is told where they are known."""
    for wide, pattern in [("??*", "*"), ("*a*", "[ab]"), ("r?", "r*"), ("re*", "r*"), ("?", "*")]:
        assert 2 == len((allow(wide) | ask(pattern)).rules)


def test_a_rule_whose_tools_are_all_decided_before_it_is_shadowed() -> None:
    """Only what decides whatever its call is counts, and a rule for all tools is for later ones."""
    rules = (allow("refund") | ask("refund*") | deny("*")).rules

    found = list(shadowed(rules, ["refund", "read"]))

    assert [rules[1]] == [rule for rule, _ in found]
    assert "(refund) are decided by `allow refund` before it" in found[0][1]
    assert [] == list(shadowed(rules, ["refund", "refund_all"]))
    assert [] == list(shadowed(rules, []))
    conditional = (allow("refund", when=at_night) | ask("refund*")).rules
    assert [] == list(shadowed(conditional, ["refund"]))
