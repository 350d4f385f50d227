"""What may be answered to an effect covers what a driver may answer."""

from __future__ import annotations

from graphloop.events import Cancelled, EffectFailed, ModelReplied, Started
from graphloop.proofs.worlds import CONVERSATIONS, SETUPS, answers
from graphloop.step import begin
from graphloop.values import FinishReason
from tests.graphs import agent


def test_a_model_may_answer_by_every_finish_reason_or_not_at_all() -> None:
    """A witness may need any of them."""
    graph = agent()
    started = Started(0.0, "r", graph.name, CONVERSATIONS[""], SETUPS[0], None)

    events = list(answers(graph, begin(graph, started, None).run))

    reasons = {one.reply.finish_reason for one in events if isinstance(one, ModelReplied)}
    assert {
        FinishReason.STOP,
        FinishReason.TOOL_CALLS,
        FinishReason.LENGTH,
        FinishReason.PAUSE,
        FinishReason.REFUSAL,
        FinishReason.CONTEXT_WINDOW,
    } <= reasons
    assert any(isinstance(one, EffectFailed) for one in events)
    assert isinstance(events[-1], Cancelled)
