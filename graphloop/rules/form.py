"""Temporal rules as plain data: what stands in a file of a topology.

    - {never: deploy, before: review, reason: a person looks first}
    - {at_most_once: refund, per: approval}
    - {at_most: search, times: 5}
    - {only: merge, after: test, since: edit}
    - {always: deploy, followed_by: verify}

The first key says which rule it is; a key that belongs to none is an error with the nearest name.
What is read from data and written again is the same rule.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple, TypeAlias, assert_never, cast

from ..errors import ConfigError, nearest
from .language import (
    TIMES_MAX,
    AtMost,
    Followed,
    Never,
    OnlyAfter,
    Rules,
    TemporalRule,
)

__all__ = ["RuleData", "rule_schema", "rules_from_data", "rules_to_data"]

RuleData: TypeAlias = dict[str, str | int]


class _Form(NamedTuple):
    """The keys of one form of a rule beside its first, and `reason`, which all may have."""

    required: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()

    @property
    def keys(self) -> tuple[str, ...]:
        return (*self.required, *self.optional, "reason")


_FORMS: Final[Mapping[str, _Form]] = {
    "never": _Form(optional=("before",)),
    "at_most_once": _Form(optional=("per",)),
    "at_most": _Form(("times",), ("per",)),
    "only": _Form(("after",), ("since",)),
    "always": _Form(("followed_by",)),
}


def rules_from_data(data: object, place: str = "rules") -> Rules:
    """Return the rules that a list of mappings says.

    Args:
        data: what a YAML or JSON file holds.
        place: where it stands, for messages: the second rule of `rules` is at `rules[1]`.

    Raises:
        ConfigError: with every problem found, each with its place.
    """
    if not isinstance(data, list):
        raise ConfigError(
            f"{place}: a list of rules was expected; found {data!r}. "
            "Fix: write `- {never: deploy, before: review}`."
        )
    rules: list[TemporalRule] = []
    problems: list[str] = []
    # isinstance cannot tell what is in it.
    for number, entry in enumerate(cast("list[object]", data)):
        try:
            rules.append(_rule(entry))
        except ConfigError as error:
            problems.append(f"{place}[{number}]: {error}")
    if problems:
        raise ConfigError("\n".join(problems))
    return Rules(tuple(dict.fromkeys(rules)))


def rules_to_data(rules: Iterable[TemporalRule]) -> list[RuleData]:
    """Return rules as `rules_from_data` reads them; what a rule leaves empty is left out."""
    return [{key: said for key, said in _data(rule).items() if said != ""} for rule in rules]


def rule_schema() -> dict[str, object]:
    """Return the JSON Schema of one rule, for editors."""
    return {"oneOf": [_form_schema(name, form) for name, form in _FORMS.items()]}


def _form_schema(name: str, form: _Form) -> dict[str, object]:
    word = {"type": "string", "minLength": 1}
    times = {"type": "integer", "minimum": 1, "maximum": TIMES_MAX}
    keys = (name, *form.keys)
    return {
        "type": "object",
        "properties": {key: times if key == "times" else word for key in keys},
        "required": [name, *form.required],
        "additionalProperties": False,
    }


def _rule(entry: object) -> TemporalRule:
    said = _mapping(entry)
    name = _form_of(said)
    form = _FORMS[name]
    for key in said:
        if key not in (name, *form.keys):
            raise ConfigError(
                f"`{name}` has no key {key!r}.{nearest(key, form.keys)} "
                f"Fix: its keys are {', '.join(form.keys)}."
            )
    missing = [key for key in form.required if key not in said]
    if missing:
        raise ConfigError(f"`{name}` needs the key {missing[0]!r}. Fix: add `{missing[0]}: …`.")
    words = {key: _word(key, value) for key, value in said.items() if key != "times"}
    return _built(name, words, said.get("times", 1))


def _built(name: str, words: Mapping[str, str], times: object) -> TemporalRule:
    what, reason = words[name], words.get("reason", "")
    match name:
        case "never":
            return Never(what, words.get("before", ""), reason)
        case "only":
            return OnlyAfter(what, words["after"], words.get("since", ""), reason)
        case "always":
            return Followed(what, words["followed_by"], reason)
        case _:
            # What the file says is looked at by the rule itself.
            return AtMost(what, cast("int", times), words.get("per", ""), reason)


def _mapping(entry: object) -> Mapping[str, object]:
    if not isinstance(entry, Mapping):
        raise ConfigError(
            f"a rule is a mapping; found {entry!r}. Fix: write `{{never: deploy, before: review}}`."
        )
    said = cast("Mapping[object, object]", entry)  # isinstance cannot tell what is in it.
    for key in said:
        if not isinstance(key, str):
            raise ConfigError(f"a rule's keys are words; found {key!r}. Fix: quote it.")
    return cast("Mapping[str, object]", said)  # The line above has looked at each.


def _form_of(said: Mapping[str, object]) -> str:
    forms = [key for key in said if key in _FORMS]
    if len(forms) == 1:
        return forms[0]
    known = ", ".join(_FORMS)
    if forms:
        raise ConfigError(
            f"a rule has one of {known}; found {', '.join(forms)}. Fix: write {len(forms)} rules."
        )
    found = ", ".join(map(repr, said)) or "nothing"
    hint = nearest(next(iter(said), ""), _FORMS)
    raise ConfigError(f"a rule has one of {known}; found {found}.{hint}")


def _word(key: str, value: object) -> str:
    if not isinstance(value, str) or not value:
        raise ConfigError(
            f"`{key}` is text; found {value!r}. Fix: write a word, quoted if need be."
        )
    return value


def _data(rule: TemporalRule) -> RuleData:
    match rule:
        case Never(what, before, reason):
            return {"never": what, "before": before, "reason": reason}
        case AtMost(what, 1, per, reason):
            return {"at_most_once": what, "per": per, "reason": reason}
        case AtMost(what, times, per, reason):
            return {"at_most": what, "times": times, "per": per, "reason": reason}
        case OnlyAfter(what, after, since, reason):
            return {"only": what, "after": after, "since": since, "reason": reason}
        case Followed(what, by, reason):
            return {"always": what, "followed_by": by, "reason": reason}
        case _:
            assert_never(rule)
