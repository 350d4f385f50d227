"""Fields: items that nodes read from the user's state, and results that they write into it.

A node names a field, and the run calls one of these callbacks. The journal keeps what they return:
the items that a map begins with, and the new state. A replay calls none of them again.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Annotated, Any, Final, cast, final, get_args, get_origin

import pydantic
from msgspec import Struct
from pydantic_core import to_json

from ..errors import ConfigError
from ..events import ItemsListed, NodeReturned
from ..outcomes import Accepted, Answered
from ..run import Run
from ..turn import BranchRun
from .field_values import adapter_of, annotation_of, bare_type, field_value, with_value, word_for
from .state import fields_of, lent

__all__ = [
    "FIELD",
    "Edited",
    "ItemsOf",
    "PromptsOf",
    "Reduce",
    "ResultsInto",
    "Shown",
    "field_callback",
    "item_text",
    "list_flaw",
    "reduce",
    "reduced_fields",
    "reducer_of",
    "with_result",
]

FIELD: Final = "field:"
"""The prefix of the names of these callbacks, which no caller has to give."""

LISTS: Final = (list, tuple, Sequence)


@final
class Reduce(Struct, frozen=True):
    """The function that combines a field's value with a new result; `reduce` makes it."""

    function: Callable[[Any, Any], object]


def reduce(function: Callable[[Any, Any], object]) -> Reduce:
    """Return the mark of a state's field whose results are combined instead of replaced.

        @dataclass(frozen=True)
        class Article:
            notes: Annotated[list[str], reduce(operator.add)]

    A node that writes results into the field calls `function(value, results)`. Several branches of
    a `parallel` may write into such a field: their results are combined in branch order.

    Args:
        function: a pure function of the field's value and the results, such as `operator.add`.

    Raises:
        ConfigError: the function does not take two arguments.
    """
    with suppress(ValueError):  # Some builtins have no readable signature.
        try:
            inspect.signature(function).bind(None, None)
        except TypeError as error:
            raise ConfigError(
                f"`reduce`: expected a function of the field's value and the results, found "
                f"{function!r:.80} ({error}). Fix: give it two positional parameters"
            ) from error
    return Reduce(function)


def reduced_fields(kind: object) -> frozenset[str]:
    """Return the names of the fields of a state type that have a `reduce`.

    Without annotations that can be resolved there are none: a run would be refused there.
    """
    names = fields_of(kind) or frozenset()
    try:
        return frozenset(
            [name for name in names if reducer_of(annotation_of(kind, name)) is not None]
        )
    except ConfigError:
        return frozenset()


def field_callback(name: str, kind: object) -> ItemsOf | ResultsInto | Shown | Edited:
    """Return the callback that a node names, such as `field:items:FIELD` or `field:into:FIELD`.

    Args:
        name: the name of the callback.
        kind: the type of the state; None if it is unknown.
    """
    form, _, field = name.removeprefix(FIELD).partition(":")
    match form:
        case "items":
            return ItemsOf(field)
        case "shown":
            return Shown(field)
        case "edited":
            return Edited(field, kind)
        case _:
            return ResultsInto(field, kind)


@final
class ItemsOf(Struct, frozen=True):
    """Lists the items of a map, from a field of the state or by the user's own function.

    Args:
        items: the name of the field, or a pure function of the state that returns the items.
        prompt: a pure function that makes the prompt of an item; by default its text.
    """

    items: str | Callable[[Any], object]
    prompt: Callable[[Any], object] | None = None

    def __call__(self, run: Run[Any]) -> ItemsListed:
        """Return the prompt of each item.

        Raises:
            ConfigError: the state has no such field, or it holds no list.
        """
        state = lent(run.state)
        found = field_value(state, self.items) if isinstance(self.items, str) else self.items(state)
        if not isinstance(found, Sequence) or isinstance(found, str | bytes):
            raise ConfigError(
                f"{self._place}: expected a list of items, found {found!r:.80}. Fix: have the "
                "state hold a list or a tuple there"
            )
        return ItemsListed(
            tuple([self._item_text(item) for item in cast("Sequence[object]", found)])
        )

    @property
    def _place(self) -> str:
        return f"`items` {self.items!r}" if isinstance(self.items, str) else "`items`"

    def _item_text(self, item: object) -> str:
        text = item_text(item) if self.prompt is None else self.prompt(item)
        if isinstance(text, str) and text.strip():
            return text
        raise ConfigError(
            f"{self._place}: expected a text for each item, found {text!r:.80} for {item!r:.80}. "
            "Fix: leave empty items out, or give `prompt` a function that returns a text"
        )


@final
class Shown(Struct, frozen=True):
    """Shows a field of the state to a person.

    Args:
        field: the name of the field.
    """

    field: str

    def __call__(self, run: Run[Any]) -> ItemsListed:
        """Return the text of the field.

        Raises:
            ConfigError: the state has no such field.
        """
        return ItemsListed((item_text(field_value(lent(run.state), self.field)),))


@final
class Edited(Struct, frozen=True):
    """Writes the text that a person has approved into a field of the state.

    Args:
        field: the name of the field.
        kind: the type of the state; None if it is unknown.
    """

    field: str
    kind: object = None

    def __call__(self, run: Run[Any]) -> NodeReturned:
        """Return the new state.

        Raises:
            ConfigError: the text does not fit the type of the field.
        """
        assert run.record.approved is not None, "a person has approved"
        state: object = lent(run.state)
        kind = type(state) if self.kind in {None, Any} else self.kind
        bare, text = bare_type(annotation_of(kind, self.field)), run.record.approved[1]
        if bare is str or bare is Any or bare is object:
            value: object = text
        else:
            try:
                value = adapter_of(bare).validate_json(text)
            except pydantic.ValidationError as error:
                found = error.errors(include_url=False, include_context=False)[0]["msg"]
                raise ConfigError(
                    f"`field` {self.field!r}: expected JSON of type {word_for(bare)}, found "
                    f"{text!r:.80} ({found}). Fix: edit the text that was shown"
                ) from error
        return NodeReturned(Accepted.__name__, with_value(state, self.field, value), changed=True)


@final
class PromptsOf(Struct, frozen=True):
    """Lists the prompts of a parallel's branches, made from the state by the user's functions.

    Args:
        prompts: for each branch, a pure function of the state, or the prompt itself.
    """

    prompts: tuple[str | Callable[[Any], object], ...]

    def __call__(self, run: Run[Any]) -> ItemsListed:
        """Return the prompt of each branch.

        Raises:
            ConfigError: a function returns no text.
        """
        return ItemsListed(tuple([self._call_prompt(prompt, run) for prompt in self.prompts]))

    def _call_prompt(self, prompt: str | Callable[[Any], object], run: Run[Any]) -> str:
        text = prompt if isinstance(prompt, str) else prompt(lent(run.state))
        if isinstance(text, str):
            return text
        raise ConfigError(
            f"`prompt`: expected a function that returns a text, found {text!r:.80}. Fix: return "
            "the text that the agent reads"
        )


def item_text(item: object) -> str:
    """Return an item as an agent reads it: a text as it is, every other value as JSON."""
    return item if isinstance(item, str) else to_json(item).decode()


@final
class ResultsInto(Struct, frozen=True):
    """Writes the results of a turn's branches into the state, in branch order.

    Args:
        field: the field that gets all results as a list; empty if each branch has its own field.
        kind: the type of the state; None if it is unknown.
    """

    field: str
    kind: object = None

    def __call__(self, run: Run[Any]) -> NodeReturned:
        """Return the new state.

        Raises:
            ConfigError: a result does not fit the type of its field, or a reducer failed.
        """
        branches = [branch for branch in run.turn.branches if branch.status == "ok"]
        state: object = lent(run.state)
        kind = type(state) if self.kind in {None, Any} else self.kind
        if self.field:
            state = self._combine_branches(state, kind, branches, run.node)
        else:
            for branch in branches:
                if branch.into:
                    state = with_result(state, kind, branch.into, branch.content, branch.name)
        return NodeReturned(Answered.__name__, state, changed=True)

    def _combine_branches(
        self, state: object, kind: object, branches: Sequence[BranchRun], node: str
    ) -> object:
        origin, each = _listed_type(kind, self.field)
        results = [_decode_result(each, one.content, self.field, one.name) for one in branches]
        made: object = tuple(results) if origin is tuple else results
        return _combine(state, self.field, annotation_of(kind, self.field), made, node)


def _listed_type(kind: object, field: str) -> tuple[object, object]:
    """Return the type of a field that holds a list or a tuple, and the type of one item.

    Args:
        kind: the type of the state.
        field: the name of the field.

    Raises:
        ConfigError: the field holds another type.
    """
    if flaw := list_flaw(kind, field):
        found, fix = flaw
        raise ConfigError(f"{found} Fix: {fix}")
    bare = bare_type(annotation_of(kind, field))
    inner = get_args(bare)
    return get_origin(bare) or bare, inner[0] if inner else Any


def list_flaw(kind: object, field: str) -> tuple[str, str] | None:
    """Return what is wrong with an `into` field that has to hold a list, and the fix; or None."""
    bare = bare_type(annotation_of(kind, field))
    if bare is Any or (get_origin(bare) or bare) in LISTS:
        return None
    return (
        "`into`: expected a field that holds a list or a tuple, found "
        f"{field!r} of type {word_for(bare)}.",
        "make it list[…], the type of one result in the brackets.",
    )


def with_result(state: object, kind: object, field: str, content: str, source: str) -> object:
    """Return the state with one result in a field, combined by the field's reducer if it has one.

    Args:
        state: the state; it is not changed.
        kind: the type of the state.
        field: the name of the field.
        content: the result: JSON for the value of an `output_type`, or text.
        source: the agent or branch that gave the result, for messages.

    Raises:
        ConfigError: the result does not fit the type of the field, or the state has no such field.
    """
    annotation = annotation_of(kind, field)
    bare = bare_type(annotation)
    inner = get_args(bare)
    if reducer_of(annotation) is None or (get_origin(bare) not in LISTS) or not inner:
        return _combine(
            state, field, annotation, _decode_result(bare, content, field, source), source
        )
    try:
        made = _decode_result(bare, content, field, source)
    except ConfigError:
        one = _decode_result(inner[0], content, field, source)
        made = (one,) if get_origin(bare) is tuple else [one]
    return _combine(state, field, annotation, made, source)


def _combine(state: object, field: str, annotation: object, result: object, source: str) -> object:
    """Return the state with a result of a node or branch (`source`) combined into a field."""
    reducer = reducer_of(annotation)
    if reducer is None:
        return with_value(state, field, result)
    place, kind = f"{source!r}: the reducer of field {field!r}", bare_type(annotation)
    try:
        combined = reducer.function(field_value(state, field), result)
    except Exception as error:
        raise ConfigError(
            f"{place} raised {type(error).__name__}: {error}. Fix: give the field a default that "
            "the reducer can begin with"
        ) from error
    try:
        adapter_of(kind).validate_python(combined)
    except pydantic.ValidationError as error:
        raise ConfigError(
            f"{place}: expected a return value of type {word_for(kind)}, found {combined!r:.80}. "
            "Fix: have it return the new value of the field"
        ) from error
    return with_value(state, field, combined)


def _decode_result(kind: object, content: str, field: str, source: str) -> object:
    """Return a result as a value of a field's type: a text as it is, every other type from JSON."""
    if kind is str or kind is Any or kind is object:
        return content
    adapter = adapter_of(kind)
    try:
        return adapter.validate_json(content)
    except pydantic.ValidationError as error:
        try:
            return adapter.validate_python(content)
        except pydantic.ValidationError:
            found = error.errors(include_url=False)[0]["msg"]
            raise ConfigError(
                f"`into` {field!r}: expected a result of type {word_for(kind)}, found "
                f"{content!r:.80} of {source!r} ({found}). Fix: give the agent "
                f"output_type={word_for(kind)}"
            ) from error


def _annotations_in(annotation: object) -> Iterator[object]:
    if get_origin(annotation) is Annotated:
        inner, *notes = get_args(annotation)
        yield from notes
        yield from _annotations_in(inner)


def reducer_of(annotation: object) -> Reduce | None:
    """Return the `reduce` of a field's annotation; None without one."""
    return next((note for note in _annotations_in(annotation) if isinstance(note, Reduce)), None)
