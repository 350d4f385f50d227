"""The items of a list that a model wrote: the lines of a text, or a JSON array.

Read strictly. A list that has to be guessed at could cause work that is not in it.
"""

from __future__ import annotations

import json
import re
from typing import Final, Literal, NoReturn, TypeAlias, cast

__all__ = ["ItemForm", "read_items"]

ItemForm: TypeAlias = Literal["json", "lines"]

FENCED: Final = re.compile(r"```[a-zA-Z]*\n(.*)\n```", re.DOTALL)
BULLET: Final = re.compile(r"(?:[-*•]|\d{1,4}[.)])\s+")

ASKED: Final[dict[ItemForm, str]] = {
    "json": "Answer with nothing but a JSON array of texts",
    "lines": "Answer with one item a line",
}


def read_items(text: str, form: ItemForm, most: int) -> tuple[str, ...] | str:
    """Return the items of a list, or its fault, for its author to read.

    An item of a JSON array that is not a text is an item as JSON. A list alone in a code block is
    read; list marks before lines are no part of them; empty items are refused.

    Args:
        text: the list.
        form: how it is written.
        most: how many items it may have.
    """
    fenced = FENCED.fullmatch(text.strip())
    body = (fenced.group(1) if fenced else text).strip()
    items = _lines(body) if form == "lines" else _array(body)
    demand = f"{ASKED[form]}, at least 1 and at most {most}."
    if items is None:
        return f"This is no list that can be read. {demand}"
    if not items:
        return f"The list is empty. {demand}"
    if not all(item.strip() for item in items):
        return f"An item of the list is empty. {demand}"
    if len(items) > most:
        return f"The list has {len(items)} items. {demand}"
    return items


def _lines(body: str) -> tuple[str, ...]:
    lines = [line.strip() for line in body.splitlines()]
    return tuple([BULLET.sub("", line, count=1) for line in lines if line])


def _array(body: str) -> tuple[str, ...] | None:
    try:
        value: object = json.loads(body, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, list):
        return None
    items = cast("list[object]", value)  # isinstance cannot tell what is in it.
    return tuple([one if isinstance(one, str) else json.dumps(one) for one in items])


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no JSON")
