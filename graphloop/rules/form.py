"""Temporal rules as plain data, in the form that a topology file contains.

    - {never: deploy, before: review, reason: a person looks first}
    - {at_most_once: refund, per: approval}
    - {at_most: search, times: 5}
    - {only: merge, after: test, since: edit}
    - {always: deploy, followed_by: verify}

Each rule has a key that names the rule's form. The error for an unknown key suggests a known key.
Reading the data that `rules_to_data` returns gives the same rules again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final, NamedTuple, TypeAlias, assert_never, cast

from ..errors import ConfigError, nearest
from .language import TIMES_MAX, AtMost, Followed, Never, OnlyAfter, Rules, TemporalRule

__all__ = ["RuleData", "rule_schema", "rules_from_data", "rules_to_data"]

RuleData: TypeAlias = dict[str, str | int]
"""A temporal rule as a mapping of plain values, ready for YAML or JSON."""


class _Form(NamedTuple):
    """A form of a temporal rule, such as `never`, and its keys.

    Attributes:
        make: makes the rule from the values of the form's name, its keys, and `reason`, in order.
        required: the keys that a rule of this form must have.
        optional: the keys that it may have, besides `reason`.
    """

    make: Callable[..., TemporalRule]
    required: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()

    @property
    def keys(self) -> tuple[str, ...]:
        return (*self.required, *self.optional, "reason")


def _at_most_once(what: str, per: str, reason: str) -> TemporalRule:
    """Return an `at_most` rule with a limit of 1."""
    return AtMost(what, 1, per, reason)


_FORMS: Final[Mapping[str, _Form]] = {
    "never": _Form(Never, optional=("before",)),
    "at_most_once": _Form(_at_most_once, optional=("per",)),
    "at_most": _Form(AtMost, ("times",), ("per",)),
    "only": _Form(OnlyAfter, ("after",), ("since",)),
    "always": _Form(Followed, ("followed_by",)),
}


def rules_from_data(data: object, place: str = "rules") -> Rules:
    """Return temporal rules from a list of mappings such as `{never: deploy}`.

    Args:
        data: the list, as read from a YAML or JSON file.
        place: the name of the list in messages, such as `rules` in `rules[1]`.

    Raises:
        ConfigError: the data is malformed; the message has every problem with its place.
    """
    if not isinstance(data, list):
        raise ConfigError(
            f"{place}: expected a list of rules, found {data!r}. "
            "Fix: write `- {never: deploy, before: review}`."
        )
    rules: list[TemporalRule] = []
    problems: list[str] = []
    # The cast is needed since isinstance leaves the type of the items unknown.
    for number, entry in enumerate(cast("list[object]", data)):
        try:
            rules.append(_rule_of_mapping(entry))
        except ConfigError as error:
            problems.append(f"{place}[{number}]: {error}")
    if problems:
        raise ConfigError("\n".join(problems))
    return Rules(tuple(dict.fromkeys(rules)))


def rules_to_data(rules: Iterable[TemporalRule]) -> list[RuleData]:
    """Return rules as mappings that `rules_from_data` reads, without empty fields."""
    return [
        {key: value for key, value in _mapping_of_rule(rule).items() if value != ""}
        for rule in rules
    ]


def rule_schema() -> dict[str, object]:
    """Return the JSON Schema of one rule in a topology file, for completion in editors."""
    return {"oneOf": [_form_schema(name, form) for name, form in _FORMS.items()]}


def _form_schema(name: str, form: _Form) -> dict[str, object]:
    """Return the JSON Schema of a rule in one form."""
    word = {"type": "string", "minLength": 1}
    times = {"type": "integer", "minimum": 1, "maximum": TIMES_MAX}
    keys = (name, *form.keys)
    return {
        "type": "object",
        "properties": {key: times if key == "times" else word for key in keys},
        "required": [name, *form.required],
        "additionalProperties": False,
    }


def _rule_of_mapping(entry: object) -> TemporalRule:
    """Return the rule of one mapping; raise ConfigError if the mapping is malformed."""
    if not isinstance(entry, Mapping):
        raise ConfigError(
            f"expected a mapping, found {entry!r}. Fix: write `{{never: deploy, before: review}}`."
        )
    given = cast("Mapping[object, object]", entry)  # isinstance leaves the keys unknown.
    name = _form_of(given)
    form = _FORMS[name]
    for key in given:
        if key not in (name, *form.keys):
            raise ConfigError(
                f"`{name}` has no key {key!r}.{nearest(str(key), form.keys)} "
                f"Fix: its keys are {', '.join(form.keys)}."
            )
    missing = [key for key in form.required if key not in given]
    if missing:
        raise ConfigError(f"`{name}` needs the key {missing[0]!r}. Fix: add `{missing[0]}: …`.")
    return form.make(*[_text_of_key(key, given) for key in (name, *form.keys)])


def _form_of(given: Mapping[object, object]) -> str:
    """Return the one form name among the keys; raise ConfigError for none or several."""
    forms = [name for name in _FORMS if name in given]
    if len(forms) == 1:
        return forms[0]
    found = ", ".join(map(repr, forms or given)) or "nothing"
    hint = "" if forms else nearest(str(next(iter(given), "")), _FORMS)
    fix = f" Fix: write {len(forms)} rules." if forms else ""
    raise ConfigError(f"a rule has exactly one of {', '.join(_FORMS)}, found {found}.{hint}{fix}")


def _text_of_key(key: str, given: Mapping[object, object]) -> object:
    """Return the text of a key, "" if absent; `times` is not checked here but by the rule."""
    value = given.get(key, "")
    if key != "times" and key in given and (not isinstance(value, str) or not value):
        raise ConfigError(
            f"`{key}`: expected text, found {value!r}. Fix: write a word, quoted if need be."
        )
    return value


def _mapping_of_rule(rule: TemporalRule) -> RuleData:
    """Return a rule as a mapping, including empty fields."""
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
