"""Story: a journal, told."""

from __future__ import annotations

from graphloop import Graph
from graphloop.approvals import Approval
from graphloop.drivers.sim import Simulation
from graphloop.events import CallCheck, Event
from graphloop.fuzz.story import Story, told
from graphloop.fuzz.subject import Subject
from tests.strategies import SETUP, Adversary, call, loop, reply
from tests.unit.fuzz.planted import BUGS

ASKED = Adversary(
    (reply("done"), reply(call("read", "", '{"long": "%s"}' % ("x" * 200)), call("client"))),
    checks=(CallCheck(needs_approval=True),),
    decisions=(Approval(approved=True, arguments="{}"),),
)


def story_of(simulation: Simulation[None], graph: Graph[None] | None = None) -> Story[None]:
    """Return the story of a simulation."""
    return told(Subject(graph or loop(), None, SETUP), simulation.events)


def test_a_story_has_a_chapter_for_each_event_and_ends_where_the_run_did() -> None:
    """It is the replay of the journal."""
    for crashes in ((), (2, 5)):
        simulation = ASKED.run(loop(), crash_after=crashes)
        story = story_of(simulation)

        assert simulation.events == [one.event for one in story.chapters]
        assert simulation.run == story.run
        assert story.broken is None


def test_a_line_says_what_was_heard_passed_and_wished_for() -> None:
    """It is what a person reads of a failure; long texts are cut."""
    text = "\n".join(story_of(ASKED.run(loop(), crash_after=(4,))).lines())

    for words in (
        "1 started; prepare_step -ready-> model_call; wants 1=model",
        "model: tool_calls, calls read(",
        "checked: ask, ask; wants 3=AskHuman",
        "decided: approved, with {}",
        "the process died; taken up again",
        "begun: ",
        "(c0.0): ok",
        "append -answered_calls-> stop_check",
    ):
        assert words in text
    assert all(len(line) < 500 for line in text.splitlines())


def test_what_breaks_a_run_ends_its_story() -> None:
    """The event that could not be taken is the last line."""
    graph = BUGS["an empty reply"][1]()
    journal: list[Event] = Adversary((reply(),)).run(loop()).events[:2]

    story = told(Subject(graph, None, SETUP), journal)

    assert isinstance(story.broken, IndexError)
    assert 1 == len(story.chapters)
    assert "model: stop" in list(story.lines())[-1]


def test_a_journal_that_breaks_at_once_has_no_chapters() -> None:
    """And no run."""
    story: Story[None] = Story((), ValueError("?"))

    assert story.run is None
    assert [] == list(story.lines())
