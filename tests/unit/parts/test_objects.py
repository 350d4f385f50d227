"""Partial objects: what is shown of an answer that is still being written."""

from __future__ import annotations

import json
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from graphloop.agent.final_answer import Output
from graphloop.parts.kinds import ObjectDelta, Part, StepFinish, StepRetry, StepStart
from graphloop.parts.objects import ObjectView
from graphloop.providers import TextDelta, ToolCallDelta
from graphloop.values import FinishReason, Usage

FINISH = StepFinish(0, FinishReason.STOP, Usage())


def shown(view: ObjectView, *parts: Part) -> list[object]:
    """Return the snapshots that these parts make."""
    return [one.object for part in parts for one in view.see(part)]


def test_the_text_of_a_turn_is_the_answer_where_the_server_sees_to_its_form() -> None:
    """Each snapshot is the whole so far."""
    pieces = ['{"ci', 'ty": "O', 'slo", "t', '": 7', "}"]

    every = shown(ObjectView(), StepStart(0), *map(TextDelta, pieces), FINISH)

    assert [{}, {"city": "O"}, {"city": "Oslo"}, {"city": "Oslo", "t": 7}] == every


def test_the_arguments_of_the_final_answer_are_the_answer_where_a_tool_takes_it() -> None:
    """Text beside it, other calls, and a second answer in the same turn are not it."""
    every = shown(
        ObjectView("final_answer"),
        StepStart(0),
        TextDelta('{"no": 1}'),
        ToolCallDelta(0, "a", "read", '{"no": 2}'),
        ToolCallDelta(1, "b", "final_answer", '{"yes": '),
        ToolCallDelta(0, "", "", "3"),
        ToolCallDelta(1, "", "", "1}"),
        ToolCallDelta(2, "c", "final_answer", '{"no": 4}'),
    )

    assert [{}, {"yes": 1}] == every


def test_a_new_turn_and_a_retry_begin_a_new_answer() -> None:
    """What was shown before is void, also half a text that another would complete."""
    view = ObjectView()

    assert [{"a": 1}] == shown(view, StepStart(0), TextDelta('{"a": 1'))
    assert [[]] == shown(view, StepRetry(0, FinishReason.LENGTH), TextDelta("["))
    assert [{"a": 1}] == shown(view, StepStart(1), TextDelta('{"a": 1'))


def test_prose_before_an_answer_shows_nothing() -> None:
    """A turn that asks for tools may talk, and that is no object."""
    assert [] == shown(ObjectView(), StepStart(0), TextDelta("Let me see. {"), FINISH)


def test_a_value_that_is_no_object_is_shown_out_of_its_wrapping() -> None:
    """The user asked for a list, and sees a list grow."""
    view = ObjectView(unwrap=Output(list[str]).unwrap)

    every = shown(view, StepStart(0), *map(TextDelta, ['{"value"', ": [", '"a"', "]}"]), FINISH)

    assert [[], ["a"]] == every


@given(st.lists(st.dictionaries(st.text(max_size=3), st.integers(), max_size=3)), st.data())
def test_the_last_snapshot_is_the_whole_answer_however_it_is_cut(
    answer: list[dict[str, int]], data: st.DataObject
) -> None:
    """Small pieces are read in groups; the rest of the last group must not be lost."""
    text = json.dumps(answer)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)))))
    bounds = [0, *cuts, len(text)]
    pieces = [text[one:after] for one, after in pairwise(bounds)]

    deltas = [ObjectDelta(one) for one in shown(ObjectView(), *map(TextDelta, pieces), FINISH)]

    assert ObjectDelta(answer) == deltas[-1]
