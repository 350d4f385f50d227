"""Temporal rules: restrictions on the order and number of happenings in a run.

    never("deploy", before="review") & at_most_once("refund", per="approval")

A *happening* is an occurrence that a rule can name. A run enters a node (`node:review`) or leaves a
node by an outcome (`review.accepted`). A tool runs (`tool:deploy`). A person approves a tool call
(`approval:deploy`, or `approval` for a call of the rule's own tool).

A restricted tool counts when a gate lets a call run. A tool that a rule waits for counts when the
call has succeeded. A word without a kind, such as `deploy`, is looked up in the graph, and an
ambiguous word is an error.

A rule depends only on past happenings, so each rule is a small automaton (`automata`), which both
the proof and the monitor of a run use. The language has no expressions, functions or negation, so
rules can be written in a data file.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, TypeAlias, assert_never, cast, final

from msgspec import Struct

from ..errors import ConfigError
from ..spending import whole_number

__all__ = [
    "TIMES_MAX",
    "AtMost",
    "Followed",
    "Never",
    "OnlyAfter",
    "Rules",
    "TemporalRule",
    "always_followed_by",
    "at_most",
    "at_most_once",
    "describe_rule",
    "never",
    "only_after",
    "rules_of",
    "words_of",
]

TIMES_MAX: Final = 1_000
"""The highest `times` of a rule; proofs search an automaton with that many states."""


class _Rule(Struct, frozen=True, gc=False):
    """The base of all temporal rules, which checks their words."""

    def __post_init__(self) -> None:
        """Raise ConfigError if a word, `times` or `reason` of the rule is malformed."""
        _refuse_odd_rule(cast("TemporalRule", self))


@final
class Never(_Rule, frozen=True, tag="never", tag_field="form", gc=False):
    """A rule: `what` must not happen; with `before`, not until `before` has happened once."""

    what: str
    before: str = ""
    reason: str = ""


@final
class AtMost(_Rule, frozen=True, tag="at_most", tag_field="form", gc=False):
    """A rule: `what` happens at most `times` times; with `per`, at most so often after each `per`.

    With `per`, `what` must not happen before the first `per`. An unused allowance expires at the
    next `per`.
    """

    what: str
    times: int
    per: str = ""
    reason: str = ""


@final
class OnlyAfter(_Rule, frozen=True, tag="only_after", tag_field="form", gc=False):
    """A rule: before `what`, `after` must have happened; with `since`, after the last `since`."""

    what: str
    after: str
    since: str = ""
    reason: str = ""


@final
class Followed(_Rule, frozen=True, tag="followed", tag_field="form", gc=False):
    """A rule: after each `what`, `by` must happen before the run ends."""

    what: str
    by: str
    reason: str = ""


TemporalRule: TypeAlias = Never | AtMost | OnlyAfter | Followed
"""A temporal rule in any of the four forms."""


@final
class Rules(Struct, frozen=True):
    """A set of temporal rules that must all hold; `a & b` has the rules of both, without copies."""

    rules: tuple[TemporalRule, ...] = ()

    def __and__(self, other: Rules) -> Rules:
        """Return the rules of both operands, each rule once."""
        if not isinstance(other, Rules):  # pyright: ignore[reportUnnecessaryIsInstance] - callers may ignore types
            return NotImplemented
        return Rules(tuple(dict.fromkeys((*self.rules, *other.rules))))

    def __iter__(self) -> Iterator[TemporalRule]:
        return iter(self.rules)

    def __len__(self) -> int:
        return len(self.rules)

    def __str__(self) -> str:
        return "\n".join(map(describe_rule, self.rules))


def never(what: str, *, before: str = "", reason: str = "") -> Rules:
    """Return a rule that forbids `what` at all, or until `before` has happened once.

    Raises:
        ConfigError: a word is empty, or both are the same.
    """
    return Rules((Never(what, before, reason),))


def at_most(what: str, times: int, *, per: str = "", reason: str = "") -> Rules:
    """Return a rule that limits how often `what` happens: in a run, or after each `per`.

    Raises:
        ConfigError: a word is empty, both are the same, or `times` is not from 1 to `TIMES_MAX`.
    """
    return Rules((AtMost(what, times, per, reason),))


def at_most_once(what: str, *, per: str = "", reason: str = "") -> Rules:
    """Return a rule that allows `what` only once: in a run, or after each `per`.

    With `at_most_once("refund", per="approval")`, each approval allows one refund. Without an
    approval, no refund is allowed.

    Raises:
        ConfigError: a word is empty, or both are the same.
    """
    return at_most(what, 1, per=per, reason=reason)


def only_after(what: str, after: str, *, since: str = "", reason: str = "") -> Rules:
    """Return a rule that allows `what` only after `after`; with `since`, after the last `since`.

    With `only_after("merge", "test", since="edit")`, a merge needs a test after the last edit.

    Raises:
        ConfigError: a word is empty, or two are the same.
    """
    return Rules((OnlyAfter(what, after, since, reason),))


def always_followed_by(what: str, by: str, *, reason: str = "") -> Rules:
    """Return a rule that requires `by` after each `what`, before the run ends.

    Raises:
        ConfigError: a word is empty, or both are the same.
    """
    return Rules((Followed(what, by, reason),))


def rules_of(rules: Rules | Iterable[Rules]) -> Rules:
    """Return one `Rules` value with the rules of a `Rules` value or of a list of `Rules` values.

    Raises:
        ConfigError: an item is not a `Rules` value.
    """
    if isinstance(rules, Rules):
        return rules
    # Handle a bare rule, or a text, whose items are letters: callers may not use a type checker.
    is_single = isinstance(rules, str) or not isinstance(rules, Iterable)  # pyright: ignore[reportUnnecessaryIsInstance]
    listed: list[object] = [rules] if is_single else list(rules)
    joined = Rules()
    for item in listed:
        if not isinstance(item, Rules):
            raise ConfigError(
                f"`rules`: expected temporal rules, joined by & or listed, found {item!r:.80}. "
                "Fix: write never('deploy', before='review'), at_most_once('refund'), …, or load "
                "a topology file."
            )
        joined = joined & item
    return joined


def words_of(rule: TemporalRule) -> tuple[str, str, str]:
    """Return the three words of a rule: its subject, then its conditions, "" if it has fewer."""
    match rule:
        case Never():
            return rule.what, rule.before, ""
        case AtMost():
            return rule.what, rule.per, ""
        case OnlyAfter():
            return rule.what, rule.after, rule.since
        case Followed():
            return rule.what, rule.by, ""
        case _:
            assert_never(rule)


def describe_rule(rule: TemporalRule) -> str:
    """Return a rule as one line of text, for people, and for a model whose call was denied."""
    match rule:
        case Never():
            text = f"never {rule.what}" + (f" before {rule.before}" if rule.before else "")
        case AtMost():
            often = "once" if rule.times == 1 else f"{rule.times} times"
            text = f"{rule.what} at most {often}" + (f" per {rule.per}" if rule.per else "")
        case OnlyAfter():
            since = f" since the last {rule.since}" if rule.since else ""
            text = f"{rule.what} only after {rule.after}{since}"
        case Followed():
            text = f"{rule.what} always followed by {rule.by}"
        case _:
            assert_never(rule)
    return f"{text} ({rule.reason})" if rule.reason else text


def _refuse_odd_rule(rule: TemporalRule) -> None:
    """Raise ConfigError if a word, `times` or `reason` of a rule is malformed."""
    what, *others = words_of(rule)
    needed = [what, others[0]] if isinstance(rule, OnlyAfter | Followed) else [what]
    for word in (what, *others):
        # Check types at run time: words also come from files and from untyped code.
        if not isinstance(word, str) or word != word.strip() or (word in needed and not word):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ConfigError(
                f"a rule: expected the name of a node, outcome, tool or approval, found {word!r}. "
                "Fix: write a word such as 'review', 'review.accepted' or 'tool:deploy'."
            )
    words = [word for word in (what, *others) if word]
    if len(set(words)) < len(words):
        raise ConfigError(
            f"a rule: expected different happenings, found {what!r} and "
            f"{', '.join(map(repr, words[1:]))}. Fix: name another happening."
        )
    if isinstance(rule, AtMost) and whole_number("times", rule.times) > TIMES_MAX:
        raise ConfigError(f"`times`: expected at most {TIMES_MAX}, found {rule.times}.")
    # `describe_rule` must return one line.
    if not isinstance(rule.reason, str) or rule.reason.splitlines() not in ([], [rule.reason]):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ConfigError(f"`reason`: expected one line of text, found {rule.reason!r}.")
