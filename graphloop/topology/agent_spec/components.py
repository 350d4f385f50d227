"""Components: a document of Open Agent Spec as what it consists of, each with its place.

Components stand where they are used, or once among the `$referenced_components`, named by their
ids. Nothing is made of a component that nobody asks for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, final

from ..compose import Entry, Fields, Items, Scalar, Value
from ..forms import Flag, Reading, Text
from ..problems import Mark, Misread
from ..record import mapping_of, refuse_unknown
from .keys import KEYS, REFERENCE, REFERENCED, ROOT_KEYS, VERSIONS

__all__ = ["Component", "Components", "defaults_of", "word"]

ID_MAX: Final = 500


@final
@dataclass(frozen=True)
class Component:
    """One component.

    Attributes:
        kind: its `component_type`.
        id: its id.
        name: its name.
        mark: where it stands.
        entries: what it says, by key.
    """

    kind: str
    id: str
    name: str
    mark: Mark
    entries: Mapping[str, Entry]

    def value(self, key: str) -> Value | None:
        """Return what stands at a key; None for nothing and for null."""
        entry = self.entries.get(key)
        if entry is None or (isinstance(entry.value, Scalar) and entry.value.value is None):
            return None
        return entry.value

    def says(self, key: str) -> bool:
        """Whether anything stands at a key: not null, and no empty list or mapping."""
        match self.value(key):
            case None:
                return False
            case Items(items=held):
                return bool(held)
            case Fields(entries=held):
                return bool(held)
            case Scalar():
                return True


@final
class Components:
    """The components of one document.

    Args:
        tree: the document.
        to: takes what is wrong with it.

    Attributes:
        branches: what nodes are left by, as far as somebody asked; by the identity of each.
        used: the ids of the components that are referred to, as far as they were read.
    """

    def __init__(self, tree: Value, to: Reading) -> None:
        self.branches: dict[int, Mapping[str, None]] = {}
        self._to = to
        self._tree = tree
        self._referenced: dict[str, Entry] = {}
        self._read: dict[str, Component] = {}
        self._made: dict[int, Component] = {}
        self._titles: dict[tuple[int, str], Mapping[str, Fields]] = {}
        self.used: set[str] = set()
        for one in _referenced(tree):
            self._keep(one)

    @property
    def referenced(self) -> Mapping[str, Entry]:
        """The components that stand apart, by their ids."""
        return self._referenced

    def root(self) -> Component:
        """Return the component that the document is.

        Raises:
            Misread: it is none, or of a version that is not known.
        """
        entries = {one.key: one for one in mapping_of(self._tree, "a document", self._to)}
        version = entries.get("agentspec_version")
        complaints = self._to.complaints
        if version is None:
            fix = f"add `agentspec_version: {VERSIONS[-1]}`."
            raise complaints.misread(
                self._tree.mark, "the document lacks `agentspec_version`.", fix
            )
        found = Text().read(version.value, self._to)
        if found not in VERSIONS:
            raise complaints.misread(
                version.value.mark,
                f"versions {', '.join(VERSIONS)} of Agent Spec are read here; found {found!r:.40}.",
                "write the document in one of these.",
            )
        return self._component(self._tree, root=True)

    def at(self, component: Component, key: str) -> Component:
        """Return the component that stands at a key of another.

        Raises:
            Misread: there is none.
        """
        value = component.value(key)
        if value is None:
            raise self._lacks(component, key)
        return self.of(value)

    def of(self, value: Value) -> Component:
        """Return the component that a value is, or refers to.

        Raises:
            Misread: it is none.
        """
        if not isinstance(value, Fields) or REFERENCE not in {one.key for one in value.entries}:
            return self._component(value)
        refuse_unknown("a reference", {REFERENCE: None}, value.entries, self._to)
        target = next(one for one in value.entries if one.key == REFERENCE).value
        wanted = Text(filled=True).read(target, self._to)
        if wanted not in self._referenced:
            hint = self._to.complaints.nearest(wanted, self._referenced)
            found = f"no component {wanted!r:.80} stands in `{REFERENCED}`.{hint}"
            raise self._to.complaints.misread(target.mark, found, "add it, or mend the reference.")
        self.used.add(wanted)
        if wanted not in self._read:
            one = self._component(self._referenced[wanted].value)
            if one.id != wanted:
                entry = self._referenced[wanted]
                found = f"the component {wanted!r:.80} has the id {one.id!r:.80}."
                raise self._to.complaints.misread(entry.mark, found, "give both the same.")
            self._read[wanted] = one
        return self._read[wanted]

    def every(self, component: Component, key: str) -> Iterator[Component]:
        """Yield the components of a list; what cannot be read is noted and left out."""
        for one in self.items(component, key):
            try:
                yield self.of(one)
            except Misread:
                continue

    def items(self, component: Component, key: str) -> tuple[Value, ...]:
        """Return the list at a key; empty where there is none."""
        match component.value(key):
            case None:
                return ()
            case Items(items=held):
                return held
            case other:
                raise self._to.misread(other, f"`{key}` is a list", "write a list.")

    def pairs(self, component: Component, key: str) -> tuple[Entry, ...]:
        """Return the mapping at a key; empty where there is none."""
        value = component.value(key)
        return () if value is None else mapping_of(value, f"`{key}`", self._to)

    def text(self, component: Component, key: str, missing: str | None = None) -> str:
        """Return the text at a key, or what stands for none.

        Raises:
            Misread: something else stands there, or nothing that has to.
        """
        value = component.value(key)
        if value is not None:
            return Text().read(value, self._to)
        if missing is None:
            raise self._lacks(component, key)
        return missing

    def flag(self, component: Component, key: str, *, missing: bool) -> bool:
        """Return the boolean at a key, or what stands for none."""
        value = component.value(key)
        return missing if value is None else Flag().read(value, self._to)

    def titles(self, component: Component, key: str) -> Mapping[str, Fields]:
        """Return the properties at `inputs` or `outputs`, by their titles."""
        place = id(component), key
        if place not in self._titles:
            self._titles[place] = self._titled(component, key)
        return self._titles[place]

    def _titled(self, component: Component, key: str) -> dict[str, Fields]:
        found: dict[str, Fields] = {}
        for one in self.items(component, key):
            entries = mapping_of(one, "a property", self._to)
            title = next((entry for entry in entries if entry.key == "title"), None)
            if title is None:
                fix = "add `title: …`."
                self._to.complaints.note(one.mark, "a property lacks `title`.", fix)
                continue
            found[Text(filled=True).read(title.value, self._to)] = Fields(entries, one.mark)
        return found

    def _lacks(self, component: Component, key: str) -> Misread:
        found = f"{component.kind} {component.id!r} lacks `{key}`."
        return self._to.complaints.misread(component.mark, found, f"add `{key}`.")

    def _component(self, value: Value, *, root: bool = False) -> Component:
        # The tree outlives its components; what is wrong with one is told once.
        if id(value) not in self._made:
            self._made[id(value)] = self._fresh(value, root=root)
        return self._made[id(value)]

    def _fresh(self, value: Value, *, root: bool) -> Component:
        entries = {one.key: one for one in mapping_of(value, "a component", self._to)}
        said = [self._said(entries, key, value) for key in ("component_type", "id", "name")]
        kind, own, name = said
        if kind in KEYS:
            known = (*KEYS[kind], *(ROOT_KEYS if root else ()))
            listed = tuple(entries.values())
            refuse_unknown(f"{kind} {own!r:.80}", dict.fromkeys(known), listed, self._to)
        return Component(kind, own, name, value.mark, entries)

    def _said(self, entries: Mapping[str, Entry], key: str, value: Value) -> str:
        if key not in entries:
            found = f"a component lacks `{key}`."
            raise self._to.complaints.misread(value.mark, found, f"add `{key}: …`.")
        said = Text(filled=True).read(entries[key].value, self._to)
        if len(said) > ID_MAX:
            found = f"`{key}` has at most {ID_MAX} characters; found {len(said)}."
            raise self._to.complaints.misread(entries[key].value.mark, found, "shorten it.")
        return said

    def _keep(self, entry: Entry) -> None:
        if entry.key in self._referenced:
            line = self._referenced[entry.key].mark.line
            found = f"the component {entry.key!r:.80} stands here twice, first on line {line}."
            self._to.complaints.note(entry.mark, found, "remove one of the two.")
            return
        self._referenced[entry.key] = entry


def _referenced(tree: Value) -> Iterator[Entry]:
    """Yield what stands in `$referenced_components`, at any depth but within metadata."""
    waiting = [tree]
    while waiting:
        match waiting.pop():
            case Items(items=held):
                waiting += held
            case Fields(entries=held):
                for one in held:
                    if one.key == REFERENCED and isinstance(one.value, Fields):
                        yield from one.value.entries
                    if one.key != "metadata":
                        waiting.append(one.value)
            case Scalar():
                pass


def defaults_of(properties: Mapping[str, Fields]) -> dict[str, str]:
    """Return the defaults of properties that have one which says something, by their titles."""
    held = {
        title: word(entry.value)
        for title, one in properties.items()
        for entry in one.entries
        if entry.key == "default"
    }
    return {title: said for title, said in held.items() if said.strip()}


def word(value: object) -> str:
    """Return the text that stands somewhere; empty for everything else."""
    return str(getattr(value, "value", ""))
