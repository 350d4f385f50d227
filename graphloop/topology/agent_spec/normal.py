"""The normal form of a document of Open Agent Spec: equal for two that say the same.

Where a component stands, the order of keys, and what is left out because it says nothing new make
no difference: another tool may have read the document and written it again. Two components of one
id that differ are a mistake wherever they stand: which of them counts would depend on who reads.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias, final

from ..compose import Fields, Items, Scalar, Value
from ..problems import Complaints
from ..scalars import Plain
from .keys import REFERENCE, REFERENCED, ROOT_KEYS

__all__ = ["Named", "Normal", "difference", "normal_form"]

Normal: TypeAlias = "Plain | Named | list[Normal] | dict[str, Normal]"

DEFAULTS: Final[Mapping[str, object]] = {
    "requires_confirmation": False,
    "human_in_the_loop": True,
    "api_type": "chat_completions",
    "branch_name": "next",
}
IMPLIED: Final = {("OpenAiConfig", key): "openai" for key in ("provider", "api_provider")}
METADATA: Final = "metadata"


@final
@dataclass(frozen=True)
class Named:
    """A component, where it stands or is referred to."""

    id: str


def normal_form(tree: Value, complaints: Complaints) -> dict[str, Normal]:
    """Return the components of a document by their ids, the document itself as an empty id.

    Args:
        tree: the document.
        complaints: takes what is wrong with its ids.
    """
    form = _Form(complaints)
    said = form.reduced(_without(tree, ROOT_KEYS))
    return {**form.found, "": said}


def difference(one: Mapping[str, Normal], other: Mapping[str, Normal]) -> str:
    """Return the id of a component in which two documents differ; empty if they do not."""
    for key in (*one, *other):
        if key not in one or key not in other or one[key] != other[key]:
            return key or "the document"
    return ""


@final
class _Form:
    """The components of a document, while they are gathered."""

    def __init__(self, complaints: Complaints) -> None:
        self.found: dict[str, Normal] = {}
        self._complaints = complaints

    def reduced(self, value: Value) -> Normal:
        match value:
            case Scalar():
                return value.value
            case Items():
                return [self.reduced(one) for one in value.items]
            case Fields():
                return self._fields(value)

    def _fields(self, value: Fields) -> Normal:
        entries = {one.key: one.value for one in value.entries}
        self._apart(entries.get(REFERENCED))
        target = _word(entries.get(REFERENCE))
        if target and len(entries) == 1:
            return Named(target)
        kind, own = _word(entries.get("component_type")), _word(entries.get("id"))
        if not (kind and own):
            # Not a component: a property, metadata. All of it counts.
            return {key: self._entry(key, one) for key, one in entries.items()}
        said = {key: self._entry(key, one) for key, one in entries.items() if key != REFERENCED}
        kept = {key: one for key, one in said.items() if not _says_nothing(kind, key, one)}
        if self.found.setdefault(own, kept) != kept:
            found = f"two components have the id {own!r:.80}, and differ."
            fix = "give one of them another id, or make them equal."
            self._complaints.note(value.mark, found, fix)
        return Named(own)

    def _entry(self, key: str, value: Value) -> Normal:
        # What another tool noted may hold anything, and nothing there is a component.
        return _plain(value) if key == METADATA else self.reduced(value)

    def _apart(self, value: Value | None) -> None:
        for one in value.entries if isinstance(value, Fields) else ():
            said = self.reduced(one.value)
            if isinstance(said, Named) and said.id != one.key:
                found = f"the component {one.key!r:.80} has the id {said.id!r:.80}."
                self._complaints.spoil(one.mark, found, "give both the same.")


def _plain(value: Value) -> Normal:
    match value:
        case Scalar():
            return value.value
        case Items():
            return [_plain(one) for one in value.items]
        case Fields():
            return {one.key: _plain(one.value) for one in value.entries}


def _without(tree: Value, keys: tuple[str, ...]) -> Value:
    if not isinstance(tree, Fields):
        return tree
    return Fields(tuple([one for one in tree.entries if one.key not in keys]), tree.mark)


def _says_nothing(kind: str, key: str, value: Normal) -> bool:
    if value is None or value in ([], {}):
        return True
    if (kind, key) in IMPLIED:
        return IMPLIED[kind, key] == value
    return key in DEFAULTS and DEFAULTS[key] == value and type(value) is type(DEFAULTS[key])


def _word(value: Value | None) -> str:
    held = value.value if isinstance(value, Scalar) else ""
    return held if isinstance(held, str) else ""
