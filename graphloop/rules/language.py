"""Temporal rules: what must never happen in a run, or only after something else has.

    never("deploy", before="review") & at_most_once("refund", per="approval")

A rule names *happenings*: a run entered a node (`node:review`) or left it by an outcome
(`review.accepted`), a tool ran (`tool:deploy`), a person approved a call of it (`approval:deploy`,
or `approval` for the rule's own tool). A restrained tool counts as soon as a call is let through;
an awaited tool, once it has returned well. A word without a kind is looked up in the graph, and is
refused there if it could mean two things. The language is total and looks back only, so each rule
is a small automaton (`automata`), the same for the proof and for the monitor. It has no
expressions, no functions and no negation, so that a rule can stand in a file of data.
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
"""How high a rule may count: its automaton, which a proof walks, has that many states."""


class _Rule(Struct, frozen=True, gc=False):
    def __post_init__(self) -> None:
        """Refuse a rule without a meaning."""
        _refuse_odd_rule(cast("TemporalRule", self))


@final
class Never(_Rule, frozen=True, tag="never", tag_field="form", gc=False):
    """`what` does not happen; with `before`, not until `before` has happened once."""

    what: str
    before: str = ""
    reason: str = ""


@final
class AtMost(_Rule, frozen=True, tag="at_most", tag_field="form", gc=False):
    """`what` happens so many `times` at most; with `per`, so often after each `per`.

    An unused allowance lapses with the next `per`; before the first there is none.
    """

    what: str
    times: int
    per: str = ""
    reason: str = ""


@final
class OnlyAfter(_Rule, frozen=True, tag="only_after", tag_field="form", gc=False):
    """`what` happens only if `after` has happened before; with `since`, after the last `since`."""

    what: str
    after: str
    since: str = ""
    reason: str = ""


@final
class Followed(_Rule, frozen=True, tag="followed", tag_field="form", gc=False):
    """No run ends while a `what` has no `by` after it."""

    what: str
    by: str
    reason: str = ""


TemporalRule: TypeAlias = Never | AtMost | OnlyAfter | Followed


@final
class Rules(Struct, frozen=True):
    """Rules that hold together; `&` joins them, and drops a second copy of a rule."""

    rules: tuple[TemporalRule, ...] = ()

    def __and__(self, other: Rules) -> Rules:
        """Return the rules of both."""
        if not isinstance(other, Rules):  # pyright: ignore[reportUnnecessaryIsInstance] - types can be ignored
            return NotImplemented
        return Rules(tuple(dict.fromkeys((*self.rules, *other.rules))))

    def __iter__(self) -> Iterator[TemporalRule]:
        return iter(self.rules)

    def __len__(self) -> int:
        return len(self.rules)

    def __str__(self) -> str:
        return "\n".join(map(describe_rule, self.rules))


def never(what: str, *, before: str = "", reason: str = "") -> Rules:
    """Forbid that `what` happens: at all, or before `before` has happened once.

    Raises:
        ConfigError: a word is empty, or both are the same.
    """
    return Rules((Never(what, before, reason),))


def at_most(what: str, times: int, *, per: str = "", reason: str = "") -> Rules:
    """Bound how often `what` happens: in the whole run, or after each `per`.

    Raises:
        ConfigError: a word is empty, both are the same, or `times` is not from 1 to `TIMES_MAX`.
    """
    return Rules((AtMost(what, times, per, reason),))


def at_most_once(what: str, *, per: str = "", reason: str = "") -> Rules:
    """Let `what` happen once at most: in the whole run, or after each `per`.

    `at_most_once("refund", per="approval")`: each approval lets one refund through, no approval
    none.

    Raises:
        ConfigError: a word is empty, or both are the same.
    """
    return at_most(what, 1, per=per, reason=reason)


def only_after(what: str, after: str, *, since: str = "", reason: str = "") -> Rules:
    """Let `what` happen only after `after`: once in the run, or since the last `since`.

    `only_after("merge", "test", since="edit")`: no merge of an edit that was not tested.

    Raises:
        ConfigError: a word is empty, or two are the same.
    """
    return Rules((OnlyAfter(what, after, since, reason),))


def always_followed_by(what: str, by: str, *, reason: str = "") -> Rules:
    """Demand that `by` happens after each `what`, before the run ends.

    Raises:
        ConfigError: a word is empty, or both are the same.
    """
    return Rules((Followed(what, by, reason),))


def rules_of(rules: Rules | Iterable[Rules]) -> Rules:
    """Return a listing of rules as one value.

    Raises:
        ConfigError: an item is not a rule.
    """
    if isinstance(rules, Rules):
        return rules
    # Callers without a type checker pass a bare rule, or a text, which iterates over letters.
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
    """Return the words of a rule: its subject, then its conditions; empty for none."""
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
    """Return a rule as one line, for people and for a model whose call it stopped."""
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
    what, *others = words_of(rule)
    needed = [what, others[0]] if isinstance(rule, OnlyAfter | Followed) else [what]
    for word in (what, *others):
        # Words also come from files, and from code without a type checker.
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
    # A rule is told as one line, to people and to models.
    if not isinstance(rule.reason, str) or rule.reason.splitlines() not in ([], [rule.reason]):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ConfigError(f"`reason`: expected one line of text, found {rule.reason!r}.")
