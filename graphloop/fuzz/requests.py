"""Requests: whether a model is sent the results that stand in the conversation.

What is sent may be less than the conversation, or more; a result that both have is the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

from ..effects import CallModel
from ..history import History
from ..values import Message, ToolResult
from .story import Story
from .violation import Violation

__all__ = ["untrue_requests"]

S = TypeVar("S")


def untrue_requests(story: Story[S]) -> Iterator[Violation]:
    """Yield each result that a model is sent, and that is another one in the conversation."""
    for number, chapter in enumerate(story.chapters, 1):
        run = chapter.run
        for effect in chapter.effects:
            if not isinstance(effect, CallModel) or _grows(effect.request.messages, run.messages):
                continue
            for key in _other_results(effect.request.messages, run.messages):
                found = f"the model is sent another result of call {key} than the conversation has"
                yield Violation("answers", f"{found}, by node {run.node!r}", number)


def _grows(sent: Sequence[Message], history: History[Message]) -> bool:
    return sent is history or (isinstance(sent, History) and sent.starts_with(history))


def _other_results(sent: Sequence[Message], history: Sequence[Message]) -> Iterator[str]:
    held = {one.key: one for one in history if isinstance(one, ToolResult) and one.key}
    for one in sent:
        if isinstance(one, ToolResult) and held.get(one.key, one) != one:
            yield one.key
