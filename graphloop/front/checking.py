"""Checking options before anything is asked: names, kinds, words, and what cannot go together."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from time import time
from typing import Final, cast

from ..approvals import secret_of
from ..compaction import Compaction
from ..errors import ConfigError, nearest, not_among
from ..limits import is_number, positive_number, whole_number
from ..model_price import ModelPrice
from ..policy import Policy
from ..spending import Budget
from ..values import Settings, ToolChoice, ToolSpec
from .child import AgentTool
from .options import RunOptions
from .told import ChoiceInput

__all__ = [
    "check_kinds",
    "check_model",
    "check_run_id",
    "choice_from_now",
    "choice_of",
    "clock_of",
    "known_tools",
    "reject_unknown",
    "settings_of",
]

FUNCTIONS: Final = (
    "approve_tool_call",
    "clock",
    "compact",
    "done_when",
    "on_step_finish",
    "prepare_step",
    "price",
    "verify",
)
TEXTS: Final = ("api_key", "base_url", "instructions", "name")
KINDS: Final = {
    "gate": Policy,
    "budget": Budget,
    "compaction": Compaction,
    "prices": Mapping,
    "agents": Mapping,
}
WORDS: Final = {
    "on_bad_history": ("repair", "refuse"),
    "output_mode": ("auto", "native", "tool"),
}
MEMBERS: Final = {"agents": AgentTool, "prices": ModelPrice}
NEVER_NONE: Final = ("agents", "clock", "fallback_models", "name", "prices", "run_ungated")
RUN_ID_CHARS_MAX: Final = 200
MODES: Final = ("auto", "required", "none")
SCOPES: Final = ("every_step", "first_step")


def reject_unknown(given: Iterable[str], options: type[object], place: str) -> None:
    """Raise for every option name that is none.

    Raises:
        ConfigError: naming each, with the nearest that exists.
    """
    known = options.__annotations__
    unknown = [name for name in given if name not in known]
    if unknown:
        found = not_among(unknown, known)
        raise ConfigError(f"{place} has no option {found} It takes {', '.join(sorted(known))}")


def check_run_id(name: str, run_id: str) -> None:
    """Refuse an id that no run can have.

    Raises:
        ConfigError: it is empty, too long or no text, or has a slash or half a surrogate pair.
    """
    if not isinstance(run_id, str):  # pyright: ignore[reportUnnecessaryIsInstance] - users are not checked.
        raise ConfigError(f"`{name}` is some text; found {run_id!r:.80}")
    if not run_id or "/" in run_id:
        raise ConfigError(
            f"`{name}` is some text without a slash, which sets child runs apart; found {run_id!r}"
        )
    if len(run_id) > RUN_ID_CHARS_MAX:
        raise ConfigError(
            f"`{name}` has at most {RUN_ID_CHARS_MAX} characters, since stores make names of it; "
            f"found {len(run_id)}"
        )
    if any("\ud800" <= one <= "\udfff" for one in run_id):
        raise ConfigError(
            f"`{name}` is text that can be written down; found half a surrogate pair in {run_id!r}"
        )


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
    for name in NEVER_NONE:
        if name in options and options[name] is None:
            raise ConfigError(f"`{name}` cannot be None: leave it out for the default")
    _check_words(options)
    _check_values(options)
    store = options.get("store")
    if store is not None and not isinstance(store, str | Path):
        _check_seam("store", store, ("append", "load", "runs"), "a Store or a directory")


def _check_words(options: Mapping[str, object]) -> None:
    for name, words in WORDS.items():
        if name in options and options[name] not in words:
            found = f"{options[name]!r:.80}.{nearest(str(options[name]), words)}"
            raise ConfigError(f"`{name}` is one of {', '.join(words)}; found {found}")
    for name in ("approval_ttl_s", "step_timeout_s"):
        if options.get(name) is not None:
            positive_number(name, options[name])
    whole_number("max_agent_depth", options.get("max_agent_depth", 2), least=0)
    secret_of(cast("str | bytes | None", options.get("approval_secret")))


def _check_values(options: Mapping[str, object]) -> None:
    for name, kind in KINDS.items():
        value = options.get(name)
        if value is not None and not isinstance(value, kind):
            join = (
                ": join policies with `|`" if name == "gate" and isinstance(value, Sequence) else ""
            )
            raise ConfigError(f"`{name}` is a {kind.__name__}; found {value!r:.80}{join}")
    for name, kind in MEMBERS.items():
        for key, value in cast("Mapping[str, object]", options.get(name, {})).items():
            if not isinstance(value, kind):
                expected = f"`{name}[{key!r}]` is of type {kind.__name__}"
                raise ConfigError(f"{expected}; found {value!r:.80}")
    if not isinstance(options.get("run_ungated", False), bool):
        raise ConfigError(f"`run_ungated` is True or False; found {options['run_ungated']!r:.80}")
    fallbacks = options.get("fallback_models", ())
    if not isinstance(fallbacks, Sequence) or isinstance(fallbacks, str):
        raise ConfigError(f"`fallback_models` is a list of models; found {fallbacks!r:.80}")


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


def clock_of(options: RunOptions) -> Callable[[], float]:
    """Return the clock among the options, or the system's; it raises rather than tell no time."""
    given = options.get("clock")
    if given is None:
        return time

    def clock() -> float:
        now: object = given()
        if not is_number(now):
            raise ConfigError(f"`clock` tells the seconds since the epoch; found {now!r:.80}")
        return now

    return clock


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


def choice_from_now(choice: ChoiceInput, tools: Sequence[ToolSpec]) -> ToolChoice:
    """Return a tool choice that is made in the middle of a run.

    Raises:
        ConfigError: as of `choice_of`; or it is for the first step only.
    """
    if isinstance(choice, ToolChoice) and choice.scope == "first_step":
        raise ConfigError(
            "`tool_choice` with scope='first_step' has no effect in the middle of a run: leave the "
            "scope out; prepare_step chooses for its own step, set_params for all later ones"
        )
    return choice_of(choice, tools)


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
    if choice.scope not in SCOPES:
        raise ConfigError(
            f"the scope of `tool_choice` is one of {', '.join(SCOPES)}; "
            f"found {choice.scope!r}.{nearest(str(choice.scope), SCOPES)}"
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
