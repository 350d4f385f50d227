"""map_over: a node that runs one agent for each item of a plan, and joins their answers.

The plan is the latest answer, a list of items. For a plan that is unreadable, empty or too long the
node leaves by `Unplanned`, with a note for the model that wrote it. The list is parsed strictly, so
that no item is silently dropped or invented.

With `into`, the items come from a field of the user's state, and the results go into another one,
in the order of the items. The journal keeps the items and each result: a resumed run goes on with
the items that have none.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from typing import Final, Literal, NoReturn, TypeAlias, TypeVar, cast, get_args

from ..contract import Contract
from ..conversation import answer_at_hand, reject_answer
from ..effects import Effect, Invoke, Place, check_place
from ..errors import ConfigError
from ..events import CallbackReturned, Event, Failure, ItemsListed
from ..node_protocol import Leave, Reaction, Wait, outcomes_of
from ..outcomes import Aborted, Answered, Failed, Outcome, Unplanned
from ..run import Ending, EndReason, Run, ended_by
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
    """Run one agent for each item of the latest answer or of the state, several at once.

    Place the node after the node that appended the answer. Lead `Unplanned` to an `append` node,
    which adds the error as a user message. Lead that node to a stop check or a limit.

    With `into`, the node leaves by `Answered` with a new state, and by `Failed` for more items than
    `max_items`. The text of all results is the reply, for an `append` node if one is wanted.

    Args:
        agent: the name of an agent that the run knows.
        max_items: the most items of a plan; a longer plan is refused as a whole.
        items: "json" for an array of texts, "lines" for one item a line; with `into`, the field of
            the state that holds the items.
        into: the field of the state that gets the results as a list; empty for none. The agent's
            `output_type` is the type of one result. A field with a `reduce` keeps its old value.
        prompt: a text that the agent reads before its item.
        join: the answers to wait for, as for `Parallel`; by default "collect", and with `into`
            "fail_fast". With "collect", `into` gets only the results of agents that succeeded.
        reducer: the rule that joins the answers into one text, as for `Parallel`.
        callback: the name of a function that joins the answers instead, and returns `Joined`.
        concurrency: the most agents that run at once.
        conversation: whether an agent reads the conversation before its item.
        name: the node's name.
        place: "anywhere" lets any worker drive a child run, while this run waits parked.

    Raises:
        ConfigError: `agent` is empty, or a join, a reducer, a form, a place or a number is not
            allowed.
    """

    agent: str
    max_items: int
    items: str = "json"
    prompt: str = ""
    join: BranchJoin | None = None
    reducer: str = ""
    callback: str = ""
    concurrency: int = 5
    conversation: bool = False
    name: str = "map_over"
    kind: Literal["graph"] = "graph"
    into: str = ""
    place: Place = "here"

    def __post_init__(self) -> None:
        """Check the fields, and choose the join and its reducer if none is given."""
        super().__post_init__()
        whole_number("max_items", self.max_items)
        whole_number("concurrency", self.concurrency)
        check_place(self.place, f"node {self.name!r}")
        if not self.into and self.items not in get_args(ItemForm):
            raise ConfigError(
                "expected `items` to be 'json' or 'lines', or a field of the state beside `into`, "
                f"found {self.items!r}. Fix: give `into` the field that gets the results"
            )
        if not self.agent:
            raise ConfigError(
                "expected `agent` to name the agent that works on each item, found ''"
            )
        if self.into and self.callback:
            raise ConfigError(
                f"`callback` {self.callback!r} and `into` {self.into!r} both take the results. "
                "Fix: give one of them; a field with a `reduce` combines results by a function"
            )
        join = self.join or ("fail_fast" if self.into else "collect")
        object.__setattr__(self, "join", join)
        reducer = check_join(join, self.reducer, self.callback)
        object.__setattr__(self, "reducer", "" if self.callback else reducer)

    @property
    def outcomes(self) -> frozenset[type[Outcome]]:
        """The outcomes of a fan-out, and `Unplanned` if the items come from the latest answer."""
        return outcomes_of(FanOutOutcome if self.into else MapOverOutcome)

    @property
    def contract(self) -> Contract:
        """Promises for the proofs: it opens a turn, and starts at most `max_items` runs."""
        promised = self._fan_out.contract({self.agent: self.max_items})
        if not self.into:
            return replace(promised, moves={**promised.moves, Unplanned: frozenset({"note"})})
        # A list without items is answered by no run.
        children = [replace(child, needs=0) for child in promised.children]
        return replace(
            promised,
            children=tuple(children),
            functions=(self.lister, *promised.functions),
            reads=frozenset({self.items}) if self.items else None,
            # The node writes the results of all its runs at once: none writes beside another.
            writes={Answered: frozenset({self.into})},
        )

    @property
    def lister(self) -> str:
        """The name of the function that lists the items of the state."""
        return f"field:items:{self.items}" if self.items else f"{self.name}:items"

    @property
    def _fan_out(self) -> FanOut:
        join: BranchJoin = self.join or "collect"
        return FanOut(
            self.name,
            join,
            check_join(join, self.reducer, self.callback),
            f"field:into:{self.into}" if self.into else self.callback,
            self.concurrency,
            alone=not self.conversation,
            place=self.place,
        )

    def enter(self, run: Run[S], /) -> Reaction[S, MapOverOutcome]:
        """Read the plan and start its first items; leave by `Aborted` if the run was stopped."""
        if run.was_stopped:
            return Leave(run, Aborted())
        if self.into:
            return Wait(run, (Invoke(run.next_effect, self.lister),))
        form: ItemForm = "lines" if self.items == "lines" else "json"
        items = read_items(answer_at_hand(run), form, self.max_items)
        if isinstance(items, str):
            return Leave(reject_answer(run, items, self.name), Unplanned())
        return self._fan_out.start(run, tuple([self._branch_for(item) for item in items]))

    def on(
        self, run: Run[S], event: Event, answered: Effect | None, /
    ) -> Reaction[S, MapOverOutcome]:
        """Store an item's answer and start the next item; after the last, join all answers."""
        if isinstance(event, CallbackReturned) and isinstance(event.answer, ItemsListed):
            return self._start_items(run, event.answer.items)
        return self._fan_out.on(run, event, answered)

    def _start_items(self, run: Run[S], items: tuple[str, ...]) -> Reaction[S, MapOverOutcome]:
        """Start the first items of the state's field, if there are not too many of them."""
        if len(items) <= self.max_items:
            return self._fan_out.start(run, tuple([self._branch_for(item) for item in items]))
        found = f"`items` {self.items!r}: expected at most {self.max_items} items, found "
        message = f"node {self.name!r}: {found}{len(items)}. Fix: raise `max_items`, or list fewer"
        failure = Failure("ConfigError", message)
        return Leave(ended_by(run, Ending(EndReason.ERROR, failure=failure)), Failed())

    def _branch_for(self, item: str) -> BranchRun:
        name = item.strip().splitlines()[0]
        if len(name) > NAME_CHARS_MAX:
            name = f"{name[: NAME_CHARS_MAX - 1]}…"
        prompt = f"{self.prompt}\n\n{item}" if self.prompt else item
        return BranchRun(name, self.agent, prompt, into=self.into)


def read_items(text: str, form: ItemForm, most: int) -> tuple[str, ...] | str:
    """Return the items of a plan, or an error message for the model that wrote the plan.

    In a JSON array, an item that is not a text becomes its JSON text. The plan may be a code block
    with nothing around it. List marks before lines are removed. Empty items are refused.

    Args:
        text: the text of the plan.
        form: the form of the list: "json" or "lines".
        most: the most items that are allowed.
    """
    fenced = FENCED.fullmatch(text.strip())
    body = (fenced.group(1) if fenced else text).strip()
    items = _line_items(body) if form == "lines" else _array_items(body)
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


def _line_items(body: str) -> tuple[str, ...]:
    lines = [line.strip() for line in body.splitlines()]
    return tuple([BULLET.sub("", line, count=1) for line in lines if line])


def _array_items(body: str) -> tuple[str, ...] | None:
    try:
        value: object = json.loads(body, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, list):
        return None
    items = cast("list[object]", value)  # isinstance does not check the items' types.
    return tuple([item if isinstance(item, str) else json.dumps(item) for item in items])


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no JSON")
