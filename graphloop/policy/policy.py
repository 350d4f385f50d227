"""Policy: ordered rules that allow a tool call, ask a person about it, or deny it.

    allow("read_*") | ask("refund", when=over_limit) | deny("delete_*", reason="never")

The first rule that matches decides, and a call that no rule matches is denied. A `when` is a
function of the user, perhaps asynchronous, which this module never calls. A rule has only the
function's name, and the driver reports which conditions hold. So a policy can be drawn, proven, and
written to a file.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any, Literal, Protocol, TypeAlias, final

from msgspec import Struct

from ..errors import ConfigError
from ..spending import positive_number

__all__ = [
    "NARROWER",
    "Condition",
    "Named",
    "Policy",
    "Rule",
    "allow",
    "ask",
    "asked",
    "decide",
    "denial",
    "deny",
    "describe",
    "may_ask",
    "policy_of",
    "refuse_shadowed",
    "rule_text",
    "shadowed",
    "unmatched",
    "untold",
]

Condition: TypeAlias = Callable[..., bool | Awaitable[bool]]
"""A user's function of (arguments, context); it returns whether a rule applies to a call."""

WILDCARDS = frozenset("*?[")

NARROWER = "put the narrower rule first, or leave it out."
"""The fix for a rule that no call can reach."""


class Named(Protocol):
    """An object with a `name`, such as a tool."""

    @property
    def name(self) -> str:
        """The name by which a model calls the tool."""
        ...


class Rule(Struct, frozen=True, gc=False):
    """A rule of a policy: the verdict on the calls of some tools.

    `tools` holds names or shell patterns (`db_*`), which are case-sensitive. `condition` names a
    function that must return True as well. `ttl_s` is the number of seconds in which a person may
    approve. A model reads the `reason` of a denial.
    """

    verdict: Literal["allow", "ask", "deny"]
    tools: tuple[str, ...]
    condition: str = ""
    ttl_s: float | None = None
    reason: str = ""

    def covers(self, tool: str) -> bool:
        """Whether the rule's names or patterns match this tool; the condition is ignored."""
        return any(fnmatchcase(tool, pattern) for pattern in self.tools)


@final
@dataclass(frozen=True)
class Policy:
    """Rules in the order in which they are tried, and the functions of their conditions by name."""

    rules: tuple[Rule, ...]
    conditions: Mapping[str, Condition] = field(default_factory=dict[str, Condition], hash=False)

    def __post_init__(self) -> None:
        if not self.rules:
            raise ConfigError('a policy needs a rule, found none. Fix: deny("*") allows nothing.')
        missing = {rule.condition for rule in self.rules} - {"", *self.conditions}
        if missing:
            raise ConfigError(
                f"rules name the condition(s) {', '.join(sorted(missing))}, and the policy has no "
                "such function. Fix: pass it with `when`."
            )
        refuse_shadowed(self.rules)

    def __or__(self, other: Policy) -> Policy:
        """Return a policy that tries the rules of `other` after its own.

        A condition of `other` is renamed if another function already has its name.
        """
        conditions = dict(self.conditions)
        names = {"": ""}
        for name, condition in other.conditions.items():
            names[name] = _name_in(conditions, condition)
            conditions[names[name]] = condition
        renamed = [
            Rule(rule.verdict, rule.tools, names[rule.condition], rule.ttl_s, rule.reason)
            for rule in other.rules
        ]
        return Policy((*self.rules, *renamed), conditions)

    def asked(self, tool: str) -> tuple[str, ...]:
        """Return the names of the conditions to evaluate before a call of `tool` is decided."""
        return asked(self.rules, tool)

    def decide(self, tool: str, met: Collection[str], failed: Collection[str] = ()) -> Rule:
        """Return the policy's first rule that applies to a call, or a rule that denies the call."""
        return decide(self.rules, tool, met, failed)

    def describe(self) -> tuple[str, ...]:
        """Return one line for each rule, plus `deny *` unless a rule always covers every tool."""
        return describe(self.rules)

    def unmatched(self, names: Iterable[str]) -> tuple[str, ...]:
        """Return the tool names in rules that are not among `names`; patterns are not checked."""
        return unmatched(self.rules, names)


def allow(*tools: str | Named, when: Condition | None = None) -> Policy:
    """Return a policy with one rule, which lets calls of these tools run.

    Args:
        tools: names, shell patterns, or tools; all tools if only `when` is given.
        when: a function of (arguments, context), perhaps async. The rule is skipped unless the
            function returns True.

    Raises:
        ConfigError: neither tools nor `when` are given, or a value is not valid.
    """
    return _one_rule("allow", tools, when)


def ask(*tools: str | Named, when: Condition | None = None, ttl_s: float | None = None) -> Policy:
    """Return a policy with one rule, which asks a person to decide about calls of these tools.

    Args:
        tools: names, shell patterns, or tools; all tools if only `when` is given.
        when: a function of (arguments, context), perhaps async. The rule is skipped only if the
            function returns False, and not if it raises or returns another value.
        ttl_s: the number of seconds after which an approval comes too late; None for never.

    Raises:
        ConfigError: neither tools nor `when` are given, or a value is not valid.
    """
    limit = None if ttl_s is None else positive_number("ttl_s", ttl_s)
    return _one_rule("ask", tools, when, ttl_s=limit)


def deny(*tools: str | Named, when: Condition | None = None, reason: str = "") -> Policy:
    """Return a policy with one rule, which denies calls of these tools.

    Args:
        tools: names, shell patterns, or tools; all tools if only `when` is given.
        when: a function of (arguments, context), perhaps async. The rule is skipped only if the
            function returns False, and not if it raises or returns another value.
        reason: the text that the model reads.

    Raises:
        ConfigError: neither tools nor `when` are given, or a value is not valid.
    """
    if not isinstance(reason, str):  # pyright: ignore[reportUnnecessaryIsInstance] - no type checker has to have seen the caller's code.
        raise ConfigError(
            f"deny: `reason`: expected text for the model, found {reason!r}. Fix: quote it."
        )
    return _one_rule("deny", tools, when, reason=reason)


def asked(rules: Iterable[Rule], tool: str) -> tuple[str, ...]:
    """Return the names of the conditions to evaluate before a call of `tool` is decided."""
    conditions: dict[str, None] = {}
    for rule in rules:
        if rule.covers(tool):
            if not rule.condition:
                break
            conditions[rule.condition] = None
    return tuple(conditions)


def decide(
    rules: Iterable[Rule], tool: str, met: Collection[str], failed: Collection[str] = ()
) -> Rule:
    """Return the first rule that applies to this call, or a rule that denies the call.

    Args:
        rules: the rules, in the order in which they are tried.
        tool: the name of the tool that is called.
        met: the names of the conditions that hold for this call.
        failed: the names of the conditions that raised, or returned neither True nor False. These
            hold for the verdicts `ask` and `deny`, and not for `allow`.
    """
    for rule in rules:
        if rule.covers(tool) and _condition_holds(rule, met, failed):
            return rule
    return Rule("deny", (), reason=f"no rule of the gate allows {tool!r}")


def denial(reason: str = "") -> str:
    """Return the text that a model reads about a denied call."""
    return f"Tool call denied. Reason: {reason}" if reason else "Tool call denied."


def untold(rules: Iterable[Rule], met: Collection[str], unmet: Collection[str]) -> frozenset[str]:
    """Return the names of the rules' conditions that are in neither `met` nor `unmet`."""
    return frozenset({rule.condition for rule in rules} - {"", *met, *unmet})


def may_ask(rules: Iterable[Rule], tool: str) -> bool:
    """Whether some rule may ask a person about a call of this tool."""
    for rule in rules:
        if rule.covers(tool):
            if rule.verdict == "ask":
                return True
            if not rule.condition:
                return False
    return False


def unmatched(rules: Iterable[Rule], names: Iterable[str]) -> tuple[str, ...]:
    """Return the tool names in rules that are not among `names`; patterns are not checked."""
    known = set(names)
    every = dict.fromkeys(name for rule in rules for name in rule.tools)
    return tuple(name for name in every if name not in known and WILDCARDS.isdisjoint(name))


def shadowed(rules: Iterable[Rule], names: Collection[str]) -> Iterator[tuple[Rule, str]]:
    """Yield each rule that has no effect on the tools `names`, with an error message.

    Such a rule's tools are decided by earlier rules. A rule about every tool is not yielded,
    because it also covers tools that are added later.
    """
    decided: dict[str, Rule] = {}
    for rule in rules:
        tools = [name for name in names if rule.covers(name)]
        if tools and all(one in decided for one in tools) and not any(map(_is_every, rule.tools)):
            yield (
                rule,
                f"the rule `{rule_text(rule)}` has no effect: the tools that it matches "
                f"({', '.join(tools)}) are decided by `{rule_text(decided[tools[0]])}` before it.",
            )
        if not rule.condition:
            decided = {**dict.fromkeys(tools, rule), **decided}


def describe(rules: Iterable[Rule]) -> tuple[str, ...]:
    """Return one line for each rule, plus `deny *` unless a rule always covers every tool."""
    every = tuple(rules)
    lines = [rule_text(rule) for rule in every]
    total = any(any(map(_is_every, rule.tools)) and not rule.condition for rule in every)
    return tuple(lines if total else [*lines, "deny *"])


def _one_rule(
    verdict: Literal["allow", "ask", "deny"],
    tools: tuple[str | Named, ...],
    when: Condition | None,
    *,
    ttl_s: float | None = None,
    reason: str = "",
) -> Policy:
    if not tools and when is None:
        raise ConfigError(
            f"{verdict}: expected tools or a condition, found neither. "
            f'Fix: {verdict}("*") is about all tools.'
        )
    if when is not None and not callable(when):
        raise ConfigError(
            f"{verdict}: `when` must be a function of (arguments, context), found {when!r}. "
            "Fix: pass the function itself, without calling it."
        )
    patterns = tuple([_check_pattern(verdict, tool) for tool in tools]) or ("*",)
    conditions = {} if when is None else {_name_in({}, when): when}
    return Policy((Rule(verdict, patterns, "".join(conditions), ttl_s, reason),), conditions)


def _check_pattern(verdict: str, tool: object) -> str:
    name = tool if isinstance(tool, str) else getattr(tool, "name", None)
    if isinstance(name, str) and name:
        return name
    raise ConfigError(
        f"{verdict}: expected the name of a tool, a pattern or a tool, found {tool!r}. "
        f'Fix: give them one by one, as in {verdict}("read_*", "search").'
    )


def _name_in(taken: Mapping[str, Condition], condition: Condition) -> str:
    """Return the name of a condition in `taken`, or a free name made from the function's name."""
    for name, other in taken.items():
        if other is condition:
            return name
    base = _own_name(condition)
    name, number = base, 1
    while name in taken:
        number += 1
        name = f"{base}_{number}"
    return name


def _own_name(condition: Condition) -> str:
    """Return the name of a condition's function or class; `predicate` for a lambda.

    The name holds no file or line: journals identify a rule by this name, and code moves.
    """
    function: object = condition
    if not hasattr(condition, "__name__"):
        function = getattr(condition, "func", condition)  # Of a `functools.partial`.
    own = getattr(function, "__name__", type(function).__name__)
    return own if isinstance(own, str) and own.isidentifier() else "predicate"


def refuse_shadowed(rules: Sequence[Rule], first: int = 0) -> None:
    """Raise if a rule, from index `first` on, can decide no call because of earlier rules.

    Raises:
        ConfigError: earlier rules decide all calls of the rule; the message names the first.
    """
    for at, rule in enumerate(rules[first:], first):
        deciding = _rule_before(rule, rules[:at])
        if deciding is not None:
            raise ConfigError(
                f"the rule `{rule_text(rule)}` has no effect: `{rule_text(deciding)}` before it "
                f"decides. Fix: {NARROWER}"
            )


def policy_of(rules: tuple[Rule, ...], functions: Mapping[str, Condition]) -> Policy:
    """Return a policy of these rules, with each condition's function from `functions`.

    A condition whose function is missing raises when it is evaluated.
    """
    names = {rule.condition for rule in rules if rule.condition}
    return Policy(rules, {name: functions.get(name, _no_condition) for name in sorted(names)})


def _no_condition(_arguments: Mapping[str, Any], _context: object) -> bool:
    raise ConfigError("condition: expected a function, found none. Fix: give it with `when`.")


def _rule_before(rule: Rule, before: Sequence[Rule]) -> Rule | None:
    """Return the earlier rule that decides a rule's calls; None if some call can reach the rule."""
    plain = [one for one in before if not one.condition]
    above = [
        next((one for one in plain if _is_within(pattern, one)), None) for pattern in rule.tools
    ]
    return above[0] if above and None not in above else None


def _is_within(pattern: str, rule: Rule) -> bool:
    """Whether a rule surely covers every tool that a pattern matches; false if unsure."""
    if WILDCARDS.isdisjoint(pattern):
        return rule.covers(pattern)
    return any(one == pattern or _covers(one, pattern) for one in rule.tools)


def _covers(wide: str, pattern: str) -> bool:
    """Whether `wide` surely matches every name that `pattern` matches; false if unsure."""
    if _is_every(wide):
        return True
    return "[" not in pattern and {"?", "["}.isdisjoint(wide) and fnmatchcase(pattern, wide)


def _is_every(pattern: str) -> bool:
    """Whether a pattern matches every tool name, as `*`, `**` and `?*` do."""
    return "*" in pattern and pattern.replace("*", "") in {"", "?"}


def _condition_holds(rule: Rule, met: Collection[str], failed: Collection[str]) -> bool:
    if rule.condition in failed:
        return rule.verdict != "allow"
    return not rule.condition or rule.condition in met


def rule_text(rule: Rule) -> str:
    """Return a rule as one line of text, such as `ask refund when over_limit within 60 s`."""
    line = f"{rule.verdict} {', '.join(rule.tools)}"
    if rule.condition:
        line += f" when {rule.condition}"
    return line if rule.ttl_s is None else f"{line} within {rule.ttl_s:g} s"
