"""A value of each type that is proven can be made."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date, timedelta
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, NewType
from uuid import UUID

import pytest
from pydantic import BaseModel, TypeAdapter

from graphloop.proofs.samples import sample

Name = NewType("Name", str)


class Color(Enum):
    RED = "red"


class Pair(NamedTuple):
    number: int
    text: str = "x"


@dataclass
class Tree:
    name: Name
    left: Tree | None
    more: list[Tree]
    built: int = field(init=False, default=3)
    size: int = 7


class Model(BaseModel):
    tree: Tree
    told: str = "y"


TYPES: list[Any] = [
    *(None, bool, int, float, str, date, timedelta, UUID, Path, Color, Pair, Tree, Model),
    *(list[int], set[str], frozenset[int], tuple[int, ...], tuple[int, str], dict[str, Pair]),
    *(int | None, Literal["a", "b"], Annotated[int, "seconds"]),
]


@pytest.mark.parametrize("of", TYPES, ids=str)
def test_a_value_is_of_its_type(of: Any) -> None:
    """A sample of something else would prove nothing."""
    TypeAdapter(of).validate_python(sample(of), strict=True)


def test_what_has_a_default_has_it_and_what_is_empty_proves_nothing() -> None:
    """A list of nothing would come back from anywhere."""
    made = sample(Model)

    assert isinstance(made, Model)
    assert ("y", 7, 3) == (made.told, made.tree.size, made.tree.built)
    assert made.tree.more
    assert sample(list[int])


@pytest.mark.parametrize("of", [object, bytes, list, complex])
def test_of_what_is_not_known_there_is_no_value(of: object) -> None:
    """The proof says so, then."""
    with pytest.raises(TypeError, match="no value"):
        sample(of)
