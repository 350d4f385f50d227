"""map_over: an agent for each item of a plan, and their joined answers in the model's place.

The plan is the latest answer. A plan that cannot be read, is empty or is too long leaves by
`Unplanned`, with a note for the model that wrote it: no item is left out in silence, and none is
made up. It is read strictly: a list that has to be guessed at could cause work that is not in it.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from typing import Final, Literal, NoReturn, TypeAlias, TypeVar, cast, get_args

from ..contract import Contract
from ..conversation import answer_at_hand, reject_answer
from ..effects import Effect
from ..errors import ConfigError
from ..events import Event
from ..node_protocol import Leave, Reaction, outcomes_of
from ..outcomes import Aborted, Unplanned
from ..run import Run
from ..spending import whole_number
from ..turn import BranchRun
from .fan_out import FanOut, FanOutOutcome
from .frozen_fields import FrozenFields
from .joins import BranchJoin, check_join

__all__ = ["ItemForm", "MapOver", "MapOverOutcome", "read_items"]

S = TypeVar("S")

MapOverOutcome: TypeAlias = FanOutOutcome | Unplanned

ItemForm: TypeAlias = Literal["json", "lines"]

NAME_CHARS_MAX: Final = 80
FENCED: Final = re.compile(r"```[a-zA-Z]*\n(.*)\n```", re.DOTALL)
BULLET: Final = re.compile(r"(?:[-*•]|\d{1,4}[.)])\s+")

ASKED: Final[dict[ItemForm, str]] = {
    "json": "Answer with nothing but a JSON array of texts",
    "lines": "Answer with one item a line",
}


@dataclass(frozen=True)
class MapOver(FrozenFields):
    """Run one agent for each item of the latest answer, several at once.

    Stands after the node that appended the answer. `Unplanned` goes to an `append` node, which
    adds what is wrong as a user message, and from there to a bound.

    Args:
        agent: the name of the agent among those that the run knows.
        max_items: how many items there may be; a longer plan is not worked on at all.
        items: "json" for an array of texts, "lines" for one item a line.
        prompt: what the agent is told before its item.
        join: what to wait for, as for `Parallel`.
        reducer: how the answers become one, as for `Parallel`.
        callback: the name of a function that joins the answers instead, and returns `Joined`.
        concurrency: how many agents may run at once.
        conversation: whether an agent reads the conversation before its item.
        name: the node's name.

    Raises:
        ConfigError: a join, a reducer or a number that cannot work.
    """

    agent: str
    max_items: int
    items: ItemForm = "json"
    prompt: str = ""
    join: BranchJoin = "collect"
    reducer: str = ""
    callback: str = ""
    concurrency: int = 5
    conversation: bool = False
    name: str = "map_over"
    kind: Literal["graph"] = "graph"
    outcomes = outcomes_of(MapOverOutcome)

    def __post_init__(self) -> None:
        """Refuse a bound that bounds nothing, and choose the reducer."""
        super().__post_init__()
        whole_number("max_items", self.max_items)
        whole_number("concurrency", self.concurrency)
        if self.items not in get_args(ItemForm):
            raise ConfigError(f"`items` are 'json' or 'lines'; found {self.items!r}")
        if not self.agent:
            raise ConfigError("`agent` names the agent that works on each item; found ''")
        reducer = check_join(self.join, self.reducer, self.callback)
        object.__setattr__(self, "reducer", "" if self.callback else reducer)

    @property
    def contract(self) -> Contract:
        """It opens a turn, which no more than `max_items` runs of the agent answer."""
        promised = self._fan_out.contract({self.agent: self.max_items})
        return replace(promised, moves={**promised.moves, Unplanned: frozenset({"note"})})

    @property
    def _fan_out(self) -> FanOut:
        return FanOut(
            self.name,
            self.join,
            check_join(self.join, self.reducer, self.callback),
            self.callback,
            self.concurrency,
            alone=not self.conversation,
        )

    def enter(self, run: Run[S], /) -> Reaction[S, MapOverOutcome]:
        """Read the plan, and start with its first items; a run that was stopped has no plan."""
        if run.was_stopped:
            return Leave(run, Aborted())
        items = read_items(answer_at_hand(run), self.items, self.max_items)
        if isinstance(items, str):
            return Leave(reject_answer(run, items, self.name), Unplanned())
        return self._fan_out.start(run, tuple([self._branch(item) for item in items]))

    def on(
        self, run: Run[S], event: Event, answered: Effect | None, /
    ) -> Reaction[S, MapOverOutcome]:
        """Keep an answer, and start with the next item; or join them."""
        return self._fan_out.on(run, event, answered)

    def _branch(self, item: str) -> BranchRun:
        name = item.strip().splitlines()[0]
        if len(name) > NAME_CHARS_MAX:
            name = f"{name[: NAME_CHARS_MAX - 1]}…"
        prompt = f"{self.prompt}\n\n{item}" if self.prompt else item
        return BranchRun(name, self.agent, prompt)


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
    return tuple([item if isinstance(item, str) else json.dumps(item) for item in items])


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no JSON")
