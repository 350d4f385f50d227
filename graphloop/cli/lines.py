"""The lines that a run is told in: calls, results, ends. Colour is a screen's affair."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import TypeVar, cast
from unicodedata import category

from ..drivers.pending import Pending
from ..front.final_answer import FINAL_ANSWER, NOT_TAKEN
from ..front.result import RunResult
from ..naming import turns_direction
from ..providers.base import TextDelta
from ..run import EndReason, Run
from ..stores.base import Ask
from ..values import ToolResult, Usage, UserMessage
from ..views.parts import Part, StepRetry, StepStart, SubAgent, ToolResultPart

__all__ = [
    "ASKED_MAX",
    "Shown",
    "agents_text",
    "ask_text",
    "below",
    "call_in",
    "call_text",
    "clean",
    "counted",
    "edited_text",
    "end_facts",
    "final_answer",
    "injected",
    "mark",
    "one_line",
    "result_text",
    "safe_json",
    "short_ask_text",
    "state_text",
    "time_text",
    "tokens_text",
]

S = TypeVar("S")

ARGUMENTS_MAX = 120
ASKED_MAX = 10_000
"""What somebody is to decide about is told whole."""
RESULT_MAX = 200
UNSAFE = re.compile("[\x7f-\x9f\u2028-\u202e\u2066-\u2069]")
"""Signs that drive a terminal, or turn the direction of text, and that JSON takes unescaped."""
CALL_KEY = re.compile(r"c(\d+)\.(\d+)")


def clean(text: str) -> str:
    """Return `text` as it may be printed: what a model wrote may not drive a terminal.

    Control characters are left out. Those that turn the direction of what follows are written as
    escapes: with them, a call could be made to look like another.
    """
    if text.isprintable():
        return text
    return "".join(map(_clean, text))


def _clean(sign: str) -> str:
    if turns_direction(sign):
        return ascii(sign)[1:-1]
    return sign if sign in "\n\t" or category(sign) != "Cc" else ""


def safe_json(text: str) -> str:
    """Return JSON that means the same, and drives no terminal."""
    return UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def call_text(name: str, arguments: str, length_max: int = ARGUMENTS_MAX) -> str:
    """Return a call as a reader would write it: `get_weather(city="NYC")`."""
    try:
        value: object = json.loads(arguments)
    except ValueError:
        value = arguments
    if isinstance(value, dict):
        named = cast("dict[str, object]", value)  # JSON objects have text keys.
        shown = ", ".join(f"{key}={_json(one)}" for key, one in named.items())
    else:
        shown = arguments
    return f"{one_line(name, ARGUMENTS_MAX)}({one_line(shown, length_max)})"


def edited_text(name: str, arguments: str, length_max: int = ARGUMENTS_MAX) -> str:
    """Return a call as it ran, where an approver has put other arguments in place of its own."""
    return f"{call_text(name, arguments, length_max)} (edited)"


def agents_text(agents: Iterable[str]) -> str:
    """Return what stands before a call that agents below the run have made."""
    return "".join(f"{clean(one)} > " for one in agents)


def below(seen: SubAgent, key: str) -> str:
    """Return the key of a call in a child run as its root run's caller knows it."""
    return "/".join((*seen.path, key))


def one_line(text: str, length_max: int) -> str:
    """Return text on one line, cut to a length."""
    line = " ".join(clean(text).split())
    return line if len(line) <= length_max else f"{line[: length_max - 1]}…"


def result_text(result: ToolResult) -> str:
    """Return what a tool said, shortened to one line."""
    return one_line(result.text, RESULT_MAX) or "(no text)"


def call_in(run: Run[S] | None, key: str, length_max: int = ARGUMENTS_MAX) -> str | None:
    """Return the call of a run that has this key; None if it is not known."""
    found = CALL_KEY.fullmatch(key)
    if run is None or found is None:
        return None
    turn, place = int(found[1]), int(found[2])
    calls = run.turn.calls if run.turn.number == turn else ()
    # A result is often told after its turn was closed.
    step = next((one for one in reversed(run.steps) if one.index == turn), None)
    calls = calls if step is None else step.tool_calls
    if place >= len(calls):
        return None
    return call_text(calls[place].name, calls[place].arguments, length_max)


def final_answer(result: ToolResult) -> str | None:
    """Return the answer itself where a result is one: the answer that was given by a tool."""
    if result.name != FINAL_ANSWER or result.status != "ok" or result.text == NOT_TAKEN:
        return None
    return clean(result.text)


class Shown:
    """The text of a run's last step that a screen has shown."""

    def __init__(self) -> None:
        """Begin with nothing shown."""
        self._text = ""

    def add(self, part: Part) -> None:
        """Take up a part that is shown."""
        match part:
            case TextDelta():
                self._text += part.text
            case ToolResultPart():
                self._text += final_answer(part.result) or ""
            case StepStart() | StepRetry():
                self._text = ""
            case _:
                pass

    def missing(self, result: RunResult[S]) -> str:
        """Return the run's answer if it is not shown: a person wrote it, or an earlier process."""
        answer = clean(result.text).strip()
        is_answer = result.end_reason is EndReason.COMPLETED
        return answer if is_answer and answer not in clean(self._text) else ""


def mark(result: ToolResult) -> str:
    """Return the sign of how a call went: done, failed, or not let through."""
    match result.status:
        case "ok" if result.name == FINAL_ANSWER and result.text == NOT_TAKEN:
            return "✗"
        case "ok":
            return "✓"
        case "denied" | "not_run":
            return "⊘"
        case _:
            return "✗"


def injected(run: Run[S] | None) -> tuple[str, str] | None:
    """Return who in the graph wrote the latest message, and what, if a node did."""
    last = run.messages[-1] if run is not None and run.messages else None
    if isinstance(last, UserMessage) and last.origin and isinstance(last.content, str):
        return last.origin, one_line(last.content, RESULT_MAX)
    return None


def state_text(run: Run[S]) -> str:
    """Return the user's state on one line; empty for a graph that carries none."""
    return "" if run.state is None else f"state: {one_line(repr(run.state), ASKED_MAX)}"


def tokens_text(usage: Usage | None) -> str:
    """Return how many tokens a usage counts, where a server told it."""
    return f"{usage.total_tokens:,} tokens" if usage else "tokens unknown"


def end_facts(result: RunResult[S]) -> Iterator[str]:
    """Yield why a run ended and what it took: reason, steps, tokens, cost where one is known."""
    reason = result.end_reason
    named = [name for name in result.stopped_by if name != reason]
    yield f"{reason} ({', '.join(named)})" if named else str(reason)
    if result.broken_rules:
        yield f"{counted(len(result.broken_rules), 'rule')} broken"
    if result.owed_rules:
        yield f"{counted(len(result.owed_rules), 'rule')} owed"
    yield counted(len(result.steps), "step")
    yield tokens_text(result.total_usage)
    if result.cost_usd is not None:
        yield f"${result.cost_usd:.4f}"
    elif not result.run.setup.model.startswith("script"):
        yield "cost unknown"


def ask_text(ask: Ask | Pending) -> str:
    """Return what is waited for: which call, in which agents, and whether it may have run."""
    kind = "approval of " if ask.kind == "approval" else "the result of "
    call = call_text(ask.name, ask.arguments, ASKED_MAX)
    return f"{kind}{agents_text(ask.agents)}{call}{_doubt(ask)}"


def short_ask_text(ask: Ask | Pending) -> str:
    """Return what is waited for where space is dear: an approval needs no word for it."""
    kind = "" if ask.kind == "approval" else "the result of "
    return f"{kind}{call_text(ask.name, ask.arguments)}{_doubt(ask)}"


def _doubt(ask: Ask | Pending) -> str:
    return "; it may have run already" if ask.unknown else ""


def counted(number: int, name: str) -> str:
    """Return a number of things: `1 step`, `2 steps`."""
    return f"{number} {name}{'' if number == 1 else 's'}"


def time_text(at: float) -> str:
    """Return a time in seconds since the epoch as people and programs read it, in UTC."""
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M:%S}Z"


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
