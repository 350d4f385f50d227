"""The monitor: what it forbids, what it has seen broken, what is owed.

That it lets through exactly what breaks no rule is in tests/property/test_temporal.py.
"""

from __future__ import annotations

from graphloop.rules import (
    Followed,
    Never,
    always_followed_by,
    at_most,
    at_most_once,
    never,
    only_after,
)
from graphloop.rules.automata import entered, ran, returned
from graphloop.rules.monitor import Monitor, Wanted, foreseen, judged, refusal


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
