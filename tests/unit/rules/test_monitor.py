"""The monitor: what it forbids, what it has seen broken, what is owed.

That it lets through exactly what breaks no rule is in tests/property/test_temporal.py.
"""

from __future__ import annotations

from graphloop.rules import (
    AtMost,
    Followed,
    Never,
    Rules,
    always_followed_by,
    at_most,
    at_most_once,
    never,
    only_after,
)
from graphloop.rules.automata import approved_call, entered, ran, returned
from graphloop.rules.monitor import Monitor, Wanted, foreseen, judged, refusal

PER_APPROVAL = AtMost("tool:refund", 1, "approval:refund")
REFUNDS = Monitor.of(Rules((PER_APPROVAL,)))


def test_the_empty_monitor_watches_nothing() -> None:
    """Most runs have no rules, and must not pay for them."""
    monitor = Monitor()

    assert monitor is monitor.after(ran("x"))
    assert monitor.forbids("x") is None
    assert ((), ()) == (monitor.broken, monitor.owed)


def test_what_no_rule_speaks_of_leaves_the_monitor_as_it_is() -> None:
    """A run that is not changed need not be made anew."""
    monitor = Monitor.of(never("tool:x"))

    assert monitor is monitor.after(entered("a"))
    assert monitor == monitor.after(ran("y"))


def test_a_tool_is_forbidden_until_what_it_waits_for_has_happened() -> None:
    """The rule itself is returned, to be named in the result."""
    monitor = Monitor.of(never("tool:deploy", before="node:review"))

    assert Never("tool:deploy", "node:review") == monitor.forbids("deploy")
    assert monitor.after(entered("review")).forbids("deploy") is None
    assert monitor.forbids("read") is None


def test_an_approval_lets_one_call_through() -> None:
    """The heart of it: one approval, one run of the tool."""
    assert PER_APPROVAL == REFUNDS.forbids("refund")
    assert REFUNDS.forbids("refund", approved=True) is None

    after = REFUNDS.allowed("refund", approved=True)
    assert PER_APPROVAL == after.forbids("refund")
    assert after == REFUNDS.after(approved_call("refund")).allowed("refund")


def test_two_refunds_of_one_batch_do_not_share_an_approval() -> None:
    """They run side by side: neither has returned when the other is judged."""
    assert (None, PER_APPROVAL) == judged(REFUNDS, [Wanted("refund", True), Wanted("refund")])
    assert (PER_APPROVAL, None) == judged(REFUNDS, [Wanted("refund"), Wanted("refund", True)])
    assert (None, None) == judged(REFUNDS, [Wanted("refund", True)] * 2)


def test_calls_of_one_batch_are_counted_in_request_order() -> None:
    """The same reply is judged the same way, whatever order tools end in."""
    rules = Monitor.of(at_most("tool:search", 2) & only_after("tool:write", "tool:read"))
    batch = [Wanted(name) for name in ("write", "search", "read", "search", "write", "search")]

    stopped = [place for place, rule in enumerate(judged(rules, batch)) if rule is not None]
    assert [0, 4, 5] == stopped


def test_a_rule_about_approvals_stops_the_approved_call() -> None:
    """What a person may not approve does not run because a person approved it."""
    rules = Monitor.of(never("approval:refund"))

    assert Never("approval:refund") == rules.forbids("refund", approved=True)
    assert rules.forbids("refund") is None


def test_nobody_is_asked_about_a_call_that_cannot_run() -> None:
    """A person's time is not for calls that the rules stop anyhow."""
    rules = Monitor.of(never("tool:x") & never("tool:y", before="tool:z"))

    hopeless = foreseen(rules, [Wanted("x", True), Wanted("y", True), Wanted("z", True)])
    assert (Never("tool:x"), Never("tool:y", "tool:z"), None) == hopeless


def test_a_call_that_an_earlier_one_may_leave_room_for_is_asked_about() -> None:
    """The first may be denied, and then the second may run."""
    rules = Monitor.of(at_most_once("tool:y"))

    assert (None, None) == foreseen(rules, [Wanted("y", True), Wanted("y", True)])


def test_a_call_is_never_allowed_by_another_of_its_batch() -> None:
    """They run side by side: the one that it waits for has not returned, and may fail."""
    rules = Monitor.of(never("tool:y", before="tool:z"))
    (rule,) = never("tool:y", before="tool:z")

    assert (None, rule) == foreseen(rules, [Wanted("z", True), Wanted("y", True)])
    assert (None, rule) == judged(rules, [Wanted("z"), Wanted("y")])
    assert rules.after(returned("z", well=False)).forbids("y") == rule
    assert rules.after(returned("z", well=True)).forbids("y") is None


def test_what_is_owed_is_told_until_it_is_done() -> None:
    """Whoever ends the run can still see to it."""
    monitor = Monitor.of(always_followed_by("tool:deploy", "node:verify"))

    owing = monitor.after(ran("deploy"))
    assert ((), (Followed("tool:deploy", "node:verify"),)) == (monitor.owed, owing.owed)
    assert () == owing.after(entered("verify")).owed


def test_what_was_broken_is_remembered() -> None:
    """A rule about nodes cannot be enforced at a gate; it can be reported."""
    monitor = Monitor.of(never("node:b", before="node:a") & never("node:c"))

    assert (Never("node:b", "node:a"),) == monitor.after(entered("b")).after(entered("a")).broken


def test_the_model_reads_which_rule_has_stopped_its_call() -> None:
    """A model that knows why can do something else; one that does not asks again."""
    (rule,) = at_most_once("tool:refund", per="approval:refund", reason="money leaves once")

    assert (
        "Tool call denied. Rule: tool:refund at most once per approval:refund (money leaves once)."
    ) == refusal(rule)
