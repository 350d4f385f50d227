"""argument_checks: what validators say of arguments beside a JSON Schema."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from pydantic import AfterValidator, BaseModel, Field, TypeAdapter, model_validator

from graphloop.argument_checks import checks_in, checks_of, readings_in


def small(value: int) -> int:
    return value


class Line(BaseModel):
    count: Annotated[int, AfterValidator(small), AfterValidator(small)]


class Order(BaseModel):
    lines: list[Line] = Field(default_factory=list[Line])
    number: Annotated[int, Field(strict=True)] = 0

    @model_validator(mode="after")
    def whole(self) -> Order:
        return self


def described(kind: type[object]) -> object:
    return TypeAdapter(kind).core_schema


def test_every_function_that_may_refuse_a_value_is_told_once_by_its_field() -> None:
    """However deep it stands; two of one name at one field are two."""
    assert {":whole", "Line.count:small", "Line.count:small (2)"} == {*checks_in(described(Order))}
    assert small is checks_in(described(Line))["Line.count:small"]
    assert {} == checks_in(described(int))


def test_how_values_are_read_is_told_beside_them() -> None:
    """No JSON Schema says that `"5"` is refused, or what makes a default."""
    found = readings_in(described(Order))

    assert found["Order.number:strict"] is True
    assert "Order.lines:default_factory" in found
    assert not set(found) & set(checks_in(described(Order)))


def test_a_class_says_both_if_it_is_a_model() -> None:
    """Other classes have no validators, and a model that is not built yet says nothing."""
    assert {":whole", "Order.number:strict"} <= {*checks_of(Order)}
    assert {} == checks_of(int)
    assert {} == checks_of(BaseModel)


@dataclass
class Amount:
    MOST: ClassVar[int] = 10
    total: int = 1

    def __post_init__(self) -> None:
        assert self.fits()

    def fits(self) -> bool:
        return self.total < self.MOST


class Paid(BaseModel):
    amount: Amount

    def model_post_init(self, context: object) -> None:
        del context


class Made(BaseModel):
    def __init__(self, **given: object) -> None:
        super().__init__(**given)


def test_what_a_class_does_when_it_makes_an_object_may_refuse_it_too() -> None:
    """Its method may call any other, and name any value of the class; fields stand elsewhere."""
    found = checks_in(described(Paid))

    assert {"Paid:init", "Amount:init"} == {*found}
    assert found["Amount:init"] == {
        "MOST": 10,
        "__post_init__": Amount.__post_init__,
        "fits": Amount.fits,
    }
    assert {"Made:init"} == {*checks_in(described(Made))}
    assert "Paid:init" in checks_of(Paid)
