"""The options of runs and agents: each defined once, checked by name, and taking effect.

`generate_text`, `stream_chat` and `Agent` take all of them; `Graph.run` takes `RunOptions`, since
a topology of one's own says the rest in its nodes.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, TypeAlias, TypedDict, cast

from ..drivers.ports import Approval, Price
from ..errors import ConfigError, nearest
from ..limits import is_number, whole_number
from ..providers.base import Provider
from ..run import StepResult
from ..stop import Condition, StopInfo
from ..stores.base import Store
from ..tools import AnyTool
from ..values import Message, Settings, ToolChoice, ToolSpec, Usage
from .inputs import MessageInput
from .result import Pending

if TYPE_CHECKING:
    # An agent whose model is not asked over HTTP loads no part of that way.
    from ..providers.retries import Retries
    from ..providers.timeouts import Timeouts

__all__ = [
    "AgentOptions",
    "ChoiceInput",
    "Model",
    "RunOptions",
    "StepChanges",
    "StepInfo",
    "StopInput",
    "Tools",
    "check_kinds",
    "check_model",
    "choice_of",
    "known_tools",
    "reject_unknown",
    "settings_of",
]

Model: TypeAlias = str | Provider
Tools: TypeAlias = (
    Sequence[AnyTool | Callable[..., object]] | Mapping[str, AnyTool | Callable[..., object]]
)
ChoiceInput: TypeAlias = Literal["auto", "required", "none"] | ToolChoice
Predicate: TypeAlias = Callable[[StopInfo], bool | Awaitable[bool]]
StopInput: TypeAlias = Condition | Predicate | Sequence[Condition | Predicate]


FUNCTIONS: Final = ("approve_tool_call", "clock", "on_step_finish", "prepare_step", "price")
TEXTS: Final = ("api_key", "base_url", "instructions", "name")
MODES: Final = ("auto", "required", "none")


@dataclass(frozen=True, slots=True)
class StepInfo:
    """What a `prepare_step` function is told: the turn's index, its messages, usage so far."""

    step_index: int
    messages: Sequence[Message]
    usage: Usage


@dataclass(frozen=True, slots=True)
class StepChanges:
    """What a `prepare_step` function may change; None leaves a thing as it is.

    `messages` becomes the history of this and all later turns. `active_tools` (instead of the
    agent's), `tool_choice` and `model` hold for this turn only. The choice, the agent's too, must
    be possible among the tools of the turn.
    """

    messages: Sequence[MessageInput] | None = None
    active_tools: Sequence[str] | None = None
    tool_choice: ChoiceInput | None = None
    model: Model | None = None


class RunOptions(TypedDict, total=False):
    """Options of every run.

    `tools`: functions, `Tool` objects, or a mapping of name to either.
    `instructions`: the system message, put before the conversation.
    `max_tokens`, `temperature`, `top_p`, `stop_sequences`, `seed`: sampling; unset is the
    server's default.
    `provider_options`: JSON fields merged into each request body as they are.
    `approve_tool_call`: decides about calls of tools that need approval: True, False, or an
    `Approval`; without it such a call parks the run.
    `on_step_finish`: told of each finished turn; what it raises becomes a warning.
    `store`: where the journal goes: a `Store`, or a directory for JSON-lines files; without one
    it is kept in memory.
    `api_key`, `base_url`: for a model given by name; unset comes from the environment.
    `timeouts`, `retries`: for a model given by name; the limits of one model call, and how often
    it may be sent.
    `price`: the cost of a reply in US dollars; default is the table of genai-prices.
    `clock`: seconds since the epoch; the only time that a run sees.
    """

    tools: Tools
    instructions: str | None
    max_tokens: int | None
    temperature: float | None
    top_p: float | None
    stop_sequences: Sequence[str]
    seed: int | None
    provider_options: Mapping[str, object]
    approve_tool_call: Callable[[Pending], bool | Approval | Awaitable[bool | Approval]] | None
    on_step_finish: Callable[[StepResult], object] | None
    store: Store | str | None
    api_key: str | None
    base_url: str | None
    timeouts: Timeouts | None
    retries: Retries | None
    price: Price
    clock: Callable[[], float]


class AgentOptions(RunOptions, total=False):
    """Options of the standard loop, beside those of every run.

    `name`: the agent's name in journals and diagrams (default "agent").
    `max_steps`: how many turns at most (default 20, at least 1).
    `stop_when`: stop conditions (`graphloop.stop`) or predicates over `StopInfo`; any one stops.
    `max_consecutive_tool_errors`: in how many steps in a row one tool may only fail (default 3).
    `max_tool_concurrency`: how many tools of a turn may run at once (default 5).
    `tool_choice`: auto, required, none, or a `ToolChoice` naming one tool; holds for every turn.
    `active_tools`: the only tools that are offered and can run.
    `prepare_step`: called before every turn; returns `StepChanges` or None.
    """

    name: str
    max_steps: int
    stop_when: StopInput
    max_consecutive_tool_errors: int
    max_tool_concurrency: int
    tool_choice: ChoiceInput
    active_tools: Sequence[str] | None
    prepare_step: Callable[[StepInfo], StepChanges | Awaitable[StepChanges | None] | None] | None


def reject_unknown(given: Iterable[str], options: type[object], place: str) -> None:
    """Raise for every option name that is none.

    Raises:
        ConfigError: naming each, with the nearest that exists.
    """
    known = options.__annotations__
    unknown = [name for name in given if name not in known]
    if unknown:
        found = "; ".join(f"{name!r}.{nearest(name, known)}" for name in unknown)
        raise ConfigError(f"{place} has no option {found} It takes {', '.join(sorted(known))}")


def check_kinds(options: Mapping[str, object]) -> None:
    """Refuse an option of the wrong kind before anything is asked.

    Raises:
        ConfigError: a function is none, a text is none, or the store is none.
    """
    for name in FUNCTIONS:
        value = options.get(name)
        if value is not None and not callable(value):
            raise ConfigError(f"`{name}` is a function; found {value!r:.80}")
    for name in TEXTS:
        value = options.get(name)
        if value is not None and not isinstance(value, str):
            raise ConfigError(f"`{name}` is a string; found {value!r:.80}")
    for name in ("clock", "name"):
        if name in options and options[name] is None:
            raise ConfigError(f"`{name}` cannot be None: leave it out for the default")
    store = options.get("store")
    if store is not None and not isinstance(store, str | Path):
        _check_seam("store", store, ("append", "load", "runs"), "a Store or a directory")


def check_model(model: object) -> None:
    """Refuse what is no model, before it is looked up or asked.

    Raises:
        ConfigError: it is neither a string nor a provider.
    """
    if not isinstance(model, str):
        expected = "a 'provider:model' string or a provider"
        _check_seam("model", model, ("label", "session", "aclose"), expected)


def _check_seam(option: str, value: object, members: Iterable[str], expected: str) -> None:
    if isinstance(value, type):
        raise ConfigError(f"`{option}` is {expected}; found the class {value.__name__}: make one")
    if not all(hasattr(value, member) for member in members):
        raise ConfigError(f"`{option}` is {expected}; found {value!r:.80}")


def settings_of(options: RunOptions, *, one_at_a_time: bool) -> Settings:
    """Return the sampling settings among the options.

    Raises:
        ConfigError: one has the wrong type or range.
    """
    max_tokens, seed = options.get("max_tokens"), options.get("seed")
    for name in ("temperature", "top_p"):
        value = options.get(name)
        if value is not None and not is_number(value):
            raise ConfigError(f"`{name}` is a finite number; found {value!r}")
    extra = options.get("provider_options")
    if extra is not None and not isinstance(extra, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ConfigError(f"`provider_options` is a mapping; found {extra!r:.80}")
    try:
        text = json.dumps(extra, allow_nan=False) if extra else ""
    except (TypeError, ValueError) as error:
        raise ConfigError(f"`provider_options` holds what JSON cannot: {error}") from error
    return Settings(
        max_tokens=None if max_tokens is None else whole_number("max_tokens", max_tokens),
        temperature=options.get("temperature"),
        top_p=options.get("top_p"),
        stop_sequences=_strings("stop_sequences", options.get("stop_sequences", ())),
        seed=None if seed is None else whole_number("seed", seed, least=-(2**63)),
        parallel_tool_calls=False if one_at_a_time else None,
        options=text,
    )


def _strings(option: str, given: object) -> tuple[str, ...]:
    if isinstance(given, Collection) and not isinstance(given, str | Mapping):
        every = tuple(cast("Collection[object]", given))  # isinstance cannot tell what it holds.
        strings = tuple(one for one in every if isinstance(one, str))
        if len(strings) == len(every):
            return strings
    raise ConfigError(f"`{option}` is a list of strings; found {given!r:.80}")


def known_tools(option: str, given: Sequence[str], tools: Sequence[ToolSpec]) -> tuple[str, ...]:
    """Return tool names that exist.

    Raises:
        ConfigError: one does not; a list that silently offers less would starve the model.
    """
    known = [tool.name for tool in tools]
    names = _strings(option, given)
    for name in names:
        if name not in known:
            raise ConfigError(
                f"`{option}` names {name!r}, which is not among the tools "
                f"({', '.join(known) or 'none'}).{nearest(name, known)}"
            )
    return names


def choice_of(choice: ChoiceInput, tools: Sequence[ToolSpec]) -> ToolChoice:
    """Return a tool choice as a value.

    Raises:
        ConfigError: it is none, or names or requires a tool that is not there.
    """
    if isinstance(choice, str) and choice in MODES:
        choice = ToolChoice(choice)
    if not isinstance(choice, ToolChoice) or choice.mode not in (*MODES, "tool"):  # pyright: ignore[reportUnnecessaryIsInstance]
        mode = getattr(choice, "mode", choice)
        raise ConfigError(
            f"`tool_choice` is one of {', '.join(MODES)}, or ToolChoice('tool', name); "
            f"found {choice!r:.80}.{nearest(str(mode), MODES)}"
        )
    if choice.mode == "tool":
        known_tools("tool_choice", [choice.name], tools)
    elif choice.name:
        raise ConfigError(
            f"`tool_choice` names {choice.name!r}, which has no effect in mode {choice.mode!r}: "
            "say ToolChoice('tool', name)"
        )
    if choice.mode == "required" and not tools:
        raise ConfigError("`tool_choice` is 'required', but there are no tools")
    return choice
