"""argument_checks: what validators say of arguments beside a JSON Schema."""

from __future__ import annotations

from typing import Annotated

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
